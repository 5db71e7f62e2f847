// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says that GPU memory can never be registered on this machine, whatever is installed or set, because of its GPUs, its
//! network or its instance type. This is no defect: nobody can mend it, so a monitor must not alarm anybody.
use std::rc::Rc;

use crate::facts::devices::NOT_ON_PCI;
use crate::facts::efa::OTHER_INSTANCE;
use crate::facts::fact::{Facts, info};
use crate::facts::nic::BY_PSM;
use crate::facts::no_device;
use crate::read::machine::Machine;
use crate::read::pci::{gpus, nics};
use crate::read::place::{container, without_gpudirect};
use crate::read::ways::{self, driven_gpus};

/// The driver of Omni-Path, whose verbs reach no GPU memory.
const OMNI_PATH: &str = "hfi1";

/// The reason, and what to use in place of GPUDirect RDMA by verbs; an empty text if the reason says it.
pub struct Never {
    pub why: String,
    pub instead: String,
}

/// Returns why GPU memory can never be registered here; None if it can be, or if something that can be mended is in the
/// way.
pub fn never(machine: &Machine) -> Rc<Option<Never>> {
    fn compute(machine: &Machine) -> Option<Never> {
        if ways::in_the_way(machine).is_empty() || ways::given_away(machine) || ways::given_no_gpu(machine) {
            return None;
        }
        of_gpus(machine).or_else(|| of_network(machine))
    }
    machine.once(compute)
}

fn of_gpus(machine: &Machine) -> Option<Never> {
    let new = |why: String, instead: &str| Some(Never { why, instead: instead.to_owned() });
    if gpus(machine).is_empty() {
        let elsewhere = ways::gpu_elsewhere(machine);
        return if elsewhere.is_empty() { None } else { new(elsewhere.to_owned(), NOT_ON_PCI) };
    }
    let driven = driven_gpus(machine);
    let first = driven.first().filter(|_| driven.iter().all(|gpu| gpu.excluded(machine)))?;
    new(ways::why_unusable(machine, first), first.doubt(machine)?.advice)
}

fn of_network(machine: &Machine) -> Option<Never> {
    if driven_gpus(machine).is_empty() {
        return None;
    }
    let (nics, instance) = (nics(machine), without_gpudirect(machine));
    if !instance.is_empty() && !nics.is_empty() {
        return Some(Never { why: instance.to_string(), instead: OTHER_INSTANCE.to_owned() });
    }
    if !nics.is_empty() && nics.iter().all(|nic| nic.driver(machine) == OMNI_PATH) {
        let why = "Omni-Path reaches no GPU memory by verbs".to_owned();
        return Some(Never { why, instead: BY_PSM.to_owned() });
    }
    // A container may have no RDMA device of a node that has some.
    if !nics.is_empty() || !container(machine).is_empty() {
        return None;
    }
    let why = no_device::without_verbs(machine);
    (!why.is_empty()).then(|| Never { why: why.to_owned(), instead: String::new() })
}

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if let Some(never) = never(machine).as_ref() {
        let value = format!("never here: {}", never.why);
        facts.add(info("need", "GPUDirect RDMA", value).advised(never.instead.clone()));
    }
}
