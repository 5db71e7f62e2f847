# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chooses the lines of the kernel's log that a bug report needs: lines about GPUs and RDMA devices,
and all lines of each crash report, because its registers and its stack name no device."""

import re
from typing import List

from .machine import Machine

SPOKEN = re.compile(
    r"nv_peer_mem|nvidia|NVRM|peer_mem|\bib_|infiniband|rdma|mlx|irdma|bnxt|\befa\b|\bmana_"
    r"|iommu|dmar|aer:|Call Trace",
    re.IGNORECASE,
)
# A line that CRASH matches begins a crash report. A line that CRASH_ENDS matches ends most reports.
CRASH = re.compile(
    r"\bBUG\b|WARNING:|\bOops\b|cut here|general protection|refcount_t|blocked for more than"
    r"|corruption|[Uu]nable to handle|Internal error|stack guard|soft lockup|[Hh]ard LOCKUP"
    r"|self-detected stall|detected stalls|Kernel panic|KASAN:|UBSAN:|KCSAN:|SError|Unhandled fault"
    r"|Bad page|double fault"
)
CRASH_ENDS = re.compile(r"end trace|end Kernel panic")
# The number of lines that are taken from a crash report in which no line matches CRASH_ENDS.
CRASH_LINES = 80

# A long log is shortened in the middle. The first lines stay because the first crash may cause
# others, and the last lines because they are the newest.
FIRST_LINES, LAST_LINES = 500, 1500

COMMANDS = (
    ("journalctl", "-k", "-b", "--no-pager", "--no-hostname", "-o", "short-monotonic"),
    ("dmesg", "--kernel"),
    ("dmesg",),
)
# Matches a line of journalctl that a program has written into the kernel's log. The words of these
# programs are not known, so no pattern can take names out of them.
OF_A_PROGRAM = re.compile(r"\[ *\d+\.\d+\] (?!kernel: )[^ :]+: ")
# A record of the audit has the names and the arguments of processes, in many fields.
AUDIT = re.compile(r"(\baudit: type=\d+ ).+")
UNREAD = "(the kernel's log cannot be read: run this as root)"


def wanted(lines: List[str]) -> List[str]:
    """Returns the lines to keep. A line that repeats the kernel's command line is left out, because
    a report must not contain all of the command line, and a record of the audit is emptied."""
    found, left = [], 0
    for line in lines:
        if CRASH.search(line):
            left = CRASH_LINES
        if (left or SPOKEN.search(line)) and "ommand line" not in line:
            found.append(AUDIT.sub(r"\1(left out)", line))
        left = 0 if CRASH_ENDS.search(line) else max(left - 1, 0)
    return found


def shortened(lines: List[str]) -> List[str]:
    out = len(lines) - FIRST_LINES - LAST_LINES
    if out <= 0:
        return lines
    return [*lines[:FIRST_LINES], f"({out} lines are left out here)", *lines[-LAST_LINES:]]


def kernel_log(machine: Machine) -> str:
    """Returns the chosen lines of this boot, or a text that the log cannot be read."""
    for command in COMMANDS:
        well, printed = machine.run(*command)
        if well and printed:
            lines = printed.split("\n")
            if command[0] == "journalctl":
                lines = [line for line in lines if not OF_A_PROGRAM.match(line)]
            return "\n".join(shortened(wanted(lines))) + "\n"
    return UNREAD + "\n"
