# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that modprobe, insmod, rmmod and depmod print."""

from .. import causes as c
from ..model import FITS, FOLLOWS, POSSIBLE, Case, Message, Section

SECTION = Section(
    "modprobe, insmod, rmmod, depmod",
    "These programs print only the name of the error. The reason is in the "
    "kernel's log: `dmesg | tail`. What they print about nv_peer_mem itself is, with few "
    "exceptions, "
    "in [troubleshooting.md](troubleshooting.md#loading).",
    (
        Message(
            "could not insert 'nvidia<_|->peermem': Invalid argument",
            "kmod-project/kmod: tools/modprobe.c; gpu-operator#2868",
            (
                Case(c.SECOND_CLIENT, ("peermem_loaded",), here="{empty_peermem}"),
                Case(
                    c.OFED_REPLACED,
                    (),
                    (),
                    here="{empty_peermem}",
                    do="The open NVIDIA driver with dma-buf, which needs no such module; or "
                    "install OFED first, then build the NVIDIA driver again (in Kubernetes "
                    "delete the driver pod), or nv_peer_mem, whose build says what is missing",
                ),
                Case(c.NO_PEER_CORE, (), ("peermem_loaded",), POSSIBLE),
            ),
            note="if dmesg has no line about it, the driver was built without OFED",
            sure=FITS,
        ),
        Message(
            "could not insert 'nv_peer_mem': Invalid argument",
            "kmod-project/kmod: tools/modprobe.c; nv_peer_memory#116, #63, #28",
            (
                Case(c.SECOND_CLIENT, ("peermem_loaded",)),
                Case(c.OFED_REPLACED, (), ()),
                Case(c.DRIVER_REPLACED, sure=POSSIBLE),
            ),
            note="dmesg names the symbol that does not fit",
            sure=FITS,
        ),
        Message(
            "could not insert 'nv_peer_mem': Unknown symbol",
            "kmod-project/kmod: tools/modprobe.c; nv_peer_memory#84, #80",
            (
                Case(c.NO_PEER_CORE, sure=FITS),
                Case(c.NO_NVIDIA, sure=POSSIBLE),
            ),
            note="dmesg names the symbol: `ib_…` is of the RDMA core, `nvidia_p2p_…` of the driver",
        ),
        Message(
            "could not insert 'nvidia<_|->peermem': Unknown symbol",
            "kmod-project/kmod: tools/modprobe.c",
            (
                Case(c.NO_PEER_CORE, sure=FITS),
                Case(c.NO_NVIDIA, sure=POSSIBLE),
            ),
            note="dmesg names the symbol: `ib_…` is of the RDMA core, `nvidia_p2p_…` of the driver",
        ),
        Message(
            "could not insert 'nvidia<_|->peermem': Exec format error",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.OTHER_KERNEL),),
        ),
        Message(
            "could not insert 'nvidia': Key was rejected",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.SIGNATURE),),
            note="nv_peer_mem cannot load before the NVIDIA driver does",
        ),
        Message(
            "could not insert '<mlx5_core|mlx5_ib|mlx_compat|ib_core|ib_uverbs>': Key was rejected",
            "kmod-project/kmod: tools/modprobe.c; Azure/azhpc-images#298",
            (Case(c.SIGNATURE),),
            note="without OFED's modules there is no RDMA device. The key of nv_peer_mem is "
            "another one",
            do="Enroll the key with which OFED's packages were signed here (`modinfo -F "
            "signer mlx5_core`), or install OFED's signed packages. In a cloud machine "
            "without a console: Secure Boot off",
        ),
        Message(
            "could not insert 'nvidia<_|->peermem': Key was rejected",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.SIGNATURE),),
        ),
        Message(
            "could not insert 'nvidia': No such device",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.GPU_TAKEN),),
            note="the `NVRM:` lines of dmesg name the reason",
            sure=FITS,
        ),
        Message(
            "could not insert '<nvidia_peermem|nvidia-peermem|nvidia|ib_uverbs>': Operation "
            "not permitted",
            "kmod-project/kmod: tools/modprobe.c",
            (
                Case(c.NOT_ALLOWED, sure=FITS),
                Case(c.SIGNATURE, sure=POSSIBLE),
            ),
        ),
        Message(
            "Module nvidia_peermem not found in directory",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.NO_PEERMEM_MODULE),),
            note="for programs that look for the name nvidia_peermem there is the marker",
        ),
        Message(
            "Module nvidia is in use",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.MODULE_IN_USE),),
            do="`/etc/init.d/nv_peer_mem stop`, then stop what `fuser -v /dev/nvidia*` names",
        ),
        Message(
            "Module ib_core is in use by:",
            "kmod-project/kmod: tools/rmmod.c",
            (Case(c.MODULE_IN_USE),),
            note="the end of the line names the modules that use `ib_core`",
            do="Stop nv_peer_mem and nvidia_peermem, then openibd. Storage (nvme_rdma, "
            "rpcrdma, ib_isert, ko2iblnd): unmount it first, or reboot",
        ),
        Message(
            "Module mlx_compat is in use by:",
            "kmod-project/kmod: tools/rmmod.c; Mellanox/doca-driver-build#424",
            (Case(c.MODULE_IN_USE),),
            note="the modules at the end are of the same OFED, in most cases its NVMe (`nvme`, "
            "`nvme_core`)",
            do="Reboot. Install OFED with `--without-mlnx-nvme` if the disks need no NVMe "
            "over RDMA",
        ),
        Message(
            "could not insert 'mlx5_fwctl': Invalid argument",
            "kmod-project/kmod: tools/modprobe.c; Mellanox/doca-driver-build#424",
            (Case(c.MIXED_OFED),),
            note="openibd could not unload the older `mlx_compat` or `mlx5_core`: `is in use "
            "by` above it names the reason",
        ),
        Message(
            "insmod: ERROR: could not insert module <*><peer|nvidia|gdrdrv|mlx5|ib_core>",
            "kmod-project/kmod: tools/insmod.c",
            (
                Case(
                    c.SECOND_CLIENT,
                    ("line:File exists",),
                    sure=POSSIBLE,
                    do="Nothing, if `lsmod` shows this module: it is loaded already",
                ),
                Case(
                    c.NO_PEER_CORE,
                    ("line:Unknown symbol in module",),
                    sure=POSSIBLE,
                    do="`modprobe` instead: insmod does not load the modules that this one needs",
                ),
                Case(c.OTHER_KERNEL, ("line:Invalid module format",)),
                Case(c.OFED_REPLACED, ("line:Invalid parameters",)),
                Case(c.SIGNATURE, ("line:rejected by service",)),
                Case(c.SIGNATURE, ("line:Required key",)),
                Case(c.NOT_ALLOWED, ("line:Operation not permitted",)),
            ),
            note="dmesg has the reason",
            sure=FITS,
        ),
        Message(
            "Error running install command <*> for module <nvidia|ib_uverbs|nv_peer_mem>",
            "kmod-project/kmod: libkmod/libkmod-module.c",
            (Case(c.FORBIDDEN),),
        ),
        Message(
            "needs unknown symbol ib_register_peer_memory_client",
            "kmod-project/kmod: tools/depmod.c; nv_peer_memory#84",
            (Case(c.NO_PEER_CORE),),
            note="depmod found no RDMA core with peer memory for this kernel",
        ),
        Message(
            "could not insert 'nvidia<_|->peermem': Required key not available",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.SIGNATURE),),
        ),
        Message(
            "could not insert 'nvidia': Required key not available",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.SIGNATURE),),
            note="nv_peer_mem cannot load before the NVIDIA driver does",
        ),
        Message(
            "Module nvidia<_|->peermem is in use",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.MODULE_IN_USE),),
            do="Stop the jobs that use GPUDirect RDMA, then unload it again",
        ),
        Message(
            "Module ib_core is in use.",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.MODULE_IN_USE),),
            do="`/etc/init.d/nv_peer_mem stop`, then openibd",
        ),
        Message(
            "Module ib_core is in use by: <*>nvidia_peermem",
            "kmod-project/kmod: tools/rmmod.c",
            (Case(c.MODULE_IN_USE),),
            note="OFED is restarted while nvidia_peermem is loaded",
            do="`modprobe -r nvidia_peermem`, then openibd",
        ),
        Message(
            "Module <rdma_cm|ib_uverbs|mlx5_core|mlx5_ib|ib_cm|iw_cm> is in use by:",
            "kmod-project/kmod: tools/rmmod.c; network-operator#1639",
            (Case(c.MODULE_IN_USE),),
            note="OFED is restarted while the modules at the end of the line use it",
            do="Stop what the end of the line names: nv_peer_mem and nvidia_peermem by their "
            "service or `modprobe -r`; storage (rpcrdma, nvme_rdma, ib_isert) unmounted first",
        ),
        Message(
            "Cannot unload the Infiniband driver stack",
            "knneth/mlnx-ofa_kernel: ofed_scripts/mod_load_funcs",
            (Case(c.MODULE_IN_USE),),
            note="openibd names what is in the way in the lines before: modules, programs, or "
            "active virtual functions",
            do="Stop or unmount what these lines name, and unload the modules, then openibd",
            sure=FITS,
        ),
        Message(
            "There are active virtual functions. Cannot continue",
            "knneth/mlnx-ofa_kernel: ofed_scripts/mod_load_funcs",
            (Case(c.MODULE_IN_USE),),
            note="virtual machines use virtual functions of the NIC, so openibd does not touch its "
            "drivers",
            do="End these virtual machines (`virsh list`), then call openibd again",
            sure=FITS,
        ),
        Message(
            "Please stop <Lustre services before unloading the Infiniband stack|"
            "the following applications still using Infiniband devices>",
            "knneth/mlnx-ofa_kernel: ofed_scripts/mod_load_funcs",
            (Case(c.MODULE_IN_USE),),
            note="openibd was to unload the RDMA drivers, and programs use them",
            do="Stop what the line, or the lines after it, name, then call openibd again",
            sure=FITS,
        ),
        Message(
            "Please close all <nvme|nvmet|isert> sessions and unload",
            "knneth/mlnx-ofa_kernel: ofed_scripts/mod_load_funcs",
            (Case(c.MODULE_IN_USE),),
            note="openibd was to unload the RDMA drivers, and storage uses them",
            do="Unmount or disconnect this storage and unload the module that the line names, then "
            "call openibd again",
            sure=FITS,
        ),
        Message(
            "Module gdrdrv not found in directory",
            "kmod-project/kmod: tools/modprobe.c; gdrcopy#331",
            (
                Case(
                    c.GDRDRV,
                    do="Install the headers of the running kernel, then `dkms autoinstall`, and "
                    "read its `make.log`. If NVIDIA's driver came as a kmod package, take gdrdrv's "
                    "kmod package, or build gdrdrv from source",
                ),
            ),
            note="the module is not built for this kernel",
        ),
        Message(
            "Job for gdrcopy.service failed",
            "systemd: src/systemctl; gdrcopy#331",
            note="the service loads gdrdrv",
            do="`journalctl -u gdrcopy`, and look for `modprobe:` above it",
            kind=FOLLOWS,
        ),
        Message(
            "insmod: ERROR: could not <load|insert> module <*>gdrdrv.ko<: No such file|: Cannot>",
            "kmod-project/kmod: tools/insmod.c; gdrcopy#242, DeepEP#11",
            (Case(c.GDRDRV),),
            note="insmod.sh expects gdrdrv built in its own directory",
            do="`modprobe gdrdrv`, if it was installed as a package",
            sure=FITS,
        ),
        Message(
            "could not insert '<gdrdrv|nvidia_fs|nvidia-fs>'",
            "kmod-project/kmod: tools/modprobe.c; gdrcopy#13, gds-nvidia-fs#34, #81",
            (
                Case(c.SIGNATURE, ("line:Key was rejected",)),
                Case(c.SIGNATURE, ("line:Required key",)),
                Case(c.OTHER_KERNEL, ("line:Exec format error",)),
                Case(c.NOT_ALLOWED, ("line:Operation not permitted",), sure=POSSIBLE),
                Case(c.GDRDRV_OTHER, ("line:gdrdrv", "line:Invalid argument")),
                Case(c.GDRDRV_OTHER, ("line:gdrdrv", "line:Unknown symbol")),
                Case(c.OPEN_NEEDED, ("line:fs", "line:Unknown symbol", "proprietary_driver")),
                Case(
                    c.DRIVER_REPLACED,
                    ("line:fs", "line:Invalid argument"),
                    do="Build nvidia-fs again for the loaded NVIDIA driver",
                ),
            ),
            note="dmesg has the reason",
            sure=FITS,
        ),
        Message(
            "could not insert '<mlx5_core|mlx5_ib|ib_core|ib_uverbs|rdma_cm|mlx_compat>': "
            "<*>argument",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.MIXED_OFED),),
            note="dmesg names the symbol that does not fit",
            sure=FITS,
        ),
        Message(
            "could not insert '<mlx5_core|mlx5_ib|ib_core|ib_uverbs|rdma_cm|mlx_compat>': "
            "Unknown symbol",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.MIXED_OFED),),
            note="dmesg names the symbol",
            sure=FITS,
        ),
        Message(
            "load nvidia_peermem failed",
            "siderolabs/talos: internal/app/machined; talos#12021",
            (Case(c.NO_PEER_CORE),),
            note="Talos Linux has the RDMA core of the kernel, without peer memory",
            do="dma-buf: the open NVIDIA driver, and a kernel with `CONFIG_PCI_P2PDMA`",
            sure=FITS,
        ),
        Message(
            "FATAL: Module nvidia not found",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.NO_NVIDIA),),
            note="no NVIDIA driver is installed for the running kernel",
            do="Install NVIDIA's kernel modules, the open or the proprietary ones "
            "(nvidia-open-kernel-dkms or nvidia-kernel-dkms on Debian), and reboot",
        ),
        Message(
            "could not insert '<nvidia|ib_uverbs|ib_core|mlx5_core|mlx5_ib|rdma_cm>': Exec format "
            "error",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.OTHER_KERNEL),),
        ),
        Message(
            "Module nvidia<_|->fs not found in directory",
            "kmod-project/kmod: tools/modprobe.c",
            (Case(c.GDS_DRIVER),),
        ),
        Message(
            "Module <mlx5_core|mlx5_ib|ib_uverbs|ib_core|rdma_cm> not found in directory",
            "kmod-project/kmod: tools/modprobe.c",
            (
                Case(
                    c.OTHER_KERNEL,
                    do="Install OFED again for this kernel (`--add-kernel-support`, or its DKMS "
                    "packages), or the distribution's package of further modules "
                    "(`linux-modules-extra-…`)",
                ),
            ),
            note="the RDMA drivers are not built for the running kernel",
            sure=FITS,
        ),
        Message(
            "Module <mlx5_core|mlx5_ib|ib_uverbs|ib_umad> does not exist, skipping",
            "MLNX_OFED: /etc/init.d/openibd; FaaSMem#1",
            (
                Case(
                    c.OTHER_KERNEL,
                    do="Install OFED again for this kernel (`--add-kernel-support`, or its DKMS "
                    "packages)",
                ),
            ),
            note="OFED's modules are not built for the running kernel",
        ),
        Message(
            "NVIDIA GPU memory plug-in",
            "Mellanox/nv_peer_memory: nv_peer_mem.c, and nvidia-peermem; nv_peer_memory#46",
            (
                Case(
                    c.NO_CLIENT,
                    ("lsmod_asked",),
                    ("peermem_loaded",),
                    do="`modprobe nv_peer_mem`; for the next boot its name in "
                    "`/etc/modules-load.d`, or the service nv_peer_mem enabled",
                ),
            ),
            note="the line is of `modinfo`: the module is installed, and may not be loaded",
            sure=FITS,
        ),
        Message(
            "belong to a kernel which is not a part of",
            "MLNX_OFED: /etc/init.d/openibd; azhpc-images#119",
            (
                Case(
                    c.OTHER_KERNEL,
                    do="Install OFED again for this kernel (`--add-kernel-support`, or its DKMS "
                    "packages)",
                ),
            ),
            note="openibd loads nothing, because its modules are those of another kernel",
            sure=FITS,
        ),
        Message(
            "Failed loading kernel module <mlx5_ib|mlx5_core|ib_core|ib_uverbs|rdma_cm>",
            "MLNX_OFED: openibd; doca-driver-build#52",
            note="openibd does not print the reason",
            do="`dmesg`: look for `disagrees about version`, `Unknown symbol` and `Key was "
            "rejected`",
            kind=FOLLOWS,
        ),
        Message(
            "Loading HCA driver and Access Layer<*>FAILED",
            "MLNX_OFED: openibd; doca-driver-build#52",
            note="openibd does not print the reason",
            do="`dmesg`: look for `disagrees about version`, `Unknown symbol` and `Key was "
            "rejected`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to insert module '<nvidia_peermem|nvidia-peermem|nv_peer_mem|gdrdrv|nvidia>'",
            "systemd/systemd: src/shared/module-util.c",
            (
                Case(c.CANNOT_LOAD_HERE, ("line:No such device",), ("line:'nvidia'",), FITS),
                Case(c.SIGNATURE, ("line:Key was rejected",)),
                Case(c.SIGNATURE, ("line:Required key not available",)),
                Case(c.OTHER_KERNEL, ("line:Exec format error",)),
                Case(c.GPU_TAKEN, ("line:'nvidia'", "line:No such device"), sure=FITS),
                Case(
                    c.OFED_REPLACED,
                    ("line:Invalid argument",),
                    ("line:'nvidia'", "line:'gdrdrv'"),
                    FITS,
                ),
                Case(
                    c.NO_PEER_CORE,
                    ("line:Unknown symbol",),
                    ("line:'nvidia'", "line:'gdrdrv'"),
                    FITS,
                ),
            ),
            note="systemd-modules-load prints this line. Dmesg has the reason",
        ),
        Message(
            "Failed to insert module '<efa_nv_peermem|efa-nv-peermem>'",
            "systemd/systemd: src/shared/module-util.c; amazon-eks-ami#2737, #2672",
            (
                Case(c.SIGNATURE, ("line:Key was rejected",)),
                Case(c.OTHER_KERNEL, ("line:Exec format error",)),
                Case(
                    c.CANNOT_LOAD_HERE,
                    (),
                    (),
                    FITS,
                ),
            ),
            note="EFA's module for peer memory needs NVIDIA's driver, and kernels with dma-buf do "
            "without it",
        ),
        Message(
            "Failed to start systemd-modules-load.service",
            "systemd/systemd: units/systemd-modules-load.service.in",
            note="one of the modules that the files of `/etc/modules-load.d` name was not loaded",
            do="`journalctl -b -u systemd-modules-load` names the module, and dmesg the reason",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to find module '<nvidia_peermem|nvidia-peermem>'",
            "systemd/systemd: src/shared/module-util.c",
            (
                Case(c.NO_PEERMEM_MODULE),
                Case(c.CANNOT_LOAD_HERE, sure=POSSIBLE),
            ),
            sure=FITS,
        ),
    ),
)
