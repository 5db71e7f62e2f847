// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the connections of GPUs and RDMA devices: their distances, bridges that redirect data, and links that
//! are slower than possible.
use indexmap::IndexSet;

use crate::facts::fact::{Fact, Facts, info, warn};
use crate::facts::{access_control, distances, links, vf};
use crate::read::machine::Machine;
use crate::read::pci::{gpus, nics};
use crate::read::place::virtual_kind;

/// Makes a fact about a connection that could be better.
pub type Doubt = fn(&str, &str, &str) -> Fact;

/// Returns how connections are judged. A virtual machine does not show the real connections, so nvpm does not judge
/// them there.
fn doubt(machine: &Machine) -> Doubt {
    if virtual_kind(machine).is_empty() {
        |section, name, value| warn(section, name, value)
    } else {
        |section, name, value| info(section, name, value)
    }
}

pub fn facts(machine: &Machine, facts: &mut Facts) {
    let (gpus, doubt) = (gpus(machine), doubt(machine));
    let mut between = IndexSet::new();
    for gpu in gpus.iter().filter(|gpu| !gpu.driver.starts_with("vfio")) {
        distances::facts(machine, gpu, &mut between, facts);
    }
    facts.add(access_control::fact(machine, &between, doubt));
    for gpu in gpus.iter() {
        facts.add(links::fact(machine, &format!("GPU {}", gpu.name), &gpu.pci, doubt, true));
    }
    for nic in nics(machine).iter().filter(|nic| nic.software.is_empty()) {
        // A virtual function shows no link of its own.
        if let Some(pci) = nic.pci.as_ref().filter(|pci| !vf::is_one(machine, pci)) {
            facts.add(links::fact(machine, &format!("RDMA device {}", nic.name), pci, doubt, false));
        }
    }
    links::bridge_facts(machine, doubt, facts);
}
