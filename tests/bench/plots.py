# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SVG plots, a panel for each layout of the memory, or for each way to count."""

import io
from itertools import product
from math import floor, log10

import matplotlib
from matplotlib.figure import Figure

from measured import (DYNAMIC, ENTRIES, HELD, LAYOUTS, MODULE, STATIC, THROUGHPUTS, TOTAL, Case,
                      count, size_text)

from bench import MODES, MODULES, THREADS

LICENSE = "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->\n"

# The files that are made, and what they show.
FILES = {
    "cost-persistent.svg": "Cost of a registration and its end, persistent mode",
    "cost-revocable.svg": "Cost of a registration and its end, revocable mode",
    "entries.svg": "Scatterlist entries of a registration",
    "held.svg": "Kernel memory that a registration holds, bytes",
    "threads.svg": "Registrations of 1 MiB per second, by several threads",
}

COLOURS = dict(zip(MODULES, ("#0b5fa5", "#c8551b"), strict=True))
DASHES = {"persistent": "-", "revocable": "--"}


def draw(run, directory):
    # Text stays text, and the same run makes the same file.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 9})
    costs = ((TOTAL, "total", "-"), (DYNAMIC, "total, dynamic BAR1", "--"),
             (STATIC, "total, static BAR1", "-."), (MODULE, "module alone", ":"))
    for mode in MODES:
        by_size(run, directory, f"cost-{mode}.svg", "ns (instructions)", [(metric, mode, *look) for metric, *look in costs])
    for metric, name, unit in ((ENTRIES, "entries.svg", "entries"), (HELD, "held.svg", "bytes")):
        by_size(run, directory, name, unit, [(metric, mode, mode, DASHES[mode]) for mode in MODES])
    panels = []
    for label, driver in THROUGHPUTS.items():
        panels.append((label, []))
        for module, mode in product(MODULES, MODES):
            points = {number: run.rate(module, mode, number, driver) for number in THREADS}
            panels[-1][1].append((f"{module}, {mode}", COLOURS[module], DASHES[mode], points))
    figure(directory, "threads.svg", ("threads", "registrations per second"), panels, THREADS, str, logarithmic=False)


def by_size(run, directory, name, unit, series):
    """SERIES: of each line the metric, mode, label and dash. A line is drawn for either module."""
    panels = []
    for layout, title in LAYOUTS.items():
        panels.append((title, []))
        for module, (metric, mode, label, dash) in product(MODULES, series):
            points = {size: run.value(metric, module, Case("stock", mode, layout, size)) for size in run.sizes}
            panels[-1][1].append((f"{module}, {label}", COLOURS[module], dash, points))
    figure(directory, name, ("size of the registration", unit), panels, run.sizes, size_text, logarithmic=True)


def figure(directory, name, names, panels, places, place, *, logarithmic):
    """Panels beside each other; logarithmic ones with one scale, so that they can be compared.
    Nothing where nothing was measured."""
    values = [y for _, lines in panels for *_, points in lines for y in points.values() if y]
    if not values:
        return
    drawn = Figure(figsize=(13, 4.8), layout="constrained")
    drawn.suptitle(FILES[name])
    for axes, (title, lines) in zip(drawn.subplots(1, len(panels), sharey=logarithmic), panels, strict=True):
        for label, colour, dash, points in lines:
            known = {x: y for x, y in points.items() if y is not None}
            axes.plot(known.keys(), known.values(), dash, marker=".", color=colour, label=label)
        axes.set(title=title[0].upper() + title[1:], xlabel=names[0], ylabel=names[1])
        if logarithmic:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_ylim(10 ** floor(log10(min(values))), 10 ** (floor(log10(max(values))) + 1))
        else:
            axes.set_ylim(bottom=0)
        axes.set_xticks(places, [place(at) for at in places])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: count(value))
        axes.grid(alpha=0.25)
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(MODULES))
    svg = io.StringIO()
    drawn.savefig(svg, format="svg", metadata={"Date": None})
    declaration, _, rest = svg.getvalue().partition("\n")
    (directory / name).write_text(f"{declaration}\n{LICENSE}{rest}", encoding="utf-8")
