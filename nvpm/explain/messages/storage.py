# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of GPUDirect Storage and gdrcopy."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, NAMED, POSSIBLE, Case, Message, Section

# A driver pinned GPU memory itself, and the NVIDIA driver refused.
PIN = (
    Case(c.GDRDRV_OTHER, ("errno=EINVAL", "gdrcopy<2.4.2", "driver>=560"), ("geforce",)),
    Case(c.GEFORCE, ("errno=EINVAL", "geforce")),
    Case(c.GDRDRV_OTHER, ("errno=EINVAL", "data_center"), (), sure=FITS),
    Case(c.BAR1, ("errno=ENOMEM",)),
    Case(c.GEFORCE, ("errno=EINVAL",), (), sure=FITS),
    Case(c.GDRDRV_OTHER, ("errno=EINVAL",), ("geforce",), sure=POSSIBLE),
)

SECTION = Section(
    "GPUDirect Storage and gdrcopy",
    "GPUDirect Storage and gdrcopy pin GPU memory themselves. Only file systems "
    "with RDMA in user space need peer memory; local NVMe does not.",
    (
        Message(
            "nvidia_peermem.ko is not loaded",
            "libcufile (closed); gds-nvidia-fs#4",
            (Case(c.STORAGE_PEER),),
            note="cuFile looks for this name",
            sure=POSSIBLE,
        ),
        Message(
            "--Mellanox PeerDirect : Disabled",
            "gdscheck (closed); gds-nvidia-fs#77",
            (Case(c.STORAGE_PEER),),
            sure=POSSIBLE,
        ),
        Message(
            "No matching pair for network device to closest GPU",
            "libcufile (closed); gds-nvidia-fs#4",
            note="local NVMe and file systems that work in the kernel need no pair",
            do="With RDMA in user space (WekaFS, Spectrum Scale): `rdma_dev_addr_list` in "
            "cufile.json, with a NIC near each GPU",
            kind=FINE,
        ),
        Message(
            "Error ret <n> invoking nvidia_p2p_get_pages",
            "NVIDIA/gds-nvidia-fs: src/nvfs-core.c; gds-nvidia-fs#14",
            (
                Case(c.GEFORCE, ("errno=EINVAL", "geforce"), sure=NAMED),
                Case(c.VMM, ("errno=EINVAL", "data_center"), ()),
                Case(c.BAR1, ("errno=ENOMEM",), sure=NAMED),
                Case(c.GEFORCE, ("errno=EINVAL",), ()),
            ),
            note="nvidia-fs could not pin the memory",
            sure=FITS,
        ),
        Message(
            "nvidia-fs:<*>Incompatible page table version",
            "NVIDIA/gds-nvidia-fs: src/nvfs-core.c; gds-nvidia-fs#66",
            (Case(c.DRIVER_REPLACED),),
            note="nvidia-fs was built for another NVIDIA driver than the loaded one: 0x00020000 "
            "begins with driver 580. A `kernel BUG` in `nvfs-stat.c` can follow",
            do="Build nvidia-fs again for the loaded NVIDIA driver, then reboot",
        ),
        Message(
            "rdma version not set for page",
            "NVIDIA/gds-nvidia-fs: src/nvfs-dma.c; gds-nvidia-fs#57",
            (Case(c.IOMMU),),
            note="nvidia-fs does not work with an IOMMU that translates",
            do="`iommu=pt`, or the IOMMU off",
            sure=FITS,
        ),
        Message(
            "device pointer lookup failure",
            "libcufile (closed); gds-nvidia-fs#14",
            note="nvidia-fs could not pin the memory",
            do="`dmesg`, and look for `invoking nvidia_p2p_get_pages`",
            kind=FOLLOWS,
        ),
        Message(
            "Inc-bar-usage failed",
            "libcufile (closed); gds-nvidia-fs#4",
            (Case(c.BAR1),),
        ),
        Message(
            "gdrdrv:<*>nvidia_p2p_get_pages(va=<*>) failed",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c; gdrcopy#30, #206",
            PIN,
            note="gdrdrv could not pin the memory",
        ),
        Message(
            "gdr_open error: Is gdrdrv driver installed",
            "NVIDIA/gdrcopy: tests/common.hpp",
            (Case(c.GDRDRV),),
        ),
        Message(
            "gdrcopy requires gdrdrv or CUDA driver with dmabuf mmap support",
            "NVIDIA/gdrcopy: src/gdrapi.c",
            (Case(c.GDRDRV),),
        ),
        Message(
            'Assertion "(check_gdr_support(dev)) == (true)" failed',
            "NVIDIA/gdrcopy: tests/copybw.cpp; gdrcopy#206",
            (Case(c.GEFORCE, ("geforce",), sure=NAMED), Case(c.GEFORCE, (), ("data_center",))),
            note="gdrdrv could not pin a small buffer",
            sure=FITS,
        ),
        Message(
            'Assertion "(gdr_pin_buffer(<*>)) == (0)" failed',
            "NVIDIA/gdrcopy: tests/sanity.cpp; gdrcopy#139, #164, #299, #305",
            (
                Case(c.GDRDRV_OTHER, ("gdrcopy<2.4.2", "driver>=560"), ("geforce",), sure=NAMED),
                Case(c.GEFORCE, ("geforce",), sure=NAMED),
                Case(c.GEFORCE, (), ("data_center", "grace")),
                Case(c.GDRDRV_OTHER, (), ("geforce",), sure=POSSIBLE),
            ),
            # The tests with a child thread or with tokens can fail by themselves.
            unless=("line:pt->g", "line:tokens.p2pToken"),
            sure=FITS,
        ),
        Message(
            'Assertion "(gdr_pin_buffer(<*>tokens.p2pToken<*>)) == (0)" failed',
            "NVIDIA/gdrcopy: tests/sanity.cpp; gdrcopy#324",
            (Case(c.GDRDRV_OTHER),),
            note="newer drivers do not take tokens. If only this test fails, gdrcopy works",
            sure=FITS,
        ),
        Message(
            'Assertion "!((<g|t.g>) == ((void*)0))" failed',
            "NVIDIA/gdrcopy: tests/sanity.cpp, older; gdrcopy#126, #115",
            (Case(c.GDRDRV),),
            note="`gdr_open` failed",
            sure=FITS,
        ),
        Message(
            "error opening driver (errno=",
            "NVIDIA/gdrcopy: src/gdrapi.c; gdrcopy#251",
            (Case(c.GDRDRV),),
        ),
        Message(
            "Error getting the gdrdrv driver version",
            "NVIDIA/gdrcopy: src/gdrapi.c; gdrcopy#115",
            (Case(c.GDRDRV_OTHER),),
            note="in old versions of gdrdrv, another driver can also have taken its number in "
            "`/dev/gdrdrv`",
        ),
        Message(
            "The minimum required gdrdrv driver version is",
            "NVIDIA/gdrcopy: src/gdrapi.c",
            (Case(c.GDRDRV_OTHER),),
        ),
        Message(
            "gdrdrv driver requires libgdrapi version",
            "NVIDIA/gdrcopy: src/gdrapi.c",
            (Case(c.GDRDRV_OTHER),),
        ),
        Message(
            "gdrdrv is too old",
            "NVIDIA/gdrcopy: src/gdrapi.c",
            (Case(c.GDRDRV_OTHER),),
        ),
        Message(
            "gdrdrv cannot fulfill the requested mapping type",
            "NVIDIA/gdrcopy: src/gdrapi.c",
            (Case(c.GDRDRV_OTHER),),
        ),
        Message(
            "did not have the NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING flag",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c",
            (Case(c.GDRDRV_OTHER),),
            note="gdrdrv was built for an older NVIDIA driver",
        ),
        Message(
            "p2p token and va space are deprecated",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c",
            (Case(c.GDRDRV_OTHER),),
            note="the program uses tokens, as only programs for old versions do",
            sure=FITS,
        ),
        Message(
            "gdrdrv:<*>incompatible page table version",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c",
            (Case(c.GDRDRV_OTHER),),
            note="gdrdrv was built for another NVIDIA driver",
        ),
        Message(
            "gdrdrv:<*>No address space left for BAR1 mapping",
            "NVIDIA/gdrcopy: src/gdrdrv/gdrdrv.c",
            (Case(c.BAR1),),
        ),
        Message(
            "CUDA 13.3 or newer required for dmabuf mmap backend",
            "NVIDIA/gdrcopy: src/cuda_wrapper.c",
            note="gdrcopy then needs gdrdrv, as before",
            do="If `gdr_open` fails: load gdrdrv",
            kind=FINE,
        ),
        Message(
            "nvidia-fs.ko driver not loaded",
            "libcufile (closed); gds-nvidia-fs#31",
            (Case(c.GDS_DRIVER),),
        ),
        Message(
            "NVMe Driver not registered with nvidia-fs",
            "libcufile (closed); gds-nvidia-fs#31",
            (Case(c.GDS_DRIVER),),
            note="the kernel's NVMe driver does not know nvidia-fs",
        ),
        Message(
            "GPUDirect Storage not supported on current file",
            "libcufile (closed); gds-nvidia-fs#70",
            note="cuFile names the reason in its own log",
            do="`cufile.log` in the current directory, with `CUFILE_LOGGING_LEVEL=INFO`",
            kind=FOLLOWS,
        ),
        Message(
            "GDS not supported or disabled by config",
            "libcufile (closed); gds-nvidia-fs#31",
            note="cuFile goes on by copies through host memory",
            do="If it should not: look at the `ERROR` lines of `cufile.log`",
            kind=FINE,
        ),
        Message(
            "cufio-drv:<n> running in compatible mode",
            "libcufile (closed); gds-nvidia-fs#31",
            note="cuFile goes on by copies through host memory",
            do="If it should not: look at the `ERROR` lines of `cufile.log`",
            kind=FINE,
        ),
        Message(
            "NVMe <*>: Unsupported",
            "gdscheck (closed); gds-nvidia-fs#4, #8, #31, DALI#4009, open-gpu-kernel-modules#51",
            (Case(c.GDS_DRIVER),),
            note="nothing is wrong if the files are on another file system than local NVMe",
            unless=("gds_nvme",),
            sure=POSSIBLE,
        ),
        Message(
            "error creating udev_device for block device",
            "NVIDIA GPUDirect Storage: libcufile; gds-nvidia-fs#62",
            note="libcufile does not know the device of this file: the container lacks "
            "`/run/udev`, or the file system has no block device",
            do="In a container `-v /run/udev:/run/udev:ro`",
            kind=FOLLOWS,
        ),
        Message(
            "gds_stream_batch_ops() got CUDA result 801",
            "gpudirect/libgdsync: src/gdsync.cpp; libgdsync#41, #58",
            (Case(c.STREAM_MEMOPS),),
            note="libgdsync needs these operations, which drivers from 387 on turn off",
        ),
        Message(
            "nvidia-fs MAP ioctl failed : ioctl_return: -22",
            "libcufile (closed); tinygrad/open-gpu-kernel-modules#50, "
            "aikitoria/open-gpu-kernel-modules#17",
            (Case(c.GEFORCE, ("geforce",)), Case(c.GEFORCE, (), ("data_center",), POSSIBLE)),
            note="nvidia-fs could not pin the GPU's memory",
            do="A data-center or professional GPU; in compatible mode cuFile copies through host "
            "memory",
            sure=FITS,
        ),
        Message(
            "cannot access <|'>/dev/gdrdrv",
            "GNU coreutils: ls; gdrcopy#138, vllm#42750",
            (Case(c.GDRDRV),),
            note="if the node has the file: `--device=/dev/gdrdrv` for docker, or the file as "
            "hostPath for pods",
            sure=FITS,
        ),
    ),
)
