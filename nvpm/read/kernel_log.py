# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chooses the lines of the kernel's log that a bug report needs: those about GPUs and RDMA devices,
and each report of a crash as a whole, because its registers and its stack name no device."""

import re
from typing import List

from .machine import Machine

SPOKEN = re.compile(
    r"nv_peer_mem|nvidia|NVRM|peer_mem|\bib_|infiniband|rdma|mlx|irdma|bnxt|\befa\b|\bmana_"
    r"|iommu|dmar|aer:|Call Trace",
    re.IGNORECASE,
)
# The kernel begins a report with one of these, and ends most of them with a line of their own.
CRASH = re.compile(
    r"\bBUG\b|WARNING:|\bOops\b|cut here|general protection|refcount_t|blocked for more than"
    r"|corruption|[Uu]nable to handle|Internal error|stack guard|soft lockup|[Hh]ard LOCKUP"
    r"|self-detected stall|detected stalls|Kernel panic|KASAN:|UBSAN:|KCSAN:|SError|Unhandled fault"
    r"|Bad page|double fault"
)
CRASH_ENDS = re.compile(r"end trace|end Kernel panic")
# The length of a report without such an end.
CRASH_LINES = 80

# A long log is shortened in the middle: the first crash causes others, and the last lines count.
FIRST_LINES, LAST_LINES = 500, 1500

COMMANDS = (
    ("journalctl", "-k", "-b", "--no-pager", "--no-hostname", "-o", "short-monotonic"),
    ("dmesg",),
)
UNREAD = "(the kernel's log cannot be read: run this as root)"


def wanted(lines: List[str]) -> List[str]:
    """Returns the lines to keep. Some lines repeat the kernel's command line, most of which is
    left out of a report."""
    found, left = [], 0
    for line in lines:
        if CRASH.search(line):
            left = CRASH_LINES
        if (left or SPOKEN.search(line)) and "ommand line" not in line:
            found.append(line)
        left = 0 if CRASH_ENDS.search(line) else max(left - 1, 0)
    return found


def shortened(lines: List[str]) -> List[str]:
    out = len(lines) - FIRST_LINES - LAST_LINES
    if out <= 0:
        return lines
    return [*lines[:FIRST_LINES], f"({out} lines are left out here)", *lines[-LAST_LINES:]]


def kernel_log(machine: Machine) -> str:
    """Returns the lines of this boot."""
    for command in COMMANDS:
        well, printed = machine.run(*command)
        if well and printed:
            return "\n".join(shortened(wanted(printed.split("\n")))) + "\n"
    return UNREAD + "\n"
