# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of `nvpm run`'s library, preload/: its log, and its build."""

from .model import FINE, Group, Own

# The library prints these with NVPM_PRELOAD_LOG=1. Each line says what a registration became.
LOG = Group(
    "preload-log",
    (
        Own(
            "preload-registered",
            "nvpm_preload: <w> of <*>: registered as a dma-buf",
            "the library has registered GPU memory as a dma-buf",
            kind=FINE,
        ),
        Own(
            "preload-late-copies",
            "a dma-buf, but CUDA may copy late",
            "the memory is registered as a dma-buf, but CUDA did not take the setting by which "
            "copies end before they return, so that a device may read old data",
            "A newer NVIDIA driver; or `cudaDeviceSynchronize` after copies to memory that is "
            "registered",
        ),
        Own(
            "preload-on-demand",
            "on demand: RDMA to GPU memory may fail later",
            "the program registers GPU memory with on-demand paging, which finds no GPU memory",
            "Let the program register without `IBV_ACCESS_ON_DEMAND`",
        ),
        Own(
            "preload-no-dma-buf",
            "nvpm_preload: <w> of <*>: no dma-buf:",
            "the library could not register the memory as a dma-buf; the rest of the line names "
            "the function that refused it",
            "`nvpm status --all` says what dma-buf lacks on this node (the open NVIDIA driver, "
            "kernel 5.12, a NIC whose driver has the verb)",
            rest=True,
        ),
        Own(
            "preload-not-gpu-memory",
            "no dma-buf: not GPU memory of CUDA in this process",
            "the address that was refused is no GPU memory of this process, so the library left "
            "it alone: host memory, freed memory, or memory of another process",
            "Look at the address that the program registers; the error in the line is that of "
            "`ibv_reg_mr`",
        ),
        Own(
            "preload-flags",
            "not with ON_DEMAND, ZERO_BASED, MW_BIND or HUGETLB",
            "the program registers with an access flag that no dma-buf takes",
            "Let the program register without that flag",
        ),
        Own(
            "preload-old-libcuda",
            "answered nothing: this libcuda does not have it",
            "the process's libcuda cannot export dma-bufs",
            "NVIDIA driver 515 or later; in a container the libcuda of the host's driver",
        ),
        Own(
            "preload-no-range",
            "no dma-buf: no range of memory",
            "the program registers a range that is empty, or that ends beyond the address space",
            "Look at address and length in the program",
        ),
        Own(
            "preload-verb-failed",
            "no dma-buf: the device refused the dma-buf",
            "the memory was exported as a dma-buf, and the kernel, or the RDMA device's driver, "
            "refused it",
            "`nvpm status --all` says which devices take a dma-buf (kernel 5.12 or later); `dmesg` "
            "may have a line of the device's driver",
        ),
        Own(
            "preload-passed-by",
            "nvpm_preload: <w> was opened with RTLD_DEEPBIND",
            "the program opened libibverbs, or a library that is linked with it, in a way that "
            "passes preloaded libraries by, so its registrations got no dma-buf",
            "`nvpm run --audit PROGRAM`, with glibc 2.35 or later",
        ),
        Own(
            "preload-no-descriptor",
            "no dma-buf: no file descriptor is left",
            "each dma-buf is an open file, and the process has no more",
            "`ulimit -n`: raise the limit (`LimitNOFILE=`, `--ulimit nofile=`), or register "
            "fewer and larger buffers",
            like="DESCRIPTORS",
        ),
    ),
)
BUILDING = Group(
    "preload-building",
    (
        Own(
            "preload-no-assembly",
            "nvpm_preload: preload/prebuilt/",
            "a checkout, or a release that was made without Rust, lacks the assembly of the "
            "preloaded library, and no rustc is here to make it",
            "Install what the line names, or take a release. The other packages are made without "
            "it (RPM: `--without preload`)",
        ),
        Own(
            "preload-no-compiler",
            "nvpm_preload: there is no C compiler",
            "no C compiler is installed",
            "Install gcc, or give `CC=`",
        ),
        Own(
            "preload-other-processor",
            "nvpm_preload: there is no NVIDIA driver for",
            "the library is made for x86-64 and arm64 only",
            "Choose a compiler for one of these processors with `CC=`",
        ),
        Own(
            "preload-not-linked",
            "has not linked preload/libnvpm_preload.so; the lines above say why",
            "the compiler or linker has failed",
            "Do what its lines above say; the C library's development files are needed",
        ),
        Own(
            "preload-no-linker",
            "nvpm_preload: there is no linker for",
            "no linker for that processor is installed",
            "Install the package that the line names",
        ),
        Own(
            "preload-nothing-compiled",
            "nvpm_preload: nothing is compiled for",
            "the library's Rust was not compiled before it was linked",
            "Run the command in the line",
        ),
    ),
)
GROUPS = (LOG, BUILDING)
