# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that nvidia-peermem and nv_peer_mem 1.x print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, NAMED, POSSIBLE, Case, Message, Section

SECTION = Section(
    "nvidia-peermem and nv_peer_mem 1.x in the kernel's log",
    "Earlier modules print these lines. This module does not print them: its own "
    "messages are in [troubleshooting.md](troubleshooting.md).",
    (
        Message(
            "detected invalid context, skipping",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c; "
            "nccl#1474, nv_peer_memory#120",
            (Case(c.PEERMEM_DEFECT),),
            note="the line is harmless by itself, but many of them slow the machine",
            do="NVIDIA driver 560 or later, or this module in place of nvidia-peermem",
            sure=POSSIBLE,
            # A program that the GPU has ended leaves such lines.
            unless=("gpu_xid",),
        ),
        Message(
            "nv_get_p2p_free_callback -- invalid page_table",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c; "
            "nv_peer_memory#112",
            (Case(c.PEERMEM_DEFECT),),
            note="memory was freed while it was registered or deregistered",
            sure=FITS,
        ),
        Message(
            "nv_get_p2p_free_callback -- invalid dma_mapping",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="memory was freed while it was registered or deregistered",
            sure=FITS,
        ),
        Message(
            "nv_get_p2p_free_callback -- invalid nv_mem_context",
            "Mellanox/nv_peer_memory: nv_peer_mem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="memory was freed while it was registered or deregistered",
            sure=FITS,
        ),
        Message(
            "nv_mem_client_init -- error while registering traditional client",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.SECOND_CLIENT),),
            note="the name `nv_mem` is taken, often by nv_peer_mem",
        ),
        Message(
            "nv_mem_client_init -- error while registering nc client",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.SECOND_CLIENT),),
            note="the name `nv_mem` is taken, often by nv_peer_mem",
        ),
        Message(
            "nv_mem_client_init -- error while registering client",
            "Mellanox/nv_peer_memory: nv_peer_mem.c",
            (Case(c.SECOND_CLIENT),),
            note="the name `nv_mem` is taken, often by nvidia-peermem",
        ),
        Message(
            "while calling nvidia_p2p_get_pages() with NULL callback",
            "Mellanox/nv_peer_memory: nv_peer_mem.c",
            (Case(c.PINNED_QUEUES),),
        ),
        Message(
            "error <n> while calling nvidia_p2p_get_pages()",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (
                Case(c.BAR1, ("errno=ENOMEM",), sure=NAMED),
                Case(c.NOT_GPU_MEMORY, ("errno=EINVAL",)),
            ),
            note="the module had pinned the memory a moment earlier",
            unless=("line:with NULL callback",),
            sure=FITS,
        ),
        Message(
            "nv_mem_acquire -- error",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="the NVIDIA driver did not unpin what the module had pinned",
            sure=FITS,
        ),
        Message(
            "while calling nvidia_p2p_dma_map_pages()",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PAIR),),
            do="A NIC below the same root complex as the GPU; `iommu=pt`",
            sure=FITS,
        ),
        Message(
            "while calling nvidia_p2p_put_pages, page_table",
            "Mellanox/nv_peer_memory: nv_peer_mem.c",
            note="in most cases the program had ended, and the memory was freed",
            kind=FINE,
        ),
        Message(
            "assumption of 64KB pages failed",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="the NVIDIA driver has pages of another size than the module expects",
            sure=FITS,
        ),
        Message(
            "nv_dma_map -- invalid pci_dev",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.SOFT_DEVICE),),
        ),
        Message(
            "incompatible dma mapping version",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.DRIVER_REPLACED),),
            do="Build the module again for the loaded NVIDIA driver",
        ),
        Message(
            "invalid persistent_api_support param value",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PARAMETER),),
            note="the values are 0 and 1",
        ),
        Message(
            "invalid peerdirect_support param value",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PARAMETER),),
            note="the values are 0 and 1",
        ),
        Message(
            "the following required module is not loaded",
            "Mellanox/nv_peer_memory: nv_peer_mem",
            (
                Case(c.NO_NVIDIA, ("line:nvidia",)),
                Case(c.NO_DEVICE, ("line:ib_core",), sure=FITS, do="`/etc/init.d/openibd start`"),
            ),
            note="the service of nv_peer_mem 1.x prints this line",
        ),
        Message(
            "Module nv_peer_mem does not exist",
            "Mellanox/nv_peer_memory: nv_peer_mem; nv_peer_memory#119",
            (Case(c.OTHER_KERNEL),),
            note="the service of nv_peer_mem 1.x prints this line",
            sure=FITS,
        ),
        Message(
            "nv_peer_mem module is NOT loaded",
            "Mellanox/nv_peer_memory: nv_peer_mem",
            (Case(c.NO_CLIENT),),
            unless=("peermem_loaded",),  # nvidia_peermem serves in its place
            sure=FITS,
        ),
        Message(
            "unknown parameter 'enable_dbg' ignored",
            "torvalds/linux: kernel/module/main.c",
            note="this parameter is of nv_peer_mem 1.x, and the kernel ignores it",
            do="Remove it from `/etc/modprobe.d`",
            kind=FINE,
        ),
        Message(
            "nv_get_p2p_free_callback+0x",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="the kernel's call trace of a crash or a hang names this function",
            sure=FITS,
        ),
        Message(
            "RIP: <n>:nv_mem_<w>+0x<*>[nvidia_peermem]",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-peermem/nvidia-peermem.c",
            (Case(c.PEERMEM_DEFECT),),
            note="the kernel crashed in nvidia-peermem",
            sure=FITS,
        ),
        Message(
            "Failed to load nv_peer_mem",
            "Mellanox/nv_peer_memory: nv_peer_mem; nv_peer_memory#51",
            note="the service of nv_peer_mem 1.x prints this line",
            do="Look for `modprobe:` or `modinfo:` above it",
            kind=FOLLOWS,
        ),
        Message(
            "nv_peer_mem: unrecognized service",
            "sysvinit: service; nv_peer_memory#41",
            (Case(c.NO_CLIENT),),
            note="the package is not installed here. In a container that says nothing: the module "
            "and its service are the host's",
            unless=("container",),
            sure=POSSIBLE,
        ),
    ),
)
