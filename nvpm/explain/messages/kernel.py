# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of the kernel about modules."""

from .. import causes as c
from ..model import FINE, FITS, POSSIBLE, Case, Message, Section

SECTION = Section(
    "The kernel about modules",
    "`dmesg` shows these messages. Messages about nv_peer_mem itself are in "
    "[troubleshooting.md](troubleshooting.md#loading).",
    (
        Message(
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client",
            "torvalds/linux: kernel/module/main.c; gpu-operator#2868",
            (Case(c.NO_PEER_CORE),),
        ),
        Message(
            "nvidia_peermem: disagrees about version of symbol ib_",
            "torvalds/linux: kernel/module/version.c; gpu-operator#2868",
            (Case(c.OFED_REPLACED),),
        ),
        Message(
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
            "torvalds/linux: kernel/module/main.c; gpu-operator#2868",
            (Case(c.OFED_REPLACED),),
        ),
        Message(
            "nvidia_peermem: Unknown symbol nvidia_p2p_",
            "torvalds/linux: kernel/module/main.c; nv_peer_memory#8",
            (
                Case(c.DRIVER_REPLACED, ("line:(err -22)",)),
                Case(c.NO_NVIDIA, (), (), sure=FITS),
                Case(c.DRIVER_REPLACED, (), (), sure=POSSIBLE),
            ),
        ),
        Message(
            "<ib_uverbs|mlx5_ib|mlx5_core|rdma_cm|rdma_ucm|ib_cm>: disagrees about version "
            "of symbol",
            "torvalds/linux: kernel/module/version.c",
            (Case(c.MIXED_OFED),),
        ),
        Message(
            "<ib_core|ib_umad|iw_cm|mlx_compat|mlx4_core|mlx4_ib>: disagrees about version of "
            "symbol",
            "torvalds/linux: kernel/module/version.c",
            (Case(c.MIXED_OFED),),
        ),
        Message(
            "<nvidia|nvidia_modeset|nvidia_uvm|nvidia_drm>: disagrees about version of symbol",
            "torvalds/linux: kernel/module/version.c",
            (Case(c.OTHER_KERNEL),),
            note="the NVIDIA driver was built for another kernel",
            do="Install the NVIDIA driver again for the running kernel, and reboot",
        ),
        Message(
            "nvidia_fs: module using GPL-only symbols",
            "torvalds/linux: kernel/module/main.c; gds-nvidia-fs#48",
            (Case(c.OPEN_NEEDED),),
            do="The open NVIDIA driver",
        ),
        Message(
            "from proprietary module nvidia, inheriting taint",
            "torvalds/linux: kernel/module/main.c",
            note="the NVIDIA driver is the proprietary one, and the kernel notes it",
            kind=FINE,
        ),
        Message(
            "loading out-of-tree module taints kernel",
            "torvalds/linux: kernel/module/main.c",
            note="the kernel says so of every module that is not its own",
            kind=FINE,
        ),
        Message(
            "module verification failed: signature and/or required key missing",
            "torvalds/linux: kernel/module/main.c",
            note="the module is not signed with a key that the kernel knows, and this kernel "
            "loads it nevertheless",
            kind=FINE,
        ),
        Message(
            "Loading of unsigned module is rejected",
            "torvalds/linux: kernel/module/signing.c; NVIDIA/gpu-operator#1726",
            (Case(c.SIGNATURE),),
            note="on cloud machines (shielded VM, trusted launch) no key may be enrolled: use "
            "the provider's modules, or turn Secure Boot off",
            sure=FITS,
        ),
        Message(
            "Loading of module with unavailable key is rejected",
            "torvalds/linux: kernel/module/signing.c",
            (Case(c.SIGNATURE),),
            sure=FITS,
        ),
        Message(
            "unsigned module loading is restricted",
            "torvalds/linux: security/lockdown/lockdown.c",
            (Case(c.SIGNATURE),),
            note="the kernel is locked down",
            sure=FITS,
        ),
        Message(
            "<nvidia_fs|gdrdrv>: disagrees about version of symbol nvidia_p2p_",
            "torvalds/linux: kernel/module/version.c",
            (
                Case(c.GDRDRV_OTHER, ("line:gdrdrv",)),
                Case(
                    c.DRIVER_REPLACED,
                    (),
                    (),
                    do="Build nvidia-fs again for the loaded NVIDIA driver",
                ),
            ),
        ),
        Message(
            "<nvidia_fs|gdrdrv>: Unknown symbol nvidia_p2p_",
            "torvalds/linux: kernel/module/main.c",
            (
                Case(c.GDRDRV_OTHER, ("line:gdrdrv", "line:(err -22)")),
                Case(c.DRIVER_REPLACED, ("line:(err -22)",), ()),
                Case(c.NO_NVIDIA, (), ()),
            ),
            sure=FITS,
        ),
        Message(
            "nvidia_fs: no symbol version for nvidia_p2p_",
            "torvalds/linux: kernel/module/version.c; gds-nvidia-fs#72",
            note="nvidia-fs was built without the symbols of the NVIDIA driver, and is loaded",
            do="If it does not work: build nvidia-fs with the sources of the loaded driver",
            kind=FINE,
        ),
        Message(
            "<nvidia_peermem|gdrdrv|nvidia_fs|nvidia|ib_uverbs>: version magic",
            "torvalds/linux: kernel/module/main.c",
            (Case(c.OTHER_KERNEL),),
        ),
        Message(
            "section size must match the kernel's built struct module size",
            "torvalds/linux: kernel/module/main.c",
            (Case(c.OTHER_KERNEL),),
            note="the module was built with the headers of another kernel",
            sure=FITS,
        ),
        Message(
            "mlx5_vdpa: disagrees about version of symbol",
            "torvalds/linux: kernel/module/version.c; doca-driver-build#51",
            (Case(c.MIXED_OFED, do="OFED's own mlx5_vdpa, loaded by its path after the restart"),),
            note="the distribution's mlx5_vdpa does not fit OFED's mlx5_core. RDMA works without",
            sure=FITS,
        ),
        Message(
            "efa_nv_peermem: no symbol version for nvidia_p2p_",
            "torvalds/linux: kernel/module/version.c; amazon-eks-ami#2672",
            note="the module is built without the driver's symbol versions, and works nevertheless",
            kind=FINE,
        ),
        Message(
            "efa_nv_peermem: disagrees about version of symbol nvidia_p2p_",
            "torvalds/linux: kernel/module/version.c",
            (
                Case(
                    c.DRIVER_REPLACED,
                    do="Build the EFA driver's efa_nv_peermem again (`dkms`), or run the newest "
                    "EFA installer",
                ),
            ),
            sure=FITS,
        ),
        Message(
            "failing symbol_get of non-GPLONLY symbol ib_register_peer_memory_client",
            "torvalds/linux: kernel/module/main.c; mori#560",
            (Case(c.AMD),),
            note="amdgpu looks for the peer memory of OFED, and the kernel lets it find only "
            "symbols for GPL modules",
            do="dma-buf, or a version of OFED for this kernel",
            sure=FITS,
        ),
        Message(
            "failing symbol_get of non-GPLONLY symbol <w>nvfs",
            "torvalds/linux: kernel/module/main.c; beegfs#123",
            (Case(c.GDS_DRIVER),),
            note="kernels from 6.5 on let nvidia-fs find only symbols for GPL modules, and the "
            "storage driver exports its symbol otherwise",
            do="A newer version of the storage driver and of nvidia-fs",
            sure=FITS,
        ),
        Message(
            "<mlx5_ib|mlx5_core|ib_core|ib_uverbs|rdma_cm|ib_cm>: Unknown symbol",
            "torvalds/linux: kernel/module/main.c",
            (Case(c.MIXED_OFED),),
            note="the NIC's driver is of one stack, and the module below it of another",
            sure=FITS,
        ),
        Message(
            "<mlx5_ib|mlx5_core|ib_core|ib_uverbs|rdma_cm|ib_cm>: exports duplicate symbol",
            "torvalds/linux: kernel/module/main.c",
            (Case(c.MIXED_OFED),),
            note="a part of the other stack is loaded or built into the kernel; the line names it",
            sure=FITS,
        ),
        Message(
            "<ksmbd|nvme_rdma|nvmet_rdma|rpcrdma|ib_iser>: disagrees about version of symbol",
            "torvalds/linux: kernel/module/version.c; ksmbd#574",
            (
                Case(
                    c.MIXED_OFED,
                    says="this module was built for the kernel's RDMA core, and the loaded one is "
                    "OFED's. GPUDirect RDMA works without this module",
                    do="OFED's version of this module, if it has one (`mlnxofedinstall "
                    "--with-nvmf`, `--with-nfsrdma`), or build it with OFED's headers and "
                    "`Module.symvers`; or do without OFED",
                ),
            ),
            sure=FITS,
        ),
    ),
)
