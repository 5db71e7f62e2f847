# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Draws SVG plots, with a panel for each layout of the memory, or for each driver."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import floor, log10
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from bench import MODES, MODULES, THREADS
from measured import (
    DYNAMIC,
    ENTRIES,
    HELD,
    LAYOUTS,
    MODULE,
    STATIC,
    THROUGHPUTS,
    TOTAL,
    Case,
    Metric,
    Run,
    count,
    size_text,
)

LICENSE = "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->\n"

# The files, and their titles.
FILES = {
    "cost-persistent.svg": "Cost of a registration and its end, persistent mode",
    "cost-revocable.svg": "Cost of a registration and its end, revocable mode",
    "entries.svg": "Scatterlist entries of a registration",
    "held.svg": "Kernel memory that a registration holds, bytes",
    "threads.svg": "Registrations of 1 MiB per second, by several threads",
}

COLOURS = dict(zip(MODULES, ("#0b5fa5", "#c8551b"), strict=True))
DASHES = {"persistent": "-", "revocable": "--"}


# A series that is drawn for both modules. It has a metric, a mode, a label and a dash.
Series = tuple[Metric, str, str, str]


class Line(NamedTuple):
    label: str
    colour: str
    dash: str
    # The values by their places on the axis. A value is None if it was not measured.
    points: Mapping[int, float | None]


class Panel(NamedTuple):
    title: str
    lines: list[Line]


class Axes(NamedTuple):
    """The names of both axes. The places of the horizontal axis also have texts."""

    across: str
    up: str
    places: Sequence[int]
    text: Callable[[int], str]
    logarithmic: bool


def draw(run: Run, directory: Path) -> None:
    # Keeps text as text, and makes the same file from the same run.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 9})
    draw_costs(run, directory)
    for metric, name, unit in ((ENTRIES, "entries.svg", "entries"), (HELD, "held.svg", "bytes")):
        series = [(metric, mode, mode, DASHES[mode]) for mode in MODES]
        draw_by_size(run, directory, name, unit, series)
    draw_threads(run, directory)


def draw_costs(run: Run, directory: Path) -> None:
    looks = (
        (TOTAL, "total", "-"),
        (DYNAMIC, "total, dynamic BAR1", "--"),
        (STATIC, "total, static BAR1", "-."),
        (MODULE, "module alone", ":"),
    )
    for mode in MODES:
        series = [(metric, mode, label, dash) for metric, label, dash in looks]
        draw_by_size(run, directory, f"cost-{mode}.svg", "ns (instructions)", series)


def draw_threads(run: Run, directory: Path) -> None:
    panels = []
    for title, driver in THROUGHPUTS.items():
        panel = Panel(title, [])
        for module, mode in product(MODULES, MODES):
            points = {number: run.rate(module, mode, number, driver) for number in THREADS}
            panel.lines.append(Line(f"{module}, {mode}", COLOURS[module], DASHES[mode], points))
        panels.append(panel)
    axes = Axes("threads", "registrations per second", THREADS, str, logarithmic=False)
    draw_figure(directory / "threads.svg", panels, axes)


def draw_by_size(run: Run, directory: Path, name: str, unit: str, series: Iterable[Series]) -> None:
    panels = []
    for layout, title in LAYOUTS.items():
        panel = Panel(title, [])
        for module, (metric, mode, label, dash) in product(MODULES, series):
            cases = {size: Case("stock", mode, layout, size) for size in run.sizes}
            points = {size: run.value(metric, module, case) for size, case in cases.items()}
            panel.lines.append(Line(f"{module}, {label}", COLOURS[module], dash, points))
        panels.append(panel)
    axes = Axes("size of the registration", unit, run.sizes, size_text, logarithmic=True)
    draw_figure(directory / name, panels, axes)


def draw_figure(path: Path, panels: Sequence[Panel], axes: Axes) -> None:
    """Draws panels next to each other. Logarithmic panels have the same scale, so that they can be
    compared. Makes no file if nothing was measured."""
    lines = [line for panel in panels for line in panel.lines]
    values = [value for line in lines for value in line.points.values() if value]
    if not values:
        return
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    figure.suptitle(FILES[path.name])
    plots = figure.subplots(1, len(panels), sharey=axes.logarithmic)
    for plot, panel in zip(plots, panels, strict=True):
        draw_panel(plot, panel, axes, values)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(MODULES))
    path.write_text(svg_of(figure), encoding="utf-8")


def draw_panel(plot: Any, panel: Panel, axes: Axes, values: Sequence[float]) -> None:
    """Draws a panel. VALUES are the values of all panels, so that all panels have the same
    scale."""
    for line in panel.lines:
        known = {place: value for place, value in line.points.items() if value is not None}
        look = {"marker": ".", "color": line.colour, "label": line.label}
        plot.plot(known.keys(), known.values(), line.dash, **look)
    title = panel.title[0].upper() + panel.title[1:]
    plot.set(title=title, xlabel=axes.across, ylabel=axes.up)
    if axes.logarithmic:
        plot.set_xscale("log", base=2)
        plot.set_yscale("log")
        plot.set_ylim(10 ** floor(log10(min(values))), 10 ** (floor(log10(max(values))) + 1))
    else:
        plot.set_ylim(bottom=0)
    plot.set_xticks(axes.places, [axes.text(place) for place in axes.places])
    plot.minorticks_off()
    plot.yaxis.set_major_formatter(lambda value, _: count(value))
    plot.grid(alpha=0.25)


def svg_of(figure: Figure) -> str:
    """Returns the SVG text, with our licence after the XML declaration."""
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None})
    declaration, _, rest = svg.getvalue().partition("\n")
    return f"{declaration}\n{LICENSE}{rest}"
