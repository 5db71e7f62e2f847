# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that Mooncake, sglang, MORI and programs like them print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, NAMED, POSSIBLE, Case, Message, Section
from ..verbs import CREATE, KNOWN_ERRORS, MODIFY_QP, REG_DMABUF_MR, REG_MR, REG_MR_SILENT
from .libfabric import EFA_REG

# Mooncake's queue pairs pile up, so that ENOMEM is seldom about locked memory there.
QP_CREATE = (
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "line:rdma_endpoint.cpp"), ("memlock_limited",), FITS),
    Case(c.MAP_COUNT, ("errno=ENOMEM", "line:rdma_endpoint.cpp"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited", "line:rdma_endpoint.cpp"), FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM", "line:rdma_endpoint.cpp", "memlock_limited")),
    Case(
        c.MAP_COUNT,
        ("errno=ENOMEM",),
        ("memlock_limited", "line:rdma_endpoint.cpp"),
        POSSIBLE,
    ),
    *(one for one in CREATE if one.cause != c.MEMLOCK),
)
# Mooncake found no NIC. Nothing is wrong if the job is to use TCP or NVLink.
NO_RNIC = (
    Case(c.NO_DEVICE, ("rdma_wanted",), sure=FITS),
    Case(c.NO_DEVICE, ("many_nodes",), sure=FITS),
    Case(c.NO_DEVICE),
)

# Up to 0.3.12, Mooncake exports the mapping at the buffer's beginning alone.
RANGE_OF_MOONCAKE = (
    "Mooncake with #3538 (later than 0.3.12), which exports the whole buffer; else "
    "`PYTORCH_CUDA_ALLOC_CONF` without `expandable_segments:True`"
)
# Mooncake's own way for AMD's GPUs, in place of RCCL's.
HIP = (
    "Mooncake with #2225, built with `USE_HIP_DMABUF=ON`, which registers by dma-buf, and "
    "`MOONCAKE_DISABLE_HIP_DMABUF=0`. Older versions register a pointer, which needs amdgpu's peer "
    "memory"
)
# Monarch has no way by a pointer for GPU memory.
MONARCH_DMABUF = (
    "The open NVIDIA driver, kernel 5.12, and a driver of the NIC with the verb. Peer memory does "
    "not help this program"
)
MONARCH_RANGE = (
    "`PYTORCH_CUDA_ALLOC_CONF` without `expandable_segments:True`, or without "
    "`MONARCH_RDMA_IBVERBS_TARGET`, which names a NIC that is not the GPU's nearest; or Monarch "
    "with #4547"
)
MONARCH_EXPORT = (
    Case(
        c.EXPORT_PAGES,
        ("line:cu_err: 1,",),
        do="Monarch with #4285, which registers the whole allocation; else buffers whose address "
        "and size are multiples of `getconf PAGESIZE`",
    ),
    Case(c.NO_DMABUF, ("line:cu_err: 801,",), (), NAMED, MONARCH_DMABUF),
    Case(c.CUDA_CONTEXT, ("line:cu_err: 201,",)),
    Case(c.DESCRIPTORS, ("line:cu_err: 304,",)),
    Case(c.BAR1, ("line:cu_err: 2,",)),
    Case(
        c.NO_DMABUF,
        (),
        tuple(f"line:cu_err: {number}," for number in (1, 2, 201, 304, 801)),
        POSSIBLE,
        MONARCH_DMABUF,
    ),
)
ANY_ERROR = (KNOWN_ERRORS, "errno=EAGAIN,EMFILE,ENFILE")

SECTION = Section(
    "Mooncake, sglang, vLLM",
    "Mooncake registers with `ibv_reg_mr` by default, and as dma-buf with "
    "`WITH_NVIDIA_PEERMEM=0`. sglang and vLLM print the messages of Mooncake and "
    "NIXL.",
    (
        Message(
            "Failed to register memory <n>",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "Mooncake#351, #281, #751, #1405, #1765, #2511, #3538, #3639, sglang#6193, #6894",
            # The causes of Mooncake's own dma-buf come before the causes of any refused memory.
            (
                Case(
                    c.NO_ODP,
                    ("errno=EOPNOTSUPP", "mooncake_dmabuf", "mlx5_nic", "kernel>=7.2"),
                    ("vmm", "amd"),
                    FITS,
                ),
                Case(c.NO_DMABUF, ("errno=EOPNOTSUPP", "mooncake_dmabuf"), ("vmm",)),
                Case(
                    c.NO_ODP,
                    ("errno=EOPNOTSUPP", "mooncake_dmabuf", "mlx5_nic"),
                    ("vmm", "amd", "kernel>=7.2"),
                    POSSIBLE,
                ),
                Case(c.NO_DMABUF, ("errno=EINVAL", "mooncake_dmabuf"), ("vmm",), POSSIBLE),
                Case(
                    c.DMABUF_RANGE,
                    ("errno=EINVAL", "mooncake_dmabuf"),
                    ("geforce", "amd", "other_gpu"),
                    FITS,
                    RANGE_OF_MOONCAKE,
                ),
                Case(
                    c.DMABUF_RANGE,
                    ("errno=EINVAL", "vmm"),
                    ("geforce", "amd", "other_gpu", "mooncake_dmabuf"),
                    FITS,
                    RANGE_OF_MOONCAKE,
                ),
                # Mooncake registers a pointer, unless it is told to use dma-buf.
                Case(
                    c.DMABUF_RANGE,
                    ("errno=EINVAL",),
                    ("geforce", "amd", "other_gpu", "mooncake_dmabuf", "vmm"),
                    POSSIBLE,
                    RANGE_OF_MOONCAKE,
                ),
                Case(
                    c.AMD,
                    ("errno=EINVAL",),
                    ("geforce", "data_center", "amd", "other_gpu", "mooncake_dmabuf"),
                    POSSIBLE,
                    HIP,
                ),
                Case(c.VMM, ("errno=EINVAL", "vmm"), ("mooncake_dmabuf",), POSSIBLE),
                # Mooncake calls ibv_fork_init, with which each registration splits mappings.
                Case(
                    c.MAP_COUNT,
                    ("errno=ENOMEM",),
                    ("memlock_unlimited", "memlock_limited"),
                    POSSIBLE,
                ),
                Case(c.NO_CLIENT, (), (*ANY_ERROR, "peermem_loaded"), POSSIBLE),
                Case(c.MEMLOCK, (), (*ANY_ERROR, "memlock_unlimited"), POSSIBLE),
                Case(
                    c.NIC_LIMIT,
                    ("errno=EAGAIN",),
                    sure=FITS,
                    do="Fewer registrations; `rdma resource` counts those of each process. "
                    "Killed programs can leave some, which a reboot frees",
                ),
            )
            + tuple(one._replace(do=HIP) if one.cause == c.AMD else one for one in REG_MR),
            note="the error is at the end of the line; DLSlime prints the line without one. "
            "Only with `WITH_NVIDIA_PEERMEM=0` Mooncake registers a dma-buf. A buffer counts "
            "toward the limit on locked memory once for each NIC",
        ),
        Message(
            "Mooncake memory registration failed",
            "sgl-project/sglang: "
            "python/sglang/srt/disaggregation/mooncake/transfer_engine.py, 0.4; "
            "sglang#6193, #6894",
            note="sglang prints this line after Mooncake's own line",
            do="Look for `Failed to register memory` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "Mooncake Transfer Engine initialization failed",
            "sgl-project/sglang: python/sglang/srt/disaggregation/mooncake/transfer_engine.py",
            note="Mooncake found no NIC that it can use",
            do="Look for `No available RNIC`, `No matched device found` and `Failed to "
            "create` above it",
            kind=FOLLOWS,
        ),
        Message(
            "DMA BUF supported required for GPU RDMA",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "Mooncake#3538",
            (Case(c.NO_DMABUF),),
            note="`WITH_NVIDIA_PEERMEM=0` is set",
        ),
        Message(
            "Failed to retrieve dmabuf for",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.NO_DMABUF),),
            note="`WITH_NVIDIA_PEERMEM=0` is set",
        ),
        Message(
            "Failed to export dma_buf for addr",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp",
            (Case(c.NO_DMABUF),),
            note="`WITH_NVIDIA_PEERMEM=0` is set",
        ),
        Message(
            "Failed to register <GPU |>memory from <n>",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/tent/src/transport/rdma/context.cpp",
            REG_MR,
            note="the line is of Mooncake TENT",
        ),
        Message(
            "nvidia_peermem not detected",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/tent/src/transport/mpcomm/mpcomm_transport.cpp",
            (Case(c.MARKER),),
            note="TENT looks for the name in `/proc/modules`",
            sure=FITS,
        ),
        Message(
            "[EP IBGDA] ibv_reg_mr failed",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/device/ibgda_device_transport.cpp",
            REG_MR_SILENT,
            note="Mooncake EP always registers with `ibv_reg_mr`, and does not print the error",
        ),
        Message(
            "[EP IBGDA] mlx5dv_devx_umem_reg_ex failed",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/device/ibgda_device_transport.cpp",
            (
                Case(c.DEVX, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS",)),
                Case(c.MEMLOCK, ("errno=ENOMEM", "memlock_limited")),
                Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",)),
                Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
                Case(
                    c.PINNED_QUEUES,
                    (),
                    (
                        "errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS,EPERM,EACCES,EMFILE,ENFILE",
                        "memlock_limited",
                    ),
                    FITS,
                ),
            ),
            note="the queues of the NIC are in GPU memory, which was exported as dma-buf (kernel "
            "6.1 or later)",
        ),
        Message(
            "Failed to register memory regions, size",
            "bd-iaas-us/InfiniStore: src/infinistore.cpp; DeepLink-org/DLSlime: csrc/engine/rdma",
            REG_MR_SILENT,
            note="InfiniStore and DLSlime register with `ibv_reg_mr` alone, and do not print the "
            "error",
            sure=FITS,
        ),
        Message(
            "CUDA DMA-BUF control memory is unavailable",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/device/ibgda_device_transport.cpp",
            note="the queues are registered through peer memory instead",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "fi_mr_regattr failed for GPU memory",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/efa_transport/efa_context.cpp; "
            "Mooncake#3177",
            (
                *(
                    one
                    for one in EFA_REG
                    if "gpu" not in one.unless and one.cause != c.EFA_VERSIONS
                ),
                Case(c.EFA_VERSIONS, ("errno=EINVAL,EPROTONOSUPPORT",), ("infiniband",), FITS),
                # libfabric exports the memory in the thread that registers it.
                Case(c.CUDA_CONTEXT, ("errno=EOPNOTSUPP",), ("infiniband",), POSSIBLE),
                Case(c.EFA_VERSIONS, ("errno=EOPNOTSUPP,EFAULT",), ("infiniband",), POSSIBLE),
            ),
            note="with `FI_HMEM=system` in the environment, libfabric refuses all GPU memory; "
            "`FI_HMEM=cuda` allows it",
        ),
        Message(
            "received packet mismatch",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/transport/rdma_transport/"
            "rdma_endpoint.cpp; Mooncake#1151, #2270",
            note="the peer refused the connection, or both sides name a NIC differently",
            do="Look for the peer's line with `[Handshake]`. Each side's host name "
            "(`MOONCAKE_LOCAL_HOSTNAME`, `--host`) must be an address that the other reaches",
            kind=FOLLOWS,
        ),
        Message(
            "No available RNIC",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp",
            note="no NIC could be opened",
            do="Look for `No matched device found` and `Failed to create` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create completion queue",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            CREATE,
        ),
        Message(
            "Failed to create QP",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_endpoint.cpp; "
            "Mooncake#3639, #691, #1845",
            QP_CREATE,
            note="after failed transfers Mooncake makes new queue pairs again and again, so look "
            "for the first failed transfer; and it calls `ibv_fork_init`, which can use up "
            "`vm.max_map_count`",
        ),
        Message(
            "No matched device found",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.NO_DEVICE),),
            note="there is no NIC of this name",
            do="`ibv_devinfo` lists the names: correct `--disaggregation-ib-device` or "
            "`MC_MS_FILTERS`, or give the container the devices",
        ),
        Message(
            "Process failed for slice",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/worker_pool.cpp; Mooncake#3868",
            (
                Case(c.ACS, ("line:local protection error",)),
                Case(c.NETWORK, ("line:retry counter exceeded",)),
                Case(c.FREED, ("line:remote access error",)),
                Case(c.PEER_NIC, ("line:remote operation error",)),
                Case(c.MTU, ("line:remote invalid request",), sure=POSSIBLE),
            ),
            note="a transfer failed. The end of the line says how",
            sure=FITS,
        ),
        Message(
            "Kernel lacks CONFIG_PCI_P2PDMA / CONFIG_DMABUF_MOVE_NOTIFY",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.AMD),),
        ),
        Message(
            "RegisterRdmaMemoryRegion failed",
            "ROCm/mori: src/application/transport/rdma/rdma.cpp; mori#481",
            (
                Case(c.MEMLOCK, ("errno=ENOMEM",)),
                Case(c.AMD, ("errno=EINVAL",), do="`MORI_ENABLE_DMABUF_REG=1`", sure=POSSIBLE),
                Case(c.NIC_REFUSED, ("errno=EINVAL", "line:accessFlag:15"), sure=POSSIBLE),
                Case(c.AMD, (), ("errno=ENOMEM,EINVAL",), do="`MORI_ENABLE_DMABUF_REG=1`"),
            ),
            note="MORI is for AMD's GPUs. `accessFlag:15` asks for remote atomics, which some NICs "
            "do not have: they answer `Invalid argument`",
            sure=FITS,
        ),
        Message(
            "rkey not found for",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            note="no NIC has registered this address",
            do="Look for `Failed to register memory` above it. Without it the program never "
            "registered the buffer",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to call cuMemGetAddressRange for",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.NOT_GPU_MEMORY),),
            note="`WITH_NVIDIA_PEERMEM=0` is set",
        ),
        Message(
            "Failed to allocate new protection domain on device",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            CREATE,
        ),
        Message(
            "RdmaTransport: Failed to register memory: addr",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp; "
            "Mooncake#1592",
            note="one of several buffers was not registered",
            do="Look for the line `Failed to register memory 0x…` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to register memory region (chunk",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp",
            note="a part of a large buffer was not registered",
            do="Look for the line `Failed to register memory 0x…` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "cannot initialize RDMA resources",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp",
            note="no NIC could be opened",
            do="Look for `No matched device found` and `Failed to create` above it",
            kind=FOLLOWS,
        ),
        Message(
            "No RDMA devices found",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/topology.cpp; Mooncake#257",
            NO_RNIC,
            note="also with the protocol rdma, Mooncake then goes on with TCP (0.3.14) or NVLink, "
            "which is slow, or in older versions cannot send GPU memory",
            sure=POSSIBLE,
        ),
        Message(
            "No suitable GID found on",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "Mooncake#1592",
            (Case(c.GID),),
            do="`MC_GID_INDEX`, or an IP address for the NIC",
        ),
        Message(
            "Too many errors found in local RNIC",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/worker_pool.cpp, older; "
            "sglang#21395",
            note="transfers of this NIC failed again and again",
            do="Look for `Process failed for slice` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Context is not active: ",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "sglang#21395",
            note="Mooncake does not use this NIC any more",
            do="Look for `Process failed for slice` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to modify QP to <RTR|RTS>",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_endpoint.cpp; "
            "Mooncake#166, #204, #1066, #2758, uccl#641",
            MODIFY_QP,
            note="Mooncake, UCCL and other programs print these words. If Mooncake has several "
            "NICs, the two ends may have taken NICs of different rails",
            do="`MC_ENABLE_DEST_DEVICE_AFFINITY=1` on both sides (RoCE: NICs of the same name), "
            "`MC_GID_INDEX`; ping between the two NICs",
        ),
        Message(
            "Failed to modify QP to INIT, check local",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_endpoint.cpp; "
            "Mooncake#1143, #1145",
            (Case(c.NOT_MLX5, ("errno=EINVAL,EOPNOTSUPP",)), Case(c.PORT, ("errno=ENODEV",))),
            note="Intel's E810 refuses what Mooncake asks for here (atomic access)",
            sure=POSSIBLE,
        ),
        Message(
            "QP count mismatch in peer and local endpoints",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_endpoint.cpp",
            (Case(c.OTHER_VERSIONS),),
            do="The same version of Mooncake and the same `MC_NUM_QP_PER_EP` on both sides",
        ),
        Message(
            "Rejected handshake request by peer",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_endpoint.cpp",
            note="the peer could not set up its end of the connection",
            do="Look at the peer's log of that moment, for `[Handshake]`",
            kind=FOLLOWS,
        ),
        Message(
            "Cannot make connection for endpoint",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/worker_pool.cpp; Mooncake#166",
            note="Mooncake could not connect two NICs",
            do="Look for `[Handshake]` above it and in the peer's log, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "No rkey for MR access",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/worker_pool.cpp",
            note="the peer has not registered this address",
            do="Look for `Failed to register memory` in the peer's log",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to select remote NIC for address",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp, older; "
            "Mooncake#166",
            note="the peer has not registered this address, or has no NIC left",
            do="Look for `Failed to register memory` and `[Handshake]` on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "Received context async event",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/worker_pool.cpp",
            (
                Case(c.PORT, ("line:port error",)),
                Case(c.NIC_LOST, ("line:local catastrophic error",)),
                Case(c.MTU, ("line:local access violation",), sure=POSSIBLE),
            ),
            note="the NIC reported an event; `port active` is harmless. After `local access "
            "violation`, `MC_MTU=1024` on both sides shows whether it is the MTU",
            sure=FITS,
        ),
        Message(
            "GID is NULL, please check your GID",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.GID),),
        ),
        Message(
            "Failed to query GID <n> on",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "Mooncake#1592, #1597",
            (Case(c.GID, ("no_rnic",), sure=FITS), Case(c.GID)),
            note="older versions print many of these lines without harm, while they look for an "
            "entry",
            sure=POSSIBLE,
        ),
        Message(
            "Device <w> port not active",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.PORT, ("no_rnic",), sure=FITS), Case(c.PORT)),
            note="Mooncake passes over this NIC. Nothing is wrong if it has no cable and others "
            "are used",
            do="`ibstat`, and name the NICs that are up (`MC_MS_FILTERS`, "
            "`--disaggregation-ib-device`)",
            sure=POSSIBLE,
        ),
        Message(
            "has no active ports, skipping",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/topology.cpp",
            note="Mooncake passes over a NIC without a link",
            do="If this NIC should be used: `ibstat`, cable and switch",
            kind=FINE,
        ),
        Message(
            "Device <w> is not accessible for read/write",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/topology.cpp",
            (Case(c.DEVICE_DENIED),),
            sure=FITS,
        ),
        Message(
            "Device <w> path /dev/infiniband/<w> does not exist",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/topology.cpp",
            (Case(c.NO_DEVICE),),
            note="the container sees the NIC in `/sys`, and lacks its file",
            sure=FITS,
        ),
        Message(
            "Failed to open device <w> on port",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; "
            "Mooncake#3538",
            note="Mooncake passes over this NIC",
            do="Look for the line above it: a GID, a port or dma-buf",
            kind=FOLLOWS,
        ),
        Message(
            "rdma_context.cpp:<n>] ibv_get_device_list failed",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            (Case(c.NO_DEVICE),),
            sure=FITS,
        ),
        Message(
            "RDMA context setup failed: fork compatibility",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp",
            note="another library of this process used RDMA before. Mooncake goes on",
            kind=FINE,
        ),
        Message(
            "Session::<writeBody|readBody> failed",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/tcp_transport/tcp_transport.cpp; Mooncake#519",
            note="Mooncake uses TCP, by which older versions cannot send GPU memory",
            do="Look for `No RDMA devices found` and for the protocol (`tcp`) in the "
            "configuration, on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to install <RDMA|EFA> transport",
            "kvcache-ai/Mooncake: mooncake-store/src/client_service.cpp",
            note="no NIC could be opened",
            do="Look for `No matched device found`, `No suitable GID` and `port not active` above "
            "it",
            kind=FOLLOWS,
        ),
        Message(
            "No available EFA devices",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/efa_transport/efa_transport.cpp",
            note="libfabric could not open an EFA device",
            do="Look for `fi_getinfo failed for device` and `fi_domain failed` above it; "
            "`FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "EfaTransport: Failed to register memory: addr",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/efa_transport/efa_transport.cpp",
            note="libfabric refused the memory",
            do="Look for `fi_mr_regattr failed` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "EFA CQ error:",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/efa_transport/efa_context.cpp",
            note="a transfer failed; the words of the line are libfabric's",
            do="The log of the peer; `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to get kvcache from prefill instance",
            "sgl-project/sglang: python/sglang/srt/disaggregation/mooncake/conn.py; sglang#10560",
            note="in most cases the prefill instance lives, and its transfer failed",
            do="Look at both logs for `Process failed for slice`, `[Handshake]` and `Failed to "
            "register memory`",
            kind=FOLLOWS,
        ),
        Message(
            "Decode instance could be dead",
            "sgl-project/sglang: python/sglang/srt/disaggregation/mooncake/conn.py",
            note="in most cases the decode instance lives, and a transfer to it failed",
            do="Look at both logs for `Process failed for slice`, `[Handshake]` and `Failed to "
            "register memory`",
            kind=FOLLOWS,
        ),
        Message(
            "peercache: ibv_reg_mr failed",
            "peercache (a Python package of that name), 0.8.4",
            REG_MR_SILENT,
            sure=FITS,
        ),
        Message(
            "ibv_reg_mr failed for block at",
            "uccl-project/uccl: p2p/rdma/rdma_endpoint.cc; uccl#197",
            REG_MR_SILENT,
        ),
        Message(
            "[RDMA] ibv_reg_dmabuf_mr failed",
            "uccl-project/uccl: ep/src/rdma.cpp",
            note="UCCL-EP goes on with smaller pieces, or with peer memory",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "[RDMA] ibv_reg_dmabuf_mr chunk",
            "uccl-project/uccl: ep/src/rdma.cpp, ep/include/common.hpp; uccl#761",
            REG_DMABUF_MR,
        ),
        Message(
            "<Cannot get dmabuf fd for|Failed to register dmabuf> memory region<*>falling back to",
            "nvidia-holoscan/holoscan-sensor-bridge",
            note="Holoscan's sensor bridge goes on with `ibv_reg_mr`, which needs peer memory",
            do="If an error follows: `nvpm status` says whether a module serves GPU memory",
            kind=FINE,
        ),
        Message(
            "gpuMemGetHandleForAddressRange failed",
            "uccl-project/uccl: ep/src/rdma.cpp",
            note="the NVIDIA driver exports no dma-buf. UCCL-EP goes on with peer memory",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "RoCE path (ENODATA)",
            "uccl-project/uccl: ep/src/rdma.cpp",
            (Case(c.GID),),
            do="`UCCL_IB_GID_INDEX`, the same on both sides",
        ),
        Message(
            "failed to get dmabuf handle for CUDA memory",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/domain.rs; monarch#3810, #4285",
            MONARCH_EXPORT,
            note="Monarch registers GPU memory as dma-buf only. `cu_err` is CUDA's error: 1 is for "
            "a range that is not made of whole pages, 801 for a driver without dma-buf",
            sure=FITS,
        ),
        Message(
            "mlx5dv CUDA registration failed",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/mlx_domain.rs; monarch#4547",
            note="Monarch goes on with a dma-buf for each buffer. If a transfer fails with status "
            "10 later, this line is the reason",
            kind=FINE,
        ),
        Message(
            "completion failed for wr_id=<n>: status=10, vendor_err",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/queue_pair.rs; "
            "monarch#3759, #4547",
            (
                Case(c.DMABUF_RANGE, ("monarch_fallback",), sure=FITS, do=MONARCH_RANGE),
                Case(c.DMABUF_RANGE, ("vmm",), ("monarch_fallback",), FITS, MONARCH_RANGE),
                Case(c.FREED, (), ("monarch_fallback", "vmm"), POSSIBLE),
            ),
            note="a remote access error. The peer's dma-buf may have only the first of several "
            "mappings",
        ),
        Message(
            "failed to register dmabuf MR",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/domain.rs",
            (Case(c.NO_DMABUF, do=MONARCH_DMABUF),),
            note="Monarch registers GPU memory as dma-buf only, and does not print the error. If "
            "only large buffers fail, BAR1 is full",
            sure=POSSIBLE,
        ),
        Message(
            "failed to transition QP to <RTR|RTS>",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/queue_pair.rs",
            MODIFY_QP,
        ),
        Message(
            "failed to create <extended |>queue pair (QP)",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/queue_pair.rs; torchforge#493",
            (Case(c.NOT_MLX5, ("efa",), sure=FITS), *CREATE),
            note="Monarch makes queue pairs of mlx5's kind, which EFA does not have",
            sure=FITS,
        ),
        Message(
            "has no GID at index",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/primitives.rs",
            (Case(c.GID),),
        ),
        Message(
            "GPU Direct RDMA execution context validation failed",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/manager_actor.rs",
            note="Monarch does not let the GPU start transfers, and goes on without that",
            kind=FINE,
        ),
        Message(
            "Cannot create IbvManagerActor",
            "meta-pytorch/monarch: monarch_rdma/src/backend/ibverbs/manager_actor.rs",
            (Case(c.NO_DEVICE),),
            sure=FITS,
        ),
        Message(
            "Topology discovery complete. Found 0 HCA",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/transfer_engine_impl.cpp; "
            "Mooncake#257, #960, nixl#747",
            NO_RNIC,
            note="Mooncake goes on with NVLink or TCP",
            sure=POSSIBLE,
        ),
        Message(
            "No HCA detected and neither",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/transfer_engine_impl.cpp",
            (Case(c.NO_DEVICE),),
            note="this Mooncake is built without TCP and without NVLink, too",
            sure=FITS,
        ),
        Message(
            "Unsupported transport nvlink",
            "kvcache-ai/Mooncake: mooncake-transfer-engine/src/multi_transport.cpp; "
            "Mooncake#1612, vllm#51518",
            (Case(c.NO_DEVICE),),
            note="Mooncake found no NIC and tried NVLink, which this build does not have",
            unless=("var:MC_FORCE_MNNVL", "var:MC_INTRANODE_NVLINK"),
            sure=FITS,
        ),
        Message(
            "<nvlink_transport|NvlinkTransport><*>Requested address",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/nvlink_transport/nvlink_transport.cpp; "
            "vllm#51518",
            note="Mooncake uses NVLink between processes. It takes NVLink by itself if it finds no "
            "NIC",
            do="Look for `No RDMA devices found` at the start of both logs: then give the "
            "container `/dev/infiniband`",
            kind=FOLLOWS,
        ),
        Message(
            "GID <n> not available",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp, older; "
            "Mooncake#53",
            (Case(c.GID),),
        ),
        Message(
            "Memory region not registered by any active",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_transport.cpp; "
            "checkpoint-engine#34",
            note="no NIC has registered the memory",
            do="Look for the line `Failed to register memory 0x…` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to complete transfers after",
            "kvcache-ai/Mooncake: mooncake-store/src/transfer_task.cpp; Mooncake#1088",
            note="a transfer did not end in time",
            do="Look for `Process failed for slice` and `[Handshake]` on both sides; on RoCE "
            "`MC_GID_INDEX`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to send kv chunk",
            "sgl-project/sglang: python/sglang/srt/disaggregation/mooncake/conn.py; sglang#7118",
            note="a transfer of Mooncake or NIXL failed",
            do="Look for `Process failed for slice`, `[Handshake]` and `Failed to register memory` "
            "on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "buffer length exceeds device max_mr_size",
            "kvcache-ai/Mooncake: "
            "mooncake-transfer-engine/src/transport/rdma_transport/rdma_context.cpp; Mooncake#2017",
            (Case(c.NIC_LIMIT),),
            note="only the first part of the buffer is registered, so that transfers to the rest "
            "fail (`remote access error`)",
            do="Smaller buffers (`--mem-fraction-static`), or a newer Mooncake, which registers "
            "large buffers in pieces",
            sure=FITS,
        ),
    ),
)
