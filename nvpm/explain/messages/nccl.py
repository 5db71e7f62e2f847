# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that NCCL, its plug-ins, RCCL, FlagCX, UCCL and torchcomms print."""

from typing import Tuple

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import (
    CREATE,
    MODIFY_QP,
    OFI_PLUGIN_REG,
    REG_DMABUF_MR,
    REG_DMABUF_MR_DIRECT,
    REG_MR,
    RETRY,
)


# In each job, NCCL prints what it does not use, also where nothing is wrong. If data goes to other
# nodes, the unused part is the likely cause of the user's problem.
def of_network(*cases: Case) -> Tuple[Case, ...]:
    return (
        *(one._replace(when=(*one.when, "many_nodes"), sure=FITS) for one in cases),
        *(one._replace(sure=POSSIBLE) for one in cases),
    )


def likely(*cases: Case) -> Tuple[Case, ...]:
    return tuple(one._replace(sure=FITS) for one in cases)


# A connection by TCP failed. A peer that has ended refuses connections as well.
FIRST_CONNECTION = (
    Case(c.BOOTSTRAP, ("errno=ECONNREFUSED,ETIMEDOUT", "loopback"), sure=FITS),
    Case(c.BOOTSTRAP, ("errno=EHOSTUNREACH,ENETUNREACH,ETIMEDOUT",), ("loopback",), FITS),
    Case(c.BOOTSTRAP, ("errno=ECONNABORTED",), sure=FITS),
    Case(c.BOOTSTRAP, ("errno=ECONNREFUSED",), ("loopback",), POSSIBLE),
)
# NCCL found no file of a peer-memory module, and no dma-buf.
NOT_FOUND = likely(
    Case(c.AMD, ("amd",)),
    # GPUDirect RDMA with Omni-Path works through PSM2 only.
    Case(c.NIC_NEVER_ASKS, ("omni_path",)),
    Case(c.NO_PEER_ON_SOC, ("gb10",)),
    Case(c.GEFORCE, ("geforce",)),
    Case(c.MEMORY_PEERS, ("nccl<2.23", "peermem_loaded"), ()),
    Case(c.MEMORY_PEERS, ("nccl<2.23", "nccl>=2.20"), ()),
    # RDMA cores without memory_peers are newer than NCCL 2.19.
    Case(c.NO_CLIENT, ("nccl<2.20",), ("peermem_loaded",)),
    Case(c.NO_CLIENT, (), ("peermem_loaded", "nccl<2.23")),
    Case(c.MEMORY_PEERS, ("peermem_loaded",), ("nccl>=2.23",)),
    Case(c.NO_CLIENT, ("peermem_loaded", "nccl>=2.23"), ()),
)
# NCCL 2.4 to 2.12, which looks below /sys/kernel/mm/memory_peers only.
NOT_FOUND_BY_OLD = likely(
    Case(c.GEFORCE, ("geforce",)),
    Case(c.MEMORY_PEERS, ("peermem_loaded",), ()),
    Case(c.NO_CLIENT, (), ()),
)
# UCCL looks for the files that NCCL looks for, but not for the name nv_peer_mem.
NOT_FOUND_BY_UCCL = (
    Case(c.AMD, ("amd",)),
    Case(c.GEFORCE, ("geforce",)),
    Case(c.MARKER, ("peermem_loaded",), sure=FITS),
    Case(c.NO_CLIENT, (), (), FITS),
)
# The status of a completion, in the words of all versions.
STATUS = (
    Case(c.MTU, ("line:with <error |status=>1<,|> opcode",), sure=FITS),
    Case(c.MTU, ("line:status=IBV_WC_LOC_LEN_ERR",), sure=FITS),
    # With another vendor error the NIC refused the memory for another reason.
    Case(
        c.ACS, ("line:with <error |status=>4<,|> opcode", "line:vendor<_err=| err >81"), sure=FITS
    ),
    Case(c.ACS, ("line:with <error |status=>4<,|> opcode",), sure=POSSIBLE),
    Case(c.ACS, ("line:status=IBV_WC_LOC_PROT_ERR",), sure=FITS),
    Case(c.FREED, ("line:with <error |status=>10<,|> opcode",), sure=FITS),
    Case(c.FREED, ("line:status=IBV_WC_REM_ACCESS_ERR",), sure=FITS),
    Case(c.PEER_NIC, ("line:with <error |status=>11<,|> opcode",), sure=FITS),
    Case(c.PEER_NIC, ("line:status=IBV_WC_REM_OP_ERR",), sure=FITS),
    *(one._replace(when=("line:with <error |status=>12<,|> opcode", *one.when)) for one in RETRY),
    *(one._replace(when=("line:status=IBV_WC_RETRY_EXC_ERR", *one.when)) for one in RETRY),
)
# libfabric refused to make an endpoint or a queue.
OFI_CREATE = (
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), (), FITS),
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",), sure=FITS),
    Case(c.EFA_VERSIONS, ("efa",), ("errno=ENOMEM,EPERM,EACCES",), POSSIBLE),
)

SECTION = Section(
    "NCCL and its network plug-ins",
    "NCCL prints most of these lines only with `NCCL_DEBUG=INFO`. PyTorch, vLLM, "
    "Megatron and others print NCCL's messages.",
    (
        Message(
            "NET/IB<*> : GPU Direct RDMA Disabled for HCA",
            "NVIDIA/nccl: src/graph/topo.cc",
            NOT_FOUND,
            note="no file of a peer-memory module was found, and no dma-buf",
            unless=("line:(no module", "gdrdma", "one_node"),
        ),
        Message(
            "GPU Direct RDMA Disabled for GPU",
            "NVIDIA/nccl: src/graph/paths.cc, up to 2.28",
            (
                Case(c.DISTANCE, ("line:(distance",), ("amd",), FITS),
                Case(c.DISTANCE, sure=POSSIBLE),
            ),
            note="`(distance 5 > 4)`: the first number is that of this pair, the second is allowed",
            # NCCL prints the line also for those pairs that it does not need, and for TCP.
            unless=("line:NET/Socket", "gdrdma", "one_node", "tcp"),
        ),
        Message(
            "(no module or not supported by GPU",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.4",
            NOT_FOUND_BY_OLD,
            note="NCCL 2.4 to 2.7: there is no `/sys/kernel/mm/memory_peers/nv_mem/version`, or "
            "the GPU is a GeForce",
        ),
        Message(
            "GPU Direct RDMA Disabled for HCA <n> '<w>' (no module)",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.8",
            NOT_FOUND_BY_OLD,
            note="NCCL 2.8 to 2.12: there is no `/sys/kernel/mm/memory_peers/nv_mem/version`",
        ),
        Message(
            "Connected all rings, use ring PXN 0 GDR 0",
            "NVIDIA/nccl: src/transport/generic.cc",
            note="no ring uses GPUDirect RDMA. On one node, and on EFA, this is normal",
            do="`NCCL_DEBUG=INFO`, and look for `GPU Direct RDMA Disabled` above it",
            kind=FOLLOWS,
            unless=("gdrdma", "one_node", "efa", "tcp", "gb10"),
        ),
        Message(
            "[receive] via NET/IB<*>/<n>",
            "NVIDIA/nccl: src/transport/net.cc",
            (
                Case(c.DISTANCE, ("gdr_enabled",), ("gdr_disabled",), FITS),
                Case(c.NO_CLIENT, (), ("gdr_enabled", "gdr_disabled"), POSSIBLE),
            ),
            note="this channel goes through host memory, because `/GDRDMA` does not follow: too "
            "slow, without an error",
            unless=("line:GDRDMA", "amd", "gb10"),
        ),
        Message(
            "[send] via NET/IB<*>/<n>",
            "NVIDIA/nccl: src/transport/net.cc",
            (
                Case(c.DISTANCE, ("gdr_enabled",), ("gdr_disabled",), FITS),
                Case(c.NO_CLIENT, (), ("gdr_enabled", "gdr_disabled"), POSSIBLE),
            ),
            note="this channel goes through host memory, because `/GDRDMA` does not follow. GPUs "
            "before Ampere send so even if they receive with GPUDirect RDMA",
            unless=("line:GDRDMA", "gdrdma", "amd", "gb10"),
        ),
        Message(
            "<[send]|[receive]> via NET/<*>/GDRDMA",
            "NVIDIA/nccl: src/transport/net.cc",
            note="this channel uses GPUDirect RDMA. `(PCI)` after it: the channel goes through "
            "BAR1 on a Grace machine",
            kind=FINE,
        ),
        Message(
            "Call to ibv_reg_mr<_iova2|> failed with error",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            REG_MR,
            note="NCCL registers so if it does not use dma-buf. With nvidia-peermem a full BAR1 "
            "prints `Bad address`, too",
        ),
        Message(
            "Call to ibv_reg_mr failed",
            "NVIDIA/nccl: src/misc/ibvwrap.cc, 2.8",
            (
                Case(c.AMD, ("amd",)),
                Case(c.GEFORCE, ("geforce",)),
                Case(c.MEMLOCK, ("memlock_limited",), ()),
                Case(c.NO_CLIENT, (), ("peermem_loaded",), FITS),
                Case(c.BAR1, ("peermem_loaded", "memlock_unlimited"), sure=FITS),
                Case(c.MEMLOCK, ("peermem_loaded",), ("memlock_unlimited",), POSSIBLE),
            ),
            note="NCCL up to 2.8 and nccl-rdma-sharp-plugins do not print the error",
        ),
        Message(
            "Call to ibv_reg_dmabuf_mr failed with error",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            REG_DMABUF_MR,
        ),
        Message(
            "Call to ibv_create_<cq|qp> failed",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            # NCCL up to 2.8 does not print the error.
            (*CREATE, Case(c.MEMLOCK, (), ("line:with error", "memlock_unlimited"), FITS)),
        ),
        Message(
            "Call to ibv_modify_qp failed",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            (*MODIFY_QP, Case(c.GID, sure=POSSIBLE)),
            note="newer versions of NCCL print both GIDs in this line. If only distant ranks fail: "
            "`NCCL_CROSS_NIC=0`",
        ),
        Message(
            "Peermem is not supported, nor DMA-BUF",
            "NVIDIA/nccl: src/transport/net_ib/gin.cc",
            (Case(c.MARKER),),
            note="GIN with GDAKI looks for `/sys/module/nvidia_peermem`, or for dma-buf; the name "
            "nv_peer_mem is not enough",
        ),
        Message(
            "Peermem is not supported, and device",
            "NVIDIA/nccl: src/transport/net_ib/gin.cc",
            (Case(c.MARKER),),
            note="GIN with GDAKI found no nvidia_peermem, and the GPU's driver has no dma-buf; the "
            "open NVIDIA driver has it",
        ),
        Message(
            "No GIN-capable devices found",
            "NVIDIA/nccl: src/gin/gin_host.cc",
            note="no device passed GIN's tests",
            do="`NCCL_DEBUG=INFO`, and look for `Unable to use GIN` above it",
            kind=FOLLOWS,
        ),
        Message(
            "addresses that span multiple physical segments requires DMABUF",
            "NVIDIA/nccl: src/gin/gin_host.cc",
            (Case(c.SEVERAL_MAPPINGS),),
        ),
        Message(
            "not registered as DMABuf is not available",
            "NVIDIA/nccl: src/transport/net.cc",
            note="a buffer of the user has several VMM mappings, which only dma-buf registers in "
            "one piece. NCCL copies through its own buffers: slower, no error",
            do="The open NVIDIA driver and kernel 5.12; or `PYTORCH_CUDA_ALLOC_CONF` without "
            "`expandable_segments:True`",
            kind=FINE,
        ),
        Message(
            "failed to NET register userbuff",
            "NVIDIA/nccl: src/transport/net.cc",
            note="a buffer of the user was not registered; NCCL copies through its own buffers",
            do="`NCCL_DEBUG=INFO`, and look for `Call to ibv_reg_` above it",
            kind=FOLLOWS,
        ),
        Message(
            "DMA-BUF is available on GPU device",
            "NVIDIA/nccl: src/init.cc",
            note="NCCL registers by dma-buf and does not need this module",
            kind=FINE,
        ),
        Message(
            "error occurs when ACS is enabled",
            "NVIDIA/nccl: src/transport/net_ib/common.h",
            (Case(c.ACS),),
            sure=FITS,
        ),
        Message(
            "NET/IB : Got completion with error 4<,| >",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.8",
            (Case(c.ACS),),
            note="NCCL up to 2.10, local protection error",
            sure=FITS,
        ),
        Message(
            "NET/IB : Got completion from peer",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.11 to 2.28",
            STATUS,
            note="the number after `error` or `status=` says more. 4: ACS, IOMMU; 10, 11: the "
            "memory of the peer; 12: the network; 5: another request failed before",
        ),
        Message(
            "NET/IB: Got completion from peer",
            "NVIDIA/nccl: src/transport/net_ib/p2p.cc",
            STATUS,
            note="the number after `status=` says more: `IBV_WC_LOC_PROT_ERR` is 4, "
            "`IBV_WC_REM_ACCESS_ERR` 10, `IBV_WC_RETRY_EXC_ERR` 12",
        ),
        Message(
            "vendor<_err=| err >81",
            "NVIDIA/nccl: src/transport/net_ib.cc; nccl#1052, #660",
            (Case(c.ACS),),
            note="local protection error (0x51). In a virtual machine, ATS is missing as a rule",
            sure=FITS,
        ),
        Message(
            "vendor<_err=| err >136",
            "NVIDIA/nccl: src/transport/net_ib.cc",
            (Case(c.FREED),),
            note="remote access error (0x88)",
            sure=FITS,
        ),
        Message(
            "vendor<_err=| err >137",
            "NVIDIA/nccl: src/transport/net_ib.cc; nccl#214",
            (Case(c.PEER_NIC),),
            note="remote operation error (0x89)",
            sure=FITS,
        ),
        Message(
            "vendor<_err=| err >129",
            "NVIDIA/nccl: src/transport/net_ib.cc",
            (Case(c.NETWORK),),
            note="retries exceeded (0x81); `NCCL_IB_TIMEOUT` sets how long NCCL waits",
            sure=FITS,
        ),
        Message(
            "NET/<IB|gIB> : No device found",
            "NVIDIA/nccl: src/transport/net_ib/init.cc",
            (
                Case(c.RDMA_OFF, ("var:NCCL_IB_DISABLE=1",), sure=POSSIBLE),
                Case(c.NO_DEVICE, ("rdma_wanted",), ("var:NCCL_IB_DISABLE=1",), FITS),
                *of_network(Case(c.NO_DEVICE, (), ("var:NCCL_IB_DISABLE=1",))),
            ),
            unless=("one_node", "efa", "ofi_provider", "gdrdma", "connect_failed"),
        ),
        Message(
            "<Got async event : local catastrophic error|Got async error event: local catastrophic "
            "error>",
            "NVIDIA/nccl: src/transport/net_ib.cc, up to 2.22; nccl#230",
            (Case(c.NIC_LOST),),
            sure=FITS,
        ),
        Message(
            "Got async event : <client reregistration|LID change|SM change|P_Key change"
            "|GID table change|port active>",
            "NVIDIA/nccl: src/transport/net_ib.cc, up to 2.22; DeepSpeed#3272",
            note="the NIC reports a change, and NCCL goes on",
            kind=FINE,
        ),
        Message(
            "Got async error event: <client reregistration|LID change|SM change|P_Key change"
            "|GID table change|port active>",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.23 to 2.28",
            note="the NIC reports a change, and NCCL goes on",
            kind=FINE,
        ),
        Message(
            "<Got async event : port error|Got async error event: port error>",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.22 to 2.28; llm-d#191",
            (Case(c.PORT),),
        ),
        Message(
            "async fatal event",
            "NVIDIA/nccl: src/transport/net_ib/common.cc; nccl#1524",
            (
                # The NIC of the receiver refused an access to its own memory.
                Case(c.MTU, ("line:local access violation", "nccl>=2.20"), sure=POSSIBLE),
                Case(c.ACS, ("line:local access violation",), sure=POSSIBLE),
                Case(c.PORT, ("line:port error",), sure=FITS),
                Case(
                    c.NIC_REFUSED, (), ("line:local access violation", "line:port error"), POSSIBLE
                ),
            ),
            note="the NIC reports an error of its own; the kernel's lines with `mlx5` say more",
        ),
        Message(
            "NCCL_NET_GDR_LEVEL set by environment to",
            "NVIDIA/nccl: src/graph/paths.cc",
            (
                Case(c.DISTANCE, ("line:to <LOC|0>", "many_nodes"), sure=FITS),
                Case(c.DISTANCE, sure=POSSIBLE),
            ),
            note="someone limits the distance for GPUDirect RDMA; `LOC` turns it off",
            do="Remove the variable, or set the distance that `nvpm status` prints",
            unless=("line:to <SYS|5>", "gdrdma", "one_node"),
        ),
        Message(
            "NET/Plugin: Could not find",
            "NVIDIA/nccl: src/plugin/plugin_open.cc",
            note="there is no plug-in, and NCCL uses its own code for InfiniBand. Only EFA needs a "
            "plug-in, which is aws-ofi-nccl",
            kind=FINE,
        ),
        Message(
            "Plugin Path : <*>libnccl-net",
            "NVIDIA/nccl: src/plugin/net/net_v6.cc; nccl#1634",
            (Case(c.OTHER_VERSIONS, ("plugin_found", "plugin_missing")),),
            note="one host loads a network plug-in, and another has none; the two cannot connect, "
            "and NCCL waits without an error",
            do="The same image or module on all hosts, or `NCCL_NET_PLUGIN=none` on all",
            sure=FITS,
        ),
        Message(
            "unhandled system error",
            "NVIDIA/nccl: src/init.cc",
            note="a call of the system failed",
            do="Run again with `NCCL_DEBUG=INFO`, and look for `NCCL WARN` above it",
            kind=FOLLOWS,
        ),
        Message(
            "GDRCOPY lib wrapper not initialized",
            "NVIDIA/nccl: src/misc/gdrwrap.cc",
            (Case(c.GDRDRV),),
            note="NCCL uses gdrcopy only with `NCCL_GDRCOPY_ENABLE=1`. Its library may be missing, "
            "too",
            do="Install gdrcopy and load gdrdrv, or unset the variable",
            sure=FITS,
        ),
        Message(
            "Call to mlx5dv_reg_dmabuf_mr failed with error",
            "Mellanox/nccl-rdma-sharp-plugins: src/ibvwrap.c",
            REG_DMABUF_MR_DIRECT,
            note="dma-buf by the data-direct path of Grace and ConnectX-8, which this module does "
            "not serve",
        ),
        Message(
            "NET/OFI Unable to register memory (type =",
            "aws/aws-ofi-nccl: src/nccl_ofi_sendrecv.cpp; nccl#563, aws-ofi-nccl#584",
            OFI_PLUGIN_REG,
            note="EFA has a peer-memory module of its own, efa_nv_peermem. `Invalid argument`: "
            "NCCL 2.19 and later do not work with EFA installers before 1.29; "
            "`FI_EFA_SET_CUDA_SYNC_MEMOPS=0` goes on with them",
        ),
        Message(
            "register memory region with regattr",
            "aws/aws-ofi-nccl: src/nccl_ofi_ofiutils.cpp",
            OFI_PLUGIN_REG,
            note="libfabric or EFA refused the memory",
        ),
        Message(
            "Could not register memory on data rail",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp",
            note="libfabric or EFA refused the memory, in the plug-in's RDMA protocol",
            do="Look for `Couldn't register memory region with regattr` above it",
            kind=FOLLOWS,
        ),
        Message(
            "GDR support reported to NCCL but then couldn't be configured",
            "aws/aws-ofi-nccl: src/nccl_ofi_ofiutils.cpp",
            (Case(c.EFA_VERSIONS),),
        ),
        Message(
            "Could not disable CUDA API usage for HMEM",
            "aws/aws-ofi-nccl: src/nccl_ofi_ofiutils.cpp",
            (Case(c.EFA_VERSIONS),),
            note="this plug-in needs libfabric 1.18 or later",
        ),
        Message(
            "No eligible providers were found",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp",
            (
                Case(c.EFA_VERSIONS, ("efa",), sure=FITS),
                Case(c.NO_HMEM, (), ("efa",), POSSIBLE),
            ),
            note="libfabric has no provider with what the plug-in wants, for example GPU memory; "
            "`fi_info -p efa -c FI_HMEM` then prints nothing. With `Selected provider is` below "
            "it nothing is wrong",
            unless=("gdrdma", "one_node", "ofi_provider"),
        ),
        Message(
            "GDRDMA not enabled. Could not find memory_peers",
            "ROCm/rccl: src/transport/net_ib.cc",
            of_network(Case(c.AMD)),
        ),
        Message(
            "DMA_BUF_SUPPORT Failed due to OS kernel support",
            "ROCm/rccl: src/misc/rocmwrap.cc",
            of_network(Case(c.AMD)),
            note="the kernel lacks `CONFIG_PCI_P2PDMA` or `CONFIG_DMABUF_MOVE_NOTIFY`",
        ),
        Message(
            "falling back to nvidia-peermem",
            "flagos-ai/FlagCX: flagcx/flagcx.cc",
            note="FlagCX got no dma-buf from the driver, and registers through peer memory now",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "falling back to ibv_reg_mr_iova2 (needs peermem",
            "uccl-project/uccl: ep/src/rdma.cpp",
            note="UCCL got no dma-buf from the driver, and registers through peer memory now",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "RDMA buffer MR registration failed",
            "uccl-project/uccl: ep/src/rdma.cpp; uccl#839, #937",
            (
                Case(c.EFA_PEER, ("efa", "errno=EOPNOTSUPP,EFAULT")),
                Case(
                    c.OPTIONS,
                    ("efa", "errno=EINVAL"),
                    do="A wheel of UCCL for EFA; or build it where `/opt/amazon/efa` is",
                ),
                *REG_MR,
                Case(c.NO_CLIENT, (), ("peermem_loaded", "vmm"), POSSIBLE),
            ),
            note="on EFA, UCCL has to be built with `USE_DMABUF`",
        ),
        Message(
            "Lack of GPU Direct RDMA support",
            "uccl-project/uccl: collective/rdma/nccl_plugin.cc",
            NOT_FOUND_BY_UCCL,
            note="UCCL found no file of a peer-memory module, and no dma-buf",
        ),
        Message(
            "nvidia_peermem is not available for GPUDirect RDMA",
            "uccl-project/uccl: collective/rdma/rdma_test.cc",
            NOT_FOUND_BY_UCCL,
            note="UCCL's test found no file of a peer-memory module",
        ),
        Message(
            "CTRAN-IB: buffer registration failed",
            "meta-pytorch/torchcomms: comms/ctran/backends/ib/CtranIb.cc",
            (
                Case(c.NO_DMABUF, ("line:dmaBufSupport=true",), sure=POSSIBLE),
                Case(c.NO_CLIENT, (), ("line:dmaBufSupport=true",), POSSIBLE),
            ),
            note="`dmaBufSupport` in the line says whether torchcomms tried dma-buf or peer "
            "memory. The error stands in the line before it; the words about error 524 are a hint "
            "that stands in each such line",
        ),
        Message(
            "spans multiple cuMem allocations",
            "meta-pytorch/torchcomms: comms/ctran/backends/ib/CtranIb.cc",
            (Case(c.SEVERAL_MAPPINGS),),
        ),
        Message(
            "ncclSystemError: System call",
            "pytorch/pytorch: torch/csrc/distributed/c10d/NCCLUtils.cpp",
            note="PyTorch's words for `unhandled system error`",
            do="Look at `Last error:`, or run again with `NCCL_DEBUG=INFO` and look for "
            "`NCCL WARN` above it",
            kind=FOLLOWS,
        ),
        Message(
            "ncclRemoteError: A call failed possibly due to",
            "pytorch/pytorch: torch/csrc/distributed/c10d/NCCLUtils.cpp",
            note="PyTorch's words when a transfer failed or a process ended",
            do="`NCCL_DEBUG=INFO`, and look for `Got completion`; or the log of the process that "
            "ended first",
            kind=FOLLOWS,
        ),
        Message(
            "Using network Socket",
            "NVIDIA/nccl: src/init.cc",
            note="NCCL uses TCP and no RDMA: there is no device, no libibverbs, or RDMA is turned "
            "off",
            do="`NCCL_DEBUG=INFO`, and look for `NET/IB` above it; `ibv_devinfo` in the container",
            kind=FOLLOWS,
            unless=("one_node",),
        ),
        Message(
            "<[send]|[receive]> via NET/Socket/<n>",
            "NVIDIA/nccl: src/transport/net.cc",
            note="this channel goes by TCP",
            do="Look for `NET/IB` above it; `ibv_devinfo` in the container",
            kind=FOLLOWS,
            unless=(),
        ),
        Message(
            "Failed to open libibverbs.so",
            "NVIDIA/nccl: src/misc/ibvsymbols.cc, older; nvidia-container-toolkit#1877",
            (
                Case(c.NO_PROVIDER, ("rdma_wanted",), ("var:NCCL_IB_DISABLE=1",), FITS),
                *of_network(Case(c.NO_PROVIDER)),
            ),
            note="rdma-core is not installed in the container, and NCCL uses TCP",
            do="Install libibverbs1 and ibverbs-providers",
            unless=("one_node", "efa", "connect_failed"),
        ),
        Message(
            "NCCL_IB_DISABLE set by environment to 1",
            "NVIDIA/nccl: src/misc/param.cc",
            (Case(c.RDMA_OFF),),
            # People often set this variable on purpose, because RDMA has failed before.
            sure=POSSIBLE,
            unless=("one_node", "efa", "connect_failed"),
        ),
        Message(
            "NET/IB : Unable to open device",
            "NVIDIA/nccl: src/transport/net_ib/init.cc",
            (
                Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
                Case(c.DEVICE_DENIED, (), ()),
            ),
            note="the library of the NIC (ibverbs-providers) may be missing, too",
            sure=FITS,
        ),
        Message(
            "NET/IB : No IP interface found",
            "NVIDIA/nccl: src/transport/net_ib/init.cc",
            (Case(c.NO_INTERFACE),),
        ),
        Message(
            "Attempted to merge incompatible devices",
            "NVIDIA/nccl: src/transport/net_ib/init.cc",
            (Case(c.RAILS),),
            note="NICs of InfiniBand and of Ethernet, or of different vendors",
            do="`NCCL_IB_HCA` with NICs of one kind",
            sure=FITS,
        ),
        Message(
            "NET/IB/GIN: Got completion from peer",
            "NVIDIA/nccl: src/transport/net_ib/gin.cc",
            STATUS,
            note="the number after `status=` says more. 4: ACS, IOMMU; 10, 11: the memory of the "
            "peer; 12: the network",
        ),
        Message(
            "vendor<_err=| err >249",
            "NVIDIA/nccl: src/transport/net_ib.cc; nccl#1737",
            note="the queue was flushed (0xf9, error 5) after another failure",
            do="Look for the first `Got completion`, often in the log of another node",
            kind=FOLLOWS,
        ),
        Message(
            "NET/IB : Got completion with error 11<,| >",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.8; nccl#214",
            (Case(c.PEER_NIC),),
            note="NCCL up to 2.10, remote operation error",
            sure=FITS,
        ),
        Message(
            "NET/IB : Got completion with error 12<,| >",
            "NVIDIA/nccl: src/transport/net_ib.cc, 2.8; nccl-tests#24",
            RETRY,
            note="NCCL up to 2.10, retries exceeded; `NCCL_IB_TIMEOUT` sets how long NCCL waits",
            sure=FITS,
        ),
        Message(
            'Missing "iommu=pt" from kernel command line',
            "ROCm/rccl: src/init.cc",
            (Case(c.ACS, ("many_nodes",)),),
            note="RCCL prints this at each start on such a kernel",
            do="`iommu=pt` on the command line of the kernel",
            sure=POSSIBLE,
        ),
        Message(
            "Connection closed by remote peer",
            "NVIDIA/nccl: src/misc/socket.cc",
            note="another process has ended first",
            do="Look for the error in the log of the process that ended first",
            kind=FOLLOWS,
        ),
        Message(
            "Message truncated : received",
            "NVIDIA/nccl: src/bootstrap.cc; DeepEP#36",
            (Case(c.OTHER_VERSIONS),),
            sure=FITS,
        ),
        Message(
            "Failed to initialize any NET plugin",
            "NVIDIA/nccl: src/plugin/net.cc",
            (
                Case(c.RDMA_OFF, ("var:NCCL_NET",), sure=FITS),
                Case(c.NO_DEVICE, (), ("var:NCCL_NET",), POSSIBLE),
            ),
            note="NCCL found neither RDMA nor TCP that it can use, or `NCCL_NET` names a network "
            "that does not exist",
        ),
        Message(
            "<read|open> failed in ncclIbRoceGetVersionNum",
            "NVIDIA/nccl: src/transport/net_ib/init.cc, 2.21 and later; nccl#1573, #1538",
            (Case(c.GID),),
            note="NCCL read an entry of the GID table that is empty, or belongs to another "
            "container",
            do="NCCL 2.26 or later, which skips such entries; or `NCCL_IB_GID_INDEX` with an entry "
            "that `show_gids` prints",
        ),
        Message(
            "Check failed: ncclIbRoceGetVersionNum(",
            "uccl-project/uccl: collective/rdma/util_rdma.h; uccl#301",
            (Case(c.GID),),
            note="UCCL read an empty entry of the GID table",
            do="`UCCL_IB_GID_INDEX` with an entry that `show_gids` prints; or a newer UCCL",
        ),
        Message(
            "error occurs when NICs are not cross-rail connected",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            (Case(c.RAILS),),
            sure=FITS,
        ),
        Message(
            "error occurs when the incorrect GID index is forced",
            "NVIDIA/nccl: src/misc/ibvwrap.cc",
            (
                Case(c.RAILS, ("infiniband", "ethernet"), sure=FITS),
                Case(c.GID, ("var:NCCL_IB_GID_INDEX",), sure=FITS),
                Case(c.GID, (), ("infiniband",), FITS),
            ),
        ),
        Message(
            "NCCL WARN DOCA failure <n>",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/gin_host_gdaki.cc; nccl#1943, #2237",
            note="a call of DOCA failed in GIN with GDAKI. Number 21: the NIC's driver refused a "
            "queue, for example without GRH or for a GID",
            do="`DOCA_GPUNETIO_LOG=6`, and look for the lines before it; `NCCL_GIN_TYPE=2` goes on "
            "without GDAKI",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create gpu umem with dmabuf",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/doca-gpunetio/src",
            note="the kernel pins no dma-buf for queues, and DOCA registers through peer memory "
            "now",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "Failed to create gpu umem with nvidia-peermem mode",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/doca-gpunetio/src",
            (Case(c.PINNED_QUEUES),),
            note="DOCA got GPU memory for queues neither by dma-buf nor by peer memory",
            sure=FITS,
        ),
        Message(
            "Can't export UAR to GPU",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/doca-gpunetio/src",
            (Case(c.UAR),),
            note="DOCA may go on with a thread of the CPU (`Enabling CPU proxy mode`)",
            do='`options nvidia NVreg_RegistryDwords="PeerMappingOverride=1;"` in '
            "`/etc/modprobe.d`, then reboot; or `NCCL_GIN_TYPE=2`",
            sure=FITS,
        ),
        Message(
            "Failed to register memory with DMA-BUF<*>Trying a different",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/gin_host_gdaki.cc",
            note="NCCL registers in another way now, at last through peer memory",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "Failed to get DMA-BUF handle for address range with type PCIE",
            "NVIDIA/nccl: src/transport/net_ib/gdaki/gin_host_gdaki.cc",
            note="only Grace with ConnectX-8 has this type",
            kind=FINE,
        ),
        Message(
            "Failed to open mlx5dv symbols",
            "NVIDIA/nccl: src/transport/net_ib/init.cc",
            note="only Grace with ConnectX-8 has these features (data direct)",
            kind=FINE,
        ),
        Message(
            "mlx5dv_get_data_direct_sysfs_path failed",
            "NVIDIA/nccl: src/misc/mlx5dvwrap.cc; nccl#1866",
            note="the NIC has no data direct, which only Grace with ConnectX-8 uses",
            kind=FINE,
        ),
        Message(
            "NET/IB: The error is fatal (",
            "NVIDIA/nccl: src/transport/net_ib/p2p_resiliency.cc",
            note="NCCL could not go on without the NIC that failed",
            do="Look for `Got completion from peer` above it",
            kind=FOLLOWS,
        ),
        Message(
            "<Got non-fatal async event:|GID table changed>",
            "NVIDIA/nccl: src/transport/net_ib/common.cc",
            note="the NIC reports a change, and NCCL goes on",
            kind=FINE,
        ),
        Message(
            "NET/Plugin: Failed to find nccl<w> symbol",
            "NVIDIA/nccl: src/plugin/net.cc",
            note="the plug-in has no such version of the interface, and NCCL looks for another one",
            kind=FINE,
        ),
        Message(
            "NET/Plugin : No plugin found (",
            "NVIDIA/nccl: src/net.cc, up to 2.18",
            note="there is no plug-in, and NCCL uses its own code for InfiniBand. Only EFA needs a "
            "plug-in, which is aws-ofi-nccl",
            kind=FINE,
        ),
        Message(
            "<NET|TUNER|PROFILER>/Plugin<*>Plugin load<*>returned <n>",
            "NVIDIA/nccl: src/net.cc, 2.10 to 2.18",
            note="there is no plug-in, and NCCL uses its own code for InfiniBand. Only EFA needs a "
            "plug-in, which is aws-ofi-nccl",
            kind=FINE,
        ),
        Message(
            "gdr_pin_buffer<_v2|>(addr <n>, size <n>",
            "NVIDIA/nccl: src/misc/gdrwrap.cc",
            (
                Case(c.GDRDRV_OTHER, ("gdrcopy<2.4.2", "driver>=560"), ("geforce",)),
                Case(c.GEFORCE, ("geforce",)),
                Case(c.BAR1, ("line:failed: 12",), sure=FITS),
                Case(c.GDRDRV_OTHER, (), ("line:failed: 12",), POSSIBLE),
            ),
            note="NCCL uses gdrcopy only with `NCCL_GDRCOPY_ENABLE=1`, which can be unset",
        ),
        Message(
            "Failed to open libgdrapi.so",
            "NVIDIA/nccl: src/misc/gdrwrap.cc",
            (Case(c.GDRDRV),),
            note="NCCL uses gdrcopy only with `NCCL_GDRCOPY_ENABLE=1`; its library is missing",
            do="Install gdrcopy and load gdrdrv, or unset the variable",
            sure=FITS,
        ),
        Message(
            "<Could not|Couldn't> find any optimal provider",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.c, up to 1.7; nccl#229",
            (
                Case(c.EFA_VERSIONS, ("var:FI_PROVIDER=efa",), sure=FITS),
                Case(c.EFA_VERSIONS, (), (), POSSIBLE),
            ),
            note="libfabric has no provider with what the plug-in wants; `fi_info -p efa` then "
            "prints nothing",
            unless=("gdrdma", "one_node"),
        ),
        Message(
            "<Couldn't enable endpoint|Couldn't allocate endpoint|Couldn't create completion queue"
            "|Couldn't open CQ|Couldn't create domain|Couldn't open a fabric access domain>",
            "aws/aws-ofi-nccl: src/nccl_ofi_ofiutils.cpp; aws-ofi-nccl#44",
            OFI_CREATE,
        ),
        Message(
            "<EFA provider requires at least libfabric version|FI_OPT_EFA_EMULATED_WRITE is true "
            "when|and FI_OPT_CUDA_API_PERMITTED is not declared>",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp and others",
            (Case(c.EFA_VERSIONS),),
            sure=FITS,
        ),
        Message(
            "<gdaki_hw_counter: cntr_open_ext failed|gin GDAKI: createContext on a "
            "non-GDA-capable>",
            "aws/aws-ofi-nccl: src/rdma/gin; aws-ofi-nccl#1369",
            (Case(c.EFA_VERSIONS),),
            note="GIN in the GPU's kernels needs the newest libfabric, rdma-core and EFA driver",
            do="The newest EFA installer; or GIN by proxy (`NCCL_GIN_TYPE=2`)",
            sure=FITS,
        ),
        Message(
            "GIN requires GDRCopy 2.5+",
            "aws/aws-ofi-nccl: src/rdma/gin",
            (Case(c.GDRDRV_OTHER),),
            do="gdrcopy 2.5 or later, as library and as driver",
        ),
        Message(
            "NET/OFI Failed to initialize GDRCopy",
            "aws/aws-ofi-nccl: src/nccl_ofi_gdrcopy.cpp",
            (Case(c.GDRDRV),),
            sure=POSSIBLE,
        ),
        Message(
            "NET/OFI GDR disabled on GDR-supported instance type",
            "aws/aws-ofi-nccl: src/platform-aws.cpp; aws-ofi-nccl#889, #286",
            (Case(c.EFA_PEER),),
            note="the plug-in does not start: this instance type has GPUDirect RDMA, and libfabric "
            "offers no FI_HMEM. NCCL goes on with TCP",
            do="`FI_LOG_LEVEL=info fi_info -p efa -t FI_EP_RDM -c FI_HMEM` in the container says "
            "why: libcuda, another libfabric than the EFA installer's, the EFA driver "
            "(`/sys/class/infiniband/*/device/p2p`). `OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK=1` goes "
            "on through host memory",
            sure=FITS,
        ),
        Message(
            "NET/OFI Creating new endpoint for domain <w> failed",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.cpp; aws-ofi-nccl#889",
            note="the plug-in does not start, and NCCL goes on with TCP",
            do="Look for the line of NET/OFI above it, which has the reason",
            kind=FOLLOWS,
        ),
        Message(
            "NET/OFI Disabling shared memory failed",
            "aws/aws-ofi-nccl: src/nccl_ofi_ofiutils.cpp; aws-ofi-nccl#803",
            note="libfabric does not use the EFA device: the container may lack it",
            do="`fi_info -p efa` in the container must list the device (`--device=/dev/infiniband`"
            "); and one libfabric only, that of the EFA installer",
            kind=FOLLOWS,
        ),
        Message(
            "<Unable to find a protocol that worked|Local endpoint memory registration failed>",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.cpp and others; aws-ofi-nccl#889",
            note="the plug-in could not begin",
            do="`FI_LOG_LEVEL=warn`, and look for the first line with `libfabric`; `fi_info -p efa "
            "-c FI_HMEM` must print something",
            kind=FOLLOWS,
        ),
        Message(
            "NET/OFI Request <*>completed with error. RC: 20<.|,| >",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp; aws-ofi-nccl#161",
            (
                Case(c.SECURITY_GROUP, ("efa",), ("infiniband",), FITS),
                Case(c.SECURITY_GROUP, (), ("infiniband",), POSSIBLE),
            ),
            note="`Not a directory` and 20 are the words of Linux for EFA's own number: the other "
            "side cannot be reached",
        ),
        Message(
            "NET/OFI Request <*>completed with error. RC: <n>",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp; aws-ofi-nccl#161",
            note="a transfer failed; the words behind `Error:` are those of the device",
            do="The log of the peer first; then `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "NET/OFI Only EFA provider is supported",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.c, up to 1.8; deep-learning-containers#2675",
            note="the instance has no EFA device, and NCCL uses TCP",
            kind=FINE,
        ),
        Message(
            "NET/OFI Unable to insert remote address into address vector",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp; aws-ofi-nccl#663",
            (Case(c.SECURITY_GROUP),),
            note="the inbound and the outbound rule have to name the group itself",
            sure=POSSIBLE,
        ),
        Message(
            "NET/OFI Operation with NULL context completed with error",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp; nccl#1597",
            note="a transfer failed",
            do="`FI_LOG_LEVEL=warn`, and look for `libfabric` and `efa:cq` beside it",
            kind=FOLLOWS,
        ),
        Message(
            "Couldn't open AV",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.c; aws-ofi-nccl#24",
            OFI_CREATE,
        ),
        Message(
            "NIC_DUP_CONNS set on platform that supports GPUDirect RDMA",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.cpp",
            (Case(c.OPTIONS),),
            do="Remove `OFI_NCCL_NIC_DUP_CONNS`",
        ),
        Message(
            "CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA should be set",
            "ROCm/rccl: src/misc/rocmwrap.cc",
            of_network(Case(c.AMD)),
            note="RCCL on AMD GPUs: the kernel lacks these settings",
        ),
        Message(
            "<Dmabuf feature disabled without NCCL_DMABUF_ENABLE=1|Current version of ROCm does "
            "not support dmabuf feature>",
            "ROCm/rccl: src/misc/rocmwrap.cc",
            note="RCCL on AMD GPUs uses peer memory in place of dma-buf",
            kind=FINE,
        ),
        Message(
            "Check failed: mr ibv_reg_mr failed",
            "bytedance/ps-lite: src/rdma_transport.h; byteps#216, #282, #295",
            (
                Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited",), FITS),
                Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), (), POSSIBLE),
                *(one for one in REG_MR if "ENOMEM" not in str(one.when)),
            ),
            note="BytePS registers many small buffers of host memory; a smaller "
            "`BYTEPS_RDMA_RX_DEPTH` needs fewer",
        ),
        Message(
            "CTRAN ERROR <*>-> 524 (",
            "meta-pytorch/torchcomms: comms/ctran/backends/ib/CtranIb.cc; torchcomms#160",
            (Case(c.PAIR),),
            note="error 524 of the kernel; the line about `dmaBufSupport` that follows does not "
            "mean this",
        ),
        Message(
            "CTRAN ERROR <*>-> <n> (",
            "meta-pytorch/torchcomms: comms/ctran/backends/ib/CtranIb.cc",
            tuple(one for one in REG_MR if one.when != ("errno=ENOTSUPP",)),
            note="the error of the verb that failed, before the line about `dmaBufSupport`",
            sure=FITS,
        ),
        Message(
            "Data-Direct mlx5dv_reg_dmabuf_mr failed for NIC",
            "meta-pytorch/torchcomms: comms/prims/transport/MultiPeerIbTransport.cc; "
            "torchcomms#3027",
            REG_DMABUF_MR_DIRECT,
            sure=FITS,
        ),
        Message(
            "failed to register <send|recv|receive> buffer (<n> bytes) for RDMA",
            "meta-pytorch/torchcomms: ctranib_bench; torchcomms#2979",
            note="the line before it has the reason",
            do="Look for `cuMemGetHandleForAddressRange` or `ibv_reg_` above it",
            kind=FOLLOWS,
        ),
        Message(
            "cuMemGetHandleForAddressRange failed for VRAM segment",
            "meta-pytorch/torchcomms: comms/uniflow/transport/rdma",
            note="Uniflow goes on with `ibv_reg_mr`, which needs peer memory",
            do="If an error follows: `TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1` for expandable "
            "segments; else `nvpm status` says whether a module serves GPU memory",
            kind=FINE,
        ),
        Message(
            "cuMemGetHandleForAddressRange failed with flags: <n>, retrying",
            "aws/aws-ofi-nccl: src/nccl_ofi_cuda.cpp",
            note="only Grace has the mapping that was asked for first",
            kind=FINE,
        ),
        Message(
            "CUDA GDR channel is not viable because the nv_peer_mem kernel module isn't active",
            "pytorch/tensorpipe: tensorpipe/channel/cuda_gdr/context_impl.cc",
            (
                Case(c.MEMORY_PEERS, ("peermem_loaded",)),
                Case(c.MARKER, (), (), FITS),
            ),
            note="TensorPipe looks for `/sys/kernel/mm/memory_peers/nv_mem` and `nvidia-peermem`, "
            "and goes on without GPUDirect RDMA",
            do="Load nvidia_peermem or nv_peer_mem with an RDMA core that has that directory "
            "(MLNX_OFED before 24.04); with a newer core TensorPipe does without GPUDirect RDMA",
            sure=FITS,
        ),
        Message(
            "Attribute <w> of node <w> not found",
            "NVIDIA/nccl: src/graph/xml.h; aws-ofi-nccl#476, #785, nccl#379, #1726",
            (Case(c.TOPOLOGY_FILE),),
            note="NCCL reads all processors from the file, and looks only at those of its GPUs",
            sure=FITS,
        ),
        Message(
            "Call to connect <failed|timeout> :",
            "NVIDIA/nccl: src/include/socket.h, up to 2.6; nccl-tests#15, horovod#584",
            FIRST_CONNECTION,
            note="after the first connections, the line can also follow from the end of the peer: "
            "then look at the peer's log",
        ),
        Message(
            "<Net : |NCCL WARN >Connect to <w> failed",
            "NVIDIA/nccl: src/include/socket.h, up to 2.12; nccl#1105, oneflow#3586",
            FIRST_CONNECTION,
            note="after the first connections, the line can also follow from the end of the peer: "
            "then look at the peer's log",
        ),
        Message(
            "<socketStartConnect|socketPollConnect>: Connect to <w> <failed|returned>",
            "NVIDIA/nccl: src/misc/socket.cc; nccl-tests#166, sglang#3820",
            FIRST_CONNECTION,
            note="after the first connections, the line can also follow from the end of the peer: "
            "then look at the peer's log",
        ),
        Message(
            "is neither AF_INET(2) nor AF_INET6(10)",
            "NVIDIA/nccl: src/misc/socket.cc; nccl#1837",
            (Case(c.NO_INTERFACE),),
            note="`NCCL_SOCKET_IFNAME` names an interface that this host does not have",
            sure=FITS,
        ),
    ),
)
