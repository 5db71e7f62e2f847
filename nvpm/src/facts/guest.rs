// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says which facts only the host of a virtual machine has. Devices that are passed through have bridges made of
//! software here, so the files of this machine do not show why transfers are slow (NVIDIA/nccl#949,
//! NVIDIA/nccl-tests#380).
use crate::facts::fact::{Facts, info};
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::place::{cloud, container, guest_kind};
use crate::read::ways::usable_gpus;

const FACTS: &str = "links between switches, distances, ACS redirect, Direct Translated P2P, ATS and the IOMMU";
const ON_THE_HOST: &str = "Run nvpm status on the host: for GPUs that are given to virtual machines it judges ACS, ATS \
                           and the IOMMU.";
const SLOW: &str =
    "Slow transfers with good links here have their cause there: nvpm selftest --bandwidth measures them.";

/// Returns who has the facts that this machine does not have; an empty text for a machine that has them all.
fn who(machine: &Machine) -> &'static str {
    let is_guest = !guest_kind(machine).is_empty() && container(machine).is_empty();
    if !is_guest || usable_gpus(machine).is_empty() || nics(machine).is_empty() {
        return "";
    }
    if cloud(machine).is_empty() { "the host" } else { "the cloud's host" }
}

/// Returns a sentence for the first screen; an empty text for a machine that has all facts.
pub fn sentence(machine: &Machine) -> String {
    match who(machine) {
        "" => String::new(),
        who => format!("only {who} has: links between switches, distances, ACS, ATS, IOMMU"),
    }
}

pub fn facts(machine: &Machine, facts: &mut Facts) {
    let who = who(machine);
    if !who.is_empty() {
        let advice = if cloud(machine).is_empty() { format!("{ON_THE_HOST} {SLOW}") } else { SLOW.to_owned() };
        facts.add(info("machine", "facts of the host", format!("only {who} has them: {FACTS}")).advised(advice));
    }
}
