# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges whether a run meets the bounds. The worst registration to which a bound applies decides.
Bounds limit costs that a user can notice. ../../docs/performance.md lists costs without a bound,
and the reasons."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import inf
from typing import NamedTuple

from bench import GIB, KIB, MIB, MODES, MODULES, THREADS
from measured import (
    DYNAMIC,
    ENTRIES,
    FREED,
    HELD,
    IN_SHORT,
    LOADING,
    PINS,
    RATE,
    STATIC,
    TOTAL,
    Case,
    Metric,
    Run,
    ratio,
    ratio_text,
    size_text,
)

# The groups of bounds. Each has a title, and the two sides of the ratios.
CHAPTERS = {
    "stock": ("without IOMMU", "ours / nvidia-peermem"),
    "iommu": ("with IOMMU", "ours / nvidia-peermem"),
    "rust": ("ways to compile Rust against each other", "against in-kernel"),
}

# ---- how a registration is judged ---------------------------------------------------------

# A number that has a limit, and the number's text. None if the case was not measured.
Judged = tuple[float, str] | None

Modules = tuple[str, str]


def values(run: Run, metric: Metric, modules: Modules, case: Case) -> tuple[int, int] | None:
    ours, theirs = (run.value(metric, module, case) for module in modules)
    return None if ours is None or theirs is None else (ours, theirs)


def of_ratio(run: Run, metric: Metric, modules: Modules, case: Case) -> Judged:
    both = values(run, metric, modules, case)
    if both is None:
        return None
    value = ratio(*both)
    return value, f"{value:.3f}" if value > 0.01 else ratio_text(value)


def of_calls(run: Run, metric: Metric, modules: Modules, case: Case) -> Judged:
    ours, theirs = values(run, metric, modules, case) or (0, 0)
    if not ours or not theirs:
        return None
    return max(ours, 2 * ours / theirs), f"{ours} against {theirs}"


def of_entries(run: Run, metric: Metric, modules: Modules, case: Case) -> Judged:
    """Allows an entry for each piece that RDMA devices accept, because only an IOMMU joins
    chunks."""
    ours, theirs = values(run, metric, modules, case) or (0, 0)
    if not ours or not theirs or case.size is None:
        return None
    apart = case.layout in CHUNKS and case.machine == "stock"
    allowed = -(-case.size // (2 * MIB if apart else 2 * GIB))
    return ours / allowed, f"{ours} ({allowed} allowed), against {theirs}"


def of_rates(run: Run, metric: Metric, modules: Modules, case: Case) -> Judged:
    """Returns how much slower ours is, so that a larger number is worse. The text says how much
    faster."""
    number = max(THREADS)
    ours, theirs = (run.rate(module, case.mode, number, metric.driver) for module in modules)
    return (theirs / ours, f"{ours / theirs:.3f}") if ours and theirs else None


# ---- the bounds ---------------------------------------------------------------------------

CONTIGUOUS, CHUNKS = ("contiguous",), ("holes2m",)


class Bound(NamedTuple):
    text: str
    # The limit of the number, for each chapter. A pair has a limit for each mode.
    most: Mapping[str, float | tuple[float, float]]
    metrics: tuple[Metric, ...]
    layouts: tuple[str | None, ...] = tuple(IN_SHORT)
    # The smallest and the largest size. None if the figures are not about registrations.
    sizes: tuple[float, float] | None = (0, inf)
    modes: tuple[str, ...] = MODES
    modules: Modules = MODULES
    judged: Callable[[Run, Metric, Modules, Case], Judged] = of_ratio
    # If the limit is not a ratio, the text of the limit.
    words: str | None = None
    # The reasons for missing the bound, which profiling has found. The key is a mode, a machine, or
    # "any".
    reasons: dict[str, str] = {}

    def limit(self, chapter: str, mode: str) -> float:
        most = self.most[chapter]
        return most[MODES.index(mode)] if isinstance(most, tuple) else most

    def limit_text(self, chapter: str) -> str:
        limits = dict.fromkeys(self.limit(chapter, mode) for mode in self.modes)
        return self.words or " / ".join(f"{limit:g}" for limit in limits)

    def sizes_in(self, run: Run) -> list[int | None]:
        """Returns the sizes in RUN to which this bound applies."""
        if self.sizes is None:
            return [None]
        least, most = self.sizes
        return [size for size in run.sizes if least <= size <= most]

    def reason(self, chapter: str, mode: str) -> str | None:
        known = (self.reasons.get(word) for word in (mode, chapter, "any"))
        return next(filter(None, known), None)


def one(size: int) -> tuple[int, int]:
    return size, size


# The reasons for missed bounds. The texts contain no values, because the tables of a run have them.
CHEAP_PINS = {
    "any": "A pin costs little with static BAR1. Most of the other cost is the RDMA core's part of "
    "a registration, which is the same for both modules, and the mapping for the device, which "
    "nvidia-peermem leaves to the driver. Saving a pin does not outweigh these costs."
}

PAGES = {
    "any": "NVIDIA's code allocates and frees memory for each page of a pin. This is most of the "
    "cost of a large registration with one pin, and a registration needs at least one pin. The "
    "bound was set with a simulated driver that did not allocate this memory."
}

ONE = {"stock": 1, "iommu": 1}
REAL, LARGE = (DYNAMIC, STATIC), (256 * MIB, inf)

# The first of two limits is for persistent mode. It is 1 % above the value that was measured when
# the limit was set.
BOUNDS = (
    Bound(
        "driver pin calls per registration",
        {"stock": 1},
        (PINS,),
        judged=of_calls,
        words="1 against 2",
    ),
    Bound("total register+deregister, any driver, layout and size", ONE, (TOTAL, *REAL)),
    Bound(
        "the same, dynamic BAR1, contiguous, 64 KiB",
        {"stock": (0.533, 0.56), "iommu": (0.54, 0.56)},
        (DYNAMIC,),
        CONTIGUOUS,
        one(64 * KIB),
    ),
    Bound(
        "the same, 1 MiB",
        {"stock": (0.521, 0.54), "iommu": (0.475, 0.50)},
        (DYNAMIC,),
        CONTIGUOUS,
        one(MIB),
    ),
    Bound(
        "the same, 16 MiB",
        {"stock": (0.413, 0.45), "iommu": (0.156, 0.18)},
        (DYNAMIC,),
        CONTIGUOUS,
        one(16 * MIB),
    ),
    Bound(
        "the same, static BAR1, 64 KiB to 1 MiB",
        {"stock": 0.60, "iommu": 0.60},
        (STATIC,),
        CONTIGUOUS,
        (64 * KIB, MIB),
        reasons=CHEAP_PINS,
    ),
    Bound(
        "the same, dynamic or static BAR1, 256 MiB and more",
        {"stock": (0.314, 0.35)},
        REAL,
        CONTIGUOUS,
        LARGE,
        reasons=PAGES,
    ),
    Bound("the same, 2 MiB chunks", {"stock": (0.327, 0.37)}, REAL, CHUNKS, LARGE, reasons=PAGES),
    Bound("the same, either layout", {"iommu": (0.09, 0.10)}, REAL, sizes=LARGE, reasons=PAGES),
    Bound("scatterlist entries", ONE, (ENTRIES,), judged=of_entries, words="1 per 2 GiB or chunk"),
    Bound(
        "kernel memory held, 64 KiB",
        {"stock": 1.6, "iommu": 1.6},
        (HELD,),
        CONTIGUOUS,
        one(64 * KIB),
    ),
    Bound("the same, 2 MiB chunks, 256 MiB and more", {"stock": 0.05}, (HELD,), CHUNKS, LARGE),
    # In persistent mode the driver makes no callback.
    Bound(
        "cudaFree of registered memory until it returns",
        {"stock": 1.1},
        (FREED,),
        modes=("revocable",),
    ),
    Bound(
        "the same, 16 MiB and more",
        {"stock": 0.5},
        (FREED,),
        sizes=(16 * MIB, inf),
        modes=("revocable",),
        reasons=PAGES,
    ),
    Bound(
        "registrations per second, 4 threads, dynamic BAR1",
        {"stock": 1 / 1.7},
        (RATE,),
        (None,),
        None,
        judged=of_rates,
        words="at least 1.7",
    ),
    Bound("loading, instructions", {"stock": 2.0}, (LOADING,), (None,), None, ("persistent",)),
    Bound(
        "prebuilt: total register+deregister",
        {"rust": 1.03},
        (TOTAL,),
        modules=("nv_peer_mem-prebuilt", "nv_peer_mem-in-kernel"),
    ),
)


# ---- verdicts -------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """A verdict on a bound. MET is None if nothing was measured, or if the mode has no such
    bound."""

    bound: Bound
    mode: str
    met: bool | None
    text: str
    reason: str | None = None


def judge_cases(
    run: Run, bound: Bound, chapter: str, mode: str
) -> Iterator[tuple[float, str, str]]:
    """Yields the number, the number's text and the name of each measured case."""
    machine = "iommu" if chapter == "iommu" else "stock"
    for metric, layout, size in product(bound.metrics, bound.layouts, bound.sizes_in(run)):
        judged = bound.judged(run, metric, bound.modules, Case(machine, mode, layout, size))
        if not judged:
            continue
        where = [metric.label] if len(bound.metrics) > 1 else []
        if size and layout:
            where += [size_text(size), IN_SHORT[layout]]
        yield *judged, f" ({', '.join(where)})" if size else ""


def judge(run: Run, bound: Bound, chapter: str, mode: str) -> Verdict:
    """Judges by the largest number. If several numbers are equal, judges by the smallest
    registration."""
    if mode not in bound.modes:
        return Verdict(bound, mode, None, "no bound")
    found = list(judge_cases(run, bound, chapter, mode))
    if not found:
        return Verdict(bound, mode, None, "not measured")
    value, text, where = max(found, key=lambda judged: judged[0])
    excess = 100 * (value / bound.limit(chapter, mode) - 1)
    if excess <= 0:
        return Verdict(bound, mode, True, f"met: {text}{where}")
    digits = 1 if excess >= 1 else 3
    missed = f"MISSED by {excess:.{digits}f} %: {text}{where}"
    return Verdict(bound, mode, False, missed, bound.reason(chapter, mode))


# A bound with its verdicts in both modes.
Judgement = tuple[Bound, list[Verdict]]


def chapters(run: Run) -> Iterator[tuple[str, list[Judgement]]]:
    """Yields each chapter with its bounds and their verdicts in both modes."""
    for chapter in CHAPTERS:
        bounds = [bound for bound in BOUNDS if chapter in bound.most]
        yield (
            chapter,
            [(bound, [judge(run, bound, chapter, mode) for mode in MODES]) for bound in bounds],
        )
