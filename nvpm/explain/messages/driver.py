# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that the NVIDIA driver and its programs print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section

SECTION = Section(
    "NVIDIA's driver in the kernel's log",
    "",
    (
        Message(
            "<NVRM: installed in this system is not supported by open"
            "|nvidia.ko because it does not include the required GPU>",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/arch/nvalloc/unix/src/osapi.c",
            (Case(c.DRIVER_FLAVOUR),),
            note="the GPU is older than Turing (V100, P100), and the driver is the open one",
            do="Install the proprietary driver, then rebuild the module",
        ),
        Message(
            "requires use of the NVIDIA open kernel modules",
            "NVIDIA's proprietary driver",
            (Case(c.DRIVER_FLAVOUR),),
            note="the GPU is Blackwell or newer, and the driver is the proprietary one",
            do="Install the open driver, then rebuild the module",
        ),
        Message(
            "NVIDIA probe routine was not called for",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv.c",
            (Case(c.GPU_TAKEN),),
            note="vfio-pci has the GPU for a virtual machine: then load the module there",
        ),
        Message(
            "API mismatch: the client",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/arch/nvalloc/unix/src/osapi.c",
            (Case(c.DRIVER_REPLACED),),
        ),
        Message(
            "NVRM: No NVIDIA GPU found",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv.c",
            (Case(c.GPU_LOST),),
            note="there is no GPU on the PCI bus",
            do="`lspci -d 10de:`; then power, slot and firmware",
            sure=FITS,
        ),
        Message(
            "None of the NVIDIA devices were <|successfully >initialized",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv.c",
            note="there are GPUs, and the driver took none",
            do="Look for the `NVRM:` lines above it",
            kind=FOLLOWS,
        ),
        Message(
            "NVRM: ignoring the legacy GPU",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-pci.c",
            (Case(c.GPU_TAKEN),),
            note="this version of the driver does not serve the GPU any more",
            do="An older driver: 535 is the oldest for nv_peer_mem 2",
        ),
        Message(
            "supported through the NVIDIA <*> Legacy drivers",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-pci.c",
            (Case(c.GPU_TAKEN),),
            note="this version of the driver does not serve the GPU any more. The line names the "
            "last series that does",
            do="An older driver: 535 is the oldest for nv_peer_mem 2",
        ),
        Message(
            "This PCI I/O region assigned to your NVIDIA device is invalid",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-pci.c",
            (Case(c.BAR_SPACE),),
        ),
        Message(
            "No address space to allocate resized BAR1",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-pci.c",
            (Case(c.BAR_SPACE),),
            note="the driver could not enlarge BAR1",
            sure=FITS,
        ),
        Message(
            "fallen off the bus",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/arch/nvalloc/unix/src/osapi.c",
            (Case(c.GPU_LOST),),
        ),
        Message(
            "Invalid argument in nv_p2p_get_pages,",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-p2p.c",
            (Case(c.GDRDRV_OTHER),),
            note="a client asked for a part of a page of 64 KiB, as gdrdrv does before 2.4.2. "
            "nv_peer_mem never does so",
            do="gdrcopy 2.4.2 or later; if gdrdrv is not loaded, update nvidia-fs",
            sure=FITS,
        ),
        Message(
            "PCI topology not supported for dma-buf",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-dmabuf.c",
            (Case(c.PAIR),),
        ),
        Message(
            "importer unable to handle MMIO without struct page",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-dmabuf.c",
            (Case(c.NO_DMABUF),),
            note="this NIC's driver cannot import NVIDIA's dma-buf",
        ),
        Message(
            "NVIDIA-SMI has failed because",
            "nvidia-smi (closed)",
            (Case(c.NO_NVIDIA),),
        ),
        Message(
            "Driver/library version mismatch",
            "libnvidia-ml (closed)",
            (Case(c.DRIVER_REPLACED),),
        ),
        Message(
            "RmInitAdapter failed",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/arch/nvalloc/unix/src/osinit.c",
            (Case(c.GPU_LOST),),
            do="A newer driver; then the GPU, its power and its seat",
            sure=FITS,
        ),
        Message(
            "no space for BAR1 mappings",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/src/kernel/gpu/bus/p2p.c",
            (Case(c.BAR1),),
        ),
        Message(
            "topology not supported for mapping type FORCE_PCIE",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-dmabuf.c",
            (Case(c.PAIR),),
        ),
        Message(
            "Failed to DMA map MMIO range [",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-dma.c",
            (Case(c.PAIR),),
            note="the kernel maps no memory of the GPU for this NIC",
            do="A NIC below the same root complex as the GPU; `iommu=pt`",
            sure=FITS,
        ),
        Message(
            "NVRM: Xid (<*>): <79|119|120|48|64|95>,",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/arch/nvalloc/unix/src/osapi.c",
            (Case(c.GPU_LOST),),
            note="79: the GPU is off the bus. 119 and 120: its own processor (GSP) does not "
            "answer. 48, 64 and 95: errors of its memory",
            do="Reset the GPU or reboot; if it comes back, a newer driver or another GPU",
            sure=FITS,
        ),
        Message(
            "installed in this system is not supported by the",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-pci.c; extensions#227",
            (Case(c.GPU_TAKEN),),
            note="this driver does not know the GPU: it is too old or too new, or a virtual GPU, "
            "which needs NVIDIA's GRID driver",
            do="The driver that NVIDIA lists for this GPU",
        ),
        Message(
            "Open nvidia.ko is only ready for use on Data Center GPUs",
            "NVIDIA/open-gpu-kernel-modules, 515; extensions#114",
            (Case(c.DRIVER_FLAVOUR),),
            note="the open driver of that time served this GPU only if told so",
            do="A newer driver, or the proprietary one",
        ),
        Message(
            "Unable to determine the device handle for",
            "nvidia-smi (closed)",
            (Case(c.GPU_LOST),),
            sure=FITS,
        ),
        Message(
            "Cannot create sg_table for NvKmsKapiMemory",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia-drm/nvidia-drm-gem-nvkms-memory.c; "
            "open-gpu-kernel-modules#1130",
            (Case(c.FOREIGN_DMABUF),),
            note="the exporter is nvidia-drm, as for Vulkan and displays",
        ),
        Message(
            "[NV_ERR_NO_MEMORY]<*>mapping_reuse.c:",
            "NVIDIA/open-gpu-kernel-modules: src/nvidia/src/kernel/mem_mgr/mapping_reuse.c; "
            "open-gpu-kernel-modules#1354",
            (Case(c.BAR1_LEAK),),
            note="a page fault of the program (`Xid 31`) may follow",
            sure=FITS,
        ),
        Message(
            "dma-buf attach failed: topology",
            "NVIDIA/open-gpu-kernel-modules: kernel-open/nvidia/nv-dmabuf.c; aicr#2439",
            (Case(c.PAIR),),
        ),
        Message(
            "NVRM: Xid (<*>): <13|31|43|109>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; gpud#46, "
            "flashinfer#3869",
            (Case(c.GPU_PROGRAM),),
            note="13: an exception of the program's code. 31: an address that the program has not "
            "mapped. 43: the program's channel was stopped. 109: its code does not yield the GPU",
            sure=FITS,
        ),
        Message(
            "NVRM: Xid (<*>): 45,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; "
            "open-gpu-kernel-modules#1150",
            note="the driver ends the channels of a program, because the program was killed or "
            "another Xid came first",
            do="Look for the first Xid before it, on each GPU",
            kind=FOLLOWS,
        ),
        Message(
            "NVRM: Xid (<*>): <62|154>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; gigahorse#301",
            (Case(c.GPU_LOST),),
            note="62: a processor of the GPU has stopped. 154: the driver asks for a reset of the "
            "GPU or a reboot, because of the Xid before it",
            sure=POSSIBLE,
        ),
        Message(
            "NVRM: Xid (<*>): <74|121|137|146>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; nccl#2241",
            (Case(c.GPU_FAULT),),
            note="errors of NVLink, and of the link between GPU and processor of Grace machines "
            "(121)",
            sure=FITS,
        ),
        Message(
            "NVRM: Xid (<*>): <144|145|147|148|149|150>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; "
            "open-gpu-kernel-modules#1150, #1355",
            (Case(c.GPU_FAULT),),
            note="errors of NVLink; the line names the link",
            sure=FITS,
        ),
        Message(
            "NVRM: Xid (<*>): <92|94>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h; support#244",
            (Case(c.GPU_FAULT),),
            note="92: many errors of memory were corrected. 94: an error of memory ended one "
            "program only",
            sure=FITS,
        ),
        Message(
            "NVRM: Xid (<*>): <63|93>,",
            "NVIDIA/open-gpu-kernel-modules: src/common/sdk/nvidia/inc/nverror.h",
            note="63: the GPU takes a bad piece of its memory out of use at its next reset. 93: "
            "its own storage is written too often",
            do="Reset the GPU when no job runs",
            kind=FINE,
        ),
    ),
)
