// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says which way each program takes with the RDMA devices of this node, and which setting or sign would change that.
use indexmap::{IndexMap, IndexSet};

use crate::facts::consumers::{FAILS, OTHER_NAME, PROGRAMS, Program};
use crate::facts::fact::{Fact, Facts, good, info, warn};
use crate::facts::outcomes::{BAD_NAME, Outcome, outcomes};
use crate::read::conf::configured;
use crate::read::machine::{CONF, MODULE, Machine, PEERMEM, SERVICE, own_module};
use crate::read::names::pair_names;
use crate::read::ways::{self, DMA_BUF, Pair};

const RENAME: &str = "rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx).";
const NO_SERVICE: &str = "modprobe nv_peer_mem_marker adds a module named nvidia_peermem; at boot: echo \
                          nv_peer_mem_marker >/etc/modules-load.d/nv_peer_mem_marker.conf";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if ways::of_pairs(machine).values().all(Vec::is_empty) {
        facts.add(info("detection", "programs", "nothing to detect: there is no way to GPU memory"));
        return;
    }
    for program in PROGRAMS {
        facts.add(fact(machine, program));
    }
    facts.add(marker(machine));
    facts.add(bypassed(machine));
}

/// Returns a fact about a program, unless the program was made for devices that this node does not have.
fn fact(machine: &Machine, program: &Program) -> Option<Fact> {
    let (every, ways) = (outcomes(machine), ways::of_pairs(machine));
    let mut pairs_by_outcome: IndexMap<&Outcome, Vec<Pair>> = IndexMap::new();
    for (pair, found) in every.get(program.name)? {
        if ways.get(pair).is_some_and(|here| !here.is_empty()) {
            pairs_by_outcome.entry(found).or_default().push(pair.clone());
        }
    }
    let texts: Vec<String> = if let [one] = pairs_by_outcome.keys().copied().collect::<Vec<_>>().as_slice() {
        vec![said(machine, program, one)]
    } else {
        let with = |(found, pairs): (&&Outcome, &Vec<Pair>)| {
            format!("with {}: {}", pair_names(machine, pairs), said(machine, program, found))
        };
        pairs_by_outcome.iter().map(with).collect()
    };
    let found: Vec<&Outcome> = pairs_by_outcome.keys().copied().collect();
    if found.is_empty() { None } else { Some(judged(machine, program, &found, &texts.join("; "))) }
}

/// Returns an outcome as text.
fn said(machine: &Machine, program: &Program, found: &Outcome) -> String {
    match found.way.as_str() {
        DMA_BUF => by_dma_buf(machine, program, found),
        MODULE | PEERMEM if found.sees.is_empty() => "yes: it looks for nothing, and tries".to_owned(),
        MODULE | PEERMEM => format!("yes: {}", found.sees),
        "" if found.has_chosen() => format!("no: {}{}", found.why, pointers_instead(machine, program)),
        "" if program.without == FAILS => format!("no: {}", found.why),
        "" => format!("no: {}; it then {}", found.why, program.without),
        driver => format!("yes: {driver} registers GPU memory itself"),
    }
}

/// Returns how a program that has chosen dma-buf would register pointers. An empty text if this is not possible.
fn pointers_instead(machine: &Machine, program: &Program) -> String {
    if program.skip.is_empty() || ways::pointer_ways(machine).is_empty() {
        return String::new();
    }
    format!("; {} makes it register pointers", program.skip)
}

fn by_dma_buf(machine: &Machine, program: &Program, found: &Outcome) -> String {
    let text = format!("by dma-buf {}", found.setting);
    let text = text.trim_end();
    if ways::peer_memory_by(machine).is_empty() {
        return text.to_owned();
    }
    if !found.setting.is_empty() {
        let signs = program.signs().join(" ");
        let sees = if signs.is_empty() { String::new() } else { format!(": it looks for {signs}") };
        return format!("{text}; of peer memory it sees none{sees}");
    }
    if !program.skip.is_empty() {
        return format!("{text}, which it tries first; {} makes it register pointers", program.skip);
    }
    let is_alone = program.tries.iter().all(|attempt| attempt.dma_buf);
    format!("{text}{}", if is_alone { " alone" } else { ", which it tries first" })
}

/// Returns the fact with its verdict. The fact `marker` has the advice for all programs that look for the marker, so
/// their own facts have no advice.
fn judged(machine: &Machine, program: &Program, found: &[&Outcome], value: &str) -> Fact {
    if found.iter().any(|one| !one.way.is_empty() && one.way != DMA_BUF) {
        return good("detection", program.name, value);
    }
    let is_judged = found.iter().any(|one| !one.way.is_empty()) || found.iter().all(|one| one.unfit);
    if is_judged || ways::pointer_ways(machine).is_empty() {
        return info("detection", program.name, value);
    }
    if found.iter().any(|one| one.why == BAD_NAME) {
        return warn("detection", program.name, value).advised(RENAME);
    }
    let advice = if program.looks_for_marker() { "" } else { program.advice };
    info("detection", program.name, value).advised(advice)
}

/// Returns one fact that names all programs that miss the marker.
fn marker(machine: &Machine) -> Option<Fact> {
    if own_module(machine) != MODULE || machine.exists(OTHER_NAME) {
        return None;
    }
    let blind = PROGRAMS.iter().filter(|program| misses_marker(machine, program));
    let blind = blind.map(|program| program.name).collect::<Vec<_>>().join("; ");
    if blind.is_empty() {
        return None;
    }
    let value = format!("no module is called nvidia_peermem, for which these look: {blind}");
    Some(warn("detection", "marker", value).advised(to_get_marker(machine)))
}

fn to_get_marker(machine: &Machine) -> String {
    if !machine.exists(SERVICE) {
        NO_SERVICE.to_owned()
    } else if configured(machine, "MARKER") == "yes" {
        format!("{SERVICE} restart: it says why the module nvidia_peermem, which MARKER=yes asks for, is not there.")
    } else {
        format!("Set MARKER=yes in {CONF}, then {SERVICE} restart: that adds a module named nvidia_peermem.")
    }
}

/// Returns whether the program finds no way, and would use the module if it saw the marker. A program that has chosen
/// dma-buf does not look for the marker.
fn misses_marker(machine: &Machine, program: &Program) -> bool {
    let every = outcomes(machine);
    let Some(found) = every.get(program.name).filter(|_| program.looks_for_marker()) else { return false };
    if found.values().any(|one| !one.way.is_empty()) {
        return false;
    }
    let ways = ways::of_pairs(machine);
    let served = ways.iter().filter(|(_, here)| here.iter().any(|way| way == MODULE));
    let mut without = served.filter_map(|(pair, _)| found.get(pair));
    without.any(|one| !one.unfit && !one.has_chosen())
}

/// Returns a fact if the module would revoke registrations, and programs register dma-bufs instead, which nothing
/// revokes.
fn bypassed(machine: &Machine) -> Option<Fact> {
    if !ways::revokes(machine) {
        return None;
    }
    let programs: Vec<&Program> = bypassing(machine);
    let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
    if names.is_empty() {
        return None;
    }
    let settings: IndexSet<&str> =
        programs.iter().map(|program| program.skip).filter(|skip| !skip.is_empty()).collect();
    let settings = settings.into_iter().collect::<Vec<_>>().join(" ");
    let value = format!(
        "persistent_api_support=0 does nothing for these, which take dma-buf before {MODULE}: {}",
        names.join("; ")
    );
    let advice = format!(
        "Only with these settings do they register pointers: {settings}. nvpm status --all and docs/choosing.md name the \
         program of each."
    );
    Some(info("detection", "revocation", value).advised(advice))
}

/// Returns the programs that take dma-buf with a pair that the module serves.
fn bypassing(machine: &Machine) -> Vec<&'static Program> {
    let (every, ways) = (outcomes(machine), ways::of_pairs(machine));
    let is_served = |pair: &Pair| ways.get(pair).is_some_and(|here| here.iter().any(|way| way == MODULE));
    let takes =
        |by_pair: &IndexMap<Pair, Outcome>| by_pair.iter().any(|(pair, found)| found.way == DMA_BUF && is_served(pair));
    PROGRAMS.iter().filter(|program| every.get(program.name).is_some_and(takes)).collect()
}
