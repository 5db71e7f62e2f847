# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Divides a log into runs of programs, because people write the next try into the same log, and ask
about the newest try. The kernel's lines belong to no run: a module that could not be loaded at boot
harms each run after that."""

import re
from typing import Optional

# The command line of a program, behind the prompt of a shell or the sign of its tracing.
STARTS = re.compile(
    r"(?:^|[$#>+] )(?:mpirun|mpiexec|prterun|srun|torchrun|deepspeed|horovodrun|perftest|nixlbench"
    r"|ib_(?:write|read|send|atomic)_(?:bw|lat)|python3? -m (?:vllm|sglang)|vllm serve)\b(?! ?:)"
)
# The date and the hour before a message.
DATE = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):")
KERNEL = re.compile(
    rb" kernel:|^\s*(?:<\d+>)?\[ *\d{1,7}\.\d{6}\]|^\s*\[[A-Z][a-z]{2} [A-Z][a-z]{2} "
)
# Fewer hours than this number pass between two lines with errors of one run.
HOURS = 12


class Runs:
    """Counts the runs of a log while the log is read."""

    def __init__(self) -> None:
        self.number = 0
        # Whether a line of this run mattered.
        self.used = False
        self.hour = 0

    def start(self) -> None:
        """Begins a new run if lines of the last run mattered."""
        self.number += self.used
        self.used = False

    def of_line(self, line: bytes) -> Optional[int]:
        """Returns the run of a line with a message of the table. Returns None if the kernel printed
        the line."""
        if KERNEL.search(line[:200]):
            return None
        date = DATE.search(line[:200])
        if date:
            year, month, day, hour = map(int, date.groups())
            now = ((year * 12 + month) * 31 + day) * 24 + hour
            if self.hour and now >= self.hour + HOURS:
                self.start()
            self.hour = max(self.hour, now)
        self.used = True
        return self.number
