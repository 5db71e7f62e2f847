// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects all facts about a machine, and the state of the module.
use crate::facts::fact::{Fact, Facts, Verdict, bad, identified};
use crate::facts::{caller, detection, devices, driver, module, need, rdma_core, security, silences, usage};
use crate::read::machine::{Machine, own_module};
use crate::read::ways;

/// The parts of the status, in the order of `status --all`.
const PARTS: [fn(&Machine, &mut Facts); 8] = [
    module::facts,
    usage::facts,
    rdma_core::facts,
    need::facts,
    driver::facts,
    detection::facts,
    security::facts,
    devices::facts,
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    NotRunning,
    /// Nothing says whether the module is loaded.
    Unknown,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::NotRunning => "not running",
            Self::Unknown => "unknown",
        }
    }
}

pub struct Status {
    pub state: State,
    /// The LSB's exit code for a service. It is also 0 if another way serves.
    pub code: u8,
    pub facts: Vec<Fact>,
}

impl Status {
    /// Counts the facts that need attention.
    pub fn to_do(&self) -> usize {
        self.facts.iter().filter(|fact| fact.is_to_do()).count()
    }
}

pub fn status_of(machine: &Machine) -> Status {
    if !machine.exists("/sys/module") {
        let fact = bad("module", "state", "unknown").advised("Mount sysfs: mount -t sysfs sysfs /sys");
        return Status { state: State::Unknown, code: 4, facts: identified(vec![fact]) };
    }
    let mut collected = Facts::new(machine);
    for part in PARTS {
        part(machine, &mut collected);
    }
    // A file that does not answer shows only when it is read, but it explains the other facts.
    let mut facts = silences::facts(machine);
    facts.extend(collected.into_found());
    let facts = identified(facts);
    if !own_module(machine).is_empty() {
        return Status { state: State::Running, code: 0, facts };
    }
    let is_missed = facts.iter().any(|fact| fact.id == "module/state" && fact.verdict != Verdict::None);
    let is_impossible = !ways::in_the_way(machine).is_empty() || !caller::lacks_devices(machine).is_empty();
    Status { state: State::NotRunning, code: if is_missed || is_impossible { 3 } else { 0 }, facts }
}
