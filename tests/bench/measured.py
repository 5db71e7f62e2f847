# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A run: what the guests have measured, and what is compared of it."""

import sys
from collections import namedtuple
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "guest"))

# The program that measures: the report wants all that it plans to.
from bench import plan  # noqa: E402

GROUNDS = ("in-kernel", "prebuilt")
LAYOUTS = {"contiguous": "contiguous memory", "holes2m": "memory in 2 MiB chunks"}
IN_SHORT = {"contiguous": "contiguous", "holes2m": "2 MiB chunks"}
# Of what takes as long as in a real driver.
REAL = {"dynamic": "dynamic BAR1", "static": "static BAR1"}

# A complete run.
JOBS = ("bench", "bench-iommu", "bench-threads", *(f"bench-{ground}" for ground in GROUNDS))
SIZES = (1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 32, 1 << 36)

# A kind of registration.
Case = namedtuple("Case", "machine mode layout size", defaults=[None, None])

# What a measurement is of; its other members are what was measured.
Subject = namedtuple("Subject", "machine module mode kind layout size driver threads",
                     defaults=[None] * 4)


class Run:
    """Measurements by their subjects, and what they were measured with."""

    def __init__(self, facts, measurements):
        self.facts, self.of = facts, {}
        for measurement in measurements:
            subject = Subject(**{name: value for name, value in measurement.items() if name in Subject._fields})
            self.of[subject] = {name: int(value) for name, value in measurement.items() if name not in Subject._fields}
        self.sizes = sorted({subject.size for subject in self.of if subject.size})

    def value(self, metric, module, case):
        values = self.of.get(Subject(case.machine, module, case.mode, metric.kind, case.layout,
                                     case.size, metric.driver), {})
        parts = [name for name in values if metric.names[0].endswith("*") and name.startswith(metric.names[0][:-1])] or metric.names
        return sum(values[name] for name in parts) if set(parts) <= set(values) else None

    def rate(self, module, mode, number, driver):
        """Registrations per second of the guest's time, by so many threads."""
        values = self.of.get(Subject("stock", module, mode, "threads", driver=driver,
                                     threads=number))
        return values["registrations"] * 1e9 / values["elapsed"] if values else None

    def missing(self, jobs, sizes):
        """What these jobs did not say."""
        planned = (Subject(**subject) for job in jobs for subject in plan(job, sizes))
        return [subject for subject in planned if subject not in self.of]


# ---- numbers as they are read ------------------------------------------------------


def ratio(ours, theirs):
    """Nothing against nothing is even."""
    return ours / theirs if theirs else inf if ours else 1.0


def size_text(size):
    """Bytes in binary units, as memory is allocated."""
    for unit in ("B", "KiB", "MiB"):
        if size % 1024 or size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def short_size(size):
    return size_text(size).replace(" ", "").rstrip("iB")


def count(value):
    """Two digits that matter, or three. What is below a thousand stays exact."""
    if value < 1000:
        return str(round(value))
    for unit in "kMGT":
        value /= 1000
        # What rounds to a thousand is one of the next unit.
        if value < 999.5:
            break
    return f"{value:.{int(value < 9.95)}f}{unit}"


def microseconds(ns):
    return f"{ns / 1000:.{int(ns < 9950)}f}" if ns < 999500 else count(ns / 1000)


def ratio_text(value):
    digits = next((digits for least, digits in ((9.995, 1), (0.0995, 2), (0.00995, 3)) if value >= least), 4)
    return "<0.001" if 0 < value < 0.00095 else f"{value:.{digits}f}" if value else "0"


# ---- what is compared ---------------------------------------------------------------


class Metric(NamedTuple):
    """One quantity: the sum of what has these names in a measurement of that kind."""

    label: str
    kind: str
    names: tuple
    driver: str | None = None
    text: Callable = count


def costs(label, *names, driver="simulated", text=count):
    return Metric(label, "costs", names, driver, text)


def as_real(label, *names):
    """The same for each real driver."""
    return tuple(costs(f"{label}{of} (us)", *names, driver=driver, text=microseconds)
                 for driver, of in REAL.items())


MODULE = costs("module alone", "register_module", "deregister_module")
TOTAL = costs("total", "register_total", "deregister_total")
DYNAMIC, STATIC = as_real("total, ", "register_total", "deregister_total")
PINS = costs("of these, to pin", "calls_nvidia_p2p_get_pages*")
ENTRIES = costs("scatterlist entries", "entries")
PAGE_SIZE = costs("best HCA page size", "page_size", text=short_size)
HELD = Metric("kernel memory held, bytes", "held", ("bytes",))
FREED = Metric("cudaFree until it returns", "freed", ("free_total",))
LOADING = Metric("loading, instructions", "module", ("load",))
RATE = Metric("registrations per second", "threads", ("registrations",), "dynamic")

EACH = (
    *(costs(f"{half}, module alone", f"{half}_module") for half in ("register", "deregister")),
    *(costs(f"{half}, total", f"{half}_total") for half in ("register", "deregister")),
    *(metric for half in ("register", "deregister")
      for metric in as_real(f"{half}, ", f"{half}_total")),
    costs("calls into the driver", "calls_*"), PINS, ENTRIES, PAGE_SIZE, HELD, FREED,
)
BOTH_HALVES = (MODULE, TOTAL, DYNAMIC, STATIC, ENTRIES, PAGE_SIZE, HELD, FREED)
OF_GROUNDS = (MODULE, TOTAL, FREED)
OF_MODULES = (
    Metric("file, bytes", "module", ("file",)),
    Metric("loaded, bytes", "module", ("core",)),
    LOADING,
    Metric("first registration, 64 KiB, instructions", "module", ("first",)),
)

# Label, and with which driver.
THROUGHPUTS = {"total": "simulated"} | {f"total, {of}": driver for driver, of in REAL.items()}
