# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Secure Boot, the signatures that the kernel demands, and the signatures of our modules."""

from typing import Optional

from ..read import keys
from ..read.machine import CALLBACK, MODULE, Machine, modinfo
from ..read.place import container
from .advice import Advice
from .fact import Fact, Facts, bad, good, info, unread

HIDDEN = "unknown: containers hide /sys/firmware; ask on the node"
UNKNOWN = "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)"


def facts(machine: Machine) -> Facts:
    yield info("security", "Secure Boot", secure_boot(machine))
    if keys.lockdown(machine):
        yield info("security", "lockdown", keys.lockdown(machine))
    yield info("security", "signature required", "yes" if keys.demanded(machine) else "no")
    # Both modules need a signature, because neither is loaded without the other.
    yield signed(machine, "module signed by", MODULE)
    yield signed(machine, "callback module signed by", CALLBACK)


def secure_boot(machine: Machine) -> str:
    if not machine.exists("/sys/firmware/efi"):
        return HIDDEN if container(machine) else "no: not started by UEFI"
    return keys.secure_boot(machine) or UNKNOWN


def signed(machine: Machine, name: str, module: str) -> Optional[Fact]:
    """Judges the signature of MODULE. A signature names a key, but the kernel need not trust this
    key."""
    fields = modinfo(machine, module)
    if not fields:
        return None
    signer = fields.get("signer")
    if not signer:
        if not keys.demanded(machine):
            return info("security", name, "nobody; this kernel does not require it")
        value = f"nobody: this kernel does not load it{because(machine)}"
        return bad("security", name, value, to_sign(Advice(machine)))
    trusted = keys.is_trusted(machine, signer)
    if machine.loaded(module) or not keys.demanded(machine) or trusted:
        return good("security", name, signer)
    own = Advice(machine)
    if trusted is None and own.enrolled():
        # Only root can read which keys the kernel trusts, and the firmware has the usual key.
        return unread("security", name, "the keys that this kernel trusts")
    advice = own["to_enrol"]
    if trusted is None:
        value = f"{signer}: nothing shows whether this kernel trusts that key{because(machine)}"
    else:
        value = f"{signer}, a key that this kernel does not trust{because(machine)}"
    return bad("security", name, value, advice)


def refused(machine: Machine, module: str) -> str:
    """Returns the reason if the kernel refuses this module because of the module's signature;
    otherwise an empty string."""
    fields = modinfo(machine, module)
    if not fields or machine.loaded(module) or not keys.demanded(machine):
        return ""
    signer = fields.get("signer")
    if not signer:
        return f"{module} is not signed, and this kernel loads only signed modules"
    trusted = keys.is_trusted(machine, signer)
    if trusted or (trusted is None and "DKMS" not in signer):
        return ""
    known = "does not trust" if trusted is False else "may not trust"
    return f"{module} is signed by {signer}, a key that this kernel {known}"


def because(machine: Machine) -> str:
    return " (Secure Boot is on)" if keys.secure_boot(machine) == "on" else ""


def to_sign(advice: Advice) -> str:
    todo = advice["to_enrol"]
    if "dkms build" in todo or "sign-file" in todo:
        return todo
    return f"{todo}; then build it again, and dkms signs it: {advice['rebuild']}"
