# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The bounds, and whether a run meets them: the worst registration that a bound covers decides. And why
a bound is missed, as profiling has shown; these texts have no values, which are in the tables of a run."""

from collections import namedtuple
from collections.abc import Callable
from itertools import product
from math import inf
from typing import NamedTuple

from measured import ENTRIES, FREED, HELD, IN_CALLBACK, IN_SHORT, LOADING, MODULE, PINS, PUBLISHED, TOTAL, Case, ratio, ratio_text, size_text

from bench import ENDS, GIB, KIB, MIB, MODES, MODULES

# Bounds that are judged together, and what their ratios are of.
CHAPTERS = {
    "stock": ("without IOMMU", "ours / nvidia-peermem"),
    "iommu": ("with IOMMU", "ours / nvidia-peermem"),
    "grounds": ("ways to compile Rust against each other", "against in-kernel"),
}

# For the bounds to which one more pin, of one page, matters.
ASKED = {"revocable": """\
Before the module unpins, it lets the driver pin one more page. The driver reports success also for an unpin that found \
nothing, because it no longer knows the process. The memory would then stay pinned without a record, and the driver could call \
back into a module that is unloaded. No cheaper call of the driver tells the two apart. nvidia-peermem does not ask."""}

MAPPED = {"any": """\
The module maps the memory for the device itself. nvidia-peermem lets the driver map it, and that is not counted, so only the \
totals compare the same work. With an IOMMU nearly all of it is the mapping, most of that in the kernel. The rest does not \
depend on the size: a lock and phases for each region, counters, checks of the driver's answers, the map type of GPU and \
device."""}

IN_PIECES = {"stock": """\
No two pages are neighbours, so the module calls the DMA API for each page, on every kernel, as the DMA API demands. That alone \
is more than the excess. Two attempts changed little: to map each piece in the loop that fills the scatterlist, and to count the \
entries by extents.""", "iommu": """\
Nearly all of it is the kernel's: it enters each page of 4 KiB into the IOMMU's tables, and removes it again. All pieces share \
one range of addresses already. Two attempts changed little: no copy of the pieces (persistent mode), and memory for them \
allocated at once in the right size (revocable mode)."""}

FREED_BY_DRIVER = {"iommu": """\
For little memory most of the time is the driver's own, and the same for both modules: it alone is above the bound. From 1 MiB on \
most of it is the mapping, which one call undoes."""}

WAITING = {
    "persistent": """\
Registrations do not wait for each other: each region has its own lock. But when a spin lock is released, the kernel may switch \
to another thread, and that counts as the module's; nvidia-peermem has no lock.""",
    "revocable": """\
While one registration unpins, no other one pins or unpins: the driver identifies a pin by an address that it may use again, \
and the module must not unpin another registration's memory. The waiting counts as the module's; the driver itself has one lock \
for all of them.""",
}


# ---- how a registration is judged: as a number that has a limit, and in words -------------


def of_ratio(run, metric, modules, case):
    values = [run.value(metric, module, case) for module in modules]
    return None not in values and (ratio(*values), f"{ratio(*values):.3f}" if ratio(*values) > 0.01 else ratio_text(ratio(*values)))


def of_calls(run, metric, modules, case):
    ours, theirs = (run.value(metric, module, case) for module in modules)
    return ours and theirs and (max(ours, 2 * ours / theirs), f"{ours} against {theirs}")


def of_entries(run, metric, modules, case):
    """One for as much as RDMA devices take in one piece."""
    ours, theirs = (run.value(metric, module, case) for module in modules)
    allowed = -(-case.size // (2 * GIB))
    return ours and theirs and (ours / allowed, f"{ours} ({allowed} allowed), against {theirs}")


def of_scaling(run, _, modules, case):
    rates = [[run.rate(module, case.mode, number, 0, alone=True) for number in (4, 1)] for module in modules]
    if not all(map(all, rates)):
        return None
    ours, theirs = (four / one for four, one in rates)
    return theirs / ours, f"{ours:.3f} against {theirs:.3f}"


class Bound(NamedTuple):
    text: str
    # What the number may be at most, by the chapter that judges it; in words, where it is no ratio.
    most: dict
    metrics: tuple
    layouts: tuple = tuple(IN_SHORT)
    # From one to another; or it is no registration.
    sizes: tuple | None = (0, inf)
    modes: tuple = MODES
    modules: tuple = MODULES
    judged: Callable = of_ratio
    limit: str | None = None
    # Why it is missed: in a mode, on a machine, or in any.
    reasons: dict = {}


ONE = {"stock": 1, "iommu": 1}
CONTIGUOUS, FRAGMENTED, LARGE = ("contiguous",), ("holes64k",), (256 * MIB, inf)

BOUNDS = (
    Bound("driver pin calls per registration", ONE, (PINS,), judged=of_calls, limit="1 against 2", reasons=ASKED),
    Bound("total register+deregister, either costs, any layout and size", ONE, (TOTAL, PUBLISHED)),
    Bound("total register+deregister, published driver costs, contiguous, 64 KiB", {"stock": 0.55, "iommu": 0.56}, (PUBLISHED,),
          CONTIGUOUS, (64 * KIB, 64 * KIB), reasons=ASKED),
    Bound("the same, 1 MiB", {"stock": 0.55, "iommu": 0.50}, (PUBLISHED,), CONTIGUOUS, (MIB, MIB), reasons=ASKED),
    Bound("the same, 16 MiB", {"stock": 0.45, "iommu": 0.18}, (PUBLISHED,), CONTIGUOUS, (16 * MIB, 16 * MIB), reasons=ASKED),
    Bound("the same, 256 MiB and more", {"stock": 0.40, "iommu": 0.15}, (PUBLISHED,), CONTIGUOUS, LARGE, reasons=ASKED),
    Bound("the same, 64 KiB chunks, 256 MiB and more", {"stock": 0.60, "iommu": 0.45}, (PUBLISHED,), FRAGMENTED, LARGE,
          reasons=IN_PIECES),
    Bound("module-only instructions, 64 KiB and 1 MiB, contiguous", {"stock": 1.2, "iommu": 3.0}, (MODULE,), CONTIGUOUS,
          (64 * KIB, MIB), ("persistent",), reasons=MAPPED),
    Bound("scatterlist entries, contiguous", ONE, (ENTRIES,), CONTIGUOUS, judged=of_entries, limit="1 per 2 GiB"),
    Bound("scatterlist entries, 64 KiB chunks", {"iommu": 1}, (ENTRIES,), FRAGMENTED, LARGE, judged=of_entries, limit="1 per 2 GiB"),
    Bound("kernel memory held, 64 KiB", {"stock": 2.0, "iommu": 3.0}, (HELD,), sizes=(64 * KIB, 64 * KIB)),
    Bound("kernel memory held, 4 GiB contiguous", {"stock": 0.01, "iommu": 0.01}, (HELD,), CONTIGUOUS, (4 * GIB, 4 * GIB)),
    # In the other mode the driver calls nobody.
    Bound("cudaFree of registered memory until it returns", {"stock": 1.1, "iommu": 0.5}, (FREED,), modes=("revocable",),
          reasons=FREED_BY_DRIVER),
    Bound("loading, instructions", {"stock": 2.0}, (LOADING,), (None,), None, ("persistent",)),
    Bound("throughput, 4 threads against 1 (module-only part)", {"stock": 1}, (None,), (None,), None, judged=of_scaling,
          limit="no worse than the original's scaling", reasons=WAITING),
    *(Bound(f"{ground}: {text}", {"grounds": most}, metrics, ENDS, modules=(f"nv_peer_mem-{ground}", "nv_peer_mem-in-kernel"))
      for ground in ("standalone", "prebuilt")
      for text, most, metrics in (("total register+deregister", 1.03, (TOTAL,)),
                                  ("module alone, register+deregister or in the callback", 1.10, (MODULE, IN_CALLBACK)))),
)


# Met is nothing if it was not measured, or is no bound of this mode.
Verdict = namedtuple("Verdict", "bound mode met text reason", defaults=[None])


def judge(run, bound, chapter, mode):
    """The largest number decides; of equal ones the smallest registration's."""
    if mode not in bound.modes:
        return Verdict(bound, mode, None, "no bound")
    sizes = [size for size in run.sizes if bound.sizes[0] <= size <= bound.sizes[1]] if bound.sizes else [None]
    found = []
    for metric, layout, size in product(bound.metrics, bound.layouts, sizes):
        case = Case("iommu" if chapter == "iommu" else "stock", mode, layout, size)
        what = [metric.label] if len(bound.metrics) > 1 else []
        if judged := bound.judged(run, metric, bound.modules, case):
            found.append((*judged, f" ({', '.join([*what, size_text(size), IN_SHORT[layout]])})" if size else ""))
    if not found:
        return Verdict(bound, mode, None, "not measured")
    value, text, where = max(found, key=lambda judged: judged[0])
    excess = 100 * (value / bound.most[chapter] - 1)
    if excess <= 0:
        return Verdict(bound, mode, True, f"met: {text}{where}")
    reason = bound.reasons.get(mode) or bound.reasons.get(chapter) or bound.reasons.get("any")
    return Verdict(bound, mode, False, f"MISSED by {excess:.{1 if excess >= 1 else 3}f} %: {text}{where}", reason)


def chapters(run):
    """Of each chapter the bounds, with verdicts of both modes."""
    for chapter in CHAPTERS:
        yield chapter, [(bound, [judge(run, bound, chapter, mode) for mode in MODES]) for bound in BOUNDS if chapter in bound.most]
