// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! SVG plots: three panels each, one for each layout of the memory.

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::axis::Axis;
use crate::measurements::{Layout, Machine, Mode, Module};
use crate::metrics::{self, Metric};
use crate::numbers;
use crate::run::{Case, Run};
use crate::tables::{capital, THROUGHPUTS};

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const LICENSE: &str = "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->\n";

const PANEL: (u32, u32) = (430, 400);

/// How long the piece of a line in the legend is.
const KEY: i32 = 20;

/// The files that are made, and what they show.
pub const FILES: [(&str, &str); 5] = [
    (
        "cost-persistent.svg",
        "Cost of a registration and its end, persistent mode",
    ),
    (
        "cost-revocable.svg",
        "Cost of a registration and its end, revocable mode",
    ),
    ("entries.svg", "Scatterlist entries of a registration"),
    ("held.svg", "Kernel memory that a registration holds"),
    ("threads.svg", "Registrations per second by threads"),
];

/// So many pixels on and off, or solid.
type Dash = Option<(i32, i32)>;

/// How a line looks.
#[derive(Clone, Copy)]
struct Look {
    module: Module,
    dash: Dash,
}

struct Line {
    label: String,
    look: Look,
    points: Vec<(f64, f64)>,
}

/// Axes of a panel; points are what they show, labels what is written of them.
struct Axes {
    x: &'static str,
    y: &'static str,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
    logarithmic: bool,
}

pub fn draw(run: &Run, dir: &Path) -> Drawn {
    for mode in Mode::BOTH {
        costs(run, mode, &dir.join(format!("cost-{}.svg", mode.name())))?;
    }
    by_mode(run, &metrics::ENTRIES, "entries", &dir.join("entries.svg"))?;
    by_mode(run, &metrics::HELD, "bytes", &dir.join("held.svg"))?;
    threads(run, &dir.join("threads.svg"))
}

fn color(module: Module) -> RGBColor {
    match module {
        Module::Ours => RGBColor(0x0b, 0x5f, 0xa5),
        Module::Theirs => RGBColor(0xc8, 0x55, 0x1b),
        Module::OnKernel | Module::OnFree | Module::OnReady => BLACK,
    }
}

/// Cost against size: three quantities of each module.
fn costs(run: &Run, mode: Mode, file: &Path) -> Drawn {
    let quantities: [(&str, &Metric, Dash); 3] = [
        ("published costs", &metrics::PUBLISHED, Some((9, 4))),
        ("total", &metrics::TOTAL, None),
        ("module alone", &metrics::MODULE, Some((2, 3))),
    ];
    let lines = |layout| {
        let mut lines = Vec::new();
        for (label, metric, dash) in quantities {
            for module in Module::BOTH {
                let look = Look { module, dash };
                lines.push(line(run, metric, mode, layout, look, label));
            }
        }
        lines
    };
    let title = format!("Register and deregister, {} mode", mode.name());
    panels(file, &title, &by_layout(run, "ns (instructions)", lines))
}

/// A metric against size, of both modes.
fn by_mode(run: &Run, metric: &Metric, unit: &'static str, file: &Path) -> Drawn {
    let lines = |layout| {
        let mut lines = Vec::new();
        for module in Module::BOTH {
            for mode in Mode::BOTH {
                let dash = (mode == Mode::Revocable).then_some((9, 4));
                lines.push(line(
                    run,
                    metric,
                    mode,
                    layout,
                    Look { module, dash },
                    mode.name(),
                ));
            }
        }
        lines
    };
    panels(file, &capital(metric.label), &by_layout(run, unit, lines))
}

fn line(run: &Run, metric: &Metric, mode: Mode, layout: Layout, look: Look, label: &str) -> Line {
    let point = |&size: &u64| {
        let case = Case {
            machine: Machine::Stock,
            mode,
            layout,
            size,
        };
        let value = (metric.value)(run, case, look.module)?;
        Some((size as f64, value as f64))
    };
    Line {
        label: format!("{}, {label}", look.module.name()),
        look,
        points: run.sizes.iter().filter_map(point).collect(),
    }
}

type Panel = (String, Axes, Vec<Line>);

fn by_layout(run: &Run, unit: &'static str, lines: impl Fn(Layout) -> Vec<Line>) -> Vec<Panel> {
    let axes = || Axes {
        x: "size of the registration",
        y: unit,
        ticks: run.sizes.iter().map(|&size| size as f64).collect(),
        label: |size| numbers::size(size as u64),
        logarithmic: true,
    };
    Layout::ALL
        .map(|layout| (capital(layout.name()), axes(), lines(layout)))
        .into()
}

/// Registrations per second against threads.
fn threads(run: &Run, file: &Path) -> Drawn {
    let panel = |(label, published, rate): (&str, u64, fn(&_) -> Option<f64>)| {
        let mut lines = Vec::new();
        for module in Module::BOTH {
            for mode in Mode::BOTH {
                let dash = (mode == Mode::Revocable).then_some((9, 4));
                let point = |threads: u64| {
                    Some((
                        threads as f64,
                        rate(run.threads(module, mode, published, threads)?)?,
                    ))
                };
                lines.push(Line {
                    label: format!("{}, {}", module.name(), mode.name()),
                    look: Look { module, dash },
                    points: [1, 2, 4].into_iter().filter_map(point).collect(),
                });
            }
        }
        let axes = Axes {
            x: "threads",
            y: "registrations per second",
            ticks: vec![1.0, 2.0, 4.0],
            label: |threads| format!("{threads}"),
            logarithmic: false,
        };
        (capital(label), axes, lines)
    };
    panels(
        file,
        "Registrations of 1 MiB by several threads",
        &THROUGHPUTS.map(panel),
    )
}

/// Panels beside each other; logarithmic ones with one scale, so that they can be
/// compared. Those of nothing are left out.
fn panels(file: &Path, title: &str, panels: &[Panel]) -> Drawn {
    let filled: Vec<&Panel> = panels
        .iter()
        .filter(|(_, _, lines)| lines.iter().any(|line| !line.points.is_empty()))
        .collect();
    if filled.is_empty() {
        return Ok(());
    }
    let mut svg = String::new();
    draw_panels(&mut svg, title, &filled)?;
    Ok(fs::write(file, format!("{LICENSE}{svg}"))?)
}

fn draw_panels(svg: &mut String, title: &str, panels: &[&Panel]) -> Drawn {
    let width = PANEL.0 * panels.len() as u32;
    let root = SVGBackend::with_string(svg, (width, PANEL.1)).into_drawing_area();
    root.fill(&WHITE)?;
    let body = root.titled(title, ("sans-serif", 20))?;
    let values = |panels: &[&Panel]| -> Vec<f64> {
        let lines = panels.iter().flat_map(|(_, _, lines)| lines);
        lines
            .flat_map(|line| line.points.iter().map(|(_, y)| *y))
            .collect()
    };
    let shared = panels[0].1.logarithmic.then(|| values(panels));
    for (area, panel) in body.split_evenly((1, panels.len())).iter().zip(panels) {
        let values = shared.clone().unwrap_or_else(|| values(&[panel]));
        draw_panel(area, panel, &values)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(area: &Area<'_>, (title, axes, lines): &Panel, values: &[f64]) -> Drawn {
    let values = Axis::of_values(axes.logarithmic, values);
    let places = Axis::of_places(axes.logarithmic, &axes.ticks, axes.label);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .caption(title, ("sans-serif", 15))
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(places, values)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .label_style(("sans-serif", 12))
        .draw()?;
    for line in lines.iter().filter(|line| !line.points.is_empty()) {
        let points = line.points.iter().copied();
        let style = color(line.look.module).stroke_width(2);
        let drawn = match line.look.dash {
            None => chart.draw_series(LineSeries::new(points, style))?,
            Some((on, off)) => chart.draw_series(DashedLineSeries::new(points, on, off, style))?,
        };
        // In the legend a solid line is one dash.
        let (on, off) = line.look.dash.unwrap_or((KEY, 1));
        drawn
            .label(&line.label)
            .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + KEY, y)], on, off, style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .label_font(("sans-serif", 11))
        .draw()?;
    Ok(())
}
