# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Secure Boot, which signatures the kernel demands of modules, and the signature of this one."""

import re

from .explain import Advice
from .fact import bad, first, good, none
from .machine import CALLBACK, modinfo

# The value is the fifth byte.
VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def facts(machine):
    boot, lockdown = (
        machine.read(VARIABLE)[4:5],
        "".join(re.findall(r"\[(\w+)\]", machine.text("/sys/kernel/security/lockdown"))),
    )
    demanded = (
        lockdown not in ("", "none")
        or machine.text("/sys/module/module/parameters/sig_enforce") == "Y"
    )
    yield from first(
        "security",
        "Secure Boot",
        [
            (not machine.exists("/sys/firmware/efi"), none, "no: not started by UEFI"),
            (boot in (b"\0", b"\1"), none, "on" if boot == b"\1" else "off"),
            (
                True,
                none,
                "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)",
            ),
        ],
    )
    yield from first("security", "lockdown", [(lockdown, none, lockdown)])
    yield none("security", "signature required", "yes" if demanded else "no")
    # Both have to be: the kernel does not load the one without the other.
    for prefix, fields in ("", modinfo(machine)), ("callback ", modinfo(machine, CALLBACK)):
        yield from first(
            "security",
            prefix + "module signed by",
            [
                (fields.get("signer"), good, fields.get("signer")),
                (fields and not demanded, none, "nobody; this kernel does not require it"),
                (
                    fields,
                    bad,
                    "nobody: this kernel does not load it",
                    lambda: to_sign(Advice(machine)),
                ),
            ],
        )


def to_sign(advice):
    todo = advice["to_enrol"]
    return (
        todo
        if "dkms build" in todo or "sign-file" in todo
        else "{}; then build it again, and dkms signs it: {}".format(todo, advice["rebuild"])
    )
