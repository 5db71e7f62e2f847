# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that nv_peer_mem prints. The page docs/messages.md leaves them out, because
docs/troubleshooting.md explains them."""

from .. import causes as c
from ..model import FINE, Case, Message, Section

PARAMETERS = "src/c/module.c"
SECTION = Section(
    "nv_peer_mem",
    "",
    (
        Message(
            "nv_peer_mem: version <w> loaded: GPU memory is",
            "src/module.rs",
            kind=FINE,
        ),
        Message(
            "nvidia_peermem is loaded and serves the same memory: unload it",
            "src/module.rs",
            (Case(c.SECOND_CLIENT),),
        ),
        Message(
            "the RDMA core refuses the client '",
            "src/peer_client.rs",
            (Case(c.SECOND_CLIENT),),
        ),
        Message(
            "the module nv_peer_mem_callback that is loaded is of another version",
            "src/module.rs",
            (Case(c.CALLBACK),),
        ),
        Message(
            "the values of this parameter are 0 and 1",
            PARAMETERS,
            (Case(c.PARAMETER),),
        ),
        Message(
            "the RDMA device is not a PCI device: it cannot reach GPU memory",
            "src/dma.rs",
            (Case(c.SOFT_DEVICE),),
        ),
        Message(
            "the NVIDIA driver does not let this RDMA device reach this GPU's memory",
            "src/map_type.rs",
            (Case(c.PAIR),),
        ),
        Message(
            "only the NVIDIA driver can map this GPU's memory for this RDMA device",
            "src/revocable.rs",
            (Case(c.NOT_REVOCABLE),),
        ),
        Message(
            "the driver of this RDMA device cannot revoke registrations of GPU memory",
            "src/revocable.rs",
            (Case(c.NOT_REVOCABLE),),
        ),
        Message(
            "GPU memory behind a coherent link cannot be revoked",
            "src/pin.rs",
            (Case(c.NOT_REVOCABLE),),
        ),
        Message(
            "GPU memory behind a coherent link is not online",
            "src/page_table.rs",
            (Case(c.COHERENT_OFFLINE),),
        ),
        Message(
            "the NVIDIA driver's <*> has version <n>, which this module does not know",
            "src/page_table.rs",
            (Case(c.DRIVER_REPLACED),),
            note="the NVIDIA driver is newer than the module",
            do="Install a version of nv_peer_mem that fits the driver",
        ),
        Message(
            "is unknown to this module",
            "src/page_table.rs",
            (Case(c.DRIVER_REPLACED, ("line:the NVIDIA driver's page size type",)),),
            note="the NVIDIA driver is newer than the module",
            do="Install a version of nv_peer_mem that fits the driver",
        ),
        Message(
            "orphaned registrations of GPU memory, or",
            "src/orphans.rs",
            (Case(c.ORPHANS),),
        ),
        Message(
            "nv_peer_mem is not built for kernel",
            "build/dkms/replace.sh",
            (Case(c.OTHER_KERNEL),),
            note="the rest of the line names what the build lacks",
            do="Install what the line names, then `dkms autoinstall`",
        ),
    ),
)
