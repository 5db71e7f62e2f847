// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The lines of the first screen about programs.
use indexmap::IndexMap;

use crate::facts::consumers::PROGRAMS;
use crate::facts::outcomes::{Group, Outcome, grouped};
use crate::read::machine::{MODULE, Machine};
use crate::read::names::pair_names;
use crate::read::ways::{self, DMA_BUF};

const FIND_NONE: &str = "find no way";
const UNFIT: &str = "cannot use this RDMA device";

/// Returns for each group of pairs a line for each way, with the programs that take this way. The last lines of a group
/// name the programs that find no way, or cannot use the devices.
pub fn program_lines(machine: &Machine) -> Vec<String> {
    let groups = grouped(machine);
    let mut found = Vec::new();
    for group in groups.iter() {
        let begin = match groups.len() {
            1 => String::new(),
            _ => format!("with {}: ", pair_names(machine, &group.pairs)),
        };
        for (text, programs) in by_way(machine, group) {
            found.push(format!("{begin}{text}: {}", programs.join("; ")));
        }
    }
    found
}

/// Returns the names of the programs by what they do with the pairs of the group. Only common programs are named, and
/// the others are counted. The programs that find a way come first.
fn by_way(machine: &Machine, group: &Group) -> Vec<(String, Vec<String>)> {
    let mut named: IndexMap<String, Vec<String>> = IndexMap::new();
    let mut others: IndexMap<String, usize> = IndexMap::new();
    for program in PROGRAMS {
        let Some(found) = group.programs.get(program.name) else { continue };
        if found.unfit && program.has_efa_row {
            continue;
        }
        let text = deed(machine, group, found);
        if !program.common {
            *others.entry(text).or_default() += 1;
            continue;
        }
        let wanted = if found.unfit && program.only.is_empty() { program.instead } else { found.setting };
        let name = if wanted.is_empty() { program.name.to_owned() } else { format!("{} ({wanted})", program.name) };
        named.entry(text).or_default().push(name);
    }
    for (text, names) in &mut named {
        if let Some(count) = others.get(text) {
            names.push(format!("{count} more"));
        }
    }
    let mut found: Vec<(String, Vec<String>)> = named.into_iter().collect();
    found.sort_by_key(|(text, _)| text == FIND_NONE || text == UNFIT);
    found
}

/// Returns what a program does with the pairs.
fn deed(machine: &Machine, group: &Group, found: &Outcome) -> String {
    if found.unfit {
        return UNFIT.to_owned();
    }
    if found.way.is_empty() {
        return FIND_NONE.to_owned();
    }
    let pairs = ways::of_pairs(machine);
    let has_module = |pair| pairs.get(pair).is_some_and(|ways| ways.iter().any(|way| way == MODULE));
    if found.way == DMA_BUF && ways::revokes(machine) && group.pairs.iter().any(has_module) {
        return format!("use {DMA_BUF}, which nothing revokes");
    }
    format!("use {}", found.way)
}
