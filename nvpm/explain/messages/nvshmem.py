# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of NVSHMEM and DeepEP."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import OFI_REG, REG_MR, RETRY

# Memory for the NIC's queues was refused; the line has no error.
QUEUES = (
    Case(c.MEMLOCK, ("memlock_limited",)),
    Case(c.MEMLOCK, ("var:NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE=hostmem",), ()),
    Case(c.PINNED_QUEUES, (), (), FITS),
)
TIMEOUT = (
    "Look for NVSHMEM's errors at the start (`NVSHMEM_DEBUG=INFO`), and for the kernel's lines "
    "with `mlx5`; `ib_write_bw` between the same two NICs shows the network alone"
)

SECTION = Section(
    "NVSHMEM and DeepEP",
    "NVSHMEM prints `INFO` lines with `NVSHMEM_DEBUG=INFO` only. It does not look for "
    "the name nv_peer_mem.",
    (
        Message(
            "neither nv_peer_mem, or nvidia_peermem detected",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp; DeepEP#55, #223",
            (
                Case(c.GEFORCE, ("geforce",)),
                Case(c.MEMORY_PEERS, ("peermem_loaded",), ("nvshmem>=3.2",)),
                Case(c.MARKER, ("peermem_loaded", "nvshmem>=3.2"), sure=FITS),
                Case(c.NO_CLIENT, (), (), FITS),
            ),
            note="none of NVSHMEM's files exists, and the GPU's driver has no dma-buf. Without "
            "`memory_peers` the marker is needed",
        ),
        Message(
            "init failed for transport: IBGDA",
            "NVIDIA/nvshmem: src/host/transport/transport.cpp",
            note="if no line before it says why, no NIC passed the tests",
            do="`NVSHMEM_DEBUG=INFO`, and look for `ibgda.cpp` above it",
            kind=FOLLOWS,
        ),
        Message(
            "init failed for remote transport: ibrc",
            "NVIDIA/nvshmem: src/host/transport/transport.cpp",
            note="the transport by proxy has failed",
            do="`NVSHMEM_DEBUG=INFO`, and look for `ibrc.cpp` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Unable to initialize any transports",
            "NVIDIA/nvshmem: src/host/transport/transport.cpp",
            note="NVSHMEM has no transport to other nodes: ibrc and IBGDA have failed before",
            do="`NVSHMEM_DEBUG=INFO`, and look for `init failed` and the lines above it",
            kind=FOLLOWS,
        ),
        Message(
            "nvshmem detect topo failed",
            "NVIDIA/nvshmem: src/host/init/init.cu, 3.2; DeepEP#55",
            note="a consequence of `Unable to initialize any transports` in NVSHMEM up to 3.2",
            do="`NVSHMEM_DEBUG=INFO`, and look for `init failed` and the lines above it",
            kind=FOLLOWS,
        ),
        Message(
            "connect EPS failed",
            "NVIDIA/nvshmem: src/host/transport/transport.cpp; nvshmem#33",
            note="the network, or a queue that the NIC refused",
            do="`NVSHMEM_DEBUG=INFO`, and look for `non-zero status` or `Error in` above it",
            kind=FOLLOWS,
        ),
        Message(
            "NULL value mem registration failed",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_ib_common.cpp",
            (
                Case(c.GEFORCE, ("geforce",)),
                Case(c.MEMLOCK, ("memlock_limited",), ()),
                Case(c.NO_CLIENT, ("lsmod_asked",), ("peermem_loaded",), FITS),
                Case(c.BAR1, ("memlock_unlimited",), sure=FITS),
                Case(c.MEMLOCK, (), ("memlock_limited", "memlock_unlimited"), POSSIBLE),
            ),
            note="`ibv_reg_mr` of the heap failed. A smaller `NVSHMEM_SYMMETRIC_SIZE` needs less",
            unless=("line:Reason:",),
        ),
        Message(
            "mem registration failed. Reason",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_ib_common.cpp",
            REG_MR,
            note="`ibv_reg_mr` of the heap failed. A smaller `NVSHMEM_SYMMETRIC_SIZE` needs less",
        ),
        Message(
            "Unable to register memory handle",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="the heap could not be registered",
            do="Look for `mem registration failed` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Unable to register memory for IBGDA transport",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="IBGDA could not register GPU memory of its own",
            do="Look for `mem registration failed` above it",
            kind=FOLLOWS,
        ),
        Message(
            "cannot register <cq|wq|dbr> buf",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#36",
            QUEUES,
            note="memory for a completion queue, a send queue or a doorbell record was refused",
        ),
        Message(
            "does not support registering the NIC control buffers with DMABUF",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="the kernel is older than 6.1, so that queues go through peer memory",
            do="If an error follows: load the module",
            kind=FINE,
        ),
        Message(
            "cannot allocate buffer on the specified memory type",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; nvshmem#51",
            QUEUES,
            note="a test registration of queue memory failed, in GPU or in host memory",
        ),
        Message(
            "no active IB device that supports GPU-initiated communication",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="all NICs were skipped",
            do="`NVSHMEM_DEBUG=INFO`, and look for `Skipping...` above it",
            kind=FOLLOWS,
        ),
        Message(
            "is not enumerated as an mlx5 device",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#202",
            (
                Case(c.NOT_MLX5, ("line:device <erdma|bnxt|ionic|irdma|hns|mana|rdmap|efa|qedr>",)),
                Case(
                    c.NIC_NAME,
                    (),
                    (),
                ),
            ),
            note="IBGDA works with mlx5 only, and looks at the name of the device. On nodes with "
            "several kinds of NICs the line has no meaning",
            sure=FITS,
            unless=("one_node",),
        ),
        Message(
            "cannot allocate mlx5dv_devx_uar",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; sglang#12533, vllm#27196",
            (
                Case(c.UAR, sure=FITS),
                Case(c.NIC_LIMIT, sure=POSSIBLE),
            ),
        ),
        Message(
            "GPU cannot map UAR of device",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp, 3.2; DeepEP#163",
            (Case(c.UAR),),
        ),
        Message(
            "cudaHostRegister with IoMemory failed with error=",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#163",
            (Case(c.UAR),),
            note="`GPU cannot map UAR of device` follows",
        ),
        Message(
            "Unable to create ah",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#307",
            (Case(c.GID),),
            note="on InfiniBand it is the LID or the route: perftest between the same NICs",
            sure=FITS,
        ),
        Message(
            "building transport map failed",
            "NVIDIA/nvshmem: src/host/init/init.cu",
            (Case(c.OTHER_VERSIONS),),
            note="two nodes found different transports",
            sure=FITS,
        ),
        Message(
            "GDRCopy library not found",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_gdr_common.cpp",
            note="gdrcopy is needed only if the CPU shall ring doorbells, and on EFA",
            kind=FINE,
        ),
        Message(
            "GDRCopy open call failed",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_gdr_common.cpp",
            (Case(c.GDRDRV),),
            # NVSHMEM goes on without gdrcopy.
            sure=POSSIBLE,
        ),
        Message(
            "NVSHMEM_IBGDA_NIC_HANDLER=cpu requires GDRCopy",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            (Case(c.GDRDRV),),
            do="Install gdrcopy and load gdrdrv, or `NVSHMEM_IBGDA_NIC_HANDLER=gpu`",
        ),
        Message(
            "Unable to dlopen libmlx5dv. Disabling directNIC",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="only Grace with ConnectX-8 has these features (data direct)",
            kind=FINE,
            unless=("other_nic",),
        ),
        Message(
            "dlopen libmlx5dv. Disabling directNIC features",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#759",
            (Case(c.NOT_MLX5, ("other_nic",)),),
            note="IBGDA works with mlx5 only",
            do="DeepEP without its low-latency mode, or a NIC of NVIDIA; NCCL works with this NIC",
            sure=FITS,
        ),
        Message(
            "not an mlx5 device",
            "DeepEP#759",
            (Case(c.NOT_MLX5, ("other_nic",)), Case(c.NIC_NAME, (), ("other_nic",), POSSIBLE)),
            sure=FITS,
        ),
        Message(
            "failed in ib_roce_get_version_num",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_ib_common.h; DeepEP#274",
            note="an empty entry of the GID table, which NVSHMEM skips",
            kind=FINE,
        ),
        Message(
            "EFA Provider requires GDRCopy",
            "NVIDIA/nvshmem: src/modules/transport/libfabric/libfabric.cpp",
            (Case(c.GDRDRV),),
            do="Install gdrcopy and load gdrdrv",
        ),
        Message(
            "DeepEP dispatch NVL receiver timeout",
            "deepseek-ai/DeepEP: csrc/kernels/legacy/internode.cu; DeepEP#294, #137",
            note="tokens of another node have not come. Registration had succeeded, or NVSHMEM had "
            "failed before",
            do=TIMEOUT,
            kind=FOLLOWS,
        ),
        Message(
            "DeepEP dispatch RDMA sender timeout",
            "deepseek-ai/DeepEP: csrc/kernels/legacy/internode.cu",
            note="data did not leave for the other node",
            do=TIMEOUT,
            kind=FOLLOWS,
        ),
        Message(
            "DeepEP error: CPU recv timeout",
            "deepseek-ai/DeepEP: csrc/legacy/buffer.hpp",
            note="the CPU waited for tokens of another node",
            do=TIMEOUT,
            kind=FOLLOWS,
        ),
        Message(
            "DeepEP error: timeout (dispatch CPU)",
            "deepseek-ai/DeepEP: csrc/legacy/buffer.hpp",
            note="the CPU waited for tokens of another node",
            do=TIMEOUT,
            kind=FOLLOWS,
        ),
        Message(
            "GPUDirect RDMA with CUDA VMM is not supported on this device",
            "deepseek-ai/DeepEP: csrc/kernels/backend/symmetric.hpp",
            (
                Case(c.GEFORCE, ("geforce",)),
                Case(
                    c.VMM,
                    (),
                    (),
                    do="`NVSHMEM_DISABLE_CUDA_VMM=1`, or another GPU",
                ),
            ),
            note="this GPU or its driver cannot give VMM memory to a NIC",
        ),
        Message(
            "ibgda_nic_mem_gpu_map failed. We may need to use the CPU fallback path.",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#163",
            (Case(c.UAR),),
        ),
        Message(
            "ibgda_alloc_and_map_qp_uar with GPU as handler failed. We may need to enter the "
            "CPU fallback path.",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; DeepEP#163",
            (Case(c.UAR),),
        ),
        Message(
            "Failed to initialize all selected devices",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="some NICs were skipped",
            do="`NVSHMEM_DEBUG=INFO`, and look for `Skipping...` above it",
            kind=FOLLOWS,
        ),
        Message(
            "aborting due to error in nvshmemi_init_thread",
            "NVIDIA/nvshmem: src/include/host/nvshmem_api.h; DeepEP#150",
            note="the start of NVSHMEM failed",
            do="`NVSHMEM_DEBUG=INFO`, and look for `non-zero status` or `Error in` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Error in mlx5dv_devx_obj_modify for INIT2RTR_QP with syndrome",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; nvshmem#45, DeepEP#17",
            (
                Case(c.TRAFFIC_CLASS, ("traffic_class", "infiniband")),
                Case(c.RAILS, ("infiniband", "ethernet"), (), FITS),
                Case(c.GID, ("traffic_class", "ethernet"), (), FITS),
                Case(c.TRAFFIC_CLASS, ("infiniband",), (), FITS),
                Case(c.TRAFFIC_CLASS, ("traffic_class",), (), FITS),
                Case(c.GID, (), (), FITS),
            ),
            note="the NIC refused the address of the peer. On RoCE, IBGDA needs NVSHMEM 3.2 or "
            "later",
        ),
        Message(
            "Error in mlx5dv_devx_obj_modify for <RST2INIT_QP|RTR2RTS_QP> with syndrome",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            (Case(c.NIC_REFUSED),),
            sure=POSSIBLE,
        ),
        Message(
            "<ibgda_rc_init2rtr failed|ibgda_dci_init2rtr failed|ibgda_qp_rst2init failed"
            "|ibgda_qp_rtr2rts failed|ibgda_setup_rc_endpoints failed>",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="a queue could not be made or connected",
            do="Look for `with syndrome` or `Unable to` above it",
            kind=FOLLOWS,
        ),
        Message(
            "<ibgda_create_cq failed|ibgda_create_rc failed|ibgda_create_dci failed"
            "|ibgda_create_dct failed|ibgda_create_qp_mobjects failed|ibgda_create_cq_mobjects "
            "failed>",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            note="a queue could not be made",
            do="Look for `cannot register` or `cannot allocate` above it; the kernel's lines with "
            "`mlx5` and `syndrome`",
            kind=FOLLOWS,
        ),
        Message(
            "cannot create devx object for qpair",
            "NVIDIA/nvshmem: src/modules/transport/ibdevx/ibdevx.cpp",
            note="the NIC refused the queue",
            do="The kernel's lines with `mlx5` and `syndrome`",
            kind=FOLLOWS,
        ),
        Message(
            "<nvshmem setup connections failed|ep_connect failed|get_device_list failed>",
            "NVIDIA/nvshmem: src/host/init/init.cu",
            note="a consequence of an earlier failure",
            do="`NVSHMEM_DEBUG=INFO`, and look for `non-zero status` or `Error in` above it",
            kind=FOLLOWS,
        ),
        Message(
            "NVSHMEM API called before NVSHMEM initialization",
            "NVIDIA/nvshmem: src/host; sglang#7888",
            note="the start of NVSHMEM failed",
            do="`NVSHMEM_DEBUG=INFO`, and look for `non-zero status` or `init failed` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Unable to allocate SRQ for your device",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            (Case(c.DEVX),),
            note="NVSHMEM's own guess: OFED is older than 5.0",
            sure=FITS,
        ),
        Message(
            "does not support all necessary atomic operations",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp",
            (Case(c.NOT_MLX5),),
            note="the NIC does not do the atomic operations that NVSHMEM needs",
            do="`PCI_ATOMIC_MODE` in the NIC's firmware (`mlxconfig`); or another NIC",
            sure=FITS,
        ),
        Message(
            "is not supported (expected HCA interface",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            (Case(c.NOT_MLX5),),
            note="on nodes with several kinds of NICs the line has no meaning",
            sure=POSSIBLE,
        ),
        Message(
            "<cound|could> not find user specified HCA name",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp",
            (Case(c.NO_DEVICE),),
            do="`NVSHMEM_HCA_LIST` or `NVSHMEM_HCA_PE_MAPPING` with names that `ibv_devinfo` "
            "prints in the container",
        ),
        Message(
            "found inactive port or port with non",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp",
            note="NVSHMEM leaves this port out",
            kind=FINE,
        ),
        Message(
            "Unable to dlopen libibverbs",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp",
            (Case(c.NO_PROVIDER),),
            do="Install libibverbs1 and ibverbs-providers (libmlx5) in the container",
            sure=FITS,
            unless=("one_node",),
        ),
        Message(
            "Failed to open libmlx5.so",
            "NVIDIA/nccl: src/misc/mlx5dvsymbols.cc; NVIDIA/nvshmem: src/modules/transport/common",
            (Case(c.NO_PROVIDER),),
            note="NCCL needs this library for ConnectX-8 only; IBGDA of NVSHMEM needs it always",
            do="Install ibverbs-providers (libmlx5) in the container",
            sure=POSSIBLE,
            # Without NICs of NVIDIA, and without other nodes, the library is not needed.
            unless=("one_node", "efa", "gdrdma", "other_nic", "tcp"),
        ),
        Message(
            "<GDRCopy library is older than|GDRCopy library version is not compatible>",
            "NVIDIA/nvshmem: src/modules/transport/common/transport_gdr_common.cpp",
            (Case(c.GDRDRV_OTHER),),
            note="NVSHMEM goes on without gdrcopy, if it can",
            sure=POSSIBLE,
        ),
        Message(
            "<GDRCopy Initialization failed|GDRCopy support not enabled>",
            "NVIDIA/nvshmem: src/modules/transport/libfabric/libfabric.cpp",
            (Case(c.GDRDRV),),
            sure=FITS,
        ),
        Message(
            "gdrcopy <pin_buffer|get_info|map> failed",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp",
            (
                Case(c.GEFORCE, ("geforce",)),
                Case(c.GDRDRV_OTHER, (), ("geforce",), POSSIBLE),
            ),
        ),
        Message(
            "No providers matched fi_getinfo query",
            "NVIDIA/nvshmem: src/modules/transport/libfabric/libfabric.cpp",
            (
                Case(c.EFA_VERSIONS, ("efa",)),
                Case(c.NO_HMEM, (), ()),
            ),
            note="libfabric has no provider with what NVSHMEM wants (`NVSHMEM_LIBFABRIC_PROVIDER`)",
            sure=FITS,
        ),
        Message(
            "<Error registering memory region|Error enabling MR>",
            "NVIDIA/nvshmem: src/modules/transport/libfabric/libfabric.cpp",
            OFI_REG,
            note="NVSHMEM with libfabric registers the heap",
        ),
        Message(
            "EFA direct requires FI_MR_LOCAL",
            "ofiwg/libfabric: prov/efa; nvshmem#35",
            (Case(c.IMAGE_DEFECT),),
            note="NVSHMEM's libfabric transport sends from memory outside of the symmetric heap, "
            "which efa-direct refuses",
            do="A newer NVSHMEM; or send from buffers of the symmetric heap",
            sure=FITS,
        ),
        Message(
            "<Failed in UCX Transport during|Failed to map memory in UCX transport|Failed to "
            "initialize UCP for UCX>",
            "NVIDIA/nvshmem: src/modules/transport/ucx/ucx.cpp",
            note="UCX failed below NVSHMEM",
            do="`UCX_LOG_LEVEL=warn`, and look for `UCX  ERROR` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Got ibdevx completion with error",
            "NVIDIA/nvshmem: src/modules/transport/ibdevx/ibdevx.cpp",
            (
                Case(c.ACS, ("line:syn: 4",)),
                Case(c.FREED, ("line:syn: 13",)),
                Case(c.PEER_NIC, ("line:syn: 14",)),
                *(one._replace(when=("line:syn: 15", *one.when)) for one in RETRY),
            ),
            sure=FITS,
        ),
        Message(
            "ibv_poll_cq failed, status: <n>",
            "NVIDIA/nvshmem: src/modules/transport/ibrc/ibrc.cpp",
            (
                Case(c.ACS, ("line:failed, status: 4",)),
                Case(c.FREED, ("line:failed, status: 10",)),
                Case(c.PEER_NIC, ("line:failed, status: 11",)),
                *(one._replace(when=("line:failed, status: 12", *one.when)) for one in RETRY),
            ),
            note="the number is the status of a completion; 5: another request failed before",
            sure=FITS,
        ),
        Message(
            "<ibv_dealloc_pd failed|Unable to deallocate pd>",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; nvshmem#81",
            note="at the end of the program: a defect of NVSHMEM without a consequence",
            kind=FINE,
        ),
        Message(
            "<DeepEP timeout check failed|DeepEP RDMA sender coordinator timeout|DeepEP timeout "
            "for dispatch|DeepEP timeout for combine|DeepEP combine RDMA|DeepEP combine NVL>",
            "deepseek-ai/DeepEP: csrc/kernels; DeepEP#137",
            note="tokens of another node have not come. Registration had succeeded, or NVSHMEM had "
            "failed before",
            do=TIMEOUT,
            kind=FOLLOWS,
        ),
        Message(
            "create DCT share err",
            "NVIDIA/nvshmem: src/modules/transport/ibgda/ibgda.cpp; nvshmem#33, #21",
            (Case(c.GID, ("nvshmem>=3.5",), (), FITS), Case(c.IMAGE_DEFECT, (), ())),
            note="NVSHMEM up to 3.4 leaves a field of an address unset, and `Unable to create ah` "
            "comes by chance",
            do="NVSHMEM 3.5 or later",
        ),
    ),
)
