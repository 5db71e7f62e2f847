# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The causes of a failed verb by the error, which are the same in every program. The sections of
programs use these cases for their own messages. GENERAL looks for the verbs themselves, in programs
that have no section."""

from . import causes as c
from .errors import ERRORS
from .model import FITS, POSSIBLE, Case, Message

# Alibaba's eRDMA registers 64 GiB at most in one piece.
ERDMA = (
    "Register pieces of less than 64 GiB, and more of them (Mooncake: several segments, or a "
    "smaller `--mem-fraction-static`)"
)
# A pod sees the node's devices, and can open those that it was given.
OTHER_PODS = (
    "Name the device that opens (`ibv_devinfo` shows it): `UCX_NET_DEVICES=mlx5_2:1`, "
    "`NCCL_IB_HCA==mlx5_2`, `--mca btl_openib_if_include mlx5_2`; `rdma system set netns "
    "exclusive` on the node hides the others"
)
# A pointer to GPU memory was registered.
REG_MR = (
    Case(c.AMD, ("errno=EFAULT,EINVAL,EOPNOTSUPP", "amd")),
    Case(c.OTHER_GPU, ("errno=EFAULT,EINVAL,EOPNOTSUPP", "other_gpu"), ("amd",), FITS),
    Case(c.GEFORCE, ("errno=EFAULT,EINVAL", "geforce")),
    Case(c.VMM, ("errno=EFAULT", "peermem_loaded"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT", "vmm"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT", "gdr_mapping"), sure=FITS),
    Case(c.NO_CLIENT, ("errno=EFAULT",), ("peermem_loaded", "vmm", "gdr_mapping"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT",), sure=POSSIBLE),
    Case(c.EFA_PEER, ("errno=EFAULT", "efa"), ("mlx5_nic", "infiniband"), FITS),
    Case(c.KERNEL_CMA, ("errno=ENOMEM", "gb10", "kernel>=7.0")),
    Case(
        c.KERNEL_CMA,
        ("errno=ENOMEM", "memlock_unlimited", "kernel=7.0"),
        ("gb10",),
        FITS,
        says="kernel 7.0 can give memory for registrations to another part of the kernel (CMA and "
        "KHO); limits and BAR1 have no part in it",
        do="`kho=off` on the kernel's command line, or the kernel of before (6.17). `grep Cma "
        "/proc/meminfo`: more free than in total confirms it",
    ),
    Case(c.MEMLOCK, ("errno=ENOMEM", "memlock_limited")),
    Case(c.BAR1, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM", "var:NCCL_BUFFSIZE"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited", "var:NCCL_BUFFSIZE"), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM",), sure=POSSIBLE),
    Case(c.MAP_COUNT, ("errno=ENOMEM", "memlock_unlimited"), sure=POSSIBLE),
    Case(c.REGION_TOO_LARGE, ("errno=EINVAL,ENOMEM", "erdma"), sure=FITS, do=ERDMA),
    Case(c.NIC_REFUSED, ("errno=EINVAL",), ("geforce", "amd"), sure=POSSIBLE),
    # The kernel pins no memory of a process whose limit is 0.
    Case(c.MEMLOCK, ("errno=EPERM",), sure=FITS),
    Case(c.DEVICE_DENIED, ("errno=EACCES",), sure=POSSIBLE),
    Case(c.VMM, ("errno=EOPNOTSUPP",), ("amd",), sure=POSSIBLE),
    Case(c.PAIR, ("errno=ENOTSUPP",), sure=FITS),
    Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
    Case(c.NIC_LIMIT, ("errno=EIO", "other_nic"), sure=FITS),
    Case(c.PAIR, ("errno=EIO",), ("other_nic",), POSSIBLE),
)
# A pointer to GPU memory was registered, and the program does not print the error.
REG_MR_SILENT = (
    Case(c.GEFORCE, ("geforce",)),
    Case(c.MEMLOCK, ("memlock_limited",), sure=FITS),
    Case(c.VMM, ("peermem_loaded",), (), sure=FITS),
    Case(c.BAR1, ("peermem_loaded",), sure=POSSIBLE),
    Case(c.NO_CLIENT, (), (), sure=FITS),
)
# The verb alone stands in a line, without an error and without a program that is known.
KNOWN_ERRORS = "errno=EFAULT,EINVAL,ENOMEM,EOPNOTSUPP,EPERM,EACCES,EIO,ENOTSUPP"
REG_MR_ALONE = (
    Case(c.NO_CLIENT, ("gpu",), (KNOWN_ERRORS, "peermem_loaded"), POSSIBLE),
    Case(c.MEMLOCK, ("gpu",), (KNOWN_ERRORS, "memlock_unlimited"), POSSIBLE),
    Case(c.VMM, ("gpu", "peermem_loaded"), (KNOWN_ERRORS,), POSSIBLE),
)
# A dma-buf of GPU memory was registered. The exporter of the dma-buf can refuse as well as the NIC.
REG_DMABUF_MR = (
    Case(c.AMD, ("errno=EOPNOTSUPP,EINVAL", "amd")),
    Case(c.OTHER_GPU, ("errno=EOPNOTSUPP,EINVAL,EFAULT", "other_gpu"), ("amd",), FITS),
    Case(c.FOREIGN_DMABUF, ("errno=ENOMEM,EINVAL,EOPNOTSUPP,EIO,EREMOTEIO", "foreign_dmabuf")),
    Case(c.DATA_DIRECT, ("errno=EOPNOTSUPP,EINVAL", "data_direct"), sure=FITS),
    Case(c.NO_DMABUF, ("errno=EOPNOTSUPP", "data_direct"), sure=POSSIBLE),
    # These kernels' mlx5 has the verb, and UCX has asked the device.
    Case(c.NO_ODP, ("errno=EOPNOTSUPP", "mlx5_nic", "kernel>=7.2"), ("amd",), FITS),
    Case(c.NO_ODP, ("errno=EOPNOTSUPP", "mlx5_nic", "ucx_dmabuf"), ("amd",), FITS),
    # The kernel compares the range with the size of the dma-buf before it asks the device.
    # mlx5 returns the same error if the device lacks UMR, which dma-buf needs.
    Case(c.DMABUF_RANGE, ("errno=EINVAL", "vmm"), (), FITS),
    Case(c.IOMMU_ROOM, ("errno=ENOMEM", "iommu_translates"), (), FITS),
    Case(c.BAR1, ("errno=ENOMEM", "iommu_translates"), ("foreign_dmabuf",), POSSIBLE),
    Case(c.NO_DMABUF, ("errno=EPROTONOSUPPORT,ENOSYS,EBADF",), ("amd",)),
    Case(
        c.NO_DMABUF,
        ("errno=EOPNOTSUPP",),
        (),
        sure=FITS,
    ),
    Case(
        c.NO_ODP,
        ("errno=EOPNOTSUPP", "mlx5_nic"),
        ("amd", "kernel>=7.2", "ucx_dmabuf", "data_direct"),
        POSSIBLE,
    ),
    Case(c.PAIR, ("errno=ENOTSUPP",)),
    Case(c.PAIR, ("errno=EIO,EREMOTEIO",), (), sure=FITS),
    Case(
        c.DMABUF_RANGE,
        ("errno=EINVAL",),
        (),
        FITS,
    ),
    Case(c.NO_DMABUF, ("errno=EINVAL",), ("amd", "foreign_dmabuf", "data_direct"), POSSIBLE),
    Case(c.NO_DMABUF, ("errno=EFAULT",), ("amd",), sure=FITS),
    Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
    # The pages of a dma-buf do not count against the limit on locked memory.
    Case(c.BAR1, ("errno=ENOMEM",), (), FITS),
    Case(
        c.IOMMU_ROOM,
        ("errno=ENOMEM",),
        ("iommu_passes", "foreign_dmabuf"),
        POSSIBLE,
    ),
)
# No message says that the dma-buf is one of CUDA.
OF_ANY_EXPORTER = (
    Case(
        c.FOREIGN_DMABUF,
        ("errno=ENOMEM,EINVAL,EOPNOTSUPP",),
        ("gpu", "foreign_dmabuf", "amd"),
        POSSIBLE,
    ),
)
# mlx5's own verb, whose only use is data direct. Such a registration is pinned, so it needs no ODP.
REG_DMABUF_MR_DIRECT = (
    *REG_DMABUF_MR[:3],
    Case(c.DATA_DIRECT, ("errno=EOPNOTSUPP,EINVAL",), sure=FITS),
    *(
        one
        for one in REG_DMABUF_MR[3:]
        if "data_direct" not in one.when + one.unless and one.cause != c.NO_ODP
    ),
    Case(c.NO_DMABUF, ("errno=EOPNOTSUPP",), ("foreign_dmabuf",), POSSIBLE),
)
# The range of a dma-buf could not be exported. Programs print the name of CUDA's result, its number
# or the words of cuGetErrorString().
KNOWN_RESULTS = (
    "errno=EMFILE,ENFILE,CUDA_ERROR_INVALID_VALUE,CUDA_ERROR_OUT_OF_MEMORY,"
    "CUDA_ERROR_INVALID_CONTEXT,CUDA_ERROR_OPERATING_SYSTEM,CUDA_ERROR_NOT_SUPPORTED",
    "line:invalid argument",
    "line:OS call failed",
    "line:operation not supported",
)
EXPORT = (
    Case(c.CUDA_CONTEXT, ("errno=CUDA_ERROR_INVALID_CONTEXT",)),
    Case(c.NO_DMABUF, ("errno=CUDA_ERROR_NOT_SUPPORTED",)),
    Case(c.NO_DMABUF, ("line:operation not supported",), ("line:OS call failed",)),
    Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
    Case(c.DESCRIPTORS, ("errno=CUDA_ERROR_OPERATING_SYSTEM",), sure=FITS),
    Case(c.DESCRIPTORS, ("line:OS call failed",), sure=FITS),
    Case(c.BAR1, ("errno=CUDA_ERROR_OUT_OF_MEMORY",), sure=FITS),
    Case(c.EXPORT_PAGES, ("errno=CUDA_ERROR_INVALID_VALUE",), sure=FITS),
    Case(c.EXPORT_PAGES, ("line:invalid argument",), sure=FITS),
    Case(c.NO_DMABUF, (), (*KNOWN_RESULTS, "open_driver"), POSSIBLE),
    Case(c.EXPORT_PAGES, (), (*KNOWN_RESULTS, "proprietary_driver"), POSSIBLE),
    Case(c.DESCRIPTORS, (), (*KNOWN_RESULTS, "proprietary_driver", "grace"), POSSIBLE),
)
# Queues in host memory were made.
CREATE = (
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.EFA_NO_RC, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS", "efa"), ("mlx5_nic",), FITS),
    Case(c.NOT_MLX5, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS,EINVAL", "other_nic"), sure=FITS),
    Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
    Case(c.MEMLOCK, ("errno=ENOMEM",), ()),
    Case(c.NIC_LIMIT, ("errno=ENOSPC,EAGAIN,EBUSY",), sure=FITS),
    Case(c.DEVX, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS",), (), FITS),
    Case(c.MEMLOCK, ("errno=EPERM",), sure=FITS),
    Case(c.DEVICE_DENIED, ("errno=EACCES",), sure=POSSIBLE),
    Case(c.NIC_REFUSED, ("errno=EINVAL,EIO,EREMOTEIO",), sure=POSSIBLE),
)
MODIFY_QP = (
    Case(c.TRAFFIC_CLASS, ("traffic_class", "infiniband")),
    # InfiniBand needs no GID, but two NICs of different kinds do not fit each other.
    Case(c.RAILS, ("errno=EINVAL", "infiniband", "ethernet"), sure=FITS),
    Case(c.GID, ("errno=EINVAL,ENODATA,ENOENT",), ("infiniband",), FITS),
    Case(c.RAILS, ("errno=EINVAL", "infiniband"), sure=POSSIBLE),
    Case(
        c.GID,
        ("errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH,ENODEV", "gid_zero"),
        ("infiniband",),
        FITS,
    ),
    Case(c.RAILS, ("errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH",), sure=FITS),
    # On RoCE, the network interface of the GID is not up, or is not the container's.
    Case(c.PORT, ("errno=ENODEV,ENETDOWN",), sure=FITS),
    Case(c.GID, ("errno=ENODEV", "ethernet"), ("gid_zero",), POSSIBLE),
    Case(c.GID, ("errno=EADDRNOTAVAIL,EIO",), sure=FITS),
)
# The peer refused an access to its memory (status 10).
REM_ACCESS = (
    Case(
        c.FREED,
        ("vmm",),
        do="Without `expandable_segments:True`, which gives other memory to the addresses of "
        "registered memory; or without the program's sleep mode",
    ),
    Case(c.FREED, (), ()),
)
# Retries are exceeded (status 12).
RETRY = (
    Case(c.GID, ("gid_zero",), ("infiniband",), FITS),
    Case(c.NETWORK, sure=FITS),
)
ANY_ERROR = "errno=" + ",".join(ERRORS)
OPEN_DEVICE = (
    Case(c.DESCRIPTORS, ("errno=EMFILE,ENFILE",)),
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES,ENOENT",)),
    Case(c.NIC_LIMIT, ("errno=ENOMEM",), sure=FITS),
    # The driver of the NIC cannot talk to the firmware any more, or has stopped using the NIC.
    Case(c.NIC_LOST, ("errno=EAGAIN,EIO,ETIMEDOUT,EREMOTEIO",), sure=FITS),
    Case(c.NO_PROVIDER, ("errno=ENOSYS,EPROTONOSUPPORT",), sure=FITS),
    Case(c.NO_DEVICE, ("errno=ENODEV",), sure=FITS),
    # Many programs do not print the error.
    Case(c.DEVICE_DENIED, (), (ANY_ERROR,), sure=FITS),
)

# libfabric refused memory, mostly that of an EFA device.
OFI_REG = (
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited",), FITS),
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.AMD, ("errno=EFAULT,EINVAL,EOPNOTSUPP,ENOSYS", "amd")),
    Case(c.EFA_PEER, ("errno=EFAULT,EOPNOTSUPP,ENOSYS", "efa", "gpu"), sure=FITS),
    # Memory of the host can be refused as well, as read-only memory by older kernels.
    Case(c.EFA_PEER, ("errno=EFAULT,EOPNOTSUPP,ENOSYS", "efa"), ("gpu",), POSSIBLE),
    # libfabric of EFA installers before 1.29 does not fit NCCL from 2.19 on.
    Case(c.EFA_VERSIONS, ("errno=EINVAL",), ("infiniband",), FITS),
    Case(c.NO_HMEM, ("errno=EOPNOTSUPP,ENOSYS",), ("efa",), FITS),
    Case(c.NO_DMABUF, ("errno=EPROTONOSUPPORT",), sure=FITS),
    Case(c.NO_CLIENT, ("errno=EFAULT",), ("efa",), FITS),
    Case(
        c.EFA_VERSIONS,
        (),
        ("errno=ENOMEM,EFAULT,EINVAL,EOPNOTSUPP,ENOSYS,EPROTONOSUPPORT",),
        POSSIBLE,
    ),
)
# NCCL's plug-in for libfabric, whose messages begin with NET/OFI. The plug-in is AWS's, so its
# provider is EFA if the log does not name another provider.
OFI_PLUGIN_REG = (
    *(one for one in OFI_REG if one.cause not in (c.NO_CLIENT, c.NO_HMEM)),
    Case(
        c.EFA_PEER,
        ("errno=EFAULT,EOPNOTSUPP,ENOSYS",),
        ("efa", "mlx5_nic", "ofi_verbs"),
        FITS,
    ),
    Case(c.NO_CLIENT, ("errno=EFAULT", "ofi_verbs"), ("efa",), FITS),
    Case(c.NO_CLIENT, ("errno=EFAULT", "mlx5_nic"), ("efa",), FITS),
    Case(c.NO_HMEM, ("errno=EOPNOTSUPP,ENOSYS", "ofi_verbs"), ("efa",), FITS),
    Case(c.NO_HMEM, ("errno=EOPNOTSUPP,ENOSYS",), ("efa", "ofi_verbs"), POSSIBLE),
)

# These words are in lines about RDMA.
OF_RDMA = ("dma", "ibv", "uverbs", "UCX", "NCCL", "NET/")
RDMA_CORE = "linux-rdma/rdma-core: libibverbs/verbs.c"
# Verbs of any program. A message of a program comes before these verbs.
GENERAL = (
    Message(
        "ibv_reg_mr<|_iova|_iova2>",
        RDMA_CORE,
        REG_MR + REG_MR_ALONE,
        sure=FITS,
        unless=("line:(host)",),
    ),
    Message(
        "<Cannot|cannot|Failed to|failed to> register memory region",
        "tensorflow/networking: tensorflow_networking/gdr; tensorflow#22081",
        tuple(one._replace(sure=min(one.sure or FITS, FITS)) for one in REG_MR),
        sure=FITS,
        unless=("line:(host)",),
    ),
    Message(
        "ibv_reg_dmabuf_mr",
        RDMA_CORE,
        REG_DMABUF_MR + OF_ANY_EXPORTER,
        sure=FITS,
    ),
    Message("mlx5dv_reg_dmabuf_mr", RDMA_CORE, REG_DMABUF_MR_DIRECT, sure=FITS),
    Message(
        "<cuMemGetHandleForAddressRange|MemGetHandleForAddressRange>",
        "NVIDIA's CUDA driver: cuda.h; aws/aws-ofi-nccl: src/nccl_ofi_cuda.cpp; torchcomms#2979, "
        "libfabric#12828",
        EXPORT,
        sure=FITS,
    ),
    Message(
        "Too many open files",
        "the Linux kernel: EMFILE; libfabric#12828",
        (
            *(Case(c.DESCRIPTORS, (f"line:{word}",), sure=FITS) for word in OF_RDMA),
            Case(c.DESCRIPTORS, ("gpu",), tuple(f"line:{word}" for word in OF_RDMA), POSSIBLE),
        ),
        sure=POSSIBLE,
    ),
    Message(
        "<fi_mr_reg|fi_mr_regv|fi_mr_regattr>",
        "ofiwg/libfabric: include/rdma/fi_domain.h; pplx-garden#1",
        OFI_REG,
        sure=FITS,
    ),
    Message(
        "<ibv_create_cq|mlx5dv_create_cq|ibv_create_cq_ex|Unable to create extended CQ>",
        RDMA_CORE,
        CREATE,
        sure=FITS,
    ),
    Message("<ibv_create_qp|mlx5dv_create_qp|ibv_create_qp_ex>", RDMA_CORE, CREATE, sure=FITS),
    Message(
        "<ibv_create_srq|ibv_create_srq_ex|mlx5dv_devx_umem_reg>", RDMA_CORE, CREATE, sure=FITS
    ),
    Message("<ibv_modify_qp|INIT2RTR_QP|ibv_create_ah>", RDMA_CORE, MODIFY_QP, sure=FITS),
    Message("<ibv_open_device|ibv_get_device_list>", RDMA_CORE, OPEN_DEVICE, sure=FITS),
    Message(
        "Unknown error 524",
        "the Linux kernel: ENOTSUPP; torchcomms#160",
        (Case(c.PAIR, ("gpu",)),),
        sure=FITS,
    ),
)
