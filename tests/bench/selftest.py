# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""That the report of measurements that were made up is what they come to."""

import contextlib
import io
import json
import re
import tempfile
from itertools import product
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import bounds
import report
from measured import JOBS, SIZES, count, microseconds, ratio_text, short_size
from plots import COLOURS, FILES

from bench import MODES, left_of, plan

TOP = Path(__file__).resolve().parents[2]
FACTS = {"date": "D", "kernel": "K", "qemu": "Q", "nv_peer_mem": "O", "nvidia-peermem": "T", "inputs": "I", "jobs": JOBS, "sizes": SIZES}

# Figures of nvidia-peermem, and of nv_peer_mem however compiled: with them all bounds are met.
THEIRS = {"entries": 1, "page_size": 4096, "calls_nvidia_p2p_get_pages": 2, "bytes": 20000,
          "registrations": 100, "elapsed": 1000, "file": 10, "core": 10, "load": 10, "first": 10,
          "free_total": 10000, "register_module": 10000, "deregister_module": 0,
          "register_total": 10000, "deregister_total": 0}
OURS = THEIRS | {name: 500 for name, value in THEIRS.items() if value == 10000} | {
    "calls_nvidia_p2p_get_pages": 1, "bytes": 200, "elapsed": 500}

OF_OURS = {"machine": "stock", "module": "nv_peer_mem"}
DYNAMIC = OF_OURS | {"layout": "contiguous", "size": 1 << 20, "driver": "dynamic"}
PERSISTENT, REVOCABLE = (DYNAMIC | {"mode": mode} for mode in MODES)
SIMULATED = OF_OURS | {"kind": "costs", "driver": "simulated"}
LARGE = OF_OURS | {"kind": "costs", "mode": "revocable", "size": 1 << 28}

# What is changed of which of these measurements, with what status the report ends, and what it says.
CASES = (
    ("all bounds are met", {}, {}, 0, "are met and 0 are missed"),
    ("against the run before", PERSISTENT, {"register_total": 510}, 0, "1 differ by more than 1%"),
    ("just met", PERSISTENT, {"register_total": 5210}, 0, "met: 0.521 (1 MiB, contiguous)"),
    ("just missed", PERSISTENT, {"register_total": 5211}, 1, "MISSED by 0.019 %: 0.521 (1 MiB, c"),
    ("nobody knows why", PERSISTENT, {"register_total": 5211}, 1,
     "Missed: the same, 1 MiB (persistent). ERROR"),
    ("the other mode's limit", REVOCABLE, {"register_total": 5401}, 1, "MISSED by 0.019 %: 0.540"),
    ("another machine's limit", REVOCABLE | {"machine": "iommu"}, {"register_total": 5100}, 1,
     "MISSED by 2.0 %: 0.510"),
    ("a known reason", OF_OURS | {"kind": "module"}, {"load": 21}, 2, "(persistent). Because."),
    ("a pin too many", SIMULATED | {"mode": "revocable"},
     {"calls_nvidia_p2p_get_pages_persistent": 1}, 1, "MISSED by 100.0 %: 2 against 2"),
    ("an entry too many", SIMULATED | {"size": 1 << 32, "layout": "contiguous"}, {"entries": 3}, 1,
     "MISSED by 50.0 %: 3 (2 allowed), against 1 (4 GiB"),
    ("an entry for each chunk", SIMULATED | {"size": 1 << 28, "layout": "holes2m"},
     {"entries": 129}, 1, "129 (128 allowed), against 1 (256 MiB, 2 MiB chunks)"),
    ("chunks behind an IOMMU",
     SIMULATED | {"machine": "iommu", "size": 1 << 36, "layout": "holes2m"}, {"entries": 33}, 1,
     "33 (32 allowed), against 1 (64 GiB, 2 MiB chunks)"),
    ("the worst size decides", LARGE | {"layout": "contiguous"}, {"register_total": 3501}, 1,
     "MISSED by 0.029 %: 0.350 (total, dynamic BAR1 (us), 256 MiB"),
    ("the worse driver decides", LARGE | {"layout": "holes2m", "driver": "static"},
     {"register_total": 3701}, 1, "MISSED by 0.027 %: 0.370 (total, static BAR1 (us), 256 MiB"),
    ("dearer than nvidia-peermem", SIMULATED | {"layout": "holes2m", "size": 1 << 16},
     {"register_total": 10100}, 1, "MISSED by 1.0 %: 1.010 (total, 64 KiB, 2 MiB"),
    ("memory held", OF_OURS | {"kind": "held"}, {"bytes": 33000}, 1, "1.650 (64 KiB, contiguous)"),
    ("a slow cudaFree", OF_OURS | {"kind": "freed", "size": 1 << 24}, {"free_total": 5100}, 1,
     "MISSED by 2.0 %: 0.510 (16 MiB"),
    ("a way to compile Rust", {"module": "nv_peer_mem-prebuilt", "kind": "costs"},
     {"register_total": 516}, 1, "MISSED by 0.194 %: 1.032 (64 KiB"),
    ("threads that wait", OF_OURS | {"threads": 4}, {"elapsed": 600}, 1, "MISSED by 2.0 %: 1.667"),
    ("a measurement is missing", PERSISTENT, None, 1,
     "not measured: Subject(machine='stock', module='nv_peer_mem'"),
)


# No bound is known to be missed: this one is, for the test.
BOUNDS = tuple(bound._replace(reasons={"any": "Because."} if "loading" in bound.text else {})
               for bound in bounds.BOUNDS)


def made_up(where, changed):
    for subject in (subject for job in JOBS for subject in plan(job, SIZES)):
        figures = OURS if subject["module"].startswith("nv_peer_mem") else THEIRS
        if where.items() <= subject.items() and where:
            if changed is None:
                continue
            figures = figures | changed
        yield subject | figures


# An object that stays, one that is freed, two pages of which one is freed, and pages of a slab.
TRACE = """\
 x-1 [000] d.... 1.0: kmalloc: call_site=a ptr=01 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL
 x-1 [000] d.... 1.0: kmem_cache_alloc: call_site=a ptr=02 bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL
 x-1 [000] d.... 1.0: mm_page_alloc: page=03 pfn=0x10 order=1 migratetype=0 gfp_flags=GFP_KERNEL
 x-1 [000] d.... 1.0: mm_page_alloc: page=04 pfn=0x20 order=3 migratetype=0 gfp_flags=GFP_KERNEL|__GFP_COMP
 x-1 [000] d.... 1.0: kfree: call_site=a ptr=01
 x-1 [000] d.... 1.0: mm_page_free: page=05 pfn=0x11 order=0
"""

# What looks as if it had been measured: code, sizes that interfaces have, names and years do not.
NO_FIGURE = (r"(?m)<!--.*-->|^    .*$|`[^`]*`|\]\([^)]*\)|\b\d+ [KMG]iB\b|"
             r"\b(?:[VH]100|BAR1)\b|\b20\d\d\b")


def main(directory):
    kept, docs = directory / "results.json", directory / "docs"
    for text, where, changed, status, words in CASES:
        kept.write_text(json.dumps({"facts": FACTS, "measurements": list(made_up(where, changed))}), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                mock.patch.object(report, "draw"), mock.patch.object(bounds, "BOUNDS", BOUNDS):
            ended = report.main(directory)
        assert (ended, words in said.getvalue()) == (status, True), f"{text}: {ended}\n{said.getvalue()}"
        print("ok", text)
        kept.rename(directory / "before.json")
    docs.mkdir()
    for changed, status in ((None, 1), ({}, 0)):
        measurements = list(made_up(DYNAMIC, changed))
        kept.write_text(json.dumps({"facts": FACTS, "measurements": measurements}), encoding="utf-8")
        assert report.main(directory, docs) == status and any(docs.iterdir()) == (not status), "only a complete run is written"
    assert report.main("--draw", docs, docs) == 0
    for name, colour in product(FILES, COLOURS.values()):
        lines = [path for path in ElementTree.parse(docs / name).iter("{http://www.w3.org/2000/svg}path") if colour in path.get("style", "")]
        assert len(lines) >= 6, f"{name} shows {len(lines)} lines of this colour: {colour}"
    print("ok documents and plots")
    assert left_of(TRACE.splitlines()) == 32 + 4096
    read = [count(999), count(999500), microseconds(2699), ratio_text(0.5), ratio_text(0.00432), ratio_text(0.0004), short_size(1 << 16)]
    assert read == ["999", "1.0M", "2.7", "0.50", "0.0043", "<0.001", "64K"], read
    print("ok memory held, and numbers as they are read")
    prose = [(TOP / "docs/performance.md").read_text(encoding="utf-8"),
             *(text for bound in bounds.BOUNDS for text in bound.reasons.values())]
    by_hand = re.findall(r"\S*\d\S*", re.sub(NO_FIGURE, "", "\n".join(prose)))
    assert not by_hand, f"written by hand: {by_hand}"
    print("ok no figure is written by hand")


with tempfile.TemporaryDirectory() as made:
    main(Path(made))
