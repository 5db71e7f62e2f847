// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The tables of the report, for a terminal or for Markdown.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ContentArrangement};

use crate::bounds::Chapter;
use crate::measurements::{Layout, Machine, Measurement, Mode, Module};
use crate::metrics::{self, Metric};
use crate::numbers;
use crate::run::{Case, Run};

/// How wide text is on a terminal.
const WIDTH: u16 = 126;

/// What is in a cell, as the header says it.
const OURS: &str = "ours/nvidia-peermem ratio";

/// What a cell says where nothing was measured.
const NONE: &str = "-";

pub struct Table {
    pub title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Whether all but the first column are numbers.
    numbers: bool,
}

impl Table {
    pub fn for_terminal(&self) -> String {
        let mut table = self.filled();
        table.load_preset(NOTHING);
        if !self.numbers {
            // Text may be wrapped.
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(WIDTH);
        }
        table.trim_fmt()
    }

    pub fn for_markdown(&self) -> String {
        let mut table = self.filled();
        table.load_preset(ASCII_MARKDOWN);
        table.trim_fmt()
    }

    fn filled(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.set_header(&self.header).add_rows(&self.rows);
        if self.numbers {
            for column in table.column_iter_mut().skip(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// Everything, of both modes; what matters most first.
pub fn all(run: &Run) -> Vec<Table> {
    let mut tables = vec![in_short(run)];
    for mode in Mode::BOTH {
        tables.extend(Layout::ALL.map(|layout| registrations(run, mode, layout)));
        tables.push(with_iommu(run, mode));
    }
    tables.push(threads(run));
    tables.push(modules(run));
    tables.push(grounds(run));
    tables
}

/// The bounds as they stand.
pub fn bounds(chapter: &Chapter) -> Table {
    let rows = chapter.verdicts.iter().map(|[persistent, revocable]| {
        vec![
            persistent.bound.text().to_owned(),
            persistent.bound.limit(persistent.whose.machine),
            persistent.text(),
            revocable.text(),
        ]
    });
    Table {
        title: chapter.title.clone(),
        header: words(&[chapter.compared, "at most", "persistent", "revocable"]),
        rows: rows.collect(),
        numbers: false,
    }
}

/// Both halves of a registration together, of the memory that most programs have.
fn in_short(run: &Run) -> Table {
    let of = |mode| Kept::new(mode, Layout::Contiguous, Machine::Stock);
    let rows = Mode::BOTH.map(|mode| rows(run, metrics::SHORT, Some(mode.name()), of(mode)));
    Table {
        title: "In short: register and deregister, contiguous memory".to_owned(),
        header: sizes(run, OURS),
        rows: rows.concat(),
        numbers: true,
    }
}

/// Registrations without an IOMMU: a row for each metric, a column for each size.
fn registrations(run: &Run, mode: Mode, layout: Layout) -> Table {
    let of = Kept::new(mode, layout, Machine::Stock);
    Table {
        title: format!("{} mode, {}", capital(mode.name()), layout.name()),
        header: sizes(run, OURS),
        rows: rows(run, metrics::ALL, None, of),
        numbers: true,
    }
}

/// Both halves together behind an IOMMU.
fn with_iommu(run: &Run, mode: Mode) -> Table {
    let of = |layout| Kept::new(mode, layout, Machine::Iommu);
    let rows =
        Layout::ALL.map(|layout| rows(run, metrics::SHORT, Some(layout.short()), of(layout)));
    let mode = capital(mode.name());
    Table {
        title: format!("{mode} mode, with an IOMMU, register and deregister"),
        header: sizes(run, OURS),
        rows: rows.concat(),
        numbers: true,
    }
}

/// What is the same in a row.
#[derive(Clone, Copy)]
struct Kept {
    mode: Mode,
    layout: Layout,
    machine: Machine,
}

impl Kept {
    fn new(mode: Mode, layout: Layout, machine: Machine) -> Self {
        Self {
            mode,
            layout,
            machine,
        }
    }

    fn with(self, size: u64) -> Case {
        let Self {
            mode,
            layout,
            machine,
        } = self;
        Case {
            machine,
            mode,
            layout,
            size,
        }
    }
}

/// A row for each metric of which anything was measured, called after `name`, too.
fn rows(run: &Run, metrics: &[Metric], name: Option<&str>, of: Kept) -> Vec<Vec<String>> {
    let label = |metric: &Metric| match name {
        Some(name) => format!("{name}: {}", metric.label),
        None => metric.label.to_owned(),
    };
    metrics
        .iter()
        .map(|metric| {
            let cells = run
                .sizes
                .iter()
                .map(|&size| cell(run, metric, of.with(size)));
            [label(metric)].into_iter().chain(cells).collect()
        })
        .filter(|row: &Vec<String>| measured(row))
        .collect()
}

fn measured(row: &[String]) -> bool {
    row.iter().skip(1).any(|cell| cell != NONE)
}

/// "ours / theirs  ratio"
fn cell(run: &Run, metric: &Metric, case: Case) -> String {
    let [ours, theirs] = Module::BOTH.map(|module| (metric.value)(run, case, module));
    let text = |value: Option<u64>| value.map_or(NONE.to_owned(), metric.format);
    match (ours, theirs) {
        (None, None) => NONE.to_owned(),
        _ => format!(
            "{}/{} {}",
            text(ours),
            text(theirs),
            metric
                .ratio(run, case, Module::BOTH)
                .map_or(NONE.to_owned(), numbers::ratio)
        ),
    }
}

/// What the module costs on the ground kernel, and how the others compare.
fn grounds(run: &Run) -> Table {
    let mut rows = Vec::new();
    for mode in Mode::BOTH {
        for layout in Layout::ENDS {
            let kept = Kept::new(mode, layout, Machine::Stock);
            for metric in metrics::GROUNDS {
                let cells = run
                    .sizes
                    .iter()
                    .map(|&size| cell_of_grounds(run, metric, kept.with(size)));
                let label = format!("{}, {}: {}", mode.name(), layout.short(), metric.label);
                rows.push([label].into_iter().chain(cells).collect());
            }
        }
    }
    rows.retain(|row: &Vec<String>| measured(row));
    Table {
        title: "Grounds: register and deregister, and freed".to_owned(),
        header: sizes(run, "kernel, free/kernel, ready/kernel"),
        rows,
        numbers: true,
    }
}

/// "kernel  free/kernel  ready/kernel"
fn cell_of_grounds(run: &Run, metric: &Metric, case: Case) -> String {
    let Some(kernel) = (metric.value)(run, case, Module::OnKernel) else {
        return NONE.to_owned();
    };
    let [_, free, ready] = Module::GROUNDS.map(|module| {
        let ratio = metric.ratio(run, case, [module, Module::OnKernel]);
        ratio.map_or(NONE.to_owned(), |ratio| format!("{ratio:.3}"))
    });
    format!("{} {free} {ready}", (metric.format)(kernel))
}

/// Registrations per second: what is seen from outside, and of the module alone.
fn threads(run: &Run) -> Table {
    let mut rows = Vec::new();
    for (label, published, rate) in THROUGHPUTS {
        for mode in Mode::BOTH {
            for module in Module::BOTH {
                let rates =
                    [1, 2, 4].map(|n| run.threads(module, mode, published, n).and_then(rate));
                let scaling = rates[2].zip(rates[0]).map(|(four, one)| four / one);
                rows.push(
                    [format!("{label}: {}, {}", module.name(), mode.name())]
                        .into_iter()
                        .chain(rates.map(|rate| {
                            rate.map_or(NONE.to_owned(), |rate| numbers::count(rate as u64))
                        }))
                        .chain([scaling.map_or(NONE.to_owned(), |scaling| format!("{scaling:.3}"))])
                        .collect(),
                );
            }
        }
    }
    rows.retain(|row: &Vec<String>| measured(row));
    Table {
        title: "Threads: registrations of 1 MiB, each ended again, per second of the guest's time"
            .to_owned(),
        header: words(&["", "1 thread", "2 threads", "4 threads", "4 against 1"]),
        rows,
        numbers: true,
    }
}

type Rate = fn(&Measurement) -> Option<f64>;

/// Label, whether with published costs, and the rate of a measurement.
pub const THROUGHPUTS: [(&str, u64, Rate); 3] = [
    ("total", 0, metrics::throughput),
    ("module alone", 0, metrics::module_throughput),
    ("published costs", 1, metrics::throughput),
];

fn modules(run: &Run) -> Table {
    let row = |(label, name): (&str, &str)| {
        let [ours, theirs] = Module::BOTH.map(|module| run.module(module)?.sum(&[name]));
        let text = |value: Option<u64>| value.map_or(NONE.to_owned(), numbers::count);
        let ratio = ours
            .zip(theirs)
            .and_then(|(ours, theirs)| metrics::ratio(ours, theirs));
        vec![
            label.to_owned(),
            text(ours),
            text(theirs),
            ratio.map_or(NONE.to_owned(), numbers::ratio),
        ]
    };
    let rows = [
        ("file, bytes", "file"),
        ("loaded, bytes", "core"),
        ("loading, instructions", "load"),
        ("first registration, 64 KiB, instructions", "first"),
    ];
    Table {
        title: "Module".to_owned(),
        header: words(&["", "nv_peer_mem", "nvidia-peermem", "ratio"]),
        rows: rows
            .map(row)
            .into_iter()
            .filter(|row| measured(row))
            .collect(),
        numbers: true,
    }
}

fn sizes(run: &Run, compared: &str) -> Vec<String> {
    let sizes = run.sizes.iter().map(|&size| numbers::size(size));
    [compared.to_owned()].into_iter().chain(sizes).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::{self, CASE};

    #[test]
    fn ours_theirs_ratio() {
        let run = samples::run(CASE, [&[("entries", 1)], &[("entries", 16)]]);
        assert_eq!(cell(&run, &metrics::ENTRIES, CASE), "1/16 0.062");
        assert_eq!(cell(&run, &metrics::HELD, CASE), NONE);
    }

    #[test]
    fn grounds_are_compared_with_the_kernel_s() {
        let costs = |value| [("register_total", value), ("deregister_total", 0)];
        let run = samples::run_of(
            CASE,
            Module::GROUNDS,
            [&costs(1000), &costs(1010), &costs(999)],
        );
        let table = grounds(&run);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0][1], "1.0k 1.010 0.999");
    }

    #[test]
    fn rows_of_nothing_are_left_out() {
        let run = samples::run(CASE, [&[("entries", 1)], &[("entries", 16)]]);
        let table = registrations(&run, CASE.mode, CASE.layout);
        let entries = table
            .rows
            .iter()
            .filter(|row| row[0] == "scatterlist entries");
        assert_eq!(entries.count(), 1);
        assert!(!table.rows.iter().any(|row| row[0].starts_with("bytes")));
    }
}
