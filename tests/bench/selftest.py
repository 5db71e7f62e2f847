# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Checks the reports of made-up measurements. PYTHONPATH has ../guest."""

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import bounds
import report
from bench import MODES, Figures, left_of, plan
from measured import JOBS, SIZES, count, microseconds, ratio_text, short_size
from plots import COLOURS, FILES

TOP = Path(__file__).resolve().parents[2]
FACTS = {
    "date": "D",
    "kernel": "K",
    "qemu": "Q",
    "nv_peer_mem": "O",
    "nvidia-peermem": "T",
    "inputs": "I",
    "jobs": JOBS,
    "sizes": SIZES,
}

# Figures of nvidia-peermem, and of any build of nv_peer_mem. These figures meet all bounds.
THEIRS = {
    "entries": 1,
    "page_size": 4096,
    "calls_nvidia_p2p_get_pages": 2,
    "bytes": 20000,
    "registrations": 100,
    "elapsed": 1000,
    "file": 10,
    "core": 10,
    "load": 10,
    "first": 10,
    "free_total": 10000,
    "register_module": 10000,
    "deregister_module": 0,
    "register_total": 10000,
    "deregister_total": 0,
}
OURS = (
    THEIRS
    | {name: 500 for name, value in THEIRS.items() if value == 10000}
    | {"calls_nvidia_p2p_get_pages": 1, "bytes": 200, "elapsed": 500}
)

# Selects the measurements whose subjects have all of these values.
Where = dict[str, str | int]

OF_OURS: Where = {"machine": "stock", "module": "nv_peer_mem"}
DYNAMIC = OF_OURS | {"layout": "contiguous", "size": 1 << 20, "driver": "dynamic"}
PERSISTENT, REVOCABLE = (DYNAMIC | {"mode": mode} for mode in MODES)
SIMULATED = OF_OURS | {"kind": "costs", "driver": "simulated"}
LARGE = OF_OURS | {"kind": "costs", "mode": "revocable", "size": 1 << 28}

# Each case: title, changed measurements, new figures (None removes the measurements), exit status
# of the report, and expected text.
CASES: tuple[tuple[str, Where, Figures | None, int, str], ...] = (
    ("all bounds are met", {}, {}, 0, "are met and 0 are missed"),
    ("against the run before", PERSISTENT, {"register_total": 510}, 0, "1 differ by more than 1%"),
    ("just met", PERSISTENT, {"register_total": 5210}, 0, "met: 0.521 (1 MiB, contiguous)"),
    ("just missed", PERSISTENT, {"register_total": 5211}, 1, "MISSED by 0.019 %: 0.521 (1 MiB, c"),
    (
        "a bound missed for no known reason",
        PERSISTENT,
        {"register_total": 5211},
        1,
        "Missed: the same, 1 MiB (persistent). ERROR",
    ),
    ("the other mode's limit", REVOCABLE, {"register_total": 5401}, 1, "MISSED by 0.019 %: 0.540"),
    (
        "another machine's limit",
        REVOCABLE | {"machine": "iommu"},
        {"register_total": 5100},
        1,
        "MISSED by 2.0 %: 0.510",
    ),
    ("a known reason", OF_OURS | {"kind": "module"}, {"load": 21}, 2, "(persistent). Because."),
    (
        "a pin too many",
        SIMULATED | {"mode": "revocable"},
        {"calls_nvidia_p2p_get_pages_persistent": 1},
        1,
        "MISSED by 100.0 %: 2 against 2",
    ),
    (
        "an entry too many",
        SIMULATED | {"size": 1 << 32, "layout": "contiguous"},
        {"entries": 3},
        1,
        "MISSED by 50.0 %: 3 (2 allowed), against 1 (4 GiB",
    ),
    (
        "an entry for each chunk",
        SIMULATED | {"size": 1 << 28, "layout": "holes2m"},
        {"entries": 129},
        1,
        "129 (128 allowed), against 1 (256 MiB, 2 MiB chunks)",
    ),
    (
        "chunks behind an IOMMU",
        SIMULATED | {"machine": "iommu", "size": 1 << 36, "layout": "holes2m"},
        {"entries": 33},
        1,
        "33 (32 allowed), against 1 (64 GiB, 2 MiB chunks)",
    ),
    (
        "the worst size decides",
        LARGE | {"layout": "contiguous"},
        {"register_total": 3501},
        1,
        "MISSED by 0.029 %: 0.350 (total, dynamic BAR1 (us), 256 MiB",
    ),
    (
        "the worse driver decides",
        LARGE | {"layout": "holes2m", "driver": "static"},
        {"register_total": 3701},
        1,
        "MISSED by 0.027 %: 0.370 (total, static BAR1 (us), 256 MiB",
    ),
    (
        "dearer than nvidia-peermem",
        SIMULATED | {"layout": "holes2m", "size": 1 << 16},
        {"register_total": 10100},
        1,
        "MISSED by 1.0 %: 1.010 (total, 64 KiB, 2 MiB",
    ),
    ("memory held", OF_OURS | {"kind": "held"}, {"bytes": 33000}, 1, "1.650 (64 KiB, contiguous)"),
    (
        "a slow cudaFree",
        OF_OURS | {"kind": "freed", "size": 1 << 24},
        {"free_total": 5100},
        1,
        "MISSED by 2.0 %: 0.510 (16 MiB",
    ),
    (
        "a way to compile Rust",
        {"module": "nv_peer_mem-prebuilt", "kind": "costs"},
        {"register_total": 516},
        1,
        "MISSED by 0.194 %: 1.032 (64 KiB",
    ),
    ("threads that wait", OF_OURS | {"threads": 4}, {"elapsed": 600}, 1, "MISSED by 2.0 %: 1.667"),
    (
        "a measurement is missing",
        PERSISTENT,
        None,
        1,
        "not measured: Subject(machine='stock', module='nv_peer_mem'",
    ),
)


# For the test, only the bound of loading has a known reason to be missed.
BOUNDS = tuple(
    bound._replace(reasons={"any": "Because."} if "loading" in bound.text else {})
    for bound in bounds.BOUNDS
)


def measurements(where: Where, changed: Figures | None) -> Iterator[Where]:
    """Yields a complete run. CHANGED changes the measurements that WHERE selects."""
    for subject in (subject for job in JOBS for subject in plan(job, SIZES)):
        of = subject.as_json()
        figures = OURS if subject.module.startswith("nv_peer_mem") else THEIRS
        if not where or not where.items() <= of.items():
            yield {**of, **figures}
        elif changed is not None:
            yield {**of, **figures, **changed}


def made_up(where: Where, changed: Figures | None) -> str:
    """Returns the file of a run made up in this way."""
    return json.dumps({"facts": FACTS, "measurements": list(measurements(where, changed))})


# An object that stays, an object that is freed, two pages of which one is freed, and pages of a
# slab.
TRACE = """\
 x-1 1.0: kmalloc: call_site=a ptr=01 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL
 x-1 1.0: kmem_cache_alloc: call_site=a ptr=02 bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL
 x-1 1.0: mm_page_alloc: page=03 pfn=0x10 order=1 migratetype=0 gfp_flags=GFP_KERNEL
 x-1 1.0: mm_page_alloc: page=04 pfn=0x20 order=3 migratetype=0 gfp_flags=GFP_KERNEL|__GFP_COMP
 x-1 1.0: kfree: call_site=a ptr=01
 x-1 1.0: mm_page_free: page=05 pfn=0x11 order=0
"""

# Numbers that are not measured. They are in code, or are sizes of interfaces, names or years.
NO_FIGURE = (
    r"(?m)<!--.*-->|^    .*$|`[^`]*`|\]\([^)]*\)|\b\d+ [KMG]iB\b|"
    r"\b(?:[VH]100|BAR1)\b|\b20\d\d\b"
)


def check_reports(directory: Path) -> None:
    for text, where, changed, status, words in CASES:
        kept = directory / "results.json"
        kept.write_text(made_up(where, changed), encoding="utf-8")
        with (
            contextlib.redirect_stdout(io.StringIO()) as said,
            mock.patch.object(report, "draw"),
            mock.patch.object(bounds, "BOUNDS", BOUNDS),
        ):
            ended = report.main(str(directory))
        printed = said.getvalue()
        assert (ended, words in printed) == (status, True), f"{text}: {ended}\n{printed}"
        print("ok", text)
        kept.rename(directory / "before.json")


def check_documents(directory: Path) -> None:
    """Checks that only a complete run is written, and that all plots are drawn from this run."""
    kept, docs = directory / "results.json", directory / "docs"
    docs.mkdir()
    kept.write_text(made_up(DYNAMIC, None), encoding="utf-8")
    assert report.main(str(directory), str(docs)) == 1
    assert not any(docs.iterdir()), "an incomplete run must not be written"
    kept.write_text(made_up(DYNAMIC, {}), encoding="utf-8")
    assert report.main(str(directory), str(docs)) == 0
    assert any(docs.iterdir()), "a complete run must be written"
    assert report.main("--draw", str(docs), str(docs)) == 0
    for name, colour in product(FILES, COLOURS.values()):
        drawn = lines_of(docs / name, colour)
        assert drawn >= 6, f"{name} shows {drawn} lines of this colour: {colour}"
    print("ok documents and plots")


def lines_of(plot: Path, colour: str) -> int:
    paths = ElementTree.parse(plot).iter("{http://www.w3.org/2000/svg}path")
    return sum(colour in path.get("style", "") for path in paths)


# Numbers as texts, and the expected texts.
READ = (
    (count(999), "999"),
    (count(999500), "1.0M"),
    (microseconds(2699), "2.7"),
    (ratio_text(0.5), "0.50"),
    (ratio_text(0.00432), "0.0043"),
    (ratio_text(0.0004), "<0.001"),
    (short_size(1 << 16), "64K"),
)


def check_numbers() -> None:
    assert left_of(TRACE.splitlines()) == 32 + 4096
    for text, wanted in READ:
        assert text == wanted, f"the text of a number is {text} instead of {wanted}"
    print("ok memory held, and numbers as they are read")


def check_prose() -> None:
    reasons = [text for bound in bounds.BOUNDS for text in bound.reasons.values()]
    prose = [(TOP / "docs/performance.md").read_text(encoding="utf-8"), *reasons]
    by_hand = re.findall(r"\S*\d\S*", re.sub(NO_FIGURE, "", "\n".join(prose)))
    assert not by_hand, f"docs/performance.md or a reason has figures written by hand: {by_hand}"
    print("ok no figure is written by hand")


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        check_reports(Path(made))
        check_documents(Path(made))
    check_numbers()
    check_prose()


if __name__ == "__main__":
    main()
