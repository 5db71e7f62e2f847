# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures the speed of the machine by a fixed loop, so that the times of two runs on different
machines can be compared."""

import time

ADDITIONS = 20_000_000


def loop_seconds() -> float:
    """Returns the seconds of one processor that the loop takes. Other programs may slow the loop
    down, because processors share their caches and their clock."""
    began = time.process_time()
    total = 0
    for number in range(ADDITIONS):
        total += number
    assert total == ADDITIONS * (ADDITIONS - 1) // 2
    return time.process_time() - began


def speed() -> str:
    return f"a loop of {ADDITIONS:,} additions takes {loop_seconds():.2f} s here"
