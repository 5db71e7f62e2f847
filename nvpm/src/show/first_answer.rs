// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Makes the answer, which fits one screen. The answer says whether GPU memory can be registered on this machine, which
//! ways there are, and which programs find a way. If there is an obstacle, the answer says what to do first.
use indexmap::IndexMap;

use crate::facts::all::{State, Status};
use crate::facts::driver::{flavour, version};
use crate::facts::fact::{Fact, Verdict};
use crate::facts::never::never;
use crate::facts::{caller, distances, guest, no_device, rates, slow};
use crate::read::areas::NVIDIA_DRIVER;
use crate::read::dma_buf;
use crate::read::doubts::uncertain;
use crate::read::engine::engine;
use crate::read::machine::Machine;
use crate::read::names::{folded, gpu_numbers};
use crate::read::pci::{gpus, nics};
use crate::read::ways::{self, DMA_BUF};
use crate::show::program_lines::program_lines;
use crate::text::{clean, wrapped, wrapped_whole};

/// The answer has at most HEIGHT lines and WIDTH columns on every node. On a screen with fewer columns than NARROW, it
/// may have more lines.
const HEIGHT: usize = 12;
pub const WIDTH: usize = 100;
const NARROW: usize = 60;
/// The column at which values start, after the names.
const NAME: usize = 14;

const NEVER: &str = " Nothing that can be installed or set changes that.";
const NOBODY_KNOWS: &str = "Nobody knows whether GPU memory can be registered here: /sys is not mounted.";

/// The foundations of a registration, the lowest first. Each text is the beginning of the identifiers of facts.
const FOUNDATIONS: [&str; 10] = [
    "kernel/",
    "gpu",
    "driver/nvidia/",
    "driver/flavour/",
    "rdma_device",
    "rdma_core/",
    "driver/",
    "machine/",
    "security/",
    "module/",
];

/// Returns a sentence that says how GPU memory can be registered, or why it cannot be registered.
pub fn headline(machine: &Machine) -> String {
    let mut obstacle = ways::in_the_way(machine).to_string();
    // Files are read while the ways are found, so only then the silence shows.
    if let Some(silence) = machine.reader.silences().iter().find(|one| one.area == NVIDIA_DRIVER) {
        return format!("No GPU memory can be registered now: the NVIDIA driver {}.", silence.value());
    }
    if obstacle == ways::NO_DEVICE {
        if let Some(why) = no_device::headline(machine) {
            obstacle = format!("{obstacle}: {why}");
        }
    }
    if !obstacle.is_empty() {
        let never = if never(machine).is_some() { NEVER } else { "" };
        return format!("GPU memory cannot be registered for RDMA here: {obstacle}.{never}");
    }
    let lacks = caller::lacks_devices(machine);
    if !lacks.is_empty() {
        let texts = [lacks, caller::locks_little(machine)];
        let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let node = if engine(machine).is_some() { " The node itself can." } else { "" };
        return format!("This process cannot register GPU memory for RDMA: {}.{node}", texts.join("; "));
    }
    let peer = ways::pointer_ways(machine).join(" and ");
    let how = match (peer.is_empty(), ways::there_are(machine, DMA_BUF)) {
        (false, true) => format!("by pointer (ibv_reg_mr, {peer}) and as dma-buf"),
        (false, false) => format!("by pointer (ibv_reg_mr, {peer}); there is no dma-buf"),
        (true, _) => "as dma-buf; of a pointer (ibv_reg_mr) by nvpm run PROGRAM".to_owned(),
    };
    let can = if uncertain(machine).is_empty() { "can be registered" } else { "may work" };
    let said = [format!("GPU memory {can} for RDMA here, {how}"), caller::locks_little(machine), caveat(machine)];
    let said: Vec<&str> = said.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    format!("{}.", said.join("; "))
}

/// Returns what the files do not show about the ways; an empty string if there is no doubt.
pub fn caveat(machine: &Machine) -> String {
    let doubt = uncertain(machine);
    if !doubt.is_empty() {
        return format!("not certain, because {doubt}");
    }
    let unproven = distances::unproven(machine);
    if unproven.is_empty() {
        return String::new();
    }
    format!("whether data gets from device to device {unproven}, nvpm selftest shows")
}

fn gpu_text(machine: &Machine) -> String {
    let mut counted: IndexMap<String, usize> = IndexMap::new();
    for gpu in gpus(machine).iter() {
        let model = gpu.model(machine);
        *counted.entry(if model.is_empty() { "GPU of no known model".to_owned() } else { model }).or_default() += 1;
    }
    if counted.is_empty() {
        return "none".to_owned();
    }
    let mut texts: Vec<String> = counted.iter().map(|(model, count)| format!("{count} x {model}")).collect();
    if machine.loaded("nvidia") {
        let flavour = flavour(machine).map_or("", |flavour| flavour.word());
        texts.push(format!("driver {}, {flavour}", version(machine)));
    }
    texts.join(", ")
}

fn device_text(machine: &Machine) -> String {
    let names: Vec<String> = nics(machine).iter().map(|nic| nic.name.clone()).collect();
    if names.is_empty() { "none".to_owned() } else { format!("{}: {}", names.len(), folded(&names).join(", ")) }
}

/// Returns a line for each group of GPUs and devices that have the same ways.
fn way_lines(machine: &Machine) -> Vec<String> {
    let (numbers, usable) = (gpu_numbers(machine), ways::usable_gpus(machine));
    let number = |name: &String| numbers.get(name).map_or(String::new(), ToString::to_string);
    let device_count = nics(machine).len();
    let mut found = Vec::new();
    for group in ways::grouped(machine) {
        let is_each = group.gpus.len() == usable.len();
        let gpu_names = match group.gpus.as_slice() {
            [_, _, ..] if is_each => "all GPUs".to_owned(),
            names => format!("GPU {}", folded(&names.iter().map(number).collect::<Vec<_>>()).join(", ")),
        };
        let devices = if group.devices.len() == device_count && device_count > 1 {
            "all RDMA devices".to_owned()
        } else {
            folded(&group.devices).join(", ")
        };
        let how = if group.ways.is_empty() { why_none(machine, &group.devices) } else { group.ways.join(", ") };
        found.push(format!("{gpu_names} with {devices}: {how}"));
    }
    // A program that takes such a GPU fails late, and CUDA may give it the number 0.
    for gpu in ways::driven_gpus(machine).iter() {
        if !usable.iter().any(|usable| usable.name == gpu.name) {
            found.push(format!("GPU {}: no way ({})", number(&gpu.name), ways::why_unusable(machine, gpu)));
        }
    }
    found
}

/// Returns the reason why the first of these devices has no way.
fn why_none(machine: &Machine, devices: &[String]) -> String {
    let lacks = dma_buf::lacking(machine);
    if !lacks.is_empty() {
        return format!("no way ({lacks})");
    }
    let answers = dma_buf::answers(machine);
    let answer = devices.first().and_then(|device| answers.get(device));
    format!("no way (dma-buf: {})", answer.map_or("", |answer| answer.why.as_str()))
}

/// Returns the fact to mend first, or None if no fact has advice. A defect comes before a weakness. A foundation comes
/// before the things that depend on it.
fn first_to_do(facts: &[Fact]) -> Option<&Fact> {
    let wanted = facts.iter().filter(|fact| fact.is_to_do() && !fact.advice.is_empty());
    wanted.min_by_key(|fact| (fact.verdict != Verdict::Bad, depth(fact)))
}

/// Returns a text with the fact to mend, its value and its advice. The value is left out if the first line of the
/// answer has it already.
fn cause_and_advice(machine: &Machine, fact: &Fact) -> String {
    let text = format!("{}, {}", fact.section, fact.name);
    if fact.value.split_once(": ").is_some_and(|(_, why)| headline(machine).contains(why)) {
        return format!("{text}: {}", fact.advice);
    }
    format!("{text}: {}. {}", fact.value, fact.advice)
}

/// Returns the index of the fact in FOUNDATIONS, or their number if the fact is not in them.
fn depth(fact: &Fact) -> usize {
    let id = format!("{}/", fact.id);
    FOUNDATIONS.iter().position(|begin| id.starts_with(begin)).unwrap_or(FOUNDATIONS.len())
}

/// Returns a name and a text in at most MOST lines. A longer text is cut.
fn fitted(name: &str, text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = wrapped_whole(text, width, &format!("{name:<NAME$}"), &" ".repeat(NAME));
    if lines.len() > most {
        lines.truncate(most.max(1));
        if let Some(last) = lines.last_mut() {
            *last = cut(last, width);
        }
    }
    lines
}

/// Appends the mark of omitted words to a line, and removes last words so that both fit in WIDTH.
fn cut(line: &str, width: usize) -> String {
    let mut line = line;
    while !line.is_empty() && line.chars().count() + 4 > width {
        line = line.rsplit_once(' ').map_or("", |(begin, _)| begin);
    }
    format!("{line} ...")
}

/// Returns a name and texts in at most MOST lines. Each text has one line, and lines that are left over are given to
/// the first long texts. If there are too many texts, the last line says how many are left out. A single line has the
/// first text.
fn listed(name: &str, texts: &[String], width: usize, most: usize) -> Vec<String> {
    if let (1, [first, _, ..]) = (most, texts) {
        return fitted(name, first, width, 1);
    }
    let is_whole = texts.len() <= most;
    let shown = texts.get(..if is_whole { texts.len() } else { most.saturating_sub(1) }).unwrap_or_default();
    let mut left = most.saturating_sub(shown.len() + usize::from(!is_whole));
    let mut said: Vec<String> = Vec::new();
    for text in shown {
        let lines = fitted(if said.is_empty() { name } else { "" }, text, width, 1 + left);
        left = (left + 1).saturating_sub(lines.len());
        said.extend(lines);
    }
    if !is_whole {
        said.extend(fitted("", &format!("and {} more: nvpm status --all", texts.len() - shown.len()), width, 1));
    }
    said
}

/// Returns the lines of the answer. On a narrow screen, no text is cut, and the number of lines has no limit.
pub fn lines(machine: &Machine, status: &Status, width: usize) -> Vec<String> {
    let (height, most) = if width >= NARROW { (HEIGHT, 3) } else { (99, 99) };
    if status.state == State::Unknown {
        return vec![NOBODY_KNOWS.to_owned()];
    }
    let mut said = wrapped(&headline(machine), width, "", "");
    said.extend(fitted("GPUs", &gpu_text(machine), width, most / 3));
    said.extend(fitted("RDMA devices", &device_text(machine), width, most / 3));
    if let Some(never) = never(machine).as_ref().as_ref().filter(|never| !never.instead.is_empty()) {
        said.extend(fitted("instead", &never.instead, width, most));
    }
    // Without a way, the answer has no lines about ways and programs, so the advice may fill these lines.
    let is_possible = ways::in_the_way(machine).is_empty() && caller::lacks_devices(machine).is_empty();
    let room = if is_possible { most + 1 } else { most.max(height.saturating_sub(said.len())) };
    let wanted = first_to_do(&status.facts);
    let last = wanted.map_or(Vec::new(), |fact| fitted("first to do", &cause_and_advice(machine, fact), width, room));
    if is_possible {
        let mut slow: Vec<String> = slow::slow(machine).iter().map(slow::Slow::text).collect();
        slow.extend(rates::shares(machine).into_iter().map(|share| share.text));
        // The slow pairs take their lines from the ways, which have the less to say.
        let of_ways = if slow.is_empty() { most } else { most.saturating_sub(1) };
        said.extend(listed("ways", &way_lines(machine), width, of_ways));
        let guest = guest::sentence(machine);
        if !guest.is_empty() && height > said.len() + last.len() + 1 {
            said.extend(fitted("not seen", &guest, width, most / 3));
        }
        let left = height.saturating_sub(said.len() + last.len() + 1).min(most);
        if !slow.is_empty() && left > 0 {
            said.extend(listed("slow", &slow, width, left));
        }
        let left = height.saturating_sub(said.len() + last.len());
        if left > 0 {
            said.extend(listed("programs", &program_lines(machine), width, left));
        }
    }
    said.iter().chain(&last).map(|line| clean(line)).collect()
}
