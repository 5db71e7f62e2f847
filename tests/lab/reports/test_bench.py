# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the benchmark's report with made-up measurements. PYTHONPATH has ../guest."""

import re

from bench import IDEAL, OURS, PEERMEM, Figures, Subject, left_of
from layers.cache import TOP
from reports.bench_report import BOUNDS, PLANNED, Run, judge, report

FACTS = {"date": "D", "kernel": "K", "qemu": "Q", OURS: "O", PEERMEM: "T"}

# Made-up figures of each module, which meet all bounds.
FIGURES: dict[str, Figures] = {
    IDEAL: {"register_total": 900, "deregister_total": 90},
    OURS: {"register_total": 920, "deregister_total": 90},
    PEERMEM: {"register_total": 2000, "deregister_total": 90},
}
for module, figures in FIGURES.items():
    figures.update(register_module=1, deregister_module=1, registrations=100)
    figures.update(elapsed=10_000 if module == PEERMEM else 5_000, bytes=100, free_total=100)


def made_up(**worse: Figures) -> Run:
    """Returns a run in which the figures WORSE replace ours in subjects of the named kind."""
    measurements = []
    for subject in PLANNED:
        changed = worse.get(subject.kind, {}) if subject.module == OURS else {}
        measurements.append({**subject.as_json(), **FIGURES[subject.module], **changed})
    return Run(FACTS, measurements)


def missed(run: Run) -> list[str]:
    return [f"{bound.to}: {bound.text}" for bound in BOUNDS if not met(run, bound.text)]


def met(run: Run, text: str) -> bool:
    return next(verdict.met for verdict in judge(run) if verdict.bound.text == text)


def check_bounds() -> None:
    text, number = report(made_up())
    assert number == 0 and f"{len(BOUNDS)} of {len(BOUNDS)} bounds are met" in text, text
    # Each bound is met at its limit, and missed above it.
    for name, kind, figures, over in (
        ("1 MiB and more", "costs", {"register_total": 929}, {"register_total": 930}),
        ("64 KiB", "costs", {"register_total": 999}, {"register_total": 1000}),
        ("static BAR1, 1 MiB", "costs", {"register_total": 1048}, {"register_total": 1049}),
        ("static BAR1, 64 KiB", "costs", {"register_total": 1147}, {"register_total": 1148}),
        ("everything", "costs", {"register_total": 2000}, {"register_total": 2001}),
        ("freeing", "freed", {"free_total": 100}, {"free_total": 101}),
        ("held, 64 KiB", "held", {"bytes": 160}, {"bytes": 161}),
        ("held, 1 MiB", "held", {"bytes": 100}, {"bytes": 101}),
        ("time for a registration", "threads", {"elapsed": 5882}, {"elapsed": 5883}),
        ("four threads, dynamic", "threads", {"elapsed": 5249}, {"elapsed": 5251}),
        ("static BAR1, persistent", "threads", {"elapsed": 5249}, {"elapsed": 5251}),
        ("static BAR1, revocable", "threads", {"elapsed": 5349}, {"elapsed": 5351}),
    ):
        below, above = missed(made_up(**{kind: figures})), missed(made_up(**{kind: over}))
        assert any(name in one for one in set(above) - set(below)), (name, below, above)
    print("ok bounds")


def check_worst() -> None:
    """Checks that a single case decides, and that the report names the case."""
    run = made_up()
    worst = Subject("iommu", OURS, "revocable", "costs", "contiguous", 1 << 24, "dynamic")
    run.of[worst] = run.of[worst] | {"register_total": 1000}
    text, number = report(run)
    assert number == 1
    line = next(line for line in text.splitlines() if "MISSED: 1.101" in line)
    assert "with IOMMU, revocable, dynamic BAR1, 16 MiB, contiguous" in line, line
    print("ok the worst case")


def check_missing() -> None:
    run = made_up()
    gone = next(iter(run.of))
    del run.of[gone]
    assert run.missing() == [gone]
    print("ok missing measurements")


# A trace in which 32 bytes of a slab and a page are left.
TRACE = """\
 x-1 1.0: kmalloc: call_site=a ptr=01 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL
 x-1 1.0: kmem_cache_alloc: call_site=a ptr=02 bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL
 x-1 1.0: mm_page_alloc: page=03 pfn=0x10 order=1 migratetype=0 gfp_flags=GFP_KERNEL
 x-1 1.0: mm_page_alloc: page=04 pfn=0x20 order=3 migratetype=0 gfp_flags=GFP_KERNEL|__GFP_COMP
 x-1 1.0: kfree: call_site=a ptr=01
 x-1 1.0: mm_page_free: page=05 pfn=0x11 order=0
"""


def check_memory() -> None:
    assert left_of(TRACE.splitlines()) == 32 + 4096
    print("ok memory held")


# Numbers that are not measured. They are in code, or are sizes of interfaces, names or years.
NO_FIGURE = (
    r"(?m)<!--.*-->|^    .*$|`[^`]*`|\]\([^)]*\)|\b\d+ [KMG]iB\b|\b(?:[VH]100|BAR1)\b|\b20\d\d\b"
)


def check_prose() -> None:
    """Checks that the first part of docs/performance.md has no figure written by hand, which would
    become outdated. The second part has figures with their days."""
    text = (TOP / "docs/performance.md").read_text(encoding="utf-8")
    text, _ = text.split("\n## Figures of one day\n")
    by_hand = re.findall(r"\S*\d\S*", re.sub(NO_FIGURE, "", text))
    assert not by_hand, f"docs/performance.md has figures written by hand: {by_hand}"
    print("ok no figure is written by hand")


if __name__ == "__main__":
    check_bounds()
    check_worst()
    check_missing()
    check_memory()
    check_prose()
