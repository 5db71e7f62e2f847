# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The keys with which this kernel checks the signatures of modules."""

import re
from typing import List, Optional

from .machine import Machine, once

# The fifth byte of this file is the value of the variable.
VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
VALUES = {b"\0": "off", b"\1": "on"}


@once
def lockdown(machine: Machine) -> str:
    return "".join(re.findall(r"\[(\w+)\]", machine.text("/sys/kernel/security/lockdown")))


@once
def demanded(machine: Machine) -> bool:
    """Whether this kernel loads only signed modules."""
    enforced = machine.text("/sys/module/module/parameters/sig_enforce") == "Y"
    return lockdown(machine) not in ("", "none") or enforced


def secure_boot(machine: Machine) -> str:
    """Returns whether the firmware checks signatures; an empty string if that cannot be read."""
    return VALUES.get(machine.read(VARIABLE)[4:5], "")


@once
def trusted_names(machine: Machine) -> List[str]:
    """Returns the names of the keys that the kernel trusts. A user other than root sees few of the
    keys."""
    return re.findall(
        r"asymmetri\s+(.*?): [0-9a-f]*: X509", machine.all_text("/proc/keys"), re.MULTILINE
    )


def is_trusted(machine: Machine, signer: str) -> Optional[bool]:
    """Whether the kernel has a key of this name; None if the keys cannot be read."""
    return signer in trusted_names(machine) if trusted_names(machine) else None
