# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Gives advice about a module that cannot be loaded, for the service. The cause and the advice are
those of `nvpm explain`; where the advice depends on this machine, facts/advice.py fills it in."""

from ..facts.advice import Advice
from ..facts.pod import TRIES_AGAIN
from ..read.machine import MODULE, PEERMEM, Machine
from ..read.place import loads_modules
from .answer import plain
from .judge import judged
from .scan import Scan
from .wording import sentence


def advice(machine: Machine, module: str, text: str) -> str:
    """Returns the cause and what to do. TEXT is the text that modprobe and the kernel have printed
    about MODULE. Returns an empty string if the text shows no cause. A possible cause counts,
    because the service knows that MODULE could not be loaded."""
    scan = Scan()
    scan.read("", [line.encode("utf-8", "replace") for line in text.splitlines()])
    found = next(iter(judged(scan).causes), None)
    if found is None:
        return ""
    proof = found.best()
    here = Advice(machine, module, text).filled(proof.here())
    if module in (MODULE, PEERMEM) and loads_modules(machine):
        here = TRIES_AGAIN
    phrases = filter(None, (proof.says(), proof.variant.entry.message.note))
    why = " ".join(f"{plain(sentence(phrase))}." for phrase in phrases)
    return f"{why} {here or plain(sentence(proof.to_do()))}"
