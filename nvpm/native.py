# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Starts the part of nvpm in Rust: nvpm-bin, beside the directory of this program, which explains
logs and compares nodes. For the service, it names the cause for which a module cannot be loaded,
and facts/advice.py fills in the parts of the advice that depend on this machine."""

import json
import os
import sys
from typing import Any, Dict, List

from .facts.advice import Advice
from .facts.pod import TRIES_AGAIN
from .read import programs
from .read.machine import MODULE, PEERMEM, Machine
from .read.place import loads_modules

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "nvpm-bin")
MISSING = (
    "nvpm: {command} needs the program nvpm-bin, which is not beside this one: {why}. The packages "
    "have it. A release also has it as one file, nvpm-VERSION-PROCESSOR, which runs anywhere; in a "
    "checkout, make nvpm builds it (cargo 1.85 or later).\n"
)
# The program's exit code if it was not found, as a shell's.
NOT_FOUND = 127


def start(command: str, words: List[str]) -> int:
    """Becomes `nvpm COMMAND WORDS`. Returns only if the program is missing."""
    sys.stdout.flush()
    try:
        os.execv(PROGRAM, ["nvpm", command, *words])
    except OSError as error:
        sys.stderr.write(MISSING.format(command=command, why=f"{PROGRAM}: {error.strerror}"))
        return NOT_FOUND


def first_cause(text: str) -> Dict[str, Any]:
    """Returns the first cause that a text shows. A possible cause counts, because the service knows
    that a module could not be loaded. Returns an empty object if there is none, or no program."""
    given = text.encode("utf-8", "replace")
    ended = programs.run([PROGRAM, "explain", "--json", "-"], given=given)
    try:
        causes = json.loads(ended.output.decode("utf-8", "replace"))["causes"]
    except (ValueError, KeyError):
        return {}
    return causes[0] if causes else {}


def advice(machine: Machine, module: str, text: str) -> str:
    """Returns the cause and what to do. TEXT is the text that modprobe and the kernel have printed
    about MODULE. Returns an empty string if the text shows no cause."""
    cause = first_cause(text)
    if not cause:
        return ""
    here = Advice(machine, module, text).filled(cause["here"])
    if module in (MODULE, PEERMEM) and loads_modules(machine):
        here = TRIES_AGAIN
    why = " ".join(f"{phrase.rstrip('.')}." for phrase in (cause["says"], cause["note"]) if phrase)
    return f"{why} {here or cause['do']}"
