// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Shows a fleet on one page for a browser: the odd nodes first, then the kinds of nodes, and the measured rates of
//! each kind.
use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::compare::fleet::{Fleet, Kind};
use crate::compare::groups::{Group, MISSING, value};
use crate::compare::kinds::{deciding, name_of, value_of};
use crate::compare::measured::median;
use crate::compare::names::folded;
use crate::compare::screen::{headline, plural, silent_by_words, used_now};
use crate::show::page::{Markup, element, escaped, heat, legend, page, row, table, tiles};

/// The groups and the differences of a group that the page shows.
const MOST_GROUPS: usize = 200;
const MOST_DIFFERENCES: usize = 3;
/// The cells of all matrices. A matrix has a cell for each device and each GPU, also if few of these pairs were
/// measured. A node has some hundred pairs.
const MOST_CELLS: usize = 20_000;
const GB: f64 = 1e9;
/// A rate below this share of the median is shown with its node.
const LOW: f64 = 0.8;

pub fn of_fleet(fleet: &Fleet) -> String {
    let mut body = vec![element("h1", &headline(fleet), ""), counts(fleet)];
    if !fleet.usage.is_empty() {
        body.push(element("p", &format!("Used now: {}", used_now(fleet)), ""));
    }
    odd(fleet, &mut body);
    absent(fleet, &mut body);
    versions(fleet, &mut body);
    kinds(fleet, &mut body);
    rates(fleet, &mut body);
    page(&headline(fleet), &body)
}

fn cell(text: &str) -> Markup {
    element("td", text, "")
}

fn number(count: usize) -> Markup {
    element("td", &count.to_string(), "number")
}

fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn counts(fleet: &Fleet) -> Markup {
    let differ: usize = fleet.odd().iter().map(|group| group.nodes.len()).sum();
    let class = |is_good: bool| if is_good { "good" } else { "bad" };
    let mut found = vec![
        (differ, "! differ", class(differ == 0)),
        (fleet.silent.len(), "✗ gave no status", class(fleet.silent.is_empty())),
    ];
    if fleet.expected.is_some() {
        found.push((fleet.missing_count, "? missing", class(fleet.missing_count == 0)));
    }
    let alike = fleet.alike();
    found.extend([
        (alike, "✓ alike", class(alike > 0)),
        (fleet.total(), "nodes", ""),
        (fleet.kinds.len(), "kinds", ""),
    ]);
    tiles(&found)
}

// ---- what is wrong ----

fn odd(fleet: &Fleet, body: &mut Vec<Markup>) {
    let groups = fleet.odd();
    if groups.is_empty() {
        return;
    }
    body.push(element("h2", "Nodes that differ", ""));
    let of = if fleet.kinds.len() > 1 { " of the kind." } else { "." };
    let caption = format!("The rarest first. Others are the other nodes{of}");
    let rows: Vec<Markup> = groups.iter().take(MOST_GROUPS).flat_map(|group| lines(fleet, group)).collect();
    body.push(table(&caption, &heads(&["Nodes", "Fact", "Here", "On the others"]), &rows, ""));
    if groups.len() > MOST_GROUPS {
        body.push(element("p", &format!("And {} more groups: nvpm compare --all", groups.len() - MOST_GROUPS), ""));
    }
}

/// A difference of a group: the fact, its value on the group, and its value on the others.
struct Row {
    fact: String,
    here: String,
    others: String,
}

/// Returns the differences of a group. All results of the selftest are one row, because a slow device is slow with each
/// GPU.
fn rows_of(group: &Group) -> Vec<Row> {
    let row = |(name, its): &(std::rc::Rc<str>, std::rc::Rc<str>)| {
        let others = value(&group.others, name);
        let others = if others == MISSING { "none" } else { others };
        Row { fact: name.to_string(), here: its.to_string(), others: others.to_owned() }
    };
    let rows = group.differences.iter().map(row);
    let (tested, mut found): (Vec<Row>, Vec<Row>) = rows.partition(|row| row.fact.starts_with("selftest, "));
    match &tested[..] {
        [first, rest @ ..] if !rest.is_empty() => {
            let pair = first.fact.split_once(", ").map_or("", |(_, pair)| pair);
            found.push(Row {
                fact: format!("selftest, {} results", tested.len()),
                here: format!("{}: {pair}; and {} more", first.here, rest.len()),
                others: first.others.clone(),
            });
        }
        _ => found.extend(tested),
    }
    found
}

/// Returns the rows of a group, one for each difference.
fn lines(fleet: &Fleet, group: &Group) -> Vec<Markup> {
    let found = rows_of(group);
    let more = found.len().saturating_sub(MOST_DIFFERENCES);
    let head = escaped(&folded(&group.nodes)) + &notes(fleet, group);
    let mut rows = Vec::new();
    for (place, one) in found.iter().take(MOST_DIFFERENCES).enumerate() {
        let cells = [element("td", &one.fact, "fact"), element("td", &one.here, "here"), cell(&one.others)];
        if place == 0 {
            rows.push(row(&head, &cells, found.len() - more + usize::from(more > 0)));
        } else {
            rows.push(Markup(format!("<tr>{}</tr>\n", cells.map(|cell| cell.0).concat())));
        }
    }
    if more > 0 {
        rows.push(Markup(format!("<tr><td colspan=\"3\" class=\"dim\">and {more} more differences</td></tr>\n")));
    }
    rows
}

/// Returns the number of nodes, their kind, and the nodes they are compared with.
fn notes(fleet: &Fleet, group: &Group) -> String {
    let mut said = Vec::new();
    if group.nodes.len() > 1 {
        said.push(plural(group.nodes.len(), "node"));
    }
    if fleet.kinds.len() > 1 {
        said.push(format!("kind {}", group.kind + 1));
    }
    if !group.like.is_empty() {
        said.push(format!("compared with {}, which differ, too", folded(&group.like)));
    }
    if said.is_empty() { String::new() } else { format!(" {}", element("small", &said.join("; "), "").0) }
}

fn absent(fleet: &Fleet, body: &mut Vec<Markup>) {
    let named = |nodes: &str, state: &str, words: &str| row(&escaped(nodes), &[cell(state), cell(words)], 1);
    let mut rows: Vec<Markup> = silent_by_words(fleet)
        .iter()
        .map(|(words, names)| named(&folded(names), "no status", if words.is_empty() { "no output" } else { words }))
        .collect();
    if !fleet.missing.is_empty() {
        rows.push(named(&folded(&fleet.missing), "missing", "nothing about these nodes was read"));
    } else if fleet.missing_count > 0 {
        let words = "--expect with the names of the nodes says which";
        rows.push(named(&plural(fleet.missing_count, "node"), "missing", words));
    }
    if !fleet.unexpected.is_empty() {
        rows.push(named(&folded(&fleet.unexpected), "not expected", "compared all the same"));
    }
    if !rows.is_empty() {
        body.push(element("h2", "Dead, missing and unexpected nodes", ""));
        body.push(table("The last words of each node.", &heads(&["Nodes", "State", "Words"]), &rows, ""));
    }
}

fn versions(fleet: &Fleet, body: &mut Vec<Markup>) {
    if fleet.versions.len() < 2 {
        return;
    }
    body.push(element("h2", "Another nvpm", ""));
    let named = |(version, names): &(String, Vec<String>)| {
        let version = if version.is_empty() { "an earlier one" } else { version };
        row(&escaped(version), &[number(names.len()), cell(&folded(names))], 1)
    };
    let rows: Vec<Markup> = fleet.versions.iter().map(named).collect();
    let caption = "What only the words of two versions tell apart does not count as a difference.";
    body.push(table(caption, &heads(&["Version of nvpm", "Number", "Nodes"]), &rows, ""));
}

// ---- the kinds ----

fn kinds(fleet: &Fleet, body: &mut Vec<Markup>) {
    if fleet.kinds.is_empty() {
        return;
    }
    body.push(element("h2", "Kinds of nodes", ""));
    let keys: Vec<_> = fleet.kinds.iter().map(|kind| &kind.key).collect();
    let places = Some(deciding(&keys)).filter(|places| !places.is_empty()).unwrap_or_else(|| vec![0, 1, 2, 3]);
    let mut head = heads(&["Kind", "Number", "Odd"]);
    head.extend(places.iter().map(|place| name_of(*place).to_owned()));
    head.push("Nodes".to_owned());
    let of_kind = |(place, kind): (usize, &Kind)| {
        let strange: usize = kind.odd().map(|group| group.nodes.len()).sum();
        let strange = if strange > 0 { format!("! {strange}") } else { "0".to_owned() };
        let mut cells = vec![number(kind.nodes.len()), element("td", &strange, "number")];
        cells.extend(places.iter().map(|place| cell(value_of(&kind.key, *place))));
        cells.push(cell(&folded(&kind.nodes)));
        row(&format!("kind {}", place + 1), &cells, 1)
    };
    let rows: Vec<Markup> = fleet.kinds.iter().enumerate().map(of_kind).collect();
    body.push(table("The largest kind first. A node is compared with its kind.", &head, &rows, ""));
}

// ---- the measured rates ----

/// A pair on all nodes of a kind: the median rate, and the lowest rate with its node. A pair that failed on a node has
/// no lowest rate.
struct Cell {
    usual: f64,
    lowest: Option<f64>,
    node: String,
}

impl Cell {
    fn share(&self) -> Option<f64> {
        self.lowest.map(|lowest| if self.usual > 0.0 { lowest / self.usual } else { 1.0 })
    }

    fn shown(&self) -> Markup {
        let text = format!("{:.1}", self.usual / GB);
        let below = match (self.lowest, self.share()) {
            (None, _) => format!("FAILED {}", self.node),
            (Some(lowest), Some(share)) if share < LOW => format!("{:.1} {}", lowest / GB, self.node),
            _ => String::new(),
        };
        heat(self.share(), &text, &below)
    }
}

/// The cells by way, then by RDMA device and GPU.
type Matrix = IndexMap<String, IndexMap<(String, String), Cell>>;

fn rates(fleet: &Fleet, body: &mut Vec<Markup>) {
    let matrices: Vec<Matrix> = fleet.kinds.iter().map(|kind| matrix_of(fleet, kind)).collect();
    if matrices.iter().all(IndexMap::is_empty) {
        return;
    }
    body.push(element("h2", "Measured rates", ""));
    body.push(legend("the usual rate, on the slowest node"));
    let mut left = MOST_CELLS;
    for (place, matrix) in matrices.iter().enumerate() {
        let of = if fleet.kinds.len() > 1 { format!("kind {}, ", place + 1) } else { String::new() };
        for (way, cells) in matrix {
            let devices: BTreeSet<_> = cells.keys().map(|(device, _)| in_order(device)).collect();
            let gpus: BTreeSet<_> = cells.keys().map(|(_, gpu)| in_order(gpu)).collect();
            let number = devices.len() * gpus.len();
            if number > left {
                let said = format!("{of}by {way}: {} RDMA devices and {} GPUs", devices.len(), gpus.len());
                body.push(element("p", &format!("{said} are too many for this page: nvpm compare --json"), ""));
                return;
            }
            left -= number;
            body.push(one_matrix(&format!("{of}by {way}"), cells, &devices, &gpus));
        }
    }
}

type Names<'a> = BTreeSet<(&'a str, i64, &'a str)>;

/// Returns a table with a row for each RDMA device and a column for each GPU.
fn one_matrix(what: &str, cells: &IndexMap<(String, String), Cell>, devices: &Names, gpus: &Names) -> Markup {
    let shown = |device: &str, gpu: &str| {
        cells.get(&(device.to_owned(), gpu.to_owned())).map_or_else(|| cell("-"), Cell::shown)
    };
    let of_device = |(_, _, device): &(&str, i64, &str)| {
        row(&escaped(device), &gpus.iter().map(|(_, _, gpu)| shown(device, gpu)).collect::<Vec<_>>(), 1)
    };
    let rows: Vec<Markup> = devices.iter().map(of_device).collect();
    let caption = format!(
        "{what}: GB/s in the slower direction, the median of the nodes; below it the slowest node, if its rate is below 80 \
         % of the median"
    );
    let mut head = heads(&["RDMA device"]);
    head.extend(gpus.iter().map(|(_, _, gpu)| format!("GPU {gpu}")));
    table(&caption, &head, &rows, "heat")
}

/// Returns a key by which `mlx5_10` comes after `mlx5_9`.
fn in_order(name: &str) -> (&str, i64, &str) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = name.get(stem.len()..).unwrap_or_default();
    (stem, digits.get(..digits.len().min(9)).and_then(|digits| digits.parse().ok()).unwrap_or(-1), name)
}

/// The rate of a pair on a node, and the node. A pair that failed has no rate.
type Rate<'a> = (Option<f64>, &'a str);

/// Returns the rates of a kind. The slower direction of a pair counts.
fn matrix_of(fleet: &Fleet, kind: &Kind) -> Matrix {
    let mut found: IndexMap<&str, IndexMap<(&str, &str), Vec<Rate>>> = IndexMap::new();
    for node in &kind.nodes {
        for pair in fleet.measured.get(node).map_or(&[][..], Vec::as_slice) {
            let known = [pair.to_gpu, pair.from_gpu].into_iter().flatten().reduce(f64::min);
            let rate = known.filter(|_| !pair.is_failed);
            let cells = found.entry(&pair.way).or_default();
            cells.entry((&pair.device, &pair.gpu)).or_default().push((rate, node));
        }
    }
    let cells = |cells: IndexMap<(&str, &str), Vec<Rate>>| {
        cells.into_iter().map(|((device, gpu), rated)| ((device.to_owned(), gpu.to_owned()), cell_of(&rated))).collect()
    };
    found.into_iter().map(|(way, found)| (way.to_owned(), cells(found))).collect()
}

fn cell_of(rated: &[Rate]) -> Cell {
    let good: Vec<(f64, &str)> = rated.iter().filter_map(|(rate, node)| Some(((*rate)?, *node))).collect();
    let usual = if good.is_empty() { 0.0 } else { median(good.iter().map(|(rate, _)| *rate).collect()) };
    if let Some((_, node)) = rated.iter().find(|(rate, _)| rate.is_none()) {
        return Cell { usual, lowest: None, node: (*node).to_owned() };
    }
    let lowest = good.iter().min_by(|(one, a), (other, b)| one.total_cmp(other).then(a.cmp(b)));
    let (rate, node) = lowest.copied().unwrap_or((0.0, ""));
    Cell { usual, lowest: Some(rate), node: node.to_owned() }
}
