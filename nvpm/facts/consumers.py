# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The programs that register GPU memory: the ways that each tries, in the program's own order, and
the conditions of each way. outcomes.py applies the rows to this machine, and
tests/nvpm/programs_page.py makes the tables of docs/choosing.md and docs/consumers.md from them.

Each row names the source in which the order was read. For a new program, add a row, run
programs_page.py, and add a machine to tests/nvpm/programs_by_pair."""

from typing import NamedTuple, Tuple

from ..read.machine import PEERS
from ..read.ways import DMA_BUF

# The way of ibv_reg_mr(), which nv_peer_mem, nvidia_peermem, or the device's own driver serves.
POINTER = "pointer"

# The signs of peer memory for which programs look.
NV_MEM = PEERS + "/nv_mem/version"
NV_MEM_NC = PEERS + "/nv_mem_nc/version"
PEERMEM_CLIENT = PEERS + "/nvidia-peermem/version"
OTHER_NAME = "/sys/module/nvidia_peermem/version"
OWN_NAME = "/sys/module/nv_peer_mem/version"
LOADED = "nvidia_peermem in /proc/modules"
EITHER_LOADED = "nv_peer_mem or nvidia_peermem in /proc/modules"
SYMBOL = "ib_register_peer_memory_client in /proc/kallsyms"

# The signs that the marker provides.
MARKED = (OTHER_NAME, LOADED)

# The drivers of the RDMA devices for which a program was made.
MLX5 = ("mlx5_core",)
EFA = ("efa",)
INTEL = ("ice", "i40e", "idpf", "irdma")
# EFA has neither reliable connections (RC) nor dynamic ones (DC), which most programs use.
NO_RC = "EFA has no reliable connections"
# The numbers of EFA's first three generations.
EFA_1_TO_3 = ("0xefa0", "0xefa1", "0xefa2")

# The program tries its next way after a refused registration, or gives up.
NEXT, GIVES_UP = "tries the next way", "gives up"

# How a program ends if it finds no way.
FAILS = "fails"
HOST = "moves the data through host memory, without an error"


class Try(NamedTuple):
    """A way that a program tries, and its conditions."""

    way: str
    # The program takes the way only if one of these signs is there. A program without signs tries
    # the way without looking.
    looks_for: Tuple[str, ...] = ()
    # The setting that makes the program take the way. Without the setting, it passes the way over.
    setting: str = ""
    # A pattern of the names of devices with which the program takes the way.
    names: str = ""
    # The drivers of the devices with which the program takes the way; empty if it takes the way
    # with any device.
    drivers: Tuple[str, ...] = ()
    # The drivers and the PCI device numbers with which the program passes the way over.
    not_with: Tuple[str, ...] = ()
    not_on: Tuple[str, ...] = ()
    # Whether the program asks only the GPU's driver for dma-buf. The program then chooses
    # dma-buf even if the RDMA device cannot register a dma-buf.
    gpu_alone: bool = False
    refused: str = GIVES_UP


class Program(NamedTuple):
    """A program, its ways, and its RDMA devices."""

    name: str
    tries: Tuple[Try, ...]
    # The repository with version or commit, and the files in which the order was read.
    source: str
    without: str = FAILS
    # The setting that makes the program skip dma-buf.
    skip_dma_buf: str = ""
    # The drivers of the only devices that the program can use; empty if it can use others.
    only: Tuple[str, ...] = ()
    # The drivers of devices that the program cannot use, and the reason.
    never: Tuple[str, ...] = EFA
    why_never: str = NO_RC
    # The way out for these devices: a setting, or another build.
    instead: str = ""
    # An option of the NVIDIA driver without which the program refuses to start.
    driver_option: str = ""
    advice: str = ""
    # The scenario of the tests that ran the program, or the file in tests/ that ran it by hand.
    ran: str = ""
    # Whether the first screen names the program. The screen has no room for all.
    common: bool = False


def dma_buf(refused: str = GIVES_UP, gpu_alone: bool = False, setting: str = "") -> Try:
    return Try(DMA_BUF, gpu_alone=gpu_alone, refused=refused, setting=setting)


def pointer(*looks_for: str) -> Try:
    return Try(POINTER, looks_for)


NOTHING_ELSE = "It looks for nothing else, and this RDMA core does not have it:"
NCCL = "NVIDIA/nccl"
UCX = "openucx/ucx 9466d10"
UCX_SIGNS = (NV_MEM, OTHER_NAME, OWN_NAME)
UCX_TRIES = (dma_buf(), pointer(*UCX_SIGNS))
UCX_SKIP = "UCX_CUDA_COPY_DMABUF=no"
UCX_FILES = "src/ucp/core/ucp_mm.c, src/uct/ib/base/ib_md.c"
UCX_NOT_EFA = (
    "only UCX 1.20 and later, built with efadv, drives EFA; other builds move the data by TCP, "
    "without an error"
)
NCCL_SIGNS = (NV_MEM, NV_MEM_NC, OTHER_NAME)
NCCL_SKIP = "NCCL_DMABUF_ENABLE=0"
# These programs reach EFA in another way, which has a row of its own.
BY_PLUGIN = "it reaches EFA by the plug-in aws-ofi-nccl"
BY_PROVIDER = "its provider efa drives EFA"
BY_ANOTHER_ROW = (BY_PLUGIN, BY_PROVIDER)
MOONCAKE_DMA_BUF = "WITH_NVIDIA_PEERMEM=0"
CUFILE_DMA_BUF = "CUFILE_DMABUF_ENABLE=TRUE"
MOONCAKE = "kvcache-ai/Mooncake 3b5a594"
NEWER_PLUGIN = "with a plug-in from after 2026-05-13"
BY_RUN = "with nvpm run PROGRAM"

# The first rows are those of the programs that most people use, because the first screen cuts the
# list.
PROGRAMS = (
    Program(
        "NCCL, newer",
        (dma_buf(), pointer(*NCCL_SIGNS)),
        f"{NCCL} v2.23.4-1 and 5067397: src/transport/net_ib/gdr.cc, src/transport/net.cc",
        without=HOST,
        skip_dma_buf=NCCL_SKIP,
        why_never=BY_PLUGIN,
        ran="real/nccl.py",
        common=True,
    ),
    Program(
        "NCCL, up to 2.22",
        (dma_buf(), pointer(NV_MEM)),
        f"{NCCL} v2.12.7-1 to v2.22.3-1: src/transport/net_ib.cc, src/transport/net.cc",
        without=HOST,
        skip_dma_buf=NCCL_SKIP,
        why_never=BY_PLUGIN,
        advice=f"{NOTHING_ELSE} update NCCL.",
        common=True,
    ),
    Program(
        "NCCL, by aws-ofi-nccl",
        (
            Try(DMA_BUF, not_on=EFA_1_TO_3),
            pointer(),
            dma_buf(setting=NEWER_PLUGIN),
        ),
        "aws/aws-ofi-nccl 2daf7d3 and 0f285d5^: src/nccl_ofi_dmabuf.cpp",
        without=HOST,
        skip_dma_buf="OFI_NCCL_DISABLE_DMABUF=1",
        only=EFA,
        never=(),
        common=True,
    ),
    Program(
        "UCX",
        UCX_TRIES,
        f"{UCX}: {UCX_FILES}",
        without=HOST,
        skip_dma_buf=UCX_SKIP,
        why_never=UCX_NOT_EFA,
        ran="both_ways",
        common=True,
    ),
    Program(
        "NIXL, by UCX",
        UCX_TRIES,
        f"ai-dynamo/nixl 8770b65: src/plugins/ucx; {UCX}: {UCX_FILES}",
        without=HOST,
        skip_dma_buf=UCX_SKIP,
        why_never=UCX_NOT_EFA,
        instead="choose the backend LIBFABRIC",
        ran="both_ways",
        common=True,
    ),
    Program(
        "NIXL, by LIBFABRIC",
        (dma_buf(NEXT), pointer()),
        "ai-dynamo/nixl 8770b65: src/plugins/libfabric; ofiwg/libfabric af8ddbe: "
        "prov/efa/src/efa_hmem.c",
        skip_dma_buf="FI_HMEM_CUDA_USE_DMABUF=0",
        only=EFA,
        never=(),
        common=True,
    ),
    Program(
        "NVSHMEM",
        (
            dma_buf(NEXT, gpu_alone=True),
            pointer(NV_MEM, PEERMEM_CLIENT, OTHER_NAME),
        ),
        "NVIDIA/nvshmem 2d7d25f (3.5.1): src/modules/transport/common/transport_ib_common.cpp, "
        "src/modules/transport/ibrc/ibrc.cpp",
        skip_dma_buf="NVSHMEM_IB_DISABLE_DMABUF=1",
        instead="NVSHMEM_REMOTE_TRANSPORT=libfabric NVSHMEM_LIBFABRIC_PROVIDER=efa",
        common=True,
    ),
    Program(
        "Mooncake",
        (pointer(), dma_buf(setting=f"with {MOONCAKE_DMA_BUF}")),
        f"{MOONCAKE}: mooncake-common/src/environ.cpp, "
        "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
        instead="build it with USE_EFA=ON",
        ran="mooncake",
        common=True,
    ),
    Program(
        "perftest",
        (pointer(), dma_buf(setting="with --use_cuda_dmabuf")),
        "linux-rdma/perftest 00b55b6: src/cuda_memory.c",
        never=(),
        ran="both_ways",
        common=True,
    ),
    Program(
        "libfabric",
        (
            dma_buf(NEXT),
            Try(POINTER, (SYMBOL,), names="mlx|bnxt_re|roce"),
        ),
        "ofiwg/libfabric af8ddbe: prov/verbs/src/verbs_mr.c, prov/verbs/src/verbs_info.c",
        skip_dma_buf="FI_VERBS_USE_DMABUF=0",
        why_never=BY_PROVIDER,
        ran="libfabric",
        common=True,
    ),
    Program(
        "libfabric, provider efa",
        (dma_buf(NEXT), pointer()),
        "ofiwg/libfabric af8ddbe: prov/efa/src/efa_hmem.c",
        without=HOST,
        skip_dma_buf="FI_HMEM_CUDA_USE_DMABUF=0",
        only=EFA,
        never=(),
    ),
    Program(
        "UCC",
        UCX_TRIES,
        f"openucx/ucc 8263de4: src/components/tl/ucp; {UCX}: {UCX_FILES}",
        without=HOST,
        skip_dma_buf=UCX_SKIP,
        why_never=UCX_NOT_EFA,
    ),
    Program(
        "UCC, TL mlx5",
        (pointer(*UCX_SIGNS),),
        "openucx/ucc 8263de4: src/components/tl/mlx5/tl_mlx5_context.c, "
        "mcast/tl_mlx5_mcast_rcache.c",
        without="leaves GPU memory to another transport of UCC, without an error",
        only=MLX5,
    ),
    Program(
        "Open MPI, by UCX",
        UCX_TRIES,
        f"{UCX}: {UCX_FILES}",
        without=HOST,
        skip_dma_buf=UCX_SKIP,
        why_never=UCX_NOT_EFA,
        instead="--mca pml cm --mca mtl ofi",
        ran="openmpi",
        common=True,
    ),
    Program(
        "Open MPI openib, up to 4.1",
        (pointer(NV_MEM),),
        "open-mpi/ompi v4.1.x: opal/mca/btl/openib/btl_openib_mca.c",
        without=HOST,
        advice=f"{NOTHING_ELSE} use UCX (--mca pml ucx).",
    ),
    Program(
        "NCCL GIN, GDAKI",
        (dma_buf(NEXT), pointer(OTHER_NAME)),
        f"{NCCL} 5067397: src/transport/net_ib/gin.cc, "
        "src/transport/net_ib/gdaki/gin_host_gdaki.cc",
        without="says that GIN cannot be used, in NCCL's log",
        skip_dma_buf=NCCL_SKIP,
        only=MLX5,
        common=True,
    ),
    Program(
        "UCX GDAKI",
        (dma_buf(NEXT), pointer(*UCX_SIGNS)),
        f"{UCX}: src/uct/ib/mlx5/gdaki/gdaki.c",
        without="leaves the transport rc_gda out, without an error",
        skip_dma_buf="UCX_IB_GDA_DMABUF_ENABLE=no",
        only=MLX5,
        driver_option="PeerMappingOverride=1",
        common=True,
    ),
    Program(
        "mscclpp",
        (dma_buf(gpu_alone=True), pointer(LOADED)),
        "microsoft/mscclpp 1f5f065 (0.9.0): src/core/ib.cc",
        common=True,
    ),
    Program(
        "cuFile, RDMA in user space",
        (pointer(LOADED), dma_buf(setting=f"with {CUFILE_DMA_BUF}")),
        "no public source; NVIDIA, cuObject, RDMA peer memory configuration; its own words",
        without=HOST,
        common=True,
    ),
    Program(
        "gpu-operator",
        (pointer(LOADED),),
        "NVIDIA/gpu-operator a22dbf6: cmd/nvidia-validator/main.go",
        never=(),
    ),
    Program(
        "Mooncake TENT",
        (pointer(LOADED),),
        f"{MOONCAKE}: mooncake-transfer-engine/tent/src/transport/rdma/rdma_transport.cpp",
        without=HOST,
    ),
    Program(
        "Mooncake MPComm",
        (pointer(LOADED),),
        f"{MOONCAKE}: mooncake-transfer-engine/tent/src/transport/mpcomm/mpcomm_transport.cpp",
        without=HOST,
    ),
    Program(
        "Mooncake EP",
        (pointer(),),
        f"{MOONCAKE}: mooncake-transfer-engine/src/transport/device/ibgda_device_transport.cpp",
        only=MLX5,
    ),
    Program(
        "DeepEP HybridEP",
        (pointer(),),
        "deepseek-ai/DeepEP, branch hybrid-ep, and pull request 748",
        only=MLX5,
    ),
    Program(
        "UCCL, plug-in of NCCL",
        (dma_buf(), pointer(*NCCL_SIGNS)),
        "uccl-project/uccl da914a2: collective/rdma/nccl_plugin.cc, collective/rdma/transport.cc",
        without=HOST,
        skip_dma_buf=NCCL_SKIP,
        instead="UCCL has another plug-in for EFA",
    ),
    Program(
        "UCCL P2P",
        (Try(DMA_BUF, drivers=INTEL), Try(POINTER, not_with=INTEL)),
        "uccl-project/uccl da914a2: p2p/rdma/rdma_context.cc",
    ),
    Program(
        "UCCL EP",
        (pointer(),),
        "uccl-project/uccl da914a2: ep/src/proxy.cpp, ep/Makefile",
        never=(),
    ),
    Program(
        "UCCL EP, built with USE_DMABUF=1 or for Intel",
        (dma_buf(NEXT), pointer()),
        "uccl-project/uccl da914a2: ep/src/rdma.cpp, ep/include/common.hpp",
        never=(),
    ),
    Program(
        "FlagCX",
        (pointer(NV_MEM, PEERMEM_CLIENT), dma_buf(setting="with FLAGCX_DMABUF_ENABLE=1")),
        "FlagOpen/FlagCX cbf2f48: flagcx/core/proxy.cc, flagcx/adaptor/net/ibrc_adaptor.cc",
        without=HOST,
    ),
    Program(
        "torchcomms, CTRAN",
        (dma_buf(gpu_alone=True), pointer()),
        "meta-pytorch/torchcomms 59426ba: comms/ctran/backends/ib/CtranIb.cc",
        skip_dma_buf="NCCL_CTRAN_IB_DMABUF_ENABLE=0",
    ),
    Program(
        "monarch",
        (dma_buf(gpu_alone=True),),
        "meta-pytorch/monarch 3fc0a66: monarch_rdma/src/backend/ibverbs/domain.rs, efa_domain.rs",
        never=(),
    ),
    Program(
        "gloo, ibverbs",
        (pointer(EITHER_LOADED),),
        "facebookincubator/gloo cc44198: gloo/transport/ibverbs/device.cc, buffer.cc",
    ),
    Program(
        "TensorPipe, cuda_gdr",
        (pointer(NV_MEM, PEERMEM_CLIENT),),
        "pytorch/tensorpipe 2b4cd91: tensorpipe/channel/cuda_gdr/context_impl.cc",
        without="leaves the channel out, without an error",
    ),
    Program(
        "GASNet-EX 2020.11 (UPC++, Chapel, Legion)",
        (pointer(NV_MEM),),
        "GASNet-EX, in chapel-lang/chapel 4bf5d7a: other/kinds/gasnet_cuda_uva.c",
        only=MLX5,
        advice=f"{NOTHING_ELSE} it works with the RDMA cores that have this file (support.md).",
    ),
    # For these programs, the preloaded library registers memory as a dma-buf: nvpm_preload(7)
    Program(
        "ibv_reg_mr of a pointer",
        (pointer(), dma_buf(setting=BY_RUN)),
        "the verbs themselves",
        never=(),
        ran="examples",
        common=True,
    ),
)
