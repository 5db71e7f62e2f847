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

import report
from bounds import BOUNDS
from measured import JOBS, SIZES, count, microseconds, ratio_text, short_size
from plots import COLOURS, FILES

from bench import MODES, left_of, plan

TOP = Path(__file__).resolve().parents[2]
FACTS = {"date": "D", "kernel": "K", "qemu": "Q", "nv_peer_mem": "O", "nvidia-peermem": "T", "inputs": "I", "jobs": JOBS, "sizes": SIZES}

# Figures of nvidia-peermem, and of nv_peer_mem however compiled: with them all bounds are met.
THEIRS = {"entries": 1, "page_size": 4096, "calls_nvidia_p2p_get_pages": 2, "bytes": 20000, "registrations": 100, "elapsed": 1000,
          "module_ticks": 1000, "file": 10, "core": 10, "load": 10, "first": 10, "free_total": 10000, "revoke_module": 10000,
          "register_module": 10000, "deregister_module": 0, "register_total": 10000, "deregister_total": 0}
OURS = THEIRS | {name: 1000 for name, value in THEIRS.items() if value == 10000} | {"calls_nvidia_p2p_get_pages": 1, "bytes": 200}

PUBLISHED = {"machine": "stock", "module": "nv_peer_mem", "layout": "contiguous", "size": 1 << 20, "published": 1}
PERSISTENT, REVOCABLE = (PUBLISHED | {"mode": mode} for mode in MODES)
SIMULATED = {"machine": "stock", "module": "nv_peer_mem", "kind": "costs", "published": 0}

# What is changed of which of these measurements, with what status the report ends, and what it says.
CASES = (
    ("all bounds are met", {}, {}, 0, "are met and 0 are missed"),
    ("against the run before", PERSISTENT, {"register_total": 1020}, 0, "1 differ by more than 1%"),
    ("just met", PUBLISHED, {"register_total": 5500}, 0, "met: 0.550 (1 MiB, contiguous)"),
    ("just missed", REVOCABLE, {"register_total": 5501}, 2, "MISSED by 0.018 %: 0.550 (1 MiB, contiguous)"),
    ("nobody knows why", PERSISTENT, {"register_total": 5501}, 1, "Missed: the same, 1 MiB (persistent). ERROR"),
    ("a known reason", REVOCABLE, {"register_total": 5501}, 2, "Missed: the same, 1 MiB (revocable). Before"),
    ("another machine's bound", REVOCABLE | {"machine": "iommu"}, {"register_total": 5100}, 2, "MISSED by 2.0 %: 0.510"),
    ("a pin too many", SIMULATED | {"mode": "revocable"}, {"calls_nvidia_p2p_get_pages_persistent": 1}, 2, "MISSED by 100.0 %: 2 against 2"),
    ("an entry too many", SIMULATED | {"size": 1 << 32}, {"entries": 3}, 1, "MISSED by 50.0 %: 3 (2 allowed), against 1 (4 GiB"),
    ("the worst layout decides", {"module": "nv_peer_mem", "kind": "held", "layout": "holes2m"}, {"bytes": 50000}, 1, "2.500 (64 KiB, 2 MiB"),
    ("dearer than nvidia-peermem", SIMULATED | {"layout": "holes2m"}, {"register_total": 10100}, 1, "MISSED by 1.0 %: 1.010 (total, 64 KiB, 2 MiB"),
    ("a way to compile Rust", {"module": "nv_peer_mem-prebuilt", "kind": "freed"}, {"revoke_module": 1101}, 1, "1.101 (in the callback, module alone, 64 KiB"),
    ("threads that wait", {"module": "nv_peer_mem", "threads": 4, "published": 0}, {"module_ticks": 2000}, 2, "2.000 against 4.000"),
    ("loading", {"module": "nv_peer_mem", "kind": "module"}, {"load": 21}, 1, "2.100"),
    ("a measurement is missing", PERSISTENT, None, 1, "not measured: Subject(machine='stock', module='nv_peer_mem'"),
)


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
NO_FIGURE = r"(?m)<!--.*-->|^    .*$|`[^`]*`|\]\([^)]*\)|\b\d+ [KMG]iB\b|\bV100\b|\b20\d\d\b"


def main(directory):
    kept, docs = directory / "results.json", directory / "docs"
    for text, where, changed, status, words in CASES:
        kept.write_text(json.dumps({"facts": FACTS, "measurements": list(made_up(where, changed))}), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as said, mock.patch.object(report, "draw"):
            ended = report.main(directory)
        assert (ended, words in said.getvalue()) == (status, True), f"{text}: {ended}\n{said.getvalue()}"
        print("ok", text)
        kept.rename(directory / "before.json")
    docs.mkdir()
    for changed, status in ((None, 1), ({}, 0)):
        kept.write_text(json.dumps({"facts": FACTS, "measurements": list(made_up(PUBLISHED, changed))}), encoding="utf-8")
        assert report.main(directory, docs) == status and any(docs.iterdir()) == (not status), "only a complete run is written"
    for name, colour in product(FILES, COLOURS.values()):
        lines = [path for path in ElementTree.parse(docs / name).iter("{http://www.w3.org/2000/svg}path") if colour in path.get("style", "")]
        assert len(lines) >= 6, f"{name} shows {len(lines)} lines of this colour: {colour}"
    print("ok documents and plots")
    assert left_of(TRACE.splitlines()) == 32 + 4096
    read = [count(999), count(999500), microseconds(2699), ratio_text(0.5), ratio_text(0.00432), ratio_text(0.0004), short_size(1 << 16)]
    assert read == ["999", "1.0M", "2.7", "0.50", "0.0043", "<0.001", "64K"], read
    print("ok memory held, and numbers as they are read")
    prose = (TOP / "docs/performance.md").read_text(encoding="utf-8") + "".join(text for bound in BOUNDS for text in bound.reasons.values())
    by_hand = re.findall(r"\S*\d\S*", re.sub(NO_FIGURE, "", prose))
    assert not by_hand, f"written by hand: {by_hand}"
    print("ok no figure is written by hand")


with tempfile.TemporaryDirectory() as made:
    main(Path(made))
