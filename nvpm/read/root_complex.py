# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Knows the root complexes through which devices reach each other. They are those in the kernel's
own list, because kernel developers have tried requests between the root ports of these root
complexes. A root complex that is not listed may drop such requests, or may drop only read
requests."""

import re

from .machine import Machine, once
from .pci import DEVICES, integer

# The Intel server processors in pci_p2pdma_whitelist of drivers/pci/p2pdma.c. The numbers are those
# of the first device on their root buses. The older processors are listed for devices below the
# same host bridge only (REQ_SAME_HOST_BRIDGE).
WITHIN = (0x3C00, 0x3C01, 0x2F00, 0x2F01)
ACROSS = (0x2020, 0x2030, 0x2031, 0x2032, 0x2033, 0x09A2)
INTEL = "0x8086"
# The same file says that each AMD processor since Zen forwards requests.
ZEN = 0x17


@once
def forwards(machine: Machine, across: bool) -> bool:
    """Returns whether the kernel's list has this machine's root complex. ACROSS: the devices are
    below different root complexes."""
    processor = machine.all_text("/proc/cpuinfo")
    family = re.search(r"^cpu family\s*: (\d+)", processor, re.MULTILINE)
    if re.search(r"^vendor_id\s*: AuthenticAMD", processor, re.MULTILINE) and family:
        return int(family[1]) >= ZEN
    bridges = [
        integer(machine.text(f"{place}/device"), base=16)
        for place in machine.glob(DEVICES + "*:00.0")
        if machine.text(f"{place}/vendor") == INTEL
    ]
    listed = ACROSS if across else WITHIN + ACROSS
    return any(bridge in listed for bridge in bridges)
