# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Products that take no part in GPUDirect RDMA, although their drivers are loaded. They are GPUs
whose memory no other device reaches, and RDMA devices whose drivers ask for no peer memory. A
product that is not in a table takes part.

Each row names its source. For a new product, add a row, and a machine in tests/nvpm/machines."""

import re
from typing import NamedTuple, Optional

YES, MAY, NO = "yes", "may", "no"

# NVIDIA numbers its products by generation. The open driver serves GPUs since Turing. The
# proprietary driver serves only GPUs before Blackwell.
TURING, BLACKWELL = 0x1E00, 0x2900


class Product(NamedTuple):
    """The GPUs whose names match PATTERN, whether they take part, the reason, and advice."""

    pattern: str
    can: str
    why: str
    advice: str


HOST_MEMORY = "Register memory of cudaHostAlloc, which the GPU reaches too: docs/choosing.md."
OTHER_GPU = (
    "Use host memory, as programs do without GPUDirect RDMA (NCCL_NET_GDR_LEVEL=LOC, "
    "UCX_IB_GPU_DIRECT_RDMA=n), or a data-center or RTX professional GPU: docs/choosing.md."
)
PROVE = "nvpm selftest shows whether it works here."

GPUS = (
    # NVIDIA, DGX Spark porting guide; CUDA 13, GPUDirect RDMA 2.1.1 (docs/choosing.md)
    Product(
        r"\b(GB10|Thor|Orin|Xavier|Tegra)\b",
        NO,
        "an integrated GPU, whose memory neither peer memory nor dma-buf reaches",
        HOST_MEMORY,
    ),
    # NVIDIA, GPUDirect RDMA: "available on both Tesla and Quadro GPUs". In the reports
    # tinygrad/open-gpu-kernel-modules#46 and aikitoria/open-gpu-kernel-modules#20, registrations
    # fail with Bad address, because libcuda marks no memory of a GeForce for other devices. The
    # kernel's driver does not change this.
    Product(
        r"\bGeForce\b",
        NO,
        "a GeForce, whose memory NVIDIA's driver gives to no other device",
        OTHER_GPU,
    ),
    # The same page names none of these products.
    Product(
        r"\b(TITAN|CMP|P10[246]-|MX\d{3})",
        MAY,
        "not one of the data-center and professional GPUs that NVIDIA names for GPUDirect RDMA",
        PROVE,
    ),
    # NVIDIA AI Enterprise, GPUDirect RDMA with vGPU: "only on a subset of vGPUs and guest OS
    # releases". A vGPU's name ends in its size and its series.
    Product(
        r"-\d+(-\d+)?[ABCQ](ME)?\d?$",
        MAY,
        "a vGPU, of which only some types can, and the hypervisor decides",
        "NVIDIA's page on GPUDirect with vGPU lists types and releases. " + PROVE,
    ),
)


def product_of(model: str) -> Optional[Product]:
    """Returns the row of a GPU that may not take part; None for all others."""
    return next((row for row in GPUS if re.search(row.pattern, model, re.IGNORECASE)), None)


# The drivers of PCI devices that ask the RDMA core for peer memory. mlx5 asks wherever the core has
# peer memory. Other drivers ask only in versions from their vendors, so they are not listed (see
# the contracts of the core in docs/defects.md).
ASK = ("mlx5_core",)
# The drivers that have a peer memory of their own. They ask NVIDIA's driver directly, and not the
# RDMA core. The source for EFA is efa_p2p.c in amzn-drivers.
OWN_PEER_MEMORY = ("efa",)
