// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the status for people. The answer comes first, and then the facts that need attention, or all facts with
//! --all.
use indexmap::{IndexMap, IndexSet};

use crate::facts::all::Status;
use crate::facts::distances::{NEAREST, SECTION as DISTANCE, is_of_pair};
use crate::facts::fact::{Fact, Verdict};
use crate::read::machine::Machine;
use crate::read::names::{folded, gpu_numbers};
use crate::show::distance_matrix::{Matrix, matrix};
use crate::show::first_answer;
use crate::show::folded_facts::{Line, device_of, lines_of, section_of};
use crate::show::terminal::Screen;
use crate::text::wrapped_whole;

/// The width of a list of devices, even if the output is no terminal.
const WIDTH: usize = 90;
/// The column at which values start.
const VALUE: usize = 31;
const NARROWEST: usize = 20;

/// Breaks a list with commas into lines of about WIDTH columns after an indent.
fn wrap_list(indent: &str, texts: &[String]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for text in texts.iter().flat_map(|text| text.split(", ")) {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(text);
        } else if line.chars().count() + text.chars().count() > WIDTH {
            line.push(',');
            lines.push(text.to_owned());
        } else {
            line.push_str(", ");
            line.push_str(text);
        }
    }
    lines.iter().map(|line| format!("{indent}{line}")).collect()
}

/// Returns the answer, and the facts that need attention.
pub fn attention(machine: &Machine, status: &Status, screen: Screen) -> Vec<String> {
    let mut out = brief(machine, status, screen);
    out.push(String::new());
    let mut text = Text::new(&status.facts, screen);
    text.wrapped("", &text.headline(status), 0);
    text.attention();
    text.wrapped("", &format!("nvpm status --all shows all {} facts.", status.facts.len()), 0);
    out.extend(text.out);
    out
}

pub fn everything(machine: &Machine, status: &Status, screen: Screen) -> Vec<String> {
    let mut out = brief(machine, status, screen);
    out.push(String::new());
    let mut text = Text::new(&status.facts, screen);
    text.wrapped("", &text.headline(status), 0);
    text.sections();
    out.extend(text.out);
    out
}

/// Returns the answer, which fits one screen on every node.
pub fn brief(machine: &Machine, status: &Status, screen: Screen) -> Vec<String> {
    let width = if screen.width == 0 { first_answer::WIDTH } else { screen.width };
    let mut lines = first_answer::lines(machine, status, width.clamp(NARROWEST, first_answer::WIDTH));
    if let Some(first) = lines.first_mut() {
        *first = screen.bold(first);
    }
    lines
}

/// Returns the facts about the wanted devices, which are names of devices or numbers of GPUs, or an error if the
/// machine lacks one of these devices.
pub fn of_devices(
    machine: &Machine,
    status: &Status,
    screen: Screen,
    wanted: &[String],
) -> Result<Vec<String>, String> {
    let numbers = gpu_numbers(machine);
    let of_number = |name: &str| numbers.iter().find(|(_, number)| number.to_string() == name);
    let name_of = |name: &String| match of_number(name) {
        Some((gpu, _)) => gpu.clone(),
        None if name.contains(':') => name.to_lowercase(),
        None => name.clone(),
    };
    let mut there: Vec<&str> = status.facts.iter().filter_map(|fact| device_of(&fact.section)).collect();
    there.sort_unstable();
    there.dedup();
    let names: IndexSet<String> = wanted.iter().map(name_of).collect();
    let mut missing: Vec<&str> = names.iter().map(String::as_str).filter(|name| !there.contains(name)).collect();
    if !missing.is_empty() {
        missing.sort_unstable();
        let known = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let missing = missing.join(" and no ");
        return Err(format!("there is no GPU and no RDMA device {missing}. There are: {known}"));
    }
    let chosen: Vec<Fact> = status.facts.iter().filter(|fact| is_about(fact, &names)).cloned().collect();
    let mut text = Text::new(&chosen, screen);
    text.sections();
    Ok(text.out)
}

fn is_about(fact: &Fact, names: &IndexSet<String>) -> bool {
    if let Some(device) = device_of(&fact.section) {
        return names.contains(device);
    }
    let (gpu, other) = fact.name.split_once(' ').unwrap_or((&fact.name, ""));
    fact.section == DISTANCE && (names.contains(gpu) || names.contains(other) || other == NEAREST)
}

struct Text {
    screen: Screen,
    /// Each section with its devices, in the order of the facts. A section that is not about devices has an empty
    /// list.
    sections: IndexMap<String, Vec<String>>,
    matrix: Matrix,
    /// The lines, without the distances of the matrix.
    all: Vec<Line>,
    advised: IndexSet<String>,
    out: Vec<String>,
}

impl Text {
    fn new(facts: &[Fact], screen: Screen) -> Self {
        let mut sections: IndexMap<String, Vec<String>> = IndexMap::new();
        for fact in facts {
            let (section, device) = section_of(fact);
            let devices = sections.entry(section).or_default();
            if !device.is_empty() && !devices.contains(&device) {
                devices.push(device);
            }
        }
        let all = lines_of(facts.iter().filter(|fact| !is_of_pair(fact)));
        Self { screen, sections, matrix: matrix(facts), all, advised: IndexSet::new(), out: Vec::new() }
    }

    fn headline(&self, status: &Status) -> String {
        let state = status.state.word();
        match self.all.iter().filter(|line| line.fact.is_to_do()).count() {
            0 => format!("nv_peer_mem: {state}; nothing needs attention"),
            count => format!(
                "nv_peer_mem: {state}; lines that need attention: {count} (!! does not work, ! works but could do \
                 better)"
            ),
        }
    }

    fn mark(&self, verdict: Verdict) -> String {
        let mark = match verdict {
            Verdict::Good => "ok",
            Verdict::Warn => " !",
            Verdict::Bad => "!!",
            Verdict::None | Verdict::Unread => "  ",
        };
        self.screen.marked(verdict, mark)
    }

    /// Adds a value after BEFORE, which may contain colours. On a terminal, the value is wrapped, and later lines begin
    /// with INDENT blanks.
    fn wrapped(&mut self, before: &str, value: &str, indent: usize) {
        if self.screen.width == 0 {
            self.out.push(format!("{before}{value}"));
            return;
        }
        let width = self.screen.width.saturating_sub(indent).max(NARROWEST);
        let lines = wrapped_whole(value, width, "", "");
        self.out.push(format!("{before}{}", lines.first().map_or("", String::as_str)));
        self.out.extend(lines.iter().skip(1).map(|line| format!("{:indent$}{line}", "")));
    }

    /// Adds the lines about things that do not work, then about things that could do better, each with its section.
    fn attention(&mut self) {
        for verdict in [Verdict::Bad, Verdict::Warn] {
            for at in 0..self.all.len() {
                let Some(line) = self.all.get(at).filter(|line| line.fact.verdict == verdict) else { continue };
                let only = match line.devices.as_slice() {
                    [] => String::new(),
                    devices => format!(" [{}]", folded(devices).join(", ")),
                };
                let value = format!("{}, {}: {}{only}", line.section, line.fact.name, line.fact.value);
                let before = format!("  {}  ", self.mark(verdict));
                self.wrapped(&before, &value, 6);
                self.advice(at);
            }
        }
    }

    fn sections(&mut self) {
        for (section, devices) in self.sections.clone() {
            let title = if section == DISTANCE { "distance of GPU and RDMA device" } else { &section };
            self.out.extend([String::new(), self.screen.bold(title)]);
            if !devices.is_empty() {
                self.out.extend(wrap_list("      ", &devices));
            }
            if section == DISTANCE {
                self.distances();
            } else {
                self.section(&section, devices.len());
            }
        }
    }

    /// Adds the lines of a section. Lines of devices with the same name are printed together, even if other lines stood
    /// between them.
    fn section(&mut self, name: &str, devices: usize) {
        let here: Vec<usize> = (0..self.all.len()).filter(|at| self.is_at(*at, |line| line.section == name)).collect();
        let mut order: IndexSet<usize> = IndexSet::new();
        for at in &here {
            let Some(first) = self.all.get(*at) else { continue };
            let is_same = |at: &&usize| self.is_at(**at, |line| line.fact.name == first.fact.name);
            if first.devices.is_empty() {
                order.insert(*at);
            } else {
                order.extend(here.iter().filter(is_same));
            }
        }
        for at in order {
            self.line(at, devices);
        }
    }

    fn is_at(&self, at: usize, wanted: impl Fn(&Line) -> bool) -> bool {
        self.all.get(at).is_some_and(wanted)
    }

    /// Adds a line and its advice. DEVICES is the number of devices of its section. If the line concerns only some of
    /// them, these devices are named.
    fn line(&mut self, at: usize, devices: usize) {
        let Some(line) = self.all.get(at) else { return };
        let (fact, some) = (&line.fact, line.devices.clone());
        let is_some = some.len() < devices;
        let only = match some.as_slice() {
            [device] if is_some => format!(" [{device}]"),
            _ => String::new(),
        };
        let before = format!("  {}  {:<24} ", self.mark(fact.verdict), fact.name);
        let value = format!("{}{only}", fact.value);
        self.wrapped(&before, &value, VALUE);
        if is_some && only.is_empty() {
            self.out.extend(wrap_list("        of ", &some));
        }
        self.advice(at);
    }

    /// Adds the advice of a line, with the names of other lines that have the same advice. Adds nothing if an earlier
    /// line had the advice.
    fn advice(&mut self, at: usize) {
        let Some(advice) = self.all.get(at).map(|line| line.fact.advice.clone()) else { return };
        if advice.is_empty() || !self.advised.insert(advice.clone()) {
            return;
        }
        self.wrapped("        -> ", &advice, 11);
        let others = self.all.iter().enumerate().filter(|(other, line)| *other != at && line.fact.advice == advice);
        let others: Vec<String> = others.map(|(_, line)| line.title()).collect();
        if !others.is_empty() {
            self.out.extend(wrap_list("           ", &[format!("the same for: {}", others.join(", "))]));
        }
    }

    fn distances(&mut self) {
        self.out.push(self.matrix.head());
        for (gpu, cells) in self.matrix.rows() {
            let name = format!("{gpu} {NEAREST}");
            let Some(at) = self.all.iter().position(|line| line.section == DISTANCE && line.fact.name == name) else {
                continue;
            };
            let fact = self.all.get(at).map(|line| (self.mark(line.fact.verdict), line.fact.value.clone()));
            let (mark, value) = fact.unwrap_or_default();
            self.out.push(format!("  {mark}  {gpu:<14}{cells}  {value}"));
            self.advice(at);
        }
        self.out.extend(self.matrix.meanings());
    }
}
