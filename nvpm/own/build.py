# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the build of the module: build/, Kbuild and dkms.conf."""

from .model import FINE, FOLLOWS, Group, Own

# The messages of build/configure and build/make, in the order in which a build can print them.
BUILD = Group(
    "build",
    (
        Own(
            "build-path",
            "contains a blank, a colon, a quote or another character",
            "the kernel's build system splits paths at such characters",
            "Build and install in a directory whose path has letters, digits, `/`, `-`, `_` and "
            "`.` only",
        ),
        Own(
            "build-not-by-make-of-kernel",
            "nv_peer_mem: call make in <*>, which finds what is needed",
            "the build was started by `make -C /lib/modules/…/build M=…`, which does not look "
            "for the RDMA core and the driver",
            "Run `make` in the module's own directory",
        ),
        Own(
            "build-tree-not-writable",
            "cannot write to <*>, where the build puts its files",
            "this user may not write to the source tree",
            "Copy the tree to a directory of yours, and build there",
        ),
        Own(
            "build-left-by-another-user",
            "which an earlier build of another user has left",
            "root, or another user, has built in this tree before",
            "`make clean` as that user, then `make`",
        ),
        Own(
            "build-root-relative",
            "<w> is a relative path: give an absolute path",
            "`CORE_ROOT=` or `DRIVER_ROOT=` does not begin with `/`",
            "Give the path from `/` on",
        ),
        Own(
            "build-root-none",
            "<w> is no directory: give the root directory below which the modules are",
            "`CORE_ROOT=` or `DRIVER_ROOT=` names no directory, for example because the container "
            "that shows this directory does not run",
            "Look whether the container runs, or correct the path",
        ),
        Own(
            "build-no-identity",
            "nv_peer_mem: build/identity has failed",
            "the source tree is not complete, or a program is missing, such as sha256sum",
            "`sh build/identity` in the source tree prints the reason",
        ),
        Own(
            "build-no-make",
            "nv_peer_mem: make is missing",
            "make is not installed",
            "Install the package make",
        ),
        Own(
            "build-no-modinfo",
            "modinfo is missing: install it (package kmod)",
            "modinfo is not installed, by which the build finds the RDMA core and the driver",
            "Install the package kmod",
        ),
        Own(
            "build-settings-carriage-return",
            "the line ends in a carriage return, as on Windows",
            "`/etc/nv_peer_mem-build.conf` was written on Windows, or by an editor that ends "
            "lines as Windows does",
            "Run the `sed` command in the line",
        ),
        Own(
            "build-settings-line",
            "is neither a comment nor OFA_KERNEL=DIRECTORY nor NV_SRC=DIRECTORY",
            "the build cannot read that line of `/etc/nv_peer_mem-build.conf`",
            "Write `OFA_KERNEL=` or `NV_SRC=` and a directory, from `/` on, without quotes",
        ),
        Own(
            "build-settings-unreadable",
            "cannot be read: run this as root, or chmod 644",
            "this user may not read `/etc/nv_peer_mem-build.conf`",
            "Build as root, or `chmod 644 /etc/nv_peer_mem-build.conf`",
        ),
        Own(
            "build-no-headers",
            "no headers of kernel <w> install <*>, or give KDIR=",
            "the headers of this kernel are not installed",
            "Install the package that the line names: `linux-headers-…` (Debian, Ubuntu), "
            "`kernel-devel-…` (RHEL), `kernel-default-devel` (SUSE)",
        ),
        Own(
            "build-kdir-no-tree",
            "is not a configured kernel tree (no .config)",
            "`KDIR` names a directory that is not the headers of a kernel",
            "Leave `KDIR` out, or give the directory of the headers: `/lib/modules/KVER/build`",
        ),
        Own(
            "build-kernel-too-old",
            "the oldest that this module can be built for",
            "the kernel is too old for this module",
            "Boot a newer kernel ([support.md](support.md) lists the oldest)",
        ),
        Own(
            "build-no-driver-for-processor",
            "nv_peer_mem: there is no NVIDIA driver for",
            "NVIDIA has drivers with GPUDirect RDMA only for x86-64 and arm64",
            "Build on a machine with one of these processors",
        ),
        Own(
            "build-no-depmod",
            "depmod has not listed the modules of kernel",
            "`depmod` has never run for this kernel, or a full disk has cut its list short, so "
            "that `modinfo` finds no module",
            "Make room if `df /lib/modules` shows a full disk, then run the `depmod` of the line "
            "as root",
        ),
        Own(
            "build-no-clang",
            "was built with clang, and <*> is missing",
            "the kernel was built with clang, and modules for it need the same compiler",
            "Install clang, lld and llvm, or choose an installed version, such as `LLVM=-19`",
        ),
        Own(
            "build-no-pahole",
            "which the build of modules for kernel <w> runs (CONFIG_DEBUG_INFO_BTF_MODULES)",
            "pahole is not installed, which the build needs where the headers have `vmlinux`",
            "Install the package that the line names (pahole or dwarves)",
        ),
        Own(
            "build-no-compiler",
            "nv_peer_mem: the compiler <w> is missing",
            "the compiler with which the kernel was built is not installed",
            "Install it: `CONFIG_CC_VERSION_TEXT` in the `.config` of the headers names it",
        ),
        Own(
            "build-nothing-compiles",
            "not even build/has/control.c compiles against kernel",
            "the headers of the kernel are incomplete, or the compiler is not the one for this "
            "kernel. The lines above are the compiler's",
            "Install the headers and the compiler again",
        ),
        Own(
            "build-compiler-failed",
            "without naming an error in that file, as when memory or the disk runs out",
            "the compiler was killed, or could not write: the machine has run out of memory or "
            "of room on the disk",
            "Make room (`free -h`, `df /tmp`), and build with fewer processes: `make -j1`",
        ),
        Own(
            "build-no-rdma-core",
            "no RDMA core with peer memory for kernel",
            "no RDMA core with peer memory is installed for this kernel. The core of a plain "
            "kernel has none; the line says if an OFED is there for another kernel, or is hidden "
            "by the kernel's own `ib_core`",
            "Do what the end of the line says: install MLNX_OFED or DOCA-OFED for this kernel, "
            "or build its dkms package. `OFA_KERNEL=DIRECTORY` names a core in another place. "
            "Without OFED: the open NVIDIA driver and dma-buf, which need no such module",
        ),
        Own(
            "build-ofa-kernel-no-header",
            "has no include/rdma/peer_mem.h: give the directory that has it",
            "`OFA_KERNEL` names a directory without the header of an RDMA core with peer memory",
            "Leave `OFA_KERNEL` out, or give the directory that has `include/rdma/peer_mem.h`",
        ),
        Own(
            "build-ofa-kernel-of-other",
            "is not of the RDMA core that kernel <*> loads",
            "the directory belongs to another OFED than the installed `ib_core`",
            "Leave `OFA_KERNEL` out, or install the OFED that the directory belongs to",
        ),
        Own(
            "build-ofa-kernel-incomplete",
            "is not complete, <*>: install MLNX_OFED or DOCA-OFED again",
            "the headers of the RDMA core are incomplete: its `Module.symvers` lacks the "
            "functions of peer memory, or does not fit the header",
            "Install MLNX_OFED or DOCA-OFED again for this kernel, with its development package",
        ),
        Own(
            "build-core-too-old",
            "is of an RDMA core older than MLNX_OFED 4.0",
            "the RDMA core is too old for this module",
            "Install a newer MLNX_OFED or DOCA-OFED",
        ),
        Own(
            "build-core-unknown",
            "but no function by which its generation is known",
            "an RDMA core that this version of nv_peer_mem does not know",
            "Give `OFA_KERNEL=` with the core's `include/rdma/peer_mem.h` and `Module.symvers`, "
            "or install a newer nv_peer_mem",
        ),
        Own(
            "build-no-driver",
            "no NVIDIA driver for kernel",
            "no NVIDIA driver is installed for this kernel",
            "Install the driver for this kernel (the line names packages), or give `NV_SRC=` "
            "with its `Module.symvers`",
        ),
        Own(
            "build-dkms-not-built",
            "but has not built it for this kernel (dkms install",
            "dkms has a package with the missing part, and has not built it for this kernel: the "
            "package does not compile for this kernel, or dkms has not come to it yet",
            "Run the `dkms install` of the line, which says why it fails; then `dkms install` of "
            "this module",
        ),
        Own(
            "build-driver-empty",
            "is empty, as after a full disk",
            "the driver's file was cut short, although dkms counts it as installed",
            "Make room, then install the NVIDIA driver again",
        ),
        Own(
            "build-driver-unreadable",
            "cannot be read: install the NVIDIA driver again",
            "the driver's file is damaged",
            "Install the NVIDIA driver again; make room first if the disk is full",
        ),
        Own(
            "build-driver-too-old",
            "the NVIDIA driver <*> is too old: install version",
            "the installed driver is too old for this module",
            "Install the NVIDIA driver 535 or later",
        ),
        Own(
            "build-nv-src-no-header",
            "has no nvidia/nv-p2p.h: give the source directory of the NVIDIA driver",
            "`NV_SRC` names a directory that is not the source of the NVIDIA driver",
            "Leave `NV_SRC` out, or give the directory that has `nvidia/nv-p2p.h`",
        ),
        Own(
            "build-header-too-old",
            "/nv-p2p.h is of an NVIDIA driver before",
            "the source of the driver that is installed, or that `NV_SRC` names, is too old for "
            "this module",
            "Install the NVIDIA driver 535 or later with its source, or correct `NV_SRC=`",
        ),
        Own(
            "build-not-nvidia",
            "function, so it is not NVIDIA's driver",
            "the file named nvidia.ko is not NVIDIA's driver, or is damaged",
            "Install NVIDIA's driver again",
        ),
        Own(
            "build-module-unreadable",
            "cannot be read: install it again.",
            "the file of the RDMA core or of the driver is damaged, or there was no room to "
            "unpack it",
            "Install the package of that file again. If the disk is full: make room in `/tmp`, "
            "or set `TMPDIR`",
        ),
        Own(
            "build-module-compressed",
            "is compressed, and <w> is missing",
            "the program that unpacks the installed modules is not installed",
            "Install the package that the line names (xz-utils, zstd or gzip)",
        ),
        Own(
            "build-no-nm",
            "nv_peer_mem: nm is missing",
            "nm is not installed, by which the build reads the installed RDMA core and driver",
            "Install the package binutils",
        ),
        Own(
            "build-no-versions",
            "checks symbol versions, and <*> has none",
            "the file of the driver or of the RDMA core has no versions of its symbols, which "
            "this kernel checks",
            "Build that module again for this kernel; for the driver, `NV_SRC=` with its "
            "`Module.symvers` does, too",
        ),
        Own(
            "build-path-with-blank",
            "leads to a directory with a blank in its name",
            "the kernel's build system splits paths at blanks",
            "Make a symbolic link without a blank, and give that",
        ),
        Own(
            "build-path-with-apostrophe",
            "contains an apostrophe: choose a path without one",
            "the build cannot take a path with an apostrophe",
            "Make a symbolic link without one, and give that",
        ),
        Own(
            "build-rust-not-known",
            "is not known: in-kernel or prebuilt",
            "`NVPM_RUST` has a value that the build does not know",
            "`NVPM_RUST=in-kernel`, `NVPM_RUST=prebuilt`, or leave it out",
        ),
        Own(
            "build-rust-not-possible",
            "nv_peer_mem: NVPM_RUST=<w> is not possible",
            "the chosen way to compile the Rust is not possible here; the end of the line says why",
            "Leave `NVPM_RUST` out, or install what the line names",
        ),
        Own(
            "build-kernel-checks-calls",
            "so only an in-kernel build is possible, but",
            "the kernel checks the type of indirect calls (kCFI, FineIBT), and the release's "
            "compiled Rust lacks the data for that",
            "Install what the end of the line names; with the proprietary driver boot another "
            "kernel, or install the open driver",
        ),
        Own(
            "build-no-rust",
            "the module's Rust can be compiled in neither way",
            "this is a checkout, or a release made `--without-rust`, on a machine without Rust; "
            "or a file of `build/prebuilt` was changed or cut short",
            "Use a release, or install the rustc that the line names "
            "([building.md](building.md#two-ways-to-compile-rust))",
        ),
        Own(
            "build-rustc-missing",
            "or later with the source of its library is missing",
            "no rustc that is new enough, with the source of its library, is installed",
            "Install the packages that the line names, or use a release, which needs no Rust",
            rest=True,
        ),
        Own(
            "build-no-source-of-core",
            "no source of core in",
            "rustc is installed without the source of its library",
            "Install rust-src, or give `NVPM_LIBRARY=`",
        ),
        Own(
            "build-rustc-left-out",
            "rustc has left out names that the module uses",
            "a defect of this version of rustc, or of this version of nv_peer_mem",
            "Use another rustc (`RUSTC=`), and report the line",
        ),
        Own(
            "build-rust-core-directory",
            "--core needs the directory NVPM_RUST_CORE",
            "`rust-assembly --core` was called without a directory for its result",
            "Set `NVPM_RUST_CORE`",
        ),
        Own(
            "build-in-kernel-failed",
            "nv_peer_mem: the in-kernel build for kernel",
            "this version of nv_peer_mem does not compile with the newer kernel's own crates. "
            "The build goes on without them",
            kind=FINE,
        ),
        Own(
            "build-warning",
            "nv_peer_mem: warning: ",
            "a part is missing, and the build was told to go on without it",
            kind=FINE,
        ),
        Own(
            "build-compiling",
            "compiling the Rust for <w> (a minute, the first time)",
            "the build compiles the Rust first",
            kind=FINE,
        ),
        Own(
            "build-core-none-needed",
            "OFA_KERNEL none needed",
            "the build needs no directory of OFED",
            kind=FINE,
        ),
        Own(
            "build-own-header",
            "none<*>; using the module's own header",
            "the build takes the header that comes with nv_peer_mem",
            kind=FINE,
        ),
        Own(
            "build-driver-found",
            "nvidia.ko <*> (version",
            "the build has found the NVIDIA driver of this kernel",
            kind=FINE,
        ),
        Own(
            "build-rust-way",
            "Rust <prebuilt: compiled|in-kernel: the kernel's>",
            "the build has chosen how to compile the Rust",
            kind=FINE,
        ),
        Own(
            "build-rust-chosen",
            "Rust <w>, as chosen",
            "the build compiles the Rust in the way that `NVPM_RUST` names",
            kind=FINE,
        ),
        Own(
            "build-install-nothing",
            "there is no <w>.ko to install",
            "nothing was built here yet under that name",
            "Run `make` first, with the same `NVPM_NAME=`",
        ),
        Own(
            "build-name",
            "the module is called nv_peer_mem or nvidia_peermem",
            "`NVPM_NAME=` is neither of the two names that the module can have",
            "Leave `NVPM_NAME=` out, or see [kubernetes.md](kubernetes.md#two-names)",
        ),
        Own(
            "build-name-marker",
            "with NVPM_NAME=<w> there is no marker",
            "a module called nvidia_peermem needs no marker, which would have the same name",
            "`make` without `marker`",
        ),
        Own(
            "build-name-installed",
            "the module would take the place of NVIDIA's nvidia-peermem on this machine",
            "a module called nvidia_peermem is for images, and would replace NVIDIA's file here",
            "`DESTDIR=` with the root directory of the image; on a machine leave `NVPM_NAME=` out",
        ),
        Own(
            "build-install-not-writable",
            "install as root (sudo make install)",
            "a user other than root has run `make install`",
            "`sudo make install`, or `DESTDIR=` with a directory of yours",
        ),
        Own(
            "build-install-other-kernel",
            "the modules here are built for kernel",
            "`make install` was run for another kernel than `make`",
            "`make KVER=…` for this kernel first, or the `KVER=` that the line names",
        ),
        Own(
            "build-uninstall-nothing",
            "nv_peer_mem: make install has put nothing into",
            "`make uninstall` found nothing to remove for this kernel",
            kind=FINE,
        ),
    ),
)

# The messages of build/dkms and dkms.conf.
DKMS = Group(
    "dkms",
    (
        Own(
            "dkms-not-built",
            "nv_peer_mem is not built for kernel",
            "a part that the build needs is missing for that kernel, or the module does not "
            "compile for it; the rest of the line says which. Other kernels keep their module",
            "If the line names a part: install it, then run the command in the next line. If it "
            "has `error:`, nothing is missing: read the log that the line names, give it to `nvpm "
            "explain`, and install a newer nv_peer_mem",
            rest=True,
        ),
        Own(
            "dkms-kernel-keeps",
            "keeps its module of version",
            "another version, or another commit of the same version, was installed, and could "
            "not be built for that kernel. The kernel uses the module that it has",
            "Remove the cause that the line above names, then run the command in this line",
            kind=FOLLOWS,
        ),
        Own(
            "dkms-kernel-skipped",
            "This kernel is skipped. When the cause is removed, run:",
            "the kernel has no nv_peer_mem, and none could be built",
            "Remove the cause that the line above names, then run the command in this line",
            kind=FOLLOWS,
        ),
        Own(
            "dkms-no-room-for-copy",
            "the module that this kernel has cannot be copied to",
            "the present module is copied before it is replaced, and the copy failed: the disk "
            "is full, or `/var/lib` is mounted read-only. The kernel keeps its module",
            "Make room below `/var/lib`, then run the command that the next line names",
        ),
        Own(
            "dkms-source-not-kept",
            "nv_peer_mem: the source of version",
            "an update keeps the source of the earlier version for dkms, and the copy failed: the "
            "disk is full, or `/var/lib` is mounted read-only",
            "Make room (`df /var/lib/dkms`), then install again",
        ),
        Own(
            "dkms-cannot-read",
            "nv_peer_mem: dkms cannot read a version of this package",
            "dkms has a version whose source is gone. With dkms 3.0 each command then ends with an "
            "error, and the next kernel gets no module, also no NVIDIA driver",
            "Remove the directory that the line above names, up to the version: `rm -r "
            "/var/lib/dkms/nvidia-peer-memory/VERSION`. Kernels keep their modules",
        ),
        Own(
            "dkms-locked",
            "another script of this package is not done after",
            "a build or an update of this package still runs, or hangs in dkms",
            "Look what `fuser` of the file in the line shows; when it has ended, run the command "
            "again",
        ),
        Own(
            "dkms-by-hand",
            "<give the release of a kernel, such as"
            "|/etc/dkms/no-autoinstall forbids builds for kernels without the module"
            "|is not configured yet: dpkg --configure -a"
            "|install them, or give another release>",
            "`build/dkms/kernel` was run by hand, and the line says why it has built nothing",
            "Do what the line says, and run the command again with a release that "
            "`ls /lib/modules` lists",
        ),
        Own(
            "dkms-not-installed",
            "dkms has not installed the files; the lines above say why",
            "dkms has built the module, and could not install it, in most cases because the disk "
            "of `/lib/modules` is full. The earlier module was put back",
            "Make room (`df /lib/modules`), then run the command that the next line names",
        ),
        Own(
            "dkms-cannot-be-put-back",
            "cannot be put back. Its files are kept in",
            "neither the new module nor the earlier one could be written to `/lib/modules`: its "
            "disk is full or read-only. The kernel has no nv_peer_mem now",
            "Make room, then copy the files back from the directory that the line names, and "
            "`depmod KVER`; or install the package again",
        ),
        Own(
            "dkms-failed",
            "dkms has failed; the lines above say why",
            "dkms ended before it called the build",
            "Read the lines above; `df /var/lib/dkms` shows whether the disk is full",
        ),
        Own(
            "dkms-read-only",
            "cannot be written: is its disk mounted read-only?",
            "dkms cannot write to its directory",
            "`findmnt -T /var/lib/dkms` shows how it is mounted: mount it writable, then `dkms "
            "autoinstall`",
        ),
        Own(
            "dkms-cannot-be-changed",
            "nothing was changed for any kernel.",
            "the directory of dkms cannot be written: the disk is full, or mounted read-only",
            "Make room, then install the package again",
        ),
        Own(
            "dkms-assembly-stale",
            "and was not made anew here. Install Rust and run make prebuilt",
            "the package would contain compiled Rust that does not belong to its sources, and no "
            "machine could build from it",
            "Install Rust and run `make prebuilt`, or restore the sources of the release",
        ),
        Own(
            "dkms-assembly-missing",
            "it builds only on machines with Rust.",
            "the package lacks the compiled Rust for one processor. Machines with Rust can build "
            "the module all the same",
            kind=FINE,
        ),
    ),
)
GROUPS = (BUILD, DKMS)
