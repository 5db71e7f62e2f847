# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A run, which consists of the measurements of the guests and the figures that are compared. The
module `bench` is the measuring program, ../guest/bench.py. The report expects all measurements that
the program plans."""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from bench import Figures, Subject, plan

WAYS = ("in-kernel", "prebuilt")
LAYOUTS = {"contiguous": "contiguous memory", "holes2m": "memory in 2 MiB chunks"}
IN_SHORT = {"contiguous": "contiguous", "holes2m": "2 MiB chunks"}
# The simulated drivers that take as long as a real driver.
REAL = {"dynamic": "dynamic BAR1", "static": "static BAR1"}

# The jobs and sizes of a complete run.
JOBS = ("bench", "bench-iommu", "bench-threads", *(f"bench-{way}" for way in WAYS))
SIZES = (1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 32, 1 << 36)


class Case(NamedTuple):
    """A kind of registration."""

    machine: str
    mode: str
    layout: str | None = None
    size: int | None = None


def subject_and_figures(measurement: dict[str, Any]) -> tuple[Subject, Figures]:
    """Splits a measurement into its subject and its figures."""
    of, figures = {}, {}
    for name, value in measurement.items():
        if name in Subject._fields:
            of[name] = value
        else:
            figures[name] = int(value)
    return Subject(**of), figures


class Run:
    """Measurements by subject, and facts about modules and machine."""

    def __init__(self, facts: dict[str, Any], measurements: Iterable[dict[str, Any]]) -> None:
        self.facts = facts
        self.of = dict(map(subject_and_figures, measurements))
        self.sizes = sorted({subject.size for subject in self.of if subject.size})

    def value(self, metric: "Metric", module: str, case: Case) -> int | None:
        machine, mode, layout, size = case
        subject = Subject(machine, module, mode, metric.kind, layout, size, metric.driver)
        figures = self.of.get(subject, {})
        names = metric.names_in(figures)
        return sum(figures[name] for name in names) if names <= set(figures) else None

    def rate(self, module: str, mode: str, number: int, driver: str | None) -> float | None:
        """Returns how many registrations this number of threads makes in a second of the guest's
        time."""
        subject = Subject("stock", module, mode, "threads", driver=driver, threads=number)
        figures = self.of.get(subject)
        return figures["registrations"] * 1e9 / figures["elapsed"] if figures else None

    def missing(self, jobs: Iterable[str], sizes: Sequence[int]) -> list[Subject]:
        """Returns the planned measurements of these jobs that are missing."""
        planned = (subject for job in jobs for subject in plan(job, sizes))
        return [subject for subject in planned if subject not in self.of]


# ---- texts of numbers --------------------------------------------------------------


def ratio(ours: float, theirs: float) -> float:
    """Returns the ratio of two costs, which is 1 if both are 0."""
    if theirs:
        return ours / theirs
    return inf if ours else 1.0


def size_text(size: int) -> str:
    """Returns a size in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if size % 1024 or size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def short_size(size: float) -> str:
    return size_text(int(size)).replace(" ", "").rstrip("iB")


UNITS = "kMGT"


def count(value: float) -> str:
    """Returns a number with two or three significant digits. Numbers below 1000 stay exact."""
    if value < 1000:
        return str(round(value))
    value, unit = value / 1000, 0
    # A value that rounds to 1000 gets the next unit.
    while value >= 999.5 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.{int(value < 9.95)}f}{UNITS[unit]}"


def microseconds(ns: float) -> str:
    return f"{ns / 1000:.{int(ns < 9950)}f}" if ns < 999500 else count(ns / 1000)


# The number of digits after the point. Each number of digits is for ratios from this value on.
DIGITS = ((9.995, 1), (0.0995, 2), (0.00995, 3), (0, 4))


def ratio_text(value: float) -> str:
    if not value:
        return "0"
    if value < 0.00095:
        return "<0.001"
    digits = next(digits for least, digits in DIGITS if value >= least)
    return f"{value:.{digits}f}"


# ---- compared figures ---------------------------------------------------------------


class Metric(NamedTuple):
    """A quantity, which is the sum of some figures of a measurement of this kind. The figures have
    these names. A name that ends in * stands for all names with this beginning. At least one such
    name must exist."""

    label: str
    kind: str
    names: tuple[str, ...]
    driver: str | None = None
    text: Callable[[float], str] = count

    def names_in(self, figures: Figures) -> set[str]:
        first = self.names[0]
        if not first.endswith("*"):
            return set(self.names)
        return {name for name in figures if name.startswith(first[:-1])} or {first}


def costs(
    label: str,
    *names: str,
    driver: str = "simulated",
    text: Callable[[float], str] = count,
) -> Metric:
    return Metric(label, "costs", names, driver, text)


def as_real(label: str, *names: str) -> list[Metric]:
    """Returns this metric for each real driver."""
    return [
        costs(f"{label}{of} (us)", *names, driver=driver, text=microseconds)
        for driver, of in REAL.items()
    ]


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
    costs("register, module alone", "register_module"),
    costs("deregister, module alone", "deregister_module"),
    costs("register, total", "register_total"),
    costs("deregister, total", "deregister_total"),
    *as_real("register, ", "register_total"),
    *as_real("deregister, ", "deregister_total"),
    costs("calls into the driver", "calls_*"),
    PINS,
    ENTRIES,
    PAGE_SIZE,
    HELD,
    FREED,
)
BOTH_HALVES = (MODULE, TOTAL, DYNAMIC, STATIC, ENTRIES, PAGE_SIZE, HELD, FREED)
OF_WAYS = (MODULE, TOTAL, FREED)
OF_MODULES = (
    Metric("file, bytes", "module", ("file",)),
    Metric("loaded, bytes", "module", ("core",)),
    LOADING,
    Metric("first registration, 64 KiB, instructions", "module", ("first",)),
)

# Labels of throughputs, with their drivers.
THROUGHPUTS = {"total": "simulated"} | {f"total, {of}": driver for driver, of in REAL.items()}
