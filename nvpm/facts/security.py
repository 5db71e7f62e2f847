# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Secure Boot, the signatures that the kernel demands, and the signatures of our modules."""

import re
from typing import Dict, Optional

from ..read.machine import CALLBACK, Machine, modinfo
from ..read.place import container
from .advice import Advice
from .fact import Fact, Facts, bad, good, info

# The value is the fifth byte.
VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
VALUES = {b"\0": "off", b"\1": "on"}
HIDDEN = "unknown: containers hide /sys/firmware; ask on the node"
UNKNOWN = "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)"


def facts(machine: Machine) -> Facts:
    yield info("security", "Secure Boot", secure_boot(machine))
    lockdown = "".join(re.findall(r"\[(\w+)\]", machine.text("/sys/kernel/security/lockdown")))
    if lockdown:
        yield info("security", "lockdown", lockdown)
    enforced = machine.text("/sys/module/module/parameters/sig_enforce") == "Y"
    demanded = lockdown not in ("", "none") or enforced
    yield info("security", "signature required", "yes" if demanded else "no")
    # Both modules need a signature, because neither is loaded without the other.
    yield signed(machine, "module signed by", modinfo(machine), demanded)
    yield signed(machine, "callback module signed by", modinfo(machine, CALLBACK), demanded)


def secure_boot(machine: Machine) -> str:
    if not machine.exists("/sys/firmware/efi"):
        return HIDDEN if container(machine) else "no: not started by UEFI"
    return VALUES.get(machine.read(VARIABLE)[4:5], UNKNOWN)


def signed(machine: Machine, name: str, fields: Dict[str, str], demanded: bool) -> Optional[Fact]:
    if not fields:
        return None
    signer = fields.get("signer")
    if signer:
        return good("security", name, signer)
    if not demanded:
        return info("security", name, "nobody; this kernel does not require it")
    value = "nobody: this kernel does not load it"
    return bad("security", name, value, to_sign(Advice(machine)))


def to_sign(advice: Advice) -> str:
    todo = advice["to_enrol"]
    if "dkms build" in todo or "sign-file" in todo:
        return todo
    return f"{todo}; then build it again, and dkms signs it: {advice['rebuild']}"
