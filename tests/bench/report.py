# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the guests have measured (../guest/bench.py), reported: tables, bounds and plots.

    report.py DIR         of DIR/results.json: prints the report, writes results.md and plots
    report.py DIR DOCS    of a complete run: writes DOCS/results.md, and DOCS/results.json.gz
    report.py --draw DOCS DIR    draws the plots of DOCS/results.json.gz into DIR

Exit status: 0 if all bounds that were measured are met, 2 if some are missed, all for reasons that
are known (bounds.py), 1 if anything else is wrong. DOCS may have bounds that are missed.
"""

import gzip
import json
import sys
from itertools import product
from pathlib import Path

from bounds import CHAPTERS, chapters
from measured import (BOTH_HALVES, EACH, GROUNDS, IN_SHORT, JOBS, LAYOUTS, OF_GROUNDS, OF_MODULES, SIZES, THROUGHPUTS, Case, Run,
                      count, ratio, ratio_text, size_text)
from plots import draw

from bench import MODES, MODULES, THREADS

MISSED = 2

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->
<!-- Written by tests/run bench --docs: do not edit. -->
# What registrations cost, as measured

How this is measured, and what it does not show: [performance.md](../performance.md). A tick of the guest's clock is an
instruction; costs are instructions, or microseconds of 1000 of them.
"""

PLOTS = """\
## Plots

`tests/run bench --draw DIR` draws the plots of these figures into DIR: costs, scatterlist entries and kernel memory by size, and threads.
"""

NONE = "-"

# What two runs of the same may differ by, and how many of those that differ by more are shown.
AGREE, SHOWN = 0.01, 5


# ---- tables --------------------------------------------------------------------------


def table(header, rows, numbers=True):
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(row):
        first, *cells = zip(row, widths, strict=True)
        return f"| {' | '.join([first[0].ljust(first[1]), *(cell.rjust(width) if numbers else cell.ljust(width) for cell, width in cells)])} |"

    return "\n".join([line(header), f"|{'|'.join('-' * (width + 2) for width in widths)}|", *map(line, rows)])


def rows_of(run, metrics, name, cell, *of):
    """A row for each metric of which anything was measured, a column for each size."""
    for metric in metrics:
        cells = [cell(run, metric, Case(*of, size)) for size in run.sizes]
        if set(cells) != {NONE}:
            yield [f"{name}{metric.label}", *cells]


def beside_theirs(run, metric, case):
    values = [run.value(metric, module, case) for module in MODULES]
    return NONE if None in values else f"{'/'.join(map(metric.text, values))} {ratio_text(ratio(*values))}"


def beside_grounds(run, metric, case):
    kernel, *others = values = [run.value(metric, f"nv_peer_mem-{ground}", case) for ground in GROUNDS]
    return NONE if None in values else " ".join([metric.text(kernel), *(f"{ratio(other, kernel):.3f}" for other in others)])


def thread_rows(run):
    for (label, driver), mode, module in product(THROUGHPUTS.items(), MODES, MODULES):
        rates = [run.rate(module, mode, number, driver) for number in THREADS]
        if None not in rates:
            yield [f"{label}: {module}, {mode}", *map(count, rates), f"{rates[-1] / rates[0]:.3f}"]


def module_rows(run):
    for metric in OF_MODULES:
        ours, theirs = (run.value(metric, module, Case("stock", "persistent", None, None)) for module in MODULES)
        if None not in (ours, theirs):
            yield [metric.label, metric.text(ours), metric.text(theirs), ratio_text(ratio(ours, theirs))]


def tables(run):
    """Everything, of both modes; what matters most first."""
    sizes = [size_text(size) for size in run.sizes]
    ours = ["ours/nvidia-peermem ratio", *sizes]
    yield "In short: register and deregister, contiguous memory", ours, [
        row for mode in MODES for row in rows_of(run, BOTH_HALVES, f"{mode}: ", beside_theirs, "stock", mode, "contiguous")]
    for mode in MODES:
        for layout, title in LAYOUTS.items():
            yield f"{mode.capitalize()} mode, {title}", ours, [*rows_of(run, EACH, "", beside_theirs, "stock", mode, layout)]
        yield f"{mode.capitalize()} mode, with an IOMMU, register and deregister", ours, [
            row for layout, name in IN_SHORT.items() for row in rows_of(run, BOTH_HALVES, f"{name}: ", beside_theirs, "iommu", mode, layout)]
    yield ("Threads: registrations of 1 MiB, each ended again, per second of the guest's time",
           ["", "1 thread", *(f"{number} threads" for number in THREADS[1:]), "4 against 1"], [*thread_rows(run)])
    yield "Module", ["", *MODULES, "ratio"], [*module_rows(run)]
    yield "Ways to compile Rust: register and deregister, and freed", ["in-kernel, prebuilt against it", *sizes], [
        row for mode in MODES for layout in LAYOUTS
        for row in rows_of(run, OF_GROUNDS, f"{mode}, {IN_SHORT[layout]}: ", beside_grounds, "stock", mode, layout)]


# ---- the report ------------------------------------------------------------------------


def remarks(pairs):
    """What there is to say of bounds that are missed, each reason once."""
    missed = {}
    for verdict in (verdict for _, pair in pairs for verdict in pair if verdict.met is False):
        missed.setdefault(verdict.reason, []).append(f"{verdict.bound.text} ({verdict.mode})")
    for reason, bounds in missed.items():
        yield f"* Missed: {'; '.join(bounds)}. {reason or 'ERROR: nobody knows why.'}"


def judged(run):
    """The tables of bounds, how many are missed, and how many of these nobody knows why."""
    parts, verdicts = [], []
    for chapter, pairs in chapters(run):
        title, compared = CHAPTERS[chapter]
        rows = [[bound.text, bound.limit_text(chapter), *(verdict.text for verdict in pair)]
                for bound, pair in pairs]
        parts.append(f"## Bounds, {title}\n\n" + table([f"metric, {compared}", "at most", *MODES], rows, numbers=False))
        parts.append("\n".join(remarks(pairs)))
        verdicts += [verdict for _, pair in pairs for verdict in pair if verdict.met is not None]
    missed = [verdict for verdict in verdicts if not verdict.met]
    parts.insert(0, f"Of {len(verdicts)} bounds that were measured {len(verdicts) - len(missed)} are met and {len(missed)} are missed.")
    return "\n\n".join(filter(None, parts)), len(missed), sum(verdict.reason is None for verdict in missed)


def results(run):
    facts = "nv_peer_mem {nv_peer_mem} and nvidia-peermem {nvidia-peermem}, on kernel {kernel} under QEMU {qemu}".format_map(run.facts)
    text = f"{HEAD}\nMeasured on {run.facts['date']} with {facts}.\n\n{judged(run)[0]}\n\n{PLOTS}\n## All metrics\n"
    return text + "".join(f"\n### {title}\n\n{table(header, rows)}\n" for title, header, rows in tables(run) if rows)


def compared(now, before):
    """Whether two runs agree, in everything that is in both."""
    both = [(name, value, before.of[subject][name], subject) for subject, values in now.of.items() if subject in before.of
            for name, value in values.items() if name in before.of[subject]]
    by = sorted(((abs(new - old) / max(new, old, 1), name, old, new, subject) for name, new, old, subject in both), key=lambda one: -one[0])
    beyond = [one for one in by if one[0] > AGREE]
    text = (f"Against the run of {before.facts.get('date')}: {sum(not one[0] for one in by)} of {len(by)} values are equal, "
            f"{len(beyond)} differ by more than {AGREE:.0%}.")
    text += "".join(f"\n  {part:.2%}, {name}: {old}, then {new}; {subject}" for part, name, old, new, subject in beyond[:SHOWN])
    if now.facts.get("inputs") != before.facts.get("inputs"):
        text += "\nModules, lab or sizes have changed between the two: they need not agree."
    return text


def load(text):
    kept = json.loads(text)
    return Run(kept["facts"], kept["measurements"])


def document(directory, docs):
    """Of a complete run alone: what is in the documentation, and what its plots are drawn from."""
    kept = (directory / "results.json").read_bytes()
    run = load(kept)
    missing, (_, missed, unknown) = run.missing(JOBS, SIZES), judged(run)
    end(missing, missed, unknown)
    if missing or unknown:
        return 1
    (docs / "results.md").write_text(results(run), encoding="utf-8")
    # The same run makes the same file.
    (docs / "results.json.gz").write_bytes(gzip.compress(json.dumps(json.loads(kept)).encode(), mtime=0))
    return 0


def end(missing, missed, unknown):
    for subject in missing[:SHOWN]:
        print(f"not measured: {subject}")
    print(f"{len(missing)} measurements are missing; {missed} bounds are missed, {unknown} of them for no known reason")


def measured_now(directory):
    """Prints the report of a run, and writes it beside what was measured."""
    run, before = load((directory / "results.json").read_bytes()), directory / "before.json"
    missing, (_, missed, unknown) = run.missing(run.facts["jobs"], run.facts["sizes"]), judged(run)
    print(results(run))
    print(compared(run, load(before.read_bytes())) if before.exists() else "There is no run before.")
    end(missing, missed, unknown)
    (directory / "results.md").write_text(results(run), encoding="utf-8")
    draw(run, directory)
    return 1 if missing or unknown else MISSED if missed else 0


def main(*words):
    if words[0] == "--draw":
        docs, directory = map(Path, words[1:])
        draw(load(gzip.decompress((docs / "results.json.gz").read_bytes())), directory)
        return 0
    return document(*map(Path, words)) if len(words) == 2 else measured_now(Path(words[0]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
