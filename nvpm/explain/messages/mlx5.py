# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of mlx5, of the RDMA core and libibverbs, and of the IOMMU."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import ERDMA, OTHER_PODS, REG_MR, REM_ACCESS

# A refused access of any device: only a line that names a NIC or a GPU matters here.
REFUSED = (
    Case(c.IOMMU, ("gpu",), sure=FITS),
    Case(c.IOMMU, sure=POSSIBLE),
)
# rdma-core says this as soon as a program looks for RDMA devices, even if the job needs none.
WANTED = tuple(
    Case(c.NO_PROVIDER, (fact,), sure=FITS) for fact in ("rdma_wanted", "many_nodes", "perftest")
)

# A driver of a vendor, beside the kernel's, has a library of the vendor.
PROVIDER_OF_VENDOR = (
    "Install the vendor's library (`libbnxt_re` for Broadcom, `libirdma` for Intel, `liberdma` for "
    "Alibaba) in the image, of the version of the node's driver (`modinfo -F version bnxt_re`), or "
    "a rdma-core that is as new as that driver; `ibv_devinfo` in the container proves it"
)

SECTION = Section(
    "mlx5, ib_core, libibverbs, IOMMU",
    "",
    (
        Message(
            "umem get failed (-14)",
            "Mellanox' OFED: drivers/infiniband/hw/mlx5/mr.c; gdrcopy#1",
            REG_MR,
            note="mlx5 of an older OFED prints this line in the kernel's log",
        ),
        Message(
            "umem get failed (-12)",
            "Mellanox' OFED: drivers/infiniband/hw/mlx5/mr.c",
            REG_MR,
            note="mlx5 of an older OFED prints this line in the kernel's log",
        ),
        Message(
            "ib_umem_get: failed to get user pages",
            "Mellanox' OFED: drivers/infiniband/core/umem.c; libgdsync#44",
            (
                Case(c.VMM, ("gpu", "peermem_loaded")),
                Case(c.NO_CLIENT, ("gpu",), ()),
            ),
            note="the RDMA core of MLNX_OFED 4 prints this line",
            sure=FITS,
        ),
        Message(
            "no mlock permission",
            "knneth/mlnx-ofa_kernel: drivers/infiniband/core/umem.c",
            (Case(c.MEMLOCK),),
            note="the limit is 0 for this user",
        ),
        Message(
            "Peer memory <w> is missing mandatory function",
            "knneth/mlnx-ofa_kernel: drivers/infiniband/core/peer_mem.c",
            (Case(c.OFED_REPLACED),),
            note="the client was built for another interface of peer memory",
            do="Build that client again for the loaded OFED",
            sure=FITS,
        ),
        Message(
            "WC error: 4, Message:",
            "knneth/mlnx-ofa_kernel: drivers/infiniband/hw/mlx5/cq.c",
            (
                Case(c.KEY_QUEUE, ("umr_failed",), sure=FITS),
                Case(c.KEY_QUEUE, (), ("umr_failed",)),
                Case(c.ACS, (), ("umr_failed",)),
            ),
            note="the queue is the kernel's own (IPoIB, NFS, NVMe, or that for memory keys). "
            "Queues of programs do not print this line",
            sure=POSSIBLE,
        ),
        Message(
            "dump error cqe",
            "torvalds/linux: drivers/infiniband/hw/mlx5/cq.c, older",
            note="a queue of the kernel itself failed (IPoIB, NFS, NVMe). Queues of programs do "
            "not print this line",
            do="Look for the first error of that user of the queue, and for `WC error:`",
            kind=FOLLOWS,
        ),
        Message(
            "got completion with error:",
            "linux-rdma/rdma-core: providers/mlx5/cq.c",
            note="libmlx5 prints a failed request as numbers. `51` in the last line is ACS or "
            "the IOMMU in most cases, `81` the network",
            do="Look for the program's line with `vendor err` or a status",
            kind=FOLLOWS,
        ),
        Message(
            "AMD-Vi: Event logged [IO_PAGE_FAULT",
            "torvalds/linux: drivers/iommu/amd/iommu.c",
            REFUSED,
        ),
        Message(
            "DMAR: [DMA <Write|Read>",
            "torvalds/linux: drivers/iommu/intel/dmar.c; open-gpu-kernel-modules#1324",
            REFUSED,
            # The processor's own graphics.
            unless=("line:device [00:02.0]",),
        ),
        Message(
            "Warning: RLIMIT_MEMLOCK is",
            "linux-rdma/rdma-core: libibverbs/init.c",
            (Case(c.MEMLOCK),),
            note="the limit is 32 KiB or less",
            sure=FITS,
        ),
        Message(
            "This will severely limit memory registrations",
            "linux-rdma/rdma-core: libibverbs/init.c",
            (Case(c.MEMLOCK),),
            note="the limit is 32 KiB or less",
            sure=FITS,
        ),
        Message(
            "no userspace device-specific driver found for",
            "linux-rdma/rdma-core: libibverbs/init.c",
            (Case(c.NO_PROVIDER),),
            sure=FITS,
        ),
        Message(
            "does not support the kernel ABI of",
            "linux-rdma/rdma-core: libibverbs/init.c",
            # Programs that need no RDMA print this line as well.
            (
                Case(c.NO_PROVIDER, ("other_nic",), sure=FITS, do=PROVIDER_OF_VENDOR),
                *(one._replace(unless=("other_nic",)) for one in WANTED),
                Case(c.NO_PROVIDER, (), ("other_nic",)),
            ),
            note="the container's rdma-core is too old or too new for the node's driver",
            sure=POSSIBLE,
        ),
        Message(
            "async reg mr failed. status",
            "knneth/mlnx-ofa_kernel: drivers/infiniband/hw/mlx5/mr.c; ucx#6264",
            (
                Case(c.NIC_LIMIT, ("errno=ENOMEM,EAGAIN",)),
                Case(c.NIC_REFUSED, ("errno=EINVAL,EIO,EREMOTEIO",)),
            ),
            note="mlx5 could not create memory keys ahead",
            sure=FITS,
        ),
        Message(
            "create mkey failed",
            "knneth/mlnx-ofa_kernel: drivers/infiniband/hw/mlx5/mr.c",
            note="mlx5 could not create a memory key",
            do="Look for `CREATE_MKEY` in the kernel's log above it: its `status` and "
            "`syndrome` say why",
            kind=FOLLOWS,
        ),
        Message(
            "failed, status bad parameter(0x3)",
            "knneth/mlnx-ofa_kernel: drivers/net/ethernet/mellanox/mlx5/core/cmd.c; ucx#9488",
            (
                Case(c.NIC_REFUSED, ("line:CREATE_MKEY",)),
                Case(c.TRAFFIC_CLASS, ("line:INIT2RTR_QP", "traffic_class")),
                Case(c.GID, ("line:INIT2RTR_QP",), (), sure=FITS),
            ),
            note="other requests than `CREATE_MKEY` and `INIT2RTR_QP` are refused without harm "
            "in most cases",
        ),
        Message(
            "failed, status limits exceeded(0x8)",
            "knneth/mlnx-ofa_kernel: drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
            (Case(c.NIC_LIMIT),),
            sure=FITS,
        ),
        Message(
            "local protection error",
            "linux-rdma/rdma-core: libibverbs/enum_strs.c",
            (
                Case(c.ACS, ("gpu",), ("umr_failed",), FITS),
                Case(c.ACS, (), ("umr_failed",), POSSIBLE),
            ),
            note="the words are libibverbs' for status 4",
        ),
        Message(
            "remote access error",
            "linux-rdma/rdma-core: libibverbs/enum_strs.c",
            (
                *(one._replace(when=("gpu", *one.when), sure=FITS) for one in REM_ACCESS),
                Case(c.FREED, sure=POSSIBLE),
            ),
            note="the words are libibverbs' for status 10. The peer may also have registered "
            "with fewer rights",
        ),
        Message(
            "remote operation error",
            "linux-rdma/rdma-core: libibverbs/enum_strs.c",
            (
                Case(c.PEER_NIC, ("gpu",), sure=FITS),
                Case(c.PEER_NIC, sure=POSSIBLE),
            ),
            note="the words are libibverbs' for status 11",
        ),
        Message(
            "transport retry counter exceeded",
            "linux-rdma/rdma-core: libibverbs/enum_strs.c",
            (Case(c.NETWORK),),
            note="the words are libibverbs' for status 12",
            sure=FITS,
        ),
        Message(
            "Work Request Flushed Error",
            "linux-rdma/rdma-core: libibverbs/enum_strs.c",
            note="the words are libibverbs' for status 5: another request of the queue failed "
            "before",
            do="Look for the first failed request, whose status is another one",
            kind=FOLLOWS,
        ),
        Message(
            "failed, status no resources(0xf)",
            "knneth/mlnx-ofa_kernel: drivers/net/ethernet/mellanox/mlx5/core/cmd.c; Mooncake#1765",
            (Case(c.NIC_LIMIT),),
            note="programs that were killed can leave memory keys in the NIC; `rdma resource` "
            "counts them",
            do="Fewer registrations; a reboot, or the driver loaded again, frees what was left",
            sure=FITS,
        ),
        Message(
            "failed, status bad resource(0x5)",
            "knneth/mlnx-ofa_kernel: drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
            note="a request names something that the NIC does not know any more, as often after "
            "another failure",
            do="Look for the first mlx5 line of that moment",
            kind=FOLLOWS,
        ),
        *(
            Message(
                f"failed, status <{statuses}>",
                "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
                (
                    Case(c.NIC_REFUSED, ("line:CREATE_MKEY",), sure=FITS),
                    Case(c.NIC_REFUSED, ("line:CREATE_QP",), sure=FITS),
                    Case(c.NIC_REFUSED, ("line:INIT_HCA",), sure=FITS),
                    Case(c.NIC_REFUSED),
                ),
                note="the line begins with the name of the request. Drivers and monitors also try "
                "requests that a NIC may refuse without harm",
                unless=("line:ACCESS_REG",),
                sure=POSSIBLE,
            )
            for statuses in (
                "internal error(0x1)|bad operation(0x2)|bad system state(0x4)|resource busy(0x6)|"
                "bad resource state(0x9)|bad index(0xa)",
                "bad QP state(0x10)|bad input length(0x50)|bad output length(0x51)",
            )
        ),
        Message(
            "Create QP type <n> failed",
            "torvalds/linux: drivers/infiniband/hw/mlx5/qp.c",
            note="mlx5 could not create a queue pair. Type 4096 is the driver's own queue for "
            "memory keys, which the first registration creates",
            do="The line with `CREATE_QP` above it: its `status` and `syndrome` say why",
            kind=FOLLOWS,
        ),
        Message(
            "<handle_hca_cap|set_hca_cap|init hca|enable hca|query board id|sw objs init> failed",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/main.c",
            note="the driver could not start the NIC",
            do="The first mlx5 line of that moment",
            kind=FOLLOWS,
        ),
        *(
            Message(
                text,
                f"torvalds/linux: drivers/base/dd.c{age}",
                (
                    Case(c.NIC_LOST, ("errno=ETIMEDOUT,EIO",)),
                    Case(c.NIC_REFUSED, ("errno=EINVAL,EOPNOTSUPP,EREMOTEIO",)),
                ),
                note="the driver gave the NIC up, so that no RDMA device exists",
                do="The line before it; a driver (OFED or kernel) and a firmware that fit each "
                "other",
                sure=FITS,
            )
            for text, age in (
                ("probe with driver <mlx5_core|mlx5_ib.rdma> failed with error", ""),
                ("<mlx5_core|mlx5_ib.rdma>: probe of <w> failed with error", ", before 6.10"),
            )
        ),
        Message(
            "Health issue observed",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/health.c",
            (
                Case(c.NIC_LOST, ("line:firmware internal error",), sure=FITS),
                Case(c.NIC_LOST),
            ),
            note="the driver names the issue and its severity, of which 0 to 3 are the worst",
            sure=POSSIBLE,
        ),
        Message(
            "Will cause a leak of a command resource",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
            (Case(c.NIC_LOST),),
        ),
        Message(
            "device's health compromised",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/health.c; charm#2635",
            (Case(c.NIC_LOST),),
        ),
        Message(
            "mlx5_core <*>Fatal error <n> detected",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/health.c",
            (Case(c.NIC_LOST),),
        ),
        Message(
            "mlx5_error_sw_reset:<*>start",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/health.c",
            (Case(c.NIC_LOST),),
            sure=FITS,
        ),
        Message(
            "assert_var[<n>]",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/health.c; charm#2635",
            (Case(c.NIC_LOST),),
            note="the NIC's firmware stopped, and these lines are for its vendor",
            sure=FITS,
        ),
        Message(
            "Port module event<: |[error]: >module <n>, Cable error",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/events.c",
            (Case(c.PORT),),
            note="the NIC finds a fault of the cable or the transceiver",
            sure=FITS,
        ),
        Message(
            "insufficient power on the PCIe slot",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/events.c",
            note="the slot reports less power than the NIC can use; nearly all servers print it",
            do="If the link is down: the auxiliary power cable of the card",
            kind=FINE,
        ),
        Message(
            "erdma<*>Out of mr size",
            "torvalds/linux: drivers/infiniband/hw/erdma/erdma_verbs.c; Mooncake's documentation",
            (Case(c.REGION_TOO_LARGE),),
            note="Alibaba's eRDMA registers 64 GiB at most in one piece",
            do=ERDMA,
        ),
        Message(
            "<smmu|smmu-v3> <w>: event<: F_TRANSLATION| 0x10 received>",
            "torvalds/linux: drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c",
            REFUSED,
        ),
        Message(
            "[21] ACSViol",
            "torvalds/linux: drivers/pci/pcie/aer.c",
            (Case(c.ACS),),
            note="a bridge refused an access of a device to another device",
            sure=FITS,
        ),
        Message(
            "Failed to process command <REG_MR|ALLOC_PD|CREATE_QP|CREATE_CQ>",
            "amzn/amzn-drivers: kernel/linux/efa/src/efa_com.c; nccl#563, libfabric#9739, "
            "aws-ofi-nccl#22",
            (
                Case(
                    c.NIC_LIMIT,
                    ("errno=ENOMEM",),
                    do="Huge pages for buffers in host memory, and fewer registrations: an EFA "
                    "device takes a limited number of pages",
                ),
                Case(c.NIC_REFUSED, ("errno=EINVAL",)),
            ),
            note="the EFA device refused a registration or a queue",
            sure=FITS,
        ),
        Message(
            "couldn't load driver '<w>'",
            "linux-rdma/rdma-core: libibverbs/init.c; uccl#301",
            (
                Case(c.NO_PROVIDER, ("line:libmlx5",)),
                Case(c.NO_PROVIDER, ("line:libefa",)),
                Case(c.NO_PROVIDER, ("line:libbnxt_re",)),
                Case(c.NO_PROVIDER, ("line:libirdma",)),
                Case(c.NO_PROVIDER, ("line:'mlx5'",)),
            ),
            note="for devices that the node does not have (`vmw_pvrdma`, `hfi1`) the line is "
            "harmless",
            sure=FITS,
        ),
        Message(
            "version `<IBVERBS|MLX5|EFA>_<*>' not found",
            "glibc: elf/dl-version.c",
            (Case(c.NO_PROVIDER),),
            note="the program was built with a newer rdma-core than the one that is found",
            do="One rdma-core: the version that the program was built with, or newer; look at "
            "`LD_LIBRARY_PATH`",
            sure=FITS,
        ),
        Message(
            "version IBVERBS_<*> not defined in file libibverbs",
            "glibc: elf/dl-lookup.c; Freeflow#16",
            (Case(c.NO_PROVIDER),),
            note="libibverbs and the NIC's library are of different packages",
            sure=FITS,
        ),
        Message(
            "undefined symbol: <ibv_|mlx5dv_|efadv_>",
            "glibc: elf/dl-lookup.c; holohub#728",
            (Case(c.NO_PROVIDER),),
            note="the installed rdma-core is older than the one that the program was built with",
            do="Newer libibverbs1, librdmacm1 and ibverbs-providers, of the version of the host's "
            "OFED",
            # NCCL tries this function, and continues without the function.
            unless=("line:mlx5dv_get_data_direct",),
            sure=FITS,
        ),
        Message(
            "couldn't open config directory",
            "linux-rdma/rdma-core: libibverbs/init.c; infra-controller#5251, nvidia-docker#930",
            (*WANTED, Case(c.NO_PROVIDER)),
            note="the package ibverbs-providers is not installed",
            sure=POSSIBLE,
        ),
        Message(
            "ibv_exp_query_device(<w>) returned",
            "openucx/ucx: src/uct/ib/base/ib_verbs.h; ucx#5469",
            (Case(c.NO_PROVIDER),),
            note="libibverbs is MLNX_OFED's, and the loaded driver is another one",
            do="`modinfo -n mlx5_core mlx5_ib` beside `ofed_info -s`: load OFED's modules",
            sure=FITS,
        ),
        Message(
            "librdmacm: Fatal: unable to",
            "linux-rdma/rdma-core: librdmacm/cma.c",
            (
                Case(c.NO_DEVICE, ("rdma_wanted",), sure=FITS),
                Case(c.NO_DEVICE, ("many_nodes",), sure=FITS),
                Case(c.NO_DEVICE, ("perftest",), sure=FITS),
                Case(c.NO_DEVICE),
            ),
            note="`/dev/infiniband/rdma_cm` or one of the NICs' files is missing",
            sure=POSSIBLE,
        ),
        Message(
            "couldn't read uverbs ABI version",
            "linux-rdma/rdma-core: libibverbs/init.c, older",
            (Case(c.NO_DEVICE),),
            note="ib_uverbs is not loaded, or the container does not see it",
            do="`modprobe ib_uverbs`, or `/etc/init.d/openibd start`",
        ),
        Message(
            "Failed to get IB devices list",
            "linux-rdma/rdma-core: libibverbs/examples",
            (Case(c.NO_DEVICE),),
            note="ib_uverbs is not loaded, or the container has no `/dev/infiniband`",
            do="`modprobe ib_uverbs`, or `/etc/init.d/openibd start`; in a container "
            "`--device=/dev/infiniband`",
            sure=FITS,
        ),
        Message(
            "<mlx5_load_one|mlx5_init_one> failed with error code",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/main.c; rp-ext#129",
            (
                Case(c.NIC_LOST, ("errno=ETIMEDOUT,EIO",)),
                Case(c.NIC_REFUSED, ("errno=EINVAL,EOPNOTSUPP,EREMOTEIO",)),
            ),
            note="the driver gave the NIC up, so that no RDMA device exists",
            do="The line before it; a driver (OFED or kernel) and a firmware that fit each other",
            sure=FITS,
        ),
        Message(
            "ACCESS_REG(0x805) op_mod(<n>) failed",
            "torvalds/linux: drivers/net/ethernet/mellanox/mlx5/core/cmd.c; gpud#1164",
            note="a monitor (node_exporter, gpud, ethtool) asks for a value that this NIC does not "
            "have",
            kind=FINE,
        ),
        Message(
            "QP <w> error: local <length error|access violation|protection error>",
            "torvalds/linux: drivers/infiniband/hw/mlx5/qp.c; Mooncake#3299",
            note="the NIC stopped a queue pair. It does so if the memory registration is gone or "
            "too small, and if the two ends have different MTUs",
            do="The program's own log, of both ends, from this time on; "
            "`active_mtu` of `ibv_devinfo` on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "<rdma_create_ep|rdma_resolve_addr|rdma_bind_addr|rdma_getaddrinfo><*>No such device",
            "linux-rdma/rdma-core: librdmacm/cma.c; k8s-rdma-sriov-dev-plugin#33",
            (Case(c.PORT, ("container",), sure=FITS), Case(c.NO_DEVICE, (), ("container",))),
            note="the address belongs to no RDMA device that this network namespace has: a pod "
            "needs an interface of the NIC (macvlan, SR-IOV)",
            sure=POSSIBLE,
        ),
        Message(
            "reg umr failed (<n>)",
            "torvalds/linux: drivers/infiniband/hw/mlx5/umr.c",
            (Case(c.KEY_QUEUE),),
            note="the number is the status of the NIC's queue",
            sure=FITS,
        ),
        Message(
            "UMR post send failed, err <n>",
            "torvalds/linux: drivers/infiniband/hw/mlx5/umr.c",
            (Case(c.KEY_QUEUE),),
            note="-5: the driver has given the NIC up, or its queue has not recovered",
            sure=FITS,
        ),
        *(
            Message(
                text,
                "torvalds/linux: drivers/infiniband/hw/mlx5/umr.c",
                (Case(c.KEY_QUEUE),),
                note="the driver could not start its queue again after an error",
                sure=FITS,
            )
            for text in (
                "couldn't recover UMR, err <n>",
                "UMR recovery post send failed, err <n>",
                "UMR recovery encountered an unexpected state=<n>",
                "Couldn't modify UMR QP to <RESET|RTS>, err=<n>",
            )
        ),
        Message(
            "Failed to open device",
            "linux-rdma/rdma-core: libibverbs/examples/devinfo.c; k8s-rdma-device-plugin#8",
            (Case(c.DEVICE_DENIED, ("container", "rdma_up"), do=OTHER_PODS),),
            note="ibv_devinfo: the node's other devices are seen, and not given to this container",
            sure=FITS,
        ),
    ),
)
