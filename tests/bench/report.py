# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reports the measurements of the guests (../guest/bench.py): tables, bounds and plots.

    report.py DIR         reads DIR/results.json, prints the report, writes results.md and plots
    report.py DIR DOCS    writes DOCS/results.md and DOCS/results.json.gz from a complete run
    report.py --draw DOCS DIR    draws the plots of DOCS/results.json.gz into DIR

Exit status: 0 if all measured bounds are met, 2 if bounds are missed for known reasons (bounds.py)
only, 1 for any other problem. DOCS may have missed bounds. PYTHONPATH has ../guest.
"""

import gzip
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bench import MODES, MODULES, THREADS, Subject
from bounds import CHAPTERS, Judgement, Verdict, chapters
from measured import (
    BOTH_HALVES,
    EACH,
    IN_SHORT,
    JOBS,
    LAYOUTS,
    OF_MODULES,
    OF_WAYS,
    SIZES,
    THROUGHPUTS,
    WAYS,
    Case,
    Metric,
    Run,
    count,
    ratio,
    ratio_text,
    size_text,
)
from plots import draw

MISSED = 2

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->
<!-- Written by tests/run bench --docs: do not edit. -->
# Measured costs of registrations

[performance.md](../performance.md) explains the measurements and their limits. A tick of the \
guest's clock is an
instruction; costs are instructions, or microseconds of 1000 instructions.
"""

PLOTS = """\
## Plots

`tests/run bench --draw DIR` draws the plots of these figures into DIR: costs, scatterlist entries \
and kernel memory by size, and threads.
"""

NONE = "-"

# The largest accepted difference of two runs, and the number of larger differences that are shown.
AGREE, SHOWN = 0.01, 5


# ---- tables --------------------------------------------------------------------------

Row = list[str]


class Table(NamedTuple):
    title: str
    header: Row
    rows: list[Row]


def line_of(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(header: Row, rows: Sequence[Row], numbers: bool = True) -> str:
    """Returns a table in Markdown. The first column is aligned left. If NUMBERS is set, the other
    columns are aligned right, and otherwise left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]

    def padded(row: Row) -> Iterator[str]:
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            yield cell.rjust(width) if numbers and number else cell.ljust(width)

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([line_of(padded(header)), rule, *(line_of(padded(row)) for row in rows)])


class Kind(NamedTuple):
    """The registrations of a table's rows."""

    machine: str
    mode: str
    layout: str


Cell = Callable[[Run, Metric, Case], str]


def rows_of(
    run: Run, metrics: Iterable[Metric], name: str, cell: Cell, kind: Kind
) -> Iterator[Row]:
    """Yields a row for each measured metric, with a column for each size."""
    for metric in metrics:
        cells = [cell(run, metric, Case(*kind, size)) for size in run.sizes]
        if set(cells) != {NONE}:
            yield [f"{name}{metric.label}", *cells]


def beside_theirs(run: Run, metric: Metric, case: Case) -> str:
    ours, theirs = (run.value(metric, module, case) for module in MODULES)
    if ours is None or theirs is None:
        return NONE
    return f"{metric.text(ours)}/{metric.text(theirs)} {ratio_text(ratio(ours, theirs))}"


def beside_ways(run: Run, metric: Metric, case: Case) -> str:
    kernel, prebuilt = (run.value(metric, f"nv_peer_mem-{way}", case) for way in WAYS)
    if kernel is None or prebuilt is None:
        return NONE
    return f"{metric.text(kernel)} {ratio(prebuilt, kernel):.3f}"


def in_short(run: Run, header: Row) -> Table:
    rows: list[Row] = []
    for mode in MODES:
        kind = Kind("stock", mode, "contiguous")
        rows += rows_of(run, BOTH_HALVES, f"{mode}: ", beside_theirs, kind)
    return Table("In short: register and deregister, contiguous memory", header, rows)


def of_layout(run: Run, header: Row, mode: str, layout: str) -> Table:
    rows = rows_of(run, EACH, "", beside_theirs, Kind("stock", mode, layout))
    return Table(f"{mode.capitalize()} mode, {LAYOUTS[layout]}", header, list(rows))


def with_iommu(run: Run, header: Row, mode: str) -> Table:
    rows: list[Row] = []
    for layout, name in IN_SHORT.items():
        kind = Kind("iommu", mode, layout)
        rows += rows_of(run, BOTH_HALVES, f"{name}: ", beside_theirs, kind)
    title = f"{mode.capitalize()} mode, with an IOMMU, register and deregister"
    return Table(title, header, rows)


def of_threads(run: Run) -> Table:
    rows = []
    for (label, driver), mode, module in product(THROUGHPUTS.items(), MODES, MODULES):
        rates = [run.rate(module, mode, number, driver) for number in THREADS]
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(rates):
            against = f"{known[-1] / known[0]:.3f}"
            rows.append([f"{label}: {module}, {mode}", *map(count, known), against])
    title = "Threads: registrations of 1 MiB, each ended again, per second of the guest's time"
    threads = [f"{number} threads" for number in THREADS[1:]]
    return Table(title, ["", "1 thread", *threads, "4 against 1"], rows)


def of_modules(run: Run) -> Table:
    rows = []
    case = Case("stock", "persistent")
    for metric in OF_MODULES:
        ours, theirs = (run.value(metric, module, case) for module in MODULES)
        if ours is not None and theirs is not None:
            texts = [metric.text(ours), metric.text(theirs), ratio_text(ratio(ours, theirs))]
            rows.append([metric.label, *texts])
    return Table("Module", ["", *MODULES, "ratio"], rows)


def of_ways(run: Run, sizes: Row) -> Table:
    rows: list[Row] = []
    for mode, layout in product(MODES, LAYOUTS):
        name, kind = f"{mode}, {IN_SHORT[layout]}: ", Kind("stock", mode, layout)
        rows += rows_of(run, OF_WAYS, name, beside_ways, kind)
    title = "Ways to compile Rust: register and deregister, and freed"
    return Table(title, ["in-kernel, prebuilt against it", *sizes], rows)


def tables(run: Run) -> Iterator[Table]:
    """Yields all tables of both modes, the most important first."""
    sizes = [size_text(size) for size in run.sizes]
    header = ["ours/nvidia-peermem ratio", *sizes]
    yield in_short(run, header)
    for mode in MODES:
        for layout in LAYOUTS:
            yield of_layout(run, header, mode, layout)
        yield with_iommu(run, header, mode)
    yield of_threads(run)
    yield of_modules(run)
    yield of_ways(run, sizes)


# ---- bounds ----------------------------------------------------------------------------


def remarks(pairs: Iterable[Judgement]) -> Iterator[str]:
    """Yields a remark for each reason of missed bounds."""
    missed: dict[str | None, list[str]] = {}
    for _, verdicts in pairs:
        for verdict in verdicts:
            if verdict.met is False:
                bound = f"{verdict.bound.text} ({verdict.mode})"
                missed.setdefault(verdict.reason, []).append(bound)
    for reason, bounds in missed.items():
        yield f"* Missed: {'; '.join(bounds)}. {reason or 'ERROR: the reason is not known.'}"


class Judged(NamedTuple):
    """Tables of bounds, the number of missed bounds, and how many of these have no known reason."""

    text: str
    missed: int
    unknown: int


def chapter_text(chapter: str, pairs: Iterable[Judgement]) -> str:
    title, compared = CHAPTERS[chapter]
    rows = [
        [bound.text, bound.limit_text(chapter), *(verdict.text for verdict in verdicts)]
        for bound, verdicts in pairs
    ]
    header = [f"metric, {compared}", "at most", *MODES]
    return f"## Bounds, {title}\n\n{table(header, rows, numbers=False)}"


def judged(run: Run) -> Judged:
    parts: list[str] = []
    measured: list[Verdict] = []
    for chapter, pairs in chapters(run):
        parts.append(chapter_text(chapter, pairs))
        parts.append("\n".join(remarks(pairs)))
        for _, verdicts in pairs:
            measured += [verdict for verdict in verdicts if verdict.met is not None]
    missed = [verdict for verdict in measured if not verdict.met]
    summary = (
        f"{len(measured) - len(missed)} of {len(measured)} measured bounds are met and "
        f"{len(missed)} are missed."
    )
    text = "\n\n".join(filter(None, [summary, *parts]))
    return Judged(text, len(missed), sum(verdict.reason is None for verdict in missed))


# ---- the report ------------------------------------------------------------------------

MODULES_MEASURED = (
    "nv_peer_mem {nv_peer_mem} and nvidia-peermem {nvidia-peermem}, on kernel {kernel} under "
    "QEMU {qemu}"
)


def results(run: Run) -> str:
    modules = MODULES_MEASURED.format_map(run.facts)
    measured = f"Measured on {run.facts['date']} with {modules}."
    text = f"{HEAD}\n{measured}\n\n{judged(run).text}\n\n{PLOTS}\n## All metrics\n"
    for title, header, rows in tables(run):
        if rows:
            text += f"\n### {title}\n\n{table(header, rows)}\n"
    return text


class Difference(NamedTuple):
    """A difference of a value between two runs. `part` is the fraction of the larger value."""

    part: float
    name: str
    old: int
    new: int
    subject: Subject

    def __str__(self) -> str:
        return f"{self.part:.2%}, {self.name}: {self.old}, then {self.new}; {self.subject}"


def differences(now: Run, before: Run) -> Iterator[Difference]:
    """Yields the difference of each value that both runs have."""
    for subject, figures in now.of.items():
        earlier = before.of.get(subject, {})
        for name, new in figures.items():
            if name in earlier:
                old = earlier[name]
                part = abs(new - old) / max(new, old, 1)
                yield Difference(part, name, old, new, subject)


def compared(now: Run, before: Run) -> str:
    """Returns a text that says whether two runs agree."""
    by_size = sorted(differences(now, before), key=lambda one: -one.part)
    equal = sum(not one.part for one in by_size)
    beyond = [one for one in by_size if one.part > AGREE]
    lines = [
        f"Against the run of {before.facts.get('date')}: {equal} of {len(by_size)} values are "
        f"equal, {len(beyond)} differ by more than {AGREE:.0%}.",
        *(f"  {one}" for one in beyond[:SHOWN]),
    ]
    if now.facts.get("inputs") != before.facts.get("inputs"):
        lines.append(
            "Modules, lab or sizes have changed between the runs, so differences are expected."
        )
    return "\n".join(lines)


def load(text: str | bytes) -> Run:
    kept = json.loads(text)
    return Run(kept["facts"], kept["measurements"])


# ---- commands --------------------------------------------------------------------------


def document(directory: Path, docs: Path) -> int:
    """Writes the tables and the measurements of a complete run into the documentation."""
    kept = (directory / "results.json").read_bytes()
    run = load(kept)
    missing, verdict = run.missing(JOBS, SIZES), judged(run)
    print_end(missing, verdict)
    if missing or verdict.unknown:
        return 1
    (docs / "results.md").write_text(results(run), encoding="utf-8")
    # Makes the same file from the same run.
    text = json.dumps(json.loads(kept)).encode()
    (docs / "results.json.gz").write_bytes(gzip.compress(text, mtime=0))
    return 0


def print_end(missing: list[Subject], verdict: Judged) -> None:
    for subject in missing[:SHOWN]:
        print(f"not measured: {subject}")
    print(
        f"{len(missing)} measurements are missing; {verdict.missed} bounds are missed, "
        f"{verdict.unknown} of them for no known reason"
    )


def report(directory: Path) -> int:
    """Prints the report of a run, and writes the report next to the measurements."""
    run, before = load((directory / "results.json").read_bytes()), directory / "before.json"
    missing, verdict = run.missing(run.facts["jobs"], run.facts["sizes"]), judged(run)
    text = results(run)
    print(text)
    if before.exists():
        print(compared(run, load(before.read_bytes())))
    else:
        print("There is no earlier run to compare with.")
    print_end(missing, verdict)
    (directory / "results.md").write_text(text, encoding="utf-8")
    draw(run, directory)
    if missing or verdict.unknown:
        return 1
    return MISSED if verdict.missed else 0


def draw_documented(docs: Path, directory: Path) -> int:
    kept = (docs / "results.json.gz").read_bytes()
    draw(load(gzip.decompress(kept)), directory)
    return 0


def main(*words: str) -> int:
    if words[0] == "--draw":
        docs, directory = map(Path, words[1:])
        return draw_documented(docs, directory)
    paths = [Path(word) for word in words]
    return document(*paths) if len(paths) == 2 else report(paths[0])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
