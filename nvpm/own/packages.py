# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the packages: the scripts of debian/ and rpm/ that run when a package is made,
installed or removed, and debian/rust-metadata."""

from .model import FINE, FOLLOWS, Group, Own

INSTALLING = Group(
    "packages-installing",
    (
        Own(
            "package-not-for-each-kernel",
            "is not installed for each kernel; the lines above say why",
            "the module could not be built for some kernel; a kernel that had a module keeps it",
            "Remove the cause that the lines above name, then run the command that this message "
            "names (`dpkg --configure -a`, or `versions install`)",
            kind=FOLLOWS,
        ),
        Own(
            "package-kernels-without",
            "Kernels that have no nv_peer_mem now: ",
            "the module could not be built for these kernels, or the earlier one was lost",
            "Remove the cause that the lines above name, then `dpkg --configure -a`",
            kind=FOLLOWS,
        ),
        Own(
            "package-each-kernel-has-one",
            "Each kernel has a module, which may be that of an earlier version",
            "no kernel is left without a module",
            kind=FINE,
        ),
        Own(
            "package-not-built-for-these",
            "nv_peer_mem is not built for these kernels",
            "the module could not be built for these kernels when the package was installed",
            "Remove the cause that the lines above name, then run the command that this message "
            "names, and `systemctl start nv_peer_mem`",
            kind=FOLLOWS,
        ),
        Own(
            "package-cause-fixed",
            "<cause is fixed: dpkg --configure|kernel KERNEL, then, if that kernel runs>",
            "the second half of the message in the line above",
            kind=FINE,
        ),
        Own(
            "package-source-not-kept",
            "stays as it is, because its source cannot be kept for dkms",
            "dpkg was about to delete the source of the installed version, and dkms needs a copy; "
            "the disk of `/var/lib/dkms` is full or read-only. Nothing was changed",
            "Make room (`df /var/lib/dkms`), then install again",
        ),
        Own(
            "package-old-stays",
            "stays as it is, with its modules. This one could not be built",
            "this package replaces nv_peer_mem 1.x, whose removal would leave a kernel without a "
            "module, because the new module cannot be built for it. Nothing was changed",
            "Remove the cause that the lines below name for each kernel, or such a kernel, then "
            "install again. To install nevertheless: `sudo NVPM_UPGRADE=anyway apt …`",
        ),
        Own(
            "package-old-stays-rest",
            "<each kernel that has one; left without any would be:"
            "|When the cause is removed, or such a kernel, try again."
            "|a module for them: NVPM_UPGRADE=anyway in the environment>",
            "the rest of the message in the lines above",
            kind=FINE,
        ),
        Own(
            "package-loaded-at-boot",
            "<loaded at each boot of a kernel that has the module"
            "|nv_peer_mem is loaded at each boot, on kernels that have the module>",
            "the package is installed, and each boot loads the module",
            kind=FINE,
        ),
        Own(
            "package-not-loaded-at-boot",
            "<ONBOOT=yes, so no boot loads the module"
            "|nv_peer_mem is not loaded at boot, as this system's presets say>",
            "the package is installed, and no boot loads the module, as the configuration or the "
            "presets of the system say",
            kind=FINE,
        ),
        Own(
            "package-status",
            "To see whether GPUDirect RDMA works: nvpm status",
            "`nvpm status` says whether GPU memory can be registered",
            kind=FINE,
        ),
        Own(
            "package-setting-unknown",
            "nv_peer_mem is loaded at each boot from now on. Whether the service",
            "the package of 1.3 has removed the setting that said whether its service was disabled",
            "If it was disabled: `systemctl disable nv_peer_mem`",
            kind=FINE,
        ),
        Own(
            "package-setting-unknown-rest",
            "known: its package has removed that setting",
            "the second half of the message in the line above",
            kind=FINE,
        ),
        Own(
            "package-other-kernel-runs",
            "This nv_peer_mem is for kernel",
            "the kmod package is for another kernel than the running one, and serves only that "
            "kernel",
            "Boot that kernel; or build a package for the running one: `rpmbuild --rebuild "
            "--define 'kernel_version KVER' nvidia_peer_memory-*.src.rpm`",
        ),
        Own(
            "package-module-stays",
            "nv_peer_mem: the module, if it is loaded, stays so until the next boot",
            "the package is removed, but nvpm, which stops the service, has failed: Python may "
            "be broken",
            "Nothing: the next boot is without the module. To unload it now: `modprobe -r "
            "nv_peer_mem`",
        ),
    ),
)
MAKING = Group(
    "packages-making",
    (
        Own(
            "package-kmod-not-built",
            "nv_peer_mem was not built for kernel",
            "the kmod package could not be built: the lines above name the missing part, or the "
            "error of the compiler",
            "Remove that cause, or make the other packages alone: `rpmbuild --rebuild --without "
            "kmod`",
            kind=FOLLOWS,
        ),
        Own(
            "package-preload-not-built",
            "libnvpm_preload.so was not built; the lines above say why",
            "the preloaded library could not be built: the lines above name the missing part",
            "Remove that cause, or make the other packages alone: `rpmbuild --rebuild --without "
            "preload`",
            kind=FOLLOWS,
        ),
        Own(
            "package-others-alone",
            "For the other packages alone: rpmbuild",
            "the second half of the message in the line above",
            kind=FINE,
        ),
        Own(
            "package-no-kmod",
            "No package with the module: kernel",
            "no headers of that kernel are installed, so no kmod package is made",
            'Install the headers, or choose another kernel: `--define "kernel_version KVER"`; or '
            "install the dkms package",
        ),
        Own(
            "package-no-kmod-rest",
            "Choose another with --define",
            "the second half of the message in the line above",
            kind=FINE,
        ),
        Own(
            "package-no-preload",
            "So there is no package nvidia-peer-memory-preload",
            "the preloaded library cannot be built on this machine; the line above says why. The "
            "other packages are made",
            kind=FINE,
        ),
    ),
)
METADATA = Group(
    "packages-rust-metadata",
    (
        Own(
            "metadata-no-release",
            "is not a kernel release.",
            "`rust-metadata` was called with something that is not a kernel release",
            "Give the release as `uname -r` prints it",
        ),
        Own(
            "metadata-no-headers",
            "no headers of kernel <w>; install them: apt-get",
            "the headers of that kernel are not installed",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-without-rust",
            "was built without CONFIG_RUST: it has no Rust crates",
            "the kernel has no Rust, so it has no crates to make",
            "Nothing: the module is built without the kernel's crates",
        ),
        Own(
            "metadata-no-tool",
            "is missing; install what building needs: apt-get",
            "a program that builds the crates is not installed",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-other-rustc",
            "install the distribution's rustc and make sure no other comes first in PATH",
            "the crates fit the kernel only if the same rustc compiles them, and another one is "
            "first in `PATH`",
            "Install the distribution's rustc, and put it first in `PATH`",
        ),
        Own(
            "metadata-no-compiler",
            "the kernel's compiler <w> is missing; install it: apt-get",
            "the compiler with which the kernel was built is not installed",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-no-compat",
            "the kernel's compiler for programs of 32 bits,",
            "the kernel for arm64 also has parts for programs of 32 bits, whose compiler is not "
            "installed",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-no-source",
            "the kernel source is missing; install it",
            "the package with the kernel's source is not installed",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-other-source",
            "<n> is <*> but linux-headers-",
            "the kernel's source and its headers are of different versions",
            "Run the `apt-get` of the line",
        ),
        Own(
            "metadata-failed",
            "building the crates failed; the lines above say why",
            "the kernel's build system failed; the lines above have its errors",
            "Do what they say. Without the crates the module is built all the same",
        ),
        Own(
            "metadata-other-configuration",
            "this machine's tools change the kernel's configuration as shown above",
            "a tool of the kernel's build is missing or of another version, so the crates would "
            "not fit the kernel",
            "Install what is missing, often `apt-get install dwarves`",
        ),
        Own(
            "metadata-other-crates",
            "the crates built here are not those of the kernel",
            "the crates have other symbols than the kernel exports: rustc or the source differ "
            "from those of the kernel",
            "Install rustc, headers and source of the same version as the kernel. Without the "
            "crates the module is built all the same",
        ),
        Own(
            "metadata-progress",
            "rust-metadata: <unpacking|building the Rust crates|made>",
            "the crates are being made, or are made",
            kind=FINE,
        ),
        Own(
            "metadata-there",
            "rust-metadata: <*> is there already",
            "the crates of this kernel were made before",
            kind=FINE,
        ),
    ),
)
GROUPS = (INSTALLING, MAKING, METADATA)
