# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Secure Boot, which signatures the kernel demands of modules, and the signature of this one."""
import re

from .explain import Advice
from .fact import bad, good, none
from .machine import modinfo

# The value is the fifth byte.
VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
UNKNOWN = "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)"


def facts(machine):
    boot = {b"\1": "on", b"\0": "off"}.get(machine.read(VARIABLE)[4:5], UNKNOWN)
    yield none("security", "Secure Boot", boot if machine.exists("/sys/firmware/efi") else "no: not started by UEFI")
    lockdown = "".join(re.findall(r"\[(\w+)\]", machine.text("/sys/kernel/security/lockdown")))
    if lockdown:
        yield none("security", "lockdown", lockdown)
    demanded = lockdown not in ("", "none") or machine.text("/sys/module/module/parameters/sig_enforce") == "Y"
    yield none("security", "signature required", "yes" if demanded else "no")
    if modinfo(machine).get("signer"):
        yield good("security", "module signed by", modinfo(machine)["signer"])
    elif modinfo(machine) and not demanded:
        yield none("security", "module signed by", "nobody; this kernel does not require it")
    elif modinfo(machine):
        advice = Advice(machine)
        todo = advice.to_enrol()
        if "dkms build" not in todo and "sign-file" not in todo:
            todo += "; then build it again, and dkms signs it: " + advice["rebuild"]
        yield bad("security", "module signed by", "nobody: this kernel does not load it", todo)
