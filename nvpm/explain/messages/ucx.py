# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of UCX and UCC."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import CREATE, MODIFY_QP, REG_DMABUF_MR, REG_MR, REM_ACCESS, RETRY

# gdrcopy could not pin GPU memory; the number after `ret:` is the error.
GDR_PIN = (
    Case(c.GEFORCE, ("geforce",)),
    Case(c.GDRDRV_OTHER, ("gdrcopy<2.4.2", "driver>=560"), ()),
    Case(c.BAR1, ("line:ret:12",), sure=FITS),
    Case(c.VMM, ("line:ret:22", "vmm"), sure=FITS),
    Case(c.VMM, ("line:ret:22",), ("vmm",), POSSIBLE),
    Case(c.GDRDRV_OTHER, (), ("line:ret:12", "line:ret:22"), POSSIBLE),
)
# A pointer to GPU memory was registered. The next line, `failed to register address`, says whether
# it is host memory, and whether UCX found a module when it began.
OF_GPU = tuple(
    one._replace(
        unless=(
            *one.unless,
            "ucx_host_memory",
            *(("ucx_sees_module",) if one.cause == c.NO_CLIENT else ()),
        )
    )
    for one in REG_MR
    if "EFAULT" in str(one.when)
)
REG = (
    *OF_GPU,
    Case(c.VMM, ("errno=EFAULT", "ucx_sees_module"), ("ucx_host_memory",), POSSIBLE),
    Case(
        c.GEFORCE,
        ("errno=EFAULT", "ucx_sees_module"),
        ("ucx_host_memory", "data_center"),
        POSSIBLE,
    ),
    *(one for one in REG_MR if "EFAULT" not in str(one.when)),
)
# The kernel was to copy GPU memory between processes. EPERM is a matter of ptrace between
# containers, and not of GPU memory.
CMA = (
    Case(c.UCX_TLS, ("errno=EFAULT", "ucx_tls_without_cuda")),
    Case(c.UCX_NO_CUDA, ("errno=EFAULT", "ucx_without_cuda"), ()),
    Case(c.MEMTYPE, ("errno=EFAULT",), (), FITS),
)
# The CPU touched GPU memory.
TOUCHED = (
    Case(c.UCX_TLS, ("ucx_tls_without_cuda", "gpu"), ("julia_frames",)),
    Case(c.UCX_NO_CUDA, ("ucx_without_cuda", "gpu"), ("julia_frames",)),
    Case(c.SIGNALS, ("julia_frames",)),
    Case(
        c.MEMTYPE,
        ("gpu",),
        (),
        FITS,
    ),
)
# A frame of a backtrace, which does not show by itself that the buffer was GPU memory.
FRAME = (
    Case(c.UCX_TLS, ("ucx_tls_without_cuda", "gpu"), sure=FITS),
    Case(c.UCX_NO_CUDA, ("ucx_without_cuda", "gpu"), (), FITS),
    Case(c.MEMTYPE, ("gpu",), ("ucx_tls_without_cuda", "ucx_without_cuda"), POSSIBLE),
)
# UCX looked for the files of a peer-memory module.
SEES_NO_MODULE = (
    Case(
        c.MEMORY_PEERS,
        ("peermem_loaded", "ucx<1.18"),
        do="UCX 1.18 or later, which looks at `/sys/module` too",
    ),
    Case(c.NO_CLIENT, ("gpu",), ("peermem_loaded",), POSSIBLE),
)

SECTION = Section(
    "UCX, UCC",
    "UCX prints more with `UCX_LOG_LEVEL=warn` or `diag`. UCX finds this module under "
    "its own name, without the marker; a container must have the host's `/sys`.",
    (
        Message(
            "ibv_reg_mr(address=",
            "openucx/ucx: src/uct/ib/base/ib_md.c; ucx#8049, #4513; NVIDIA/cudf-spark#3603, "
            "vllm-project/vllm#29569",
            REG,
            note="the address that `gdr_map` returned cannot be registered either. With "
            "nvidia-peermem a full BAR1 prints `Bad address`, too, but for large buffers only",
        ),
        Message(
            "ibv_reg_dmabuf_mr(address=",
            "openucx/ucx: src/uct/ib/base/ib_md.c, src/ucp/core/ucp_mm.c; ucx#11571, #11584, "
            "nixl#1605, #1768",
            (
                Case(c.DIRECT_NIC, ("errno=ENOTSUPP", "grace"), sure=FITS),
                Case(c.DIRECT_NIC, ("errno=ENOTSUPP", "arm64_address"), (), FITS),
                Case(c.PAIR, ("errno=ENOTSUPP", "grace"), sure=POSSIBLE),
                Case(c.PAIR, ("errno=ENOTSUPP", "arm64_address"), (), POSSIBLE),
                Case(c.PAIR, ("errno=ENOTSUPP",), ()),
                *(one for one in REG_DMABUF_MR if one.when != ("errno=ENOTSUPP",)),
            ),
        ),
        Message(
            "ibv_exp_reg_mr(address=",
            "openucx/ucx: src/uct/ib/base/ib_md.c, 1.6; ucx#4513",
            (
                Case(c.BAR1, ("errno=EIO",), ("amd", "memlock_limited"), FITS),
                *(one for one in REG if one.cause != c.PAIR),
            ),
            note="UCX up to 1.7 on MLNX_OFED 4",
        ),
        Message(
            "Couldn't enable GPUDirect RDMA",
            "openucx/ucx: src/uct/ib/base/ib_md.c",
            (
                Case(
                    c.MEMORY_PEERS,
                    ("peermem_loaded", "ucx<1.18"),
                    ("amd", "gb10"),
                    do="UCX 1.18 or later, which looks at `/sys/module` too",
                ),
                Case(c.AMD, ("amd",)),
                Case(c.NO_PEER_ON_SOC, ("gb10",)),
                Case(c.NO_CLIENT, ("peermem_loaded",), ("amd", "gb10"), POSSIBLE),
                Case(c.NO_CLIENT, (), ("peermem_loaded",)),
            ),
            note="`UCX_IB_GPU_DIRECT_RDMA=yes` is set, and UCX sees no peer memory, and since 1.14 "
            "no dma-buf either. In a container, is `/sys/module/nv_peer_mem/version` there?",
        ),
        Message(
            "GDAKI not supported, please load Nvidia peermem driver",
            "openucx/ucx: src/uct/ib/mlx5/gdaki/gdaki.c",
            (Case(c.NO_CLIENT),),
            note="there is neither dma-buf for DevX memory (kernel 6.1 or later) nor peer memory. "
            "No marker is needed",
        ),
        Message(
            "GDAKI not supported, please add NVreg_RegistryDwords",
            "openucx/ucx: src/uct/ib/mlx5/gdaki/gdaki.c",
            (Case(c.UAR),),
        ),
        Message(
            "no active primary CUDA context on any device",
            "openucx/ucx: src/uct/ib/mlx5/gdaki/gdaki.c",
            (Case(c.CUDA_CONTEXT),),
            note="the program has not begun to use CUDA when UCX starts",
            do="`cudaSetDevice` before UCX starts, or that variable",
        ),
        Message(
            "failed to register user buffer datatype",
            "openucx/ucx: src/ucp/core/ucp_request.c",
            note="a consequence of a failed registration",
            do="`UCX_LOG_LEVEL=warn`, and look for `ibv_reg_mr(address=` above it",
            kind=FOLLOWS,
        ),
        Message(
            "failed to register address",
            "openucx/ucx: src/ucp/core/ucp_mm.c",
            note="a consequence of a failed registration. If `md supports:` later in the line has "
            "no `cuda`, UCX saw no peer memory when it started",
            do="`UCX_LOG_LEVEL=warn`, and look for `ibv_reg_` above it; load the module before the "
            "program starts",
            kind=FOLLOWS,
        ),
        Message(
            "Please set max locked memory",
            "openucx/ucx: src/uct/ib/base/ib_log.c",
            # UCX up to 1.10 gives the advice with each error.
            (Case(c.MEMLOCK, (), ("errno=EFAULT,EINVAL,EOPNOTSUPP,EIO,EPERM,ENOTSUPP",)),),
            note="the number after `current:` is the limit of the process itself",
        ),
        Message(
            "<ibv_create_cq|ibv_create_qp|ibv_create_srq|mlx5dv_create_cq|mlx5dv_create_qp>("
            "<*>failed",
            "openucx/ucx: src/uct/ib/base/ib_iface.c",
            CREATE,
        ),
        Message(
            "failed to create RC QP TX wr",
            "openucx/ucx: src/uct/ib/base/ib_iface.c",
            CREATE,
        ),
        Message(
            "mlx5dv_devx_create_event_channel() failed",
            "openucx/ucx: src/uct/ib/mlx5/rc/rc_mlx5_devx.c; ucx#8440",
            (Case(c.DEVX),),
            note="the kernel's `mlx5_ib` does not have DevX as this UCX wants it",
        ),
        Message(
            "mlx5dv_devx_obj_create(CQ) failed",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5.h",
            (*CREATE, Case(c.NIC_REFUSED, sure=POSSIBLE)),
            note="with GDAKI the queue's memory may be GPU memory: look for `GDAKI not supported` "
            "above it",
        ),
        Message(
            "ibv_modify_qp(UMR QP",
            "openucx/ucx: src/uct/ib/mlx5/dv/ib_mlx5dv_md.c; aibrix#1433, ucx#11709",
            (
                *(one for one in MODIFY_QP if "errno=ENODEV" not in one.when),
                Case(c.PORT, sure=POSSIBLE),
                Case(c.IMAGE_DEFECT, ("errno=ENODEV",), sure=POSSIBLE),
            ),
            note="the NIC refused its own queue. On bonded NICs, some versions of UCX ask for what "
            "these cannot do",
            do="`ibstat` for the port; on a bonded NIC (`mlx5_bond_0`) a newer UCX, or "
            "`UCX_TLS=^gga_mlx5`; `UCX_NET_DEVICES` without this NIC goes on without it",
        ),
        Message(
            "Application is using HUGE pages. Please set",
            "openucx/ucx: src/uct/ib/base/ib_md.c",
            (Case(c.FORK),),
            note="host memory in huge pages, in a process that forks",
        ),
        Message(
            "(synd 0x4 vend 0x51",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c; ucx#3564, #9515",
            (Case(c.ACS),),
            note="local protection error",
            sure=FITS,
        ),
        Message(
            "(synd 0x13 vend 0x88",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c",
            REM_ACCESS,
            note="remote access error",
            sure=FITS,
        ),
        Message(
            "(synd 0x14 vend 0x89",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c; ompi#13183",
            (Case(c.PEER_NIC),),
            note="remote operation error",
            sure=FITS,
        ),
        Message(
            "(synd 0x15 vend 0x81",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c",
            RETRY,
            note="retries exceeded",
            sure=FITS,
        ),
        Message(
            "Segmentation fault: invalid permissions for mapped object",
            "openucx/ucx: src/ucs/debug/debug.c; ucx#6530; ucx#2755, #3359, #7845, #9140",
            TOUCHED,
            note="the UCX of Debian has no CUDA. `UCX_ZCOPY_THRESH=0 UCX_RNDV_THRESH=0 "
            "UCX_RNDV_SCHEME=get_zcopy` goes on without CUDA, if no registered memory is freed",
            # Addresses of the program itself, and not of a GPU.
            unless=("line:at address 0x55", "line:at address 0x56"),
        ),
        Message(
            "<process_vm_readv|process_vm_writev>(pid=",
            "openucx/ucx: src/uct/sm/scopy/cma/cma_ep.c; ucx#3359, #6058",
            CMA,
        ),
        Message(
            "not available, please use one or more of",
            "openucx/ucx: src/ucp/core/ucp_context.c",
            (
                Case(c.UCX_NO_CUDA, ("line:'cuda<*>' <is|are> not available",)),
                Case(
                    c.GDRDRV,
                    ("line:'gdr_copy<*>' <is|are> not available",),
                    ("line:'cuda<*>' <is|are> not available",),
                    POSSIBLE,
                ),
                # Only devices of TCP are listed.
                Case(
                    c.UCX_NO_IB,
                    ("line:network device 'mlx", "rdma_up"),
                    ("line:'(ib)", "line:'(IB)"),
                    FITS,
                ),
                Case(
                    c.UCX_NO_IB,
                    ("line:network device 'mlx",),
                    ("line:'(ib)", "line:'(IB)"),
                    POSSIBLE,
                ),
                # On nodes with several ports, often one of them is down, and nothing is wrong.
                Case(c.NO_DEVICE, ("line:network device",), sure=POSSIBLE),
            ),
            note="`'cuda_copy'` or `'cuda_ipc'` before it: this UCX has no CUDA; `network device`: "
            "`UCX_NET_DEVICES` names a device that is not there, or whose port is down",
        ),
        Message(
            "no usable transports/devices (asked",
            "openucx/ucx: src/ucp/core/ucp_context.c",
            (Case(c.NO_DEVICE),),
            note="UCX sees none of the devices that `UCX_NET_DEVICES` names",
            sure=FITS,
        ),
        Message(
            "no cuda context bound to calling thread",
            "openucx/ucx: src/uct/cuda/base/cuda_iface.c",
            (Case(c.CUDA_CONTEXT),),
        ),
        Message(
            "UCX  ERROR dmabuf support requested but not found",
            "openucx/ucx: src/uct/cuda/cuda_copy/cuda_copy_md.c",
            (Case(c.NO_DMABUF),),
            note="`UCX_CUDA_COPY_DMABUF=yes` is set, and this driver exports no dma-buf",
        ),
        Message(
            "ROCm dmabuf support requested but not found",
            "openucx/ucx: src/uct/rocm/copy/rocm_copy_md.c; ucx#11540, #11541",
            (Case(c.ROCM_KERNEL_CONFIG),),
            note="`UCX_ROCM_COPY_DMABUF=yes` is set",
            sure=FITS,
        ),
        Message(
            "cannot set sync_memops on CUDA VMM without cuCtxSetFlags()",
            "openucx/ucx: src/uct/cuda/cuda_copy/cuda_copy_md.c",
            (Case(c.VMM),),
            note="VMM memory, and a CUDA before 12.1",
            do="A driver with CUDA 12.1 or later; or memory of `cudaMalloc`",
            sure=FITS,
        ),
        Message(
            "could not open gdr copy",
            "openucx/ucx: src/uct/cuda/gdr_copy/gdr_copy_md.c",
            (Case(c.GDRDRV_OTHER, ("line:built for",)), Case(c.GDRDRV, (), ("line:built for",))),
            sure=POSSIBLE,
            note="gdrcopy's library is not of the version that UCX was built for; UCX goes on "
            "without it",
        ),
        Message(
            "mlx5dv_devx_umem_reg(ptr=",
            "openucx/ucx: src/uct/ib/mlx5/gdaki/gdaki.c",
            (
                Case(c.MEMLOCK, ("errno=ENOMEM", "memlock_limited")),
                Case(c.PINNED_QUEUES, ("memlock_limited",), (), FITS),
                Case(c.PINNED_QUEUES, (), (), FITS),
            ),
            note="with MIG or vGPU the driver cannot pin so",
        ),
        Message(
            "cuda-aware mcast not available as gpu direct is not ready",
            "openucx/ucc: src/components/tl/mlx5/mcast/tl_mlx5_mcast_team.c",
            (Case(c.NO_CLIENT),),
            sure=FITS,
        ),
        Message(
            "ibv_fork_init() was disabled or failed, yet a fork() has been issued",
            "openucx/ucx: src/uct/ib/base/ib_md.c",
            (Case(c.FORK),),
            note="a warning: it is harmful only if the child touches registered memory",
            sure=POSSIBLE,
        ),
        Message(
            "DEBUG <w>: <cuda |>GPUDirect RDMA is disabled",
            "openucx/ucx: src/uct/ib/base/ib_md.c; ucx#5749",
            SEES_NO_MODULE,
            note="with `UCX_LOG_LEVEL=debug`: UCX sees no peer memory. With `rocm` before it, and "
            "with `dmabuf is supported` below it, nothing is wrong",
            unless=("ucx_dmabuf", "amd"),
            sure=POSSIBLE,
        ),
        Message(
            "Transport retry count exceeded on",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c; ucx#6000, #2434",
            RETRY,
            sure=FITS,
        ),
        Message(
            "Local protection <error |>on <w>:<n>/",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c; ucx#3564, #7575",
            (
                Case(c.ACS, ("line:vend 0x51",), sure=FITS),
                Case(
                    c.NOT_GPU_MEMORY,
                    ("line:vend 0x33",),
                    sure=FITS,
                    do="`UCX_MEMTYPE_CACHE=n`; if it helps, memory was freed while UCX still had "
                    "it registered: a newer UCX",
                ),
                Case(c.ACS, (), ("line:vend 0x33",), POSSIBLE),
            ),
        ),
        Message(
            "Remote access <error |>on <w>:<n>/",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c",
            REM_ACCESS,
            sure=FITS,
        ),
        Message(
            "Remote operation <error |>on <w>:<n>/",
            "openucx/ucx: src/uct/ib/mlx5/ib_mlx5_log.c",
            (Case(c.PEER_NIC),),
            sure=FITS,
        ),
        Message(
            "Endpoint timeout",
            "openucx/ucx: src/ucs/type/status.c",
            note="the transfer was given up",
            do="`UCX_LOG_LEVEL=warn`, and look for `synd` above it",
            kind=FOLLOWS,
        ),
        Message(
            "gdr_pin_buffer <failed|Failed>. length",
            "openucx/ucx: src/uct/cuda/gdr_copy/gdr_copy_md.c, older",
            GDR_PIN,
            note="UCX with gdrcopy; `UCX_TLS=^gdr_copy` goes on without it",
        ),
        Message(
            "GPU memory pin failed. length",
            "openucx/ucx: src/uct/cuda/gdr_copy/gdr_copy_md.c; ucx#11885",
            GDR_PIN,
            note="UCX 1.20 and later with gdrcopy; `UCX_TLS=^gdr_copy` goes on without it",
        ),
        Message(
            "GPUDirect RDMA is not detected by checking /sys/module/nv_peer_mem/version",
            "openucx/ucx: src/uct/ib/base/ib_md.c, 1.18 and later; ucx#10966",
            (Case(c.NO_CLIENT, ("gpu",), ("peermem_loaded",), POSSIBLE),),
            note="with `UCX_LOG_LEVEL=debug`: this is the last of the files that UCX looks for. "
            "With `dmabuf is supported` below it, nothing is wrong",
            unless=("ucx_dmabuf", "amd", "efa"),
            sure=POSSIBLE,
        ),
        Message(
            "GPUDirect RDMA is <|not >detected by checking",
            "openucx/ucx: src/uct/ib/base/ib_md.c",
            note="UCX looks for the files of several modules, of which one is enough",
            kind=FINE,
            unless=("line:not detected by checking /sys/module/nv_peer_mem/version",),
        ),
        Message(
            "<process_vm_readv|process_vm_writev> delivered <n> instead of <n>",
            "openucx/ucx: src/uct/sm/cma/cma_ep.c, up to 1.6",
            CMA,
        ),
        Message(
            "[<w>] invalid permissions for mapped object",
            "openucx/ucx: src/ucs/debug/debug.c, up to 1.5; ucx#3258",
            TOUCHED,
        ),
        Message(
            "<uct_rc_mlx5|uct_dc_mlx5|uct_ud_mlx5>_ep_<am_short|put_short>",
            "openucx/ucx: src/uct/ib; ucx#3776, #9533",
            FRAME,
            note="UCX copies short messages with the CPU. In a backtrace of a segmentation fault, "
            "UCX took GPU memory for host memory",
        ),
        Message(
            "<uct_self|uct_mm|uct_tcp|uct_rc_verbs|uct_ud_verbs|uct_cma>_ep_am_short",
            "openucx/ucx: src/uct/sm and others; ucx#4756",
            FRAME,
            note="UCX copies short messages with the CPU. In a backtrace of a segmentation fault, "
            "UCX took GPU memory for host memory",
        ),
        Message(
            "<ucp_rma_sw_put_pack_cb|ucp_put_handler|ucp_rma_sw_progress_put>()",
            "openucx/ucx: src/ucp/rma/rma_sw.c; ucx#9533; mpich#4832",
            (Case(c.IMAGE_DEFECT, ("gpu",)),),
            note="in a backtrace of a segmentation fault: UCX before 1.16 has no one-sided "
            "transfers of GPU memory",
            do="UCX 1.16 or later, or `UCX_PROTO_ENABLE=y`",
        ),
        Message(
            "transport '<w>' is not available",
            "openucx/ucx: src/ucp/core/ucp_context.c, up to 1.8; ompi#6001",
            (
                Case(c.UCX_NO_CUDA, ("line:'cuda<*>' is not available",)),
                # UCX goes on without gdrcopy.
                Case(c.GDRDRV, ("line:'gdr_copy' is not available",), sure=POSSIBLE),
                Case(c.UCX_NO_IB, ("line:'<rc|dc|ud|ib>' is not available",), sure=POSSIBLE),
            ),
            note="`UCX_TLS` names a transport that this UCX does not have here",
            unless=("line:please use one or more of",),
        ),
        Message(
            "network device '<w>' is not available",
            "openucx/ucx: src/ucp/core/ucp_context.c, up to 1.8",
            (Case(c.NO_DEVICE),),
            note="`UCX_NET_DEVICES` names a device that is not there, or whose port is down",
            sure=POSSIBLE,
            unless=("line:please use one or more of",),
        ),
        Message(
            "select.c:<*>UCX  ERROR <*>no copy across memory types transport to <*>: <*>",
            "openucx/ucx: src/ucp/wireup/select.c; ucx#10929",
            (Case(c.UCX_TLS),),
            note="UCX needs `cuda_copy` for GPU memory, also with GPUDirect RDMA",
            do="`UCX_TLS` with `cuda_copy` (as `rc,sm,cuda`), or unset",
            sure=FITS,
        ),
        Message(
            "no copy across memory types transport to",
            "openucx/ucx: src/ucp/wireup/select.c; ucx#10929",
            (Case(c.UCX_TLS),),
            note="UCX needs `cuda_copy` for GPU memory, also with GPUDirect RDMA",
            do="`UCX_TLS` with `cuda_copy` (as `rc,sm,cuda`), or unset",
            sure=FITS,
        ),
        Message(
            "select.c:<*>UCX  ERROR <*> transport to <*>: ",
            "openucx/ucx: src/ucp/wireup/select.c",
            note="no transport suits: each one is listed with its reason. `Destination is "
            "unreachable` behind a NIC: the peer has no NIC of this network",
            do="`UCX_NET_DEVICES` and `UCX_TLS` on both sides; `ucx_info -d` must list the NICs",
            kind=FOLLOWS,
        ),
        Message(
            "remote memory is unreachable (remote md_map",
            "openucx/ucx: src/ucp/rndv/rndv.c",
            note="the peer registered its memory for devices that this process does not use",
            do="The same `UCX_NET_DEVICES` and `UCX_TLS` on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "is not enabled, enable it in UCX_NET_DEVICES",
            "openucx/ucx: src/ucp/wireup/wireup_cm.c",
            (Case(c.NO_DEVICE),),
            note="the address belongs to a device that `UCX_NET_DEVICES` leaves out",
            do="Add the device to `UCX_NET_DEVICES`, or use the address of another device",
        ),
        Message(
            "<mlx5dv_devx_obj_modify|mlx5dv_devx_qp_modify>(<*>) failed, syndrome",
            "openucx/ucx: src/uct/ib/mlx5/dv/ib_mlx5_dv.c; ucx#5657, #4986",
            (
                Case(c.TRAFFIC_CLASS, ("traffic_class", "infiniband")),
                Case(c.GID, ("var:UCX_IB_GID_INDEX",), ("infiniband",), FITS),
                Case(c.GID, ("ethernet",), ("infiniband",), POSSIBLE),
                Case(c.NIC_REFUSED, (), ("ethernet",), POSSIBLE),
            ),
            note="`502` is the step to the peer (RTR), `503` the next one",
        ),
        Message(
            "invalid gid[<n>] on <w>:<n>",
            "openucx/ucx: src/uct/ib/base/ib_device.c",
            (Case(c.GID),),
            sure=FITS,
        ),
        Message(
            "failed to find a gid which <w> the following subnet list",
            "openucx/ucx: src/uct/ib/base/ib_iface.c",
            (Case(c.GID),),
            do="`UCX_IB_ROCE_SUBNET_LIST` with a network that the NIC has, or unset it",
        ),
        Message(
            "DEVX requested but not supported",
            "openucx/ucx: src/uct/ib/mlx5/dv/ib_mlx5dv_md.c",
            (Case(c.DEVX),),
            note="`UCX_IB_MLX5_DEVX=yes` is set",
        ),
        Message(
            "SYNC_MEMOPS) error: operation not supported",
            "openucx/ucx: src/uct/cuda/cuda_copy/cuda_copy_md.c, 1.15 to 1.18; ucx#9895",
            (Case(c.VMM),),
            note="a warning: NICs cannot register this memory by its pointer",
            sure=FITS,
        ),
        Message(
            "attempt to perform cuda memcpy without active context",
            "openucx/ucx: src/uct/cuda/cuda_copy/cuda_copy_ep.c, up to 1.18",
            (Case(c.CUDA_CONTEXT),),
        ),
        Message(
            "cuMemGetAddressRange<*>named symbol not found",
            "openucx/ucx: src/uct/cuda/cuda_copy/cuda_copy_md.c; ucx#5181",
            (Case(c.CUDA_CONTEXT),),
            note="the address belongs to another context than the thread's; UCX 1.19 and later "
            "look into all contexts",
            sure=FITS,
        ),
        Message(
            "gdr_map failed. length",
            "openucx/ucx: src/uct/cuda/gdr_copy/gdr_copy_md.c",
            (Case(c.GDRDRV_OTHER),),
            note="`UCX_TLS=^gdr_copy` goes on without gdrcopy",
            sure=POSSIBLE,
        ),
        Message(
            "USE_PCIE=yes requires GDRCopy with gdr_pin_buffer_v2",
            "openucx/ucx: src/uct/cuda/gdr_copy/gdr_copy_md.c",
            (Case(c.GDRDRV_OTHER),),
            do="gdrcopy 2.5 or later, or `UCX_GDR_COPY_USE_PCIE=no`",
        ),
        Message(
            "UCX  ERROR Unsupported memory type: <*>cuda",
            "openucx/ucx: src/tools/perf/perftest.c, up to 1.11; ucx#4418",
            (Case(c.UCX_NO_CUDA),),
            note="`ucx_perftest -m cuda`",
            sure=FITS,
        ),
        Message(
            'unsupported memory type: "cuda',
            "openucx/ucx: src/tools/perf/perftest.c",
            (Case(c.UCX_NO_CUDA),),
            note="`ucx_perftest -m cuda`",
        ),
        Message(
            "Unsupported memory types <*>cuda",
            "openucx/ucx: src/tools/perf/lib/libperf.c",
            (Case(c.UCX_NO_CUDA),),
            note="`ucx_perftest -m cuda`",
            sure=FITS,
        ),
        Message(
            "ibv_query_gid(dev=<w> port=<n> index=<n>) failed",
            "openucx/ucx: src/uct/ib/base/ib_device.c; smg#2520",
            (Case(c.GID),),
            note="UCX takes all NICs if none is named, also those for management",
            do="`UCX_NET_DEVICES` with the NICs of the fabric only; `show_gids` lists the entries",
            sure=FITS,
        ),
        Message(
            "ibv_reg_dmabuf_mr(fd=-1) returned",
            "openucx/ucx: src/uct/ib/base/ib_md.c; ucx#9908",
            note="UCX tries whether the RDMA core knows dma-buf; the answer ends the line",
            kind=FINE,
        ),
        Message(
            "UCX  DEBUG <*><ibv_create_qp|ibv_create_cq|ibv_create_srq|ibv_alloc_dm"
            "|mlx5dv_devx_obj_create|mlx5dv_devx_general_cmd>(<*>failed",
            "openucx/ucx: src/uct/ib; ucx#8999, #10743",
            note="with `UCX_LOG_LEVEL=debug`: UCX tries what the NIC can do",
            kind=FINE,
        ),
        Message(
            "rdma_create_event_channel failed",
            "openucx/ucx: src/uct/ib/rdmacm/rdmacm_cm.c; ucx#6215",
            (
                Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",), sure=FITS),
                Case(c.NO_DEVICE, ("errno=ENOENT,ENODEV",), sure=POSSIBLE),
            ),
            note="there is no `/dev/infiniband/rdma_cm`, which `modprobe rdma_ucm` makes. On nodes "
            "without RDMA the line has no meaning",
        ),
        Message(
            "<UCP|UCP API> version is incompatible",
            "openucx/ucx: src/ucp/core/ucp_context.c; ucx#10625",
            (Case(c.OTHER_UCX),),
            sure=POSSIBLE,
        ),
        Message(
            "connect(fd=<n>, dest_addr=<w>) failed",
            "openucx/ucx: src/ucs/sys/sock.c; ucx#9908, dynamo#741, pyxis#140",
            note="UCX connects by TCP; the address may be that of a bridge, which each node has "
            "for itself (docker0)",
            do="`UCX_NET_DEVICES` with the NICs of the fabric only; `ucx_info -d` must list them",
            kind=FOLLOWS,
        ),
        Message(
            "failed to select lane for local device",
            "openucx/ucx: src/ucp/core/ucp_device.c; nixl#1110",
            note="no transport reaches this GPU from its kernels",
            do="Unset `UCX_TLS` (images set `^cuda_ipc`), or add `cuda_ipc` and `rc_gda`",
            kind=FOLLOWS,
        ),
        Message(
            "<ucp_dt_contig_pack|ucp_dt_pack|ucp_tag_pack_eager_only_dt|ucp_memcpy_pack_unpack"
            "|ucp_proto_eager_bcopy_multi_common_send_func>",
            "openucx/ucx: src/ucp/dt and others",
            FRAME,
            note="UCX copies with the CPU. In a backtrace of a segmentation fault, UCX took GPU "
            "memory for host memory",
        ),
        Message(
            "UCX  DEBUG <*>mlx5dv_open_device(<*>failed",
            "openucx/ucx: src/uct/ib/mlx5/dv/ib_mlx5dv_md.c; ucx#10692",
            note="with `UCX_LOG_LEVEL=debug`: a NIC that is not mlx5",
            kind=FINE,
        ),
        Message(
            "<cuCtxGetDevice|cuMemGetAddressRange|cuStreamCreate|cuMemcpyDtoDAsync"
            "|cuEventCreate><*>ret:invalid device context",
            "openucx/ucx: src/uct/cuda, up to 1.10; ucx#4707, pytorch#31528",
            (Case(c.CUDA_CONTEXT),),
        ),
        Message(
            "UCX  ERROR cuda<*>failed: invalid resource handle",
            "openucx/ucx: src/uct/cuda/cuda_copy, up to 1.13; ucx#7635",
            (Case(c.CUDA_CONTEXT),),
            note="UCX up to 1.13 uses a stream of the context that was current at its start",
            do="`cudaSetDevice` before MPI starts, and one device for each process; or a newer UCX",
            sure=FITS,
        ),
        Message(
            "undefined symbol: <ucs_|uct_|ucp_|ucm_>",
            "glibc: elf/dl-lookup.c; ucx-py#297",
            (Case(c.OTHER_UCX),),
            note="parts of two versions of UCX are mixed",
            do="One UCX only: `LD_LIBRARY_PATH` without the other one (HPC-X, OFED, conda, wheels)",
        ),
        Message(
            "incompatible types when assigning to type <*>gdr_mh_t",
            "openucx/ucx: src/uct/cuda/gdr_copy, up to 1.6.0; ucx#4019",
            (Case(c.IMAGE_DEFECT),),
            note="UCX up to 1.6.0 does not build with gdrcopy 2",
            do="UCX 1.6.1 or later",
        ),
        Message(
            "ReadOnlyMemoryError()",
            "JuliaLang/julia; ucx#5061",
            (Case(c.MEMTYPE, ("gpu",)),),
            note="a segmentation fault in Julia, which takes UCX's place as handler of the signal",
            do="`UCX_MEMTYPE_CACHE=n`, `JULIA_CUDA_MEMORY_POOL=none`; an MPI and a UCX with CUDA",
            sure=FITS,
        ),
        Message(
            "Assertion `rkey_index <",
            "openucx/ucx: src/ucp/core/ucp_rkey.inl; ucx#8627",
            (Case(c.IMAGE_DEFECT),),
            note="a defect of older versions of UCX with many devices, which ucx#8700 repairs",
            do="A newer UCX; or fewer devices in `UCX_NET_DEVICES`",
            sure=FITS,
        ),
        Message(
            "cannot find remote protocol for",
            "openucx/ucx: src/ucp/proto/proto_reconfig.c; nixl#927",
            note="the two sides choose different protocols: they run different versions of UCX, "
            "see different devices, or UCX has a defect",
            do="The same UCX and the same `UCX_TLS` and `UCX_NET_DEVICES` on both sides; a newer "
            "UCX; `UCX_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
    ),
)
