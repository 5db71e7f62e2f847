# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that dkms, the compiler and the packages for nv_peer_mem 1.x print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section

OFED_TOO_OLD = (
    Case(
        c.IMAGE_DEFECT,
        says="this OFED is too old for the kernel: it does not compile",
        do="A newer OFED (DOCA-OFED) that names this kernel among those that it supports, or one "
        "of these kernels; `LC_ALL=C` makes the log readable for others",
    ),
)
# The word of compilers for an error, in the languages of public logs.
ERROR = "<error|错误|Fehler|erreur>"
TRANSLATED = "<错误|Fehler|erreur>"

SECTION = Section(
    "dkms, the compiler, and the packages of nv_peer_mem 1.x",
    "",
    (
        Message(
            "Bad return status for module build on kernel",
            "dell/dkms: dkms.in",
            (Case(c.BUILD_FAILED, ("rdma_module",)),),
            note="the line `Consult …/make.log` says of which package",
            sure=FITS,
        ),
        Message(
            "Your kernel headers for kernel",
            "dell/dkms: dkms.in",
            (Case(c.NO_HEADERS),),
        ),
        Message(
            "(bad exit status: <n>)",
            "dell/dkms: dkms.in",
            (Case(c.BUILD_FAILED, ("rdma_module",)),),
            sure=POSSIBLE,
        ),
        Message(
            "Install Failed (depmod problems)",
            "dell/dkms: dkms.in",
            (Case(c.DEPMOD),),
        ),
        Message(
            "does not appear to have module source",
            "dell/dkms: dkms.in; nv_peer_memory#83",
            (Case(c.DKMS_STATE),),
            note="nv_peer_memory 1.1 was installed over an older one, whose source is gone",
            do="`dkms remove` of both versions, then install again; or this module",
        ),
        Message(
            "Could not find module source directory",
            "dell/dkms: dkms.in",
            (Case(c.DKMS_STATE),),
            note="the package's source below `/usr/src` is missing",
        ),
        Message(
            "includes a BUILD_EXCLUSIVE directive",
            "dell/dkms: dkms.in",
            note="the package is not for this kernel",
            do="With nv_peer_mem, look for `nv_peer_mem is not built for kernel` above it, "
            "which names the missing part. Install that, then `dkms autoinstall`",
            kind=FOLLOWS,
        ),
        Message(
            "This module/version combo is already installed",
            "dell/dkms: dkms.in",
            do="`dkms install --force` builds and installs it again",
            kind=FINE,
        ),
        Message(
            "DKMS tree already contains",
            "dell/dkms: dkms.in",
            (Case(c.DKMS_STATE),),
            note="the source of this version is in dkms already",
            do="`dkms remove` first, if the version shall be added again",
            sure=POSSIBLE,
        ),
        Message(
            "not found, modules won't be signed",
            "dell/dkms: dkms.in",
            note="dkms did not find the kernel's configuration or a tool to sign with. Without "
            "Secure Boot nothing is wrong",
            do="With Secure Boot: install the kernel's headers completely, then build again",
            kind=FINE,
        ),
        Message(
            "rdma/peer_mem.h: No such file",
            "Mellanox/nv_peer_memory: nv_peer_mem.c; nv_peer_memory#86",
            (Case(c.NO_HEADERS),),
            note="nv_peer_memory 1.x found no headers of OFED for this kernel",
            do="OFED with its devel or DKMS package; or this module, whose build says what is "
            "missing",
        ),
        Message(
            "Compilation might fail against Inbox InfiniBand Stack",
            "Mellanox/nv_peer_memory: Makefile",
            (Case(c.NO_HEADERS),),
            note="nv_peer_memory 1.x found no OFED, and goes on without it",
            do="OFED with its devel or DKMS package; or this module, whose build says what is "
            "missing",
            sure=FITS,
        ),
        Message(
            "nv_mem_client_ex<*>has initializer but incomplete type",
            "Mellanox/nv_peer_memory: nv_peer_mem.c; nv_peer_memory#107",
            (Case(c.OLD_NV_PEER_MEM),),
            note="nv_peer_memory 1.2 and 1.3 need OFED 5.1 or later",
        ),
        Message(
            "GPL-incompatible module nvidia<*>.ko uses GPL-only symbol",
            "torvalds/linux: scripts/mod/modpost.c; gpu-operator#751",
            (Case(c.BUILD_FAILED),),
            note="the proprietary NVIDIA driver is too old for this kernel",
            do="A newer NVIDIA driver, or an older kernel",
        ),
        Message(
            "GPL-incompatible module <gdrdrv|nvidia-fs|nv-p2p-dummy>.ko uses GPL-only symbol",
            "torvalds/linux: scripts/mod/modpost.c; gdrcopy#254",
            (Case(c.IMAGE_DEFECT),),
            note="this version of gdrcopy or nvidia-fs is too old for the kernel",
            sure=FITS,
        ),
        Message(
            "Could not get list of nvidia symbols",
            "Mellanox/nv_peer_memory: create_nv.symvers.sh; nv_peer_memory#42",
            (Case(c.OLD_NV_PEER_MEM),),
            note="NVIDIA's modules are compressed, or not built yet",
            do="Build the NVIDIA driver first; or this module, which reads all compressions",
            sure=FITS,
        ),
        Message(
            "Cannot locate nvidia modules",
            "Mellanox/nv_peer_memory: create_nv.symvers.sh",
            (Case(c.NO_NVIDIA),),
            note="nv_peer_memory 1.x prints this line when it is built",
            do="Install the NVIDIA driver for this kernel first",
        ),
        Message(
            "CUDA driver must be installed before installing this package",
            "Mellanox/nv_peer_memory: create_nv.symvers.sh",
            (Case(c.NO_NVIDIA),),
            note="nv_peer_memory 1.x prints this line when it is built",
            do="Install the NVIDIA driver for this kernel first",
        ),
        Message(
            "parse error in symbol dump file",
            "torvalds/linux: scripts/mod/modpost.c; nv_peer_memory#70",
            (Case(c.OLD_NV_PEER_MEM),),
            note="the nv_peer_memory is of 2020 or older, and the kernel is 5.4 or later",
            sure=FITS,
        ),
        Message(
            'ERROR: <modpost: |>"nvidia_p2p_get_pages" [',
            "torvalds/linux: scripts/mod/modpost.c; nv_peer_memory#52",
            (Case(c.OLD_NV_PEER_MEM),),
            note="nv_peer_memory 1.x got no symbols of the NVIDIA driver",
            do="Build the NVIDIA driver first; or this module",
            sure=FITS,
        ),
        Message(
            'ERROR: <modpost: |>"ib_register_peer_memory_client" [',
            "torvalds/linux: scripts/mod/modpost.c",
            (Case(c.NO_HEADERS),),
            note="a client was built without OFED's `Module.symvers`",
            do="OFED's devel package for this kernel; or this module",
        ),
        Message(
            "the compiler differs from the one used to build the kernel",
            "torvalds/linux: Makefile",
            note="in most cases the module works",
            do="If the build fails: install the kernel's compiler",
            kind=FINE,
        ),
        Message(
            "installed nvidia-peer-memory-dkms package post-installation script",
            "Debian's dpkg; nv_peer_memory#116, #119",
            note="the package is nv_peer_mem 1.x, whose build or load failed",
            do="Look for the first `Error!`, `modprobe:` or `-E-` above it. The package of "
            "nv_peer_mem 2 does not fail for that",
            kind=FOLLOWS,
        ),
        Message(
            "Problems with depmod detected",
            "dell/dkms: dkms.in",
            (Case(c.DEPMOD),),
        ),
        Message(
            "due to missing BUILD_DEPENDS",
            "dell/dkms: dkms.in",
            note="another package has to be built for this kernel first; its name follows",
            do="`dkms autoinstall`, and look at the build of that package",
            kind=FOLLOWS,
        ),
        Message(
            "is not newer than what is already found in kernel",
            "dell/dkms: dkms.in",
            (Case(c.DKMS_STATE),),
            note="the kernel has a module of this name, of this version or a later one",
            do="`dkms install --force`, or remove the other module",
            sure=FITS,
        ),
        Message(
            "Missing the module source directory or the symbolic link",
            "dell/dkms: dkms.in",
            (Case(c.DKMS_STATE),),
            note="the package's source below `/usr/src` was removed without `dkms remove`",
        ),
        Message(
            "<redefinition of|assignment of read-only member> <*>vm_flags",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c; gdrcopy#309, #312, #335, nvidia-all#153",
            (
                Case(
                    c.IMAGE_DEFECT,
                    ("line:nv-<w>.c",),
                    says="this NVIDIA driver is too old for the kernel",
                    do="A newer NVIDIA driver, or a kernel before 6.3",
                ),
                Case(c.IMAGE_DEFECT, (), ("line:nv-<w>.c",)),
            ),
            note="the module that the line names is too old for the kernel, or its test for the "
            "kernel went wrong",
            do="A newer version of the module: gdrcopy 2.4.4 or later, and from source for "
            "kernels 6.17 and later",
        ),
        Message(
            "nvfs-<*>.<c|h>:<n>:<n>: error:",
            "NVIDIA/gds-nvidia-fs: src; gds-nvidia-fs#35, #64",
            (Case(c.IMAGE_DEFECT),),
            note="this nvidia-fs does not build for the kernel",
            do="A newer nvidia-fs",
            sure=FITS,
        ),
        Message(
            "nv-<*>.<c|h>:<n>:<n>: error:",
            "NVIDIA/open-gpu-kernel-modules: kernel-open",
            (Case(c.IMAGE_DEFECT),),
            note="the NVIDIA driver does not build for this kernel",
            do="A newer NVIDIA driver, or an older kernel",
            sure=FITS,
        ),
        Message(
            "unrecognized command<-| >line option <*>-ftrivial-auto-var-init",
            "gcc; torvalds/linux: Makefile",
            (Case(c.NO_HEADERS),),
            note="the kernel was built with a newer compiler than the one that is installed",
            do="Install the compiler that the kernel was built with (`cat /proc/version`), such as "
            "gcc-12",
        ),
        Message(
            "gcc-<n>: <not found|command not found>",
            "the shell; torvalds/linux: Makefile",
            (Case(c.NO_HEADERS),),
            note="the kernel's compiler is not installed",
            do="Install the compiler that the line names",
        ),
        Message(
            "<Kernel configuration is invalid|include/generated/autoconf.h or include/config>",
            "torvalds/linux: Makefile",
            (Case(c.NO_HEADERS),),
            note="the headers of the kernel are not complete",
            sure=FITS,
        ),
        Message(
            "Unable to find the kernel source tree for the currently running kernel",
            "nvidia-installer",
            (Case(c.NO_HEADERS),),
        ),
        Message(
            "appears to <already be|be already> loaded in your kernel",
            "nvidia-installer",
            (Case(c.MODULE_IN_USE),),
            note="the installer of the NVIDIA driver finds the older driver loaded",
        ),
        Message(
            "The Nouveau kernel driver is currently in use",
            "nvidia-installer",
            (Case(c.GPU_TAKEN),),
        ),
        Message(
            "<nv_peer_mem|nvidia-peer-memory><*>: added",
            "dell/dkms: dkms.in, dkms status",
            (Case(c.OTHER_KERNEL),),
            note="`dkms status`: the source is there, and not built for any kernel",
            sure=FITS,
        ),
        Message(
            "WARNING! Diff between built and installed module",
            "dell/dkms: dkms.in",
            (Case(c.DKMS_STATE),),
            note="the installed module is another one than the one that dkms built",
            do="`dkms install --force` for that module",
            sure=POSSIBLE,
        ),
        Message(
            "/usr/sbin/dkms: line <n>: cd: /var/lib/dkms/",
            "dell/dkms: dkms.in; gdrcopy#319",
            (Case(c.DKMS_STATE),),
            note="the package's dkms.conf names another version than the one that dkms builds",
            do="A newer version of the package; or correct its dkms.conf",
            sure=FITS,
        ),
        Message(
            "cannot stat '/Module.symvers'",
            "Mellanox/nv_peer_memory: Makefile; nv_peer_memory#10",
            (Case(c.OLD_NV_PEER_MEM),),
            note="OFED has not been built for this kernel yet: dkms built the packages in the "
            "wrong order",
            do="`dkms autoinstall` again, after OFED's package; or this module, which waits for it",
            sure=FITS,
        ),
        Message(
            "depends on gdrdrv-dkms",
            "Debian's dpkg; DeepEP#24, gdrcopy#197",
            note="a container uses the driver of the host, and cannot install one",
            do="In the container install only the packages of the library (libgdrapi) and the "
            "tests; `/dev/gdrdrv` has to come from the host",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to build <MLNX_OFED_LINUX for|mlnx-ofa_kernel|mlnx-ofed-kernel>",
            "MLNX_OFED: mlnx_add_kernel_support.sh, install.pl; network-operator#1415",
            (Case(c.BUILD_FAILED),),
            note="OFED could not be built for this kernel: it is too old for it, or headers or a "
            "compiler are missing. The line names the log of the build",
            sure=FITS,
        ),
        Message(
            "mlnx-ofed-kernel-<modules|dkms|utils> installation failed",
            "MLNX_OFED: mlnxofedinstall; pai#2470",
            (Case(c.BUILD_FAILED),),
            note="this OFED does not fit the kernel, or headers are missing. The lines below name "
            "the log",
            do="Read that log; an OFED that supports this kernel, or `--add-kernel-support`",
            sure=FITS,
        ),
        Message(
            "MLNX_OFED_LINUX does not have drivers available for this kernel",
            "MLNX_OFED: mlnxofedinstall",
            (Case(c.OTHER_KERNEL),),
            do="`mlnxofedinstall --add-kernel-support`, or an OFED that supports this kernel",
        ),
        Message(
            "Failed executing <*>install.pl<*>--kernel",
            "MLNX_OFED: mlnx_add_kernel_support.sh; hermit#8",
            (Case(c.BUILD_FAILED),),
            note="this OFED is too old or too new for the kernel, or headers are missing",
            do="Read the log that the next line names; an OFED that supports this kernel and this "
            "NIC (ConnectX-3: 4.9)",
            sure=FITS,
        ),
        Message(
            "gdrdrv.c:<n>:<n>: fatal error: nv-p2p.h",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c; gdrcopy#250",
            (Case(c.NO_HEADERS),),
            note="gdrcopy does not find the sources of the NVIDIA driver",
            do="Install the driver's DKMS package (nvidia-dkms-…, kmod-nvidia-…-dkms), or "
            "`NVIDIA_SRC_DIR`",
        ),
        Message(
            ".o is truncated. sechdrs",
            "torvalds/linux: scripts/mod/modpost.c; gdrcopy#35",
            (Case(c.NO_HEADERS),),
            note="the kernel's sources are not configured or not built",
            sure=FITS,
        ),
        Message(
            f"mellanox/mlx5/<w>:<n>:<n>: {ERROR}",
            "Mellanox' OFED: drivers/net/ethernet/mellanox/mlx5",
            OFED_TOO_OLD,
            note="the kernel has changed since this OFED was made",
            sure=FITS,
        ),
        Message(
            f"drivers/infiniband/<w>:<n>:<n>: {ERROR}",
            "Mellanox' OFED: drivers/infiniband",
            OFED_TOO_OLD,
            note="the kernel has changed since this OFED was made",
            sure=FITS,
        ),
        Message(
            "efa_nv_peermem.o: error: objtool:",
            "amzn/amzn-drivers: kernel/linux/efa_nv_peermem; amzn-drivers#357",
            (Case(c.IMAGE_DEFECT),),
            note="this efa_nv_peermem is too old for the kernel",
            do="The newest EFA installer; or dma-buf, which needs no efa_nv_peermem: the open "
            "NVIDIA driver",
            sure=FITS,
        ),
        Message(
            f"/nvidia/<w>:<n>:<n>: {TRANSLATED}",
            "gcc, translated; NVIDIA/open-gpu-kernel-modules: kernel-open",
            (
                Case(
                    c.IMAGE_DEFECT,
                    says="a module of NVIDIA's driver does not build for this kernel",
                    do="A newer NVIDIA driver, or an older kernel; `LC_ALL=C` makes the log "
                    "readable for others",
                ),
            ),
            note="the compiler speaks another language than English",
            sure=FITS,
        ),
        Message(
            f"nv_peer_mem.c:<n>:<n>: {TRANSLATED}",
            "gcc, translated; Mellanox/nv_peer_memory: nv_peer_mem.c",
            (Case(c.OLD_NV_PEER_MEM),),
            note="the compiler speaks another language than English: build again with `LC_ALL=C`",
            sure=POSSIBLE,
        ),
    ),
)
