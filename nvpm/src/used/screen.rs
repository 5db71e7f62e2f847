// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the answer for people: a line that answers, and at most twelve lines with the processes and the reasons.
use std::collections::BTreeMap;

use crate::read::machine::Machine;
use crate::read::names::folded;
use crate::read::regions::size;
use crate::used::causes;
use crate::used::look::{Look, Other, State};
use crate::used::refutation::refutations;
use crate::used::traffic::Traffic;
use crate::used::verdict::{Answer, Role, Row};
use crate::used::ways::{Part, Way};

/// The greatest number of rows with processes, and of reasons. With a blank line and the head, these are twelve lines.
const ROWS: usize = 6;
const REASONS: usize = 2;
const NOTES: usize = 2;
/// If there are more rows, each kind of row shows this number.
const OF_A_KIND: usize = 2;
/// The greatest number of lines with registrations.
const PARTS: usize = 1000;
const HEAD: [&str; 7] =
    ["process", "command", "container", "RDMA device", "GPU memory", "host memory", "traffic of the device"];

/// Marks the traffic of a device that moves less than half of its limit, and what the mark means.
const MARK: &str = " !";
const MARKED: &str = "! Less than half of the limit. This is normal for a program that computes in between; for one that \
                      only communicates, nvpm selftest --bandwidth says whether this node is the cause.";
const NO_PROOF: &str =
    "These rates are those of all programs. They prove no way: data that passes host memory is as fast.";

/// Returns the name of a way, as it follows "by".
pub fn name(look: &Look, way: Way) -> &'static str {
    match way {
        Way::Listed => "nv_peer_mem",
        Way::Pointer => look.pointer,
        Way::DmaBuf => "dma-buf",
        Way::Host => "host",
        Way::Paged => "host, paged on demand",
        Way::Unknown => "unknown",
    }
}

/// Returns the GPU memory of a row as text.
fn of_gpu(look: &Look, row: &Row) -> String {
    let gpu = row.memory.iter().filter(|(way, _)| way.is_gpu());
    let mut parts: Vec<String> =
        gpu.map(|(way, (_, bytes, _))| format!("{} by {}", size((*bytes).into()), name(look, *way))).collect();
    if row.memory.contains_key(&Way::Unknown) {
        parts.push(format!(
            "at most {}{}",
            size(row.unknown_bytes().into()),
            if parts.is_empty() { "" } else { " more" }
        ));
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn of_host(row: &Row) -> String {
    let bytes = row.host_bytes();
    if !row.memory.keys().any(|way| way.is_host()) {
        return "none".to_owned();
    }
    if bytes == 0 { "all, paged".to_owned() } else { size(bytes.into()) }
}

/// Returns the rates of a device as text, in one unit.
pub fn of_traffic(traffic: &Traffic) -> String {
    let most = [traffic.sends, traffic.receives].into_iter().flatten().fold(0.0, f64::max);
    match traffic.moves() {
        None if traffic.sends.is_none() && traffic.receives.is_none() => return "not counted".to_owned(),
        Some(false) => return "none".to_owned(),
        _ => {}
    }
    let (unit, name) = if most >= 1e8 { (1e9, "GB/s") } else { (1e6, "MB/s") };
    let rate = |rate: Option<f64>| rate.map_or("?".to_owned(), |rate| format!("{:.1}", rate / unit));
    let limit = traffic.limit.map_or(String::new(), |limit| match name {
        "GB/s" => format!(", of {:.1}", limit / unit),
        _ => format!(", of {:.1} GB/s", limit / 1e9),
    });
    format!("{} out, {} in {name}{limit}", rate(traffic.sends), rate(traffic.receives))
}

fn cells(look: &Look, row: &Row) -> [String; 7] {
    let process = row.process.and_then(|number| look.processes.get(&number));
    [
        row.process.map_or("not seen".to_owned(), |number| number.to_string()),
        process.map_or("-".to_owned(), |process| process.command.clone()),
        process.map(|process| process.container.clone()).filter(|id| !id.is_empty()).unwrap_or_else(|| "-".to_owned()),
        look.device(row.device).to_owned(),
        of_gpu(look, row),
        of_host(row),
        look.traffic.get(row.device).map_or(String::new(), of_traffic) + if is_marked(look, row) { MARK } else { "" },
    ]
}

/// Returns whether a row gets the mark. What a process sends from host memory is slow for another reason, which has a
/// sentence of its own.
fn is_marked(look: &Look, row: &Row) -> bool {
    row.has_gpu_memory() && look.traffic.get(row.device).is_some_and(Traffic::is_below_half)
}

/// The properties that make rows alike.
type Kind = (Role, String, Vec<Way>);

fn kind(look: &Look, row: &Row) -> Kind {
    let command = row.process.and_then(|number| look.processes.get(&number)).map(|process| process.command.clone());
    let ways = row.memory.keys().copied().filter(|way| way.is_gpu() || *way == Way::Unknown);
    (row.role, command.unwrap_or_default(), ways.collect())
}

/// Returns the lines with processes. If they do not fit, those that are alike are counted.
fn table(look: &Look, rows: &[Row]) -> Vec<String> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.role != Role::Nothing).collect();
    let mut kinds: BTreeMap<Kind, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        kinds.entry(kind(look, row)).or_default().push(row);
    }
    if rows.len() <= ROWS {
        return aligned(rows.iter().map(|row| Line::Cells(cells(look, row))).collect());
    }
    let mut lines = Vec::new();
    let mut left = kinds.len();
    for those in kinds.values() {
        // Each further kind needs at least a line, and the last line may count what does not fit.
        let room = (ROWS - lines.len()).saturating_sub(left.min(2) - 1);
        left -= 1;
        if lines.len() + 1 >= ROWS && left > 0 {
            let rest: usize = kinds.values().map(Vec::len).sum::<usize>() - shown(&lines);
            lines.push(Line::Text(format!("{rest} more: nvpm used --all")));
            break;
        }
        let whole = those.len().min(OF_A_KIND).min(room.saturating_sub(1).max(1));
        lines.extend(those.iter().take(whole).map(|row| Line::Cells(cells(look, row))));
        if those.len() > whole {
            let devices: Vec<String> = those.iter().skip(whole).map(|row| look.device(row.device).to_owned()).collect();
            lines.push(Line::More(those.len() - whole, on(devices)));
        }
    }
    aligned(lines)
}

enum Line {
    Cells([String; 7]),
    More(usize, String),
    Text(String),
}

/// Returns how many rows some lines stand for.
fn shown(lines: &[Line]) -> usize {
    let count = |line: &Line| match line {
        Line::Cells(_) => 1,
        Line::More(count, _) => *count,
        Line::Text(_) => 0,
    };
    lines.iter().map(count).sum()
}

fn on(mut devices: Vec<String>) -> String {
    devices.sort_by_cached_key(|name| crate::read::pci::counting(name));
    devices.dedup();
    let names = folded(&devices);
    if names.len() > 4 { format!("{} devices", devices.len()) } else { names.join(", ") }
}

fn aligned(lines: Vec<Line>) -> Vec<String> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut widths = HEAD.map(str::len);
    for line in &lines {
        if let Line::Cells(cells) = line {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }
    let row = |cells: &[String; 7]| {
        let cell = |(cell, (place, width)): (&String, (usize, &usize))| match place {
            0 | 5 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        };
        let text: Vec<String> = cells.iter().zip(widths.iter().enumerate()).map(cell).collect();
        format!("  {}", text.join("  ")).trim_end().to_owned()
    };
    let head = row(&HEAD.map(str::to_owned));
    let line = |line: Line| match line {
        Line::Cells(cells) => row(&cells),
        Line::More(count, devices) => {
            format!(
                "  {:>width$}  {count} more like {}, on {devices}",
                "…",
                if count == 1 { "it" } else { "these" },
                width = widths[0]
            )
        }
        Line::Text(text) => format!("  {:>width$}  {text}", "…", width = widths[0]),
    };
    [String::new(), head].into_iter().chain(lines.into_iter().map(line)).collect()
}

/// Returns sentences about what was not seen.
pub fn notes(look: &Look, answer: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    let unseen = answer.rows.iter().filter(|row| row.process.is_none()).flat_map(|row| row.memory.values());
    let (count, bytes) = unseen.fold((0, 0), |(count, sum), (some, bytes, _)| (count + some, sum + bytes));
    if count > 0 {
        let whose = match (look.sees_all, look.has_node_numbers) {
            (true, _) => "of processes that have ended",
            (false, true) => "of processes that this user cannot see",
            (false, false) => "of processes outside of this container",
        };
        let keepers = names(&look.keepers);
        let keepers = if keepers.is_empty() { keepers } else { format!("; RDMA devices are also open in {keepers}") };
        found.push(format!("Not shown by process: {} {whose}, {}{keepers}.", registrations(count), size(bytes.into())));
    }
    if look.state == State::Seen && !look.foreign.is_empty() {
        let names = folded(&look.foreign).join(", ");
        found.push(format!("Not seen: {names}, of another network namespace (rdma system: netns exclusive)."));
    }
    if !look.cut.is_empty() {
        found.push(format!("Only a part of the registrations was read: {}.", look.cut.join(", ")));
    }
    if look.is_cut {
        found.push("Too many files are open to look at the GPUs of all processes.".to_owned());
    }
    let blind = [
        (!look.has_list && look.pointer == "nv_peer_mem", "the module's list"),
        (!look.has_buffers, "attached dma-bufs"),
        (!look.has_seen_files(), "the GPUs of all processes"),
    ];
    let blind: Vec<&str> = blind.into_iter().filter(|(is_blind, _)| *is_blind).map(|(_, what)| what).collect();
    if !blind.is_empty() && !answer.rows.is_empty() {
        found.push(format!("Not seen: {}. Root sees more, with debugfs mounted.", blind.join(", ")));
    }
    let queues = look.judged.listed_alone + look.judged.attached_alone;
    if queues > 0 {
        found.push(format!(
            "Not registered as memory: {queues} buffer{} of queues (DevX).",
            if queues == 1 { "" } else { "s" }
        ));
    }
    found
}

fn registrations(count: u64) -> String {
    format!("{count} registration{}", if count == 1 { "" } else { "s" })
}

/// Returns some processes as text.
fn names(others: &[Other]) -> String {
    let named = others.iter().take(3).map(|one| format!("{} ({})", one.number, one.command));
    let text = named.collect::<Vec<_>>().join(", ");
    if others.len() > 3 { format!("{text} and {} more", others.len() - 3) } else { text }
}

pub fn lines(machine: &Machine, look: &Look, answer: &Answer) -> Vec<String> {
    let mut found = vec![answer.first.clone()];
    found.extend(table(look, &answer.rows));
    let is_marked = found.iter().any(|line| line.ends_with(MARK));
    found.extend(reasons(machine, look, answer).into_iter().take(REASONS));
    found.extend(is_marked.then(|| MARKED.to_owned()));
    found.extend(notes(look, answer).into_iter().take(NOTES - usize::from(is_marked)));
    found
}

/// Returns the answer, each registration with the proof of its way, and all notes.
pub fn everything(machine: &Machine, look: &Look, answer: &Answer) -> Vec<String> {
    let mut found = vec![answer.first.clone()];
    let parts = &look.judged.parts;
    let mut last = None;
    for part in parts.iter().take(PARTS) {
        if last != Some((part.process, part.device)) {
            last = Some((part.process, part.device));
            found.push(String::new());
            found.push(of_process(look, part));
        }
        found.push(of_part(look, part));
    }
    if parts.len() > PARTS {
        let rest: u64 = parts.iter().skip(PARTS).map(|part| part.count).sum();
        found.push(format!("Left out: {}.", registrations(rest)));
    }
    found.push(String::new());
    found.extend(
        look.devices
            .iter()
            .zip(&look.traffic)
            .map(|(device, traffic)| format!("{}: {}", device.name, of_traffic(traffic))),
    );
    if look.traffic.iter().any(|traffic| traffic.moves() == Some(true)) {
        found.push(NO_PROOF.to_owned());
    }
    found.extend(reasons(machine, look, answer));
    found.extend(notes(look, answer));
    found
}

/// Returns why data is not GPU memory, whatever is registered, and why processes have registered none.
fn reasons(machine: &Machine, look: &Look, answer: &Answer) -> Vec<String> {
    refutations(look).into_iter().chain(causes::causes(machine, look, answer)).collect()
}

fn of_process(look: &Look, part: &Part) -> String {
    let process = part.process.and_then(|number| look.processes.get(&number));
    let who = process.map_or("processes that are not seen".to_owned(), |process| {
        let container =
            if process.container.is_empty() { String::new() } else { format!(", container {}", process.container) };
        format!("process {} ({}{container})", process.number, process.command)
    });
    format!("{who}, {}:", look.device(part.device))
}

fn of_part(look: &Look, part: &Part) -> String {
    let length =
        if part.way == Way::Paged && part.bytes() == 0 { "all memory".to_owned() } else { size(part.length.into()) };
    let count = if part.count == 1 { String::new() } else { format!("{} of ", part.count) };
    let kind = match part.way {
        way if way.is_gpu() => format!("GPU memory by {}", name(look, way)),
        Way::Unknown => "GPU or host memory".to_owned(),
        way => name(look, way).replace("host", "host memory"),
    };
    format!("  {count}{length}: {kind}: {}", part.proof)
}
