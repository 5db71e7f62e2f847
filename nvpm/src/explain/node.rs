// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The facts of this node, which `nvpm status` prints. They confirm a cause that a log shows or speak against it,
//! and never add a cause.
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use crate::explain::inputs::written;
use crate::explain::judge::{Found, Verdict, rank};
use crate::explain::table::Sure;
use crate::facts::all::status_of;
use crate::facts::fact::{Fact, Verdict as State};
use crate::read::machine::Machine;

/// The sections of devices. A node has a section for each device.
const DEVICES: &[(&str, &str)] = &[("GPUs", "GPU "), ("RDMA devices", "RDMA device ")];

pub struct Node {
    facts: Vec<Fact>,
}

/// The facts at the lines of status that a cause names.
#[derive(Default)]
pub struct Seen<'a> {
    pub confirm: Vec<&'a Fact>,
    pub contradict: Vec<&'a Fact>,
}

impl Node {
    pub fn of_this_machine() -> Self {
        Self { facts: status_of(&Machine::here(false)).facts }
    }

    /// Returns the facts at the lines of STATUS, as "access: `memory lock`; module: `state`".
    pub fn seen(&self, status: &str) -> Seen<'_> {
        let mut seen = Seen::default();
        for part in status.split(';') {
            let Some((section, names)) = part.split_once(':') else { continue };
            for name in names.split('`').skip(1).step_by(2) {
                for fact in self.facts.iter().filter(|fact| is_of(fact, section.trim(), name)) {
                    match fact.verdict {
                        State::Bad | State::Warn => seen.confirm.push(fact),
                        State::Good => seen.contradict.push(fact),
                        State::None | State::Unread => {}
                    }
                }
            }
        }
        seen
    }

    /// Puts causes that the node confirms before causes that are as sure, and those that it contradicts after all
    /// others. A cause that is certain stays, because the node may have changed since. If the node contradicts the
    /// first cause and confirms one that was only possible, the latter is probable.
    pub fn compare(&self, verdict: &mut Verdict) {
        let is_contradicted = |one: &Found| {
            let seen = self.seen(one.about().status);
            seen.confirm.is_empty() && !seen.contradict.is_empty() && one.sure() < Sure::Certain
        };
        let is_confirmed = |one: &Found| !self.seen(one.about().status).confirm.is_empty();
        if verdict.causes.first().is_some_and(is_contradicted) {
            for one in verdict.causes.iter_mut().filter(|one| is_confirmed(one)) {
                for proof in &mut one.proofs {
                    proof.sure = proof.sure.max(Sure::Probable);
                }
            }
        }
        rank(&mut verdict.causes);
        let order = |one: &Found| {
            let is_certain = one.sure() == Sure::Certain;
            (!is_certain, is_contradicted(one), Reverse(one.sure()), !is_confirmed(one))
        };
        verdict.causes.sort_by_key(order);
    }

    /// Returns the advice of the fact that confirms a cause, if the cause leaves the advice to the node.
    pub fn advice(&self, found: &Found) -> Option<String> {
        let facts = self.seen(found.about().status).confirm;
        let advice = facts.iter().map(|fact| fact.advice.trim_end_matches('.')).find(|advice| !advice.is_empty());
        advice.filter(|_| found.about().of_node).map(str::to_owned)
    }

    /// Returns the line of this node's status that is about a cause, and whether the line confirms the cause.
    pub fn word(&self, found: &Found) -> Option<(String, bool)> {
        let seen = self.seen(found.about().status);
        let fact = seen.confirm.first().or(seen.contradict.first())?;
        Some((format!("{}, {}: {}", fact.section, fact.name, fact.value), !seen.confirm.is_empty()))
    }
}

fn is_of(fact: &Fact, section: &str, name: &str) -> bool {
    let device = DEVICES.iter().find(|(wanted, _)| *wanted == section);
    let same = device.map_or(fact.section == section, |(_, start)| fact.section.starts_with(start));
    same && (fact.name.starts_with(name) || fact.name.ends_with(name))
}

/// Returns whether a log with these hosts is of this machine. The domain of this machine does not count, because the
/// hosts of a log have no domain.
pub fn is_here(hosts: &BTreeSet<String>) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = own.trim().split('.').next().unwrap_or_default();
    !own.is_empty() && hosts.contains(own)
}

/// Returns whether all files were written before this machine booted, because it may have been set up differently then.
pub fn is_older(files: &[PathBuf]) -> bool {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let booted = text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    let booted = booted.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    let newest = files.iter().filter(|file| file.as_os_str() != "-").filter_map(|file| written(file)).max();
    matches!((newest, booted), (Some(newest), Some(booted)) if newest < booted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fact::{bad, good};

    #[test]
    fn the_column_of_a_cause_finds_the_lines_of_status() {
        let facts = vec![bad("module", "state", "v"), good("RDMA device mlx5_0", "port 1", "v")];
        let node = Node { facts };
        let seen = node.seen("module: `state`; RDMA devices: `port`");
        assert_eq!((seen.confirm.len(), seen.contradict.len()), (1, 1));
    }
}
