# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The causes of a failed verb by the error, which are the same in every program. The sections of
programs use these cases for their own messages. GENERAL looks for the verbs themselves, in programs
that have no section."""

from . import causes as c
from .model import FITS, POSSIBLE, Case, Message

# A pointer to GPU memory was registered.
REG_MR = (
    Case(c.AMD, ("errno=EFAULT,EINVAL,EOPNOTSUPP", "amd")),
    Case(c.GEFORCE, ("errno=EFAULT,EINVAL", "geforce")),
    Case(c.VMM, ("errno=EFAULT", "peermem_loaded"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT", "vmm"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT", "gdr_mapping"), sure=FITS),
    Case(c.NO_CLIENT, ("errno=EFAULT",), ("peermem_loaded", "vmm", "gdr_mapping"), sure=FITS),
    Case(c.VMM, ("errno=EFAULT",), sure=POSSIBLE),
    Case(c.KERNEL_CMA, ("errno=ENOMEM", "gb10", "kernel>=7.0")),
    Case(c.MEMLOCK, ("errno=ENOMEM", "memlock_limited")),
    Case(c.BAR1, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM", "var:NCCL_BUFFSIZE"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited", "var:NCCL_BUFFSIZE"), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM",), sure=POSSIBLE),
    Case(c.MAP_COUNT, ("errno=ENOMEM", "memlock_unlimited"), sure=POSSIBLE),
    Case(c.NIC_REFUSED, ("errno=EINVAL",), ("geforce", "amd"), sure=POSSIBLE),
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",), sure=FITS),
    Case(c.VMM, ("errno=EOPNOTSUPP",), ("amd",), sure=POSSIBLE),
    Case(c.PAIR, ("errno=ENOTSUPP",), sure=FITS),
    Case(c.NIC_LIMIT, ("errno=EIO", "other_nic"), sure=FITS),
    Case(c.PAIR, ("errno=EIO",), ("other_nic",), POSSIBLE),
)
# A pointer to GPU memory was registered, and the program does not print the error.
REG_MR_SILENT = (
    Case(c.GEFORCE, ("geforce",)),
    Case(c.MEMLOCK, ("memlock_limited",), sure=FITS),
    Case(c.VMM, ("peermem_loaded",), ("memlock_limited",), sure=FITS),
    Case(c.NO_CLIENT, (), ("peermem_loaded", "memlock_limited"), sure=FITS),
    Case(c.BAR1, ("peermem_loaded",), sure=POSSIBLE),
)
# The verb alone stands in a line, without an error and without a program that is known.
KNOWN_ERRORS = "errno=EFAULT,EINVAL,ENOMEM,EOPNOTSUPP,EPERM,EACCES,EIO,ENOTSUPP"
REG_MR_ALONE = (
    Case(c.NO_CLIENT, ("gpu",), (KNOWN_ERRORS, "peermem_loaded"), POSSIBLE),
    Case(c.MEMLOCK, ("gpu",), (KNOWN_ERRORS, "memlock_unlimited"), POSSIBLE),
    Case(c.VMM, ("gpu", "peermem_loaded"), (KNOWN_ERRORS,), POSSIBLE),
)
# A dma-buf of GPU memory was registered.
REG_DMABUF_MR = (
    Case(c.AMD, ("errno=EOPNOTSUPP,EINVAL", "amd")),
    Case(c.NO_DMABUF, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS,EBADF",), ("amd",)),
    Case(c.PAIR, ("errno=ENOTSUPP",)),
    Case(c.PAIR, ("errno=EIO,EREMOTEIO",), sure=FITS),
    Case(c.NO_DMABUF, ("errno=EINVAL,EFAULT",), ("amd",), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM", "memlock_limited"), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM",), ("memlock_limited",), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited",), sure=POSSIBLE),
)
# Queues in host memory were made.
CREATE = (
    Case(c.MEMLOCK, ("errno=ENOMEM",), ("memlock_unlimited",)),
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.NIC_LIMIT, ("errno=ENOSPC,EAGAIN,EBUSY",), sure=FITS),
    Case(c.DEVX, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS",), ("other_nic",), FITS),
    Case(c.NOT_MLX5, ("errno=EOPNOTSUPP,EPROTONOSUPPORT,ENOSYS,EINVAL", "other_nic"), sure=FITS),
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",), sure=FITS),
    Case(c.NIC_REFUSED, ("errno=EINVAL,EIO,EREMOTEIO",), sure=POSSIBLE),
)
MODIFY_QP = (
    Case(c.TRAFFIC_CLASS, ("traffic_class", "infiniband")),
    # InfiniBand needs no GID, but two NICs of different kinds do not fit each other.
    Case(c.RAILS, ("errno=EINVAL", "infiniband", "ethernet"), sure=FITS),
    Case(c.GID, ("errno=EINVAL,ENODATA,ENOENT",), ("infiniband",), FITS),
    Case(c.RAILS, ("errno=EINVAL", "infiniband"), sure=POSSIBLE),
    Case(c.RAILS, ("errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH",), sure=FITS),
    Case(c.GID, ("errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH", "gid_zero"), ("infiniband",), FITS),
    # On RoCE, the network interface of the GID is not up, or is not the container's.
    Case(c.PORT, ("errno=ENODEV",), sure=FITS),
    Case(c.GID, ("errno=ENODEV", "ethernet"), ("gid_zero",), POSSIBLE),
    Case(c.GID, ("errno=ENODEV", "gid_zero"), ("infiniband",), FITS),
    Case(c.PORT, ("errno=ENETDOWN",), sure=FITS),
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
    Case(c.FREED, (), ("vmm",)),
)
# Retries are exceeded (status 12).
RETRY = (
    Case(c.GID, ("gid_zero", "ethernet"), ("infiniband",), FITS),
    Case(c.NETWORK, sure=FITS),
)
OPEN_DEVICE = (
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES,ENOENT",)),
    Case(c.NIC_LIMIT, ("errno=ENOMEM",), sure=FITS),
    Case(c.DEVICE_DENIED, (), ("errno=ENODEV,ENOSYS,ENOMEM",), sure=FITS),
    Case(c.NO_PROVIDER, ("errno=ENOSYS",), sure=FITS),
    Case(c.NO_DEVICE, ("errno=ENODEV",), sure=FITS),
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
    Case(c.EFA_VERSIONS, ("errno=EINVAL",), ("infiniband", "amd"), FITS),
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

RDMA_CORE = "linux-rdma/rdma-core: libibverbs/verbs.c"
# Verbs of any program. A message of a program comes before these.
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
    Message("<ibv_reg_dmabuf_mr|mlx5dv_reg_dmabuf_mr>", RDMA_CORE, REG_DMABUF_MR, sure=FITS),
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
