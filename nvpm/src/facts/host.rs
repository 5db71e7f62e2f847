// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about a host that gives its GPUs to virtual machines. The NVIDIA driver is in the virtual machines, but the
//! settings of the host decide whether data goes directly from device to device.
use std::rc::Rc;

use indexmap::IndexSet;

use crate::facts::access_control::{DIRECT_TRANSLATED, control, translates};
use crate::facts::fact::{Facts, good, info, warn};
use crate::read::machine::Machine;
use crate::read::pci::{CONFIG, Pci, READ_BY_ALL, gpus, nics, pci_at};
use crate::read::ways::given_away;

const NO_IOMMU: &str = "Turn it on in the firmware (VT-d, AMD-Vi) and with intel_iommu=on or amd_iommu=on: without it \
                        nothing can be given to a virtual machine.";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if !given_away(machine) {
        return;
    }
    let gpus = gpus(machine);
    let value = format!("{} given to virtual machines: the NVIDIA driver belongs there", gpus.len());
    facts.add(info("host", "GPUs", value));
    let groups: Vec<String> = gpus.iter().map(|gpu| gpu.pci.iommu(machine)).collect();
    if groups.iter().any(|group| group == "none") {
        facts.add(warn("host", "IOMMU", "a GPU has no IOMMU group").advised(NO_IOMMU));
    } else {
        facts.add(good("host", "IOMMU", "on, as devices of virtual machines need it"));
    }
    bridges(machine, facts);
    translation(machine, facts);
}

/// Judges the switch ports above the GPUs and RDMA devices. Root ports are left out, because data between two devices
/// below one switch does not pass a root port.
fn bridges(machine: &Machine, facts: &mut Facts) {
    let (gpus, nics) = (gpus(machine), nics(machine));
    let devices: Vec<&Rc<Pci>> =
        gpus.iter().map(|gpu| &gpu.pci).chain(nics.iter().filter_map(|nic| nic.pci.as_ref())).collect();
    let between = |pci: &Pci| pci.path.get(2..pci.path.len().saturating_sub(1)).unwrap_or_default().to_vec();
    let ports: IndexSet<String> = devices.into_iter().flat_map(|pci| between(pci)).collect();
    let is_off = |name: &&String| {
        let config = pci_at(machine, name).config(machine, CONFIG);
        let control = control(&config);
        config.len() > READ_BY_ALL && control != 0 && control & DIRECT_TRANSLATED == 0
    };
    let off: Vec<&str> = ports.iter().filter(is_off).map(String::as_str).collect();
    if let Some(first) = off.first() {
        let value = format!("redirects at {}, without Direct Translated P2P", off.join(" "));
        facts.add(warn("host", "ACS", value).advised(format!(
            "Direct Translated P2P is off at {first}, so packets between a GPU and an RDMA device of one virtual machine \
             go up to the CPU and back. With ATS in the RDMA device (mlxconfig ATS_ENABLED=1): setpci -s {first} \
             ECAP_ACS+6.w=40:40 for each of them, until the next reboot. Leave redirect on: it keeps the virtual machines \
             apart."
        )));
    } else if !ports.is_empty() {
        facts.add(good("host", "ACS", "translated requests go directly from device to device"));
    }
}

/// Judges the address translation services of the RDMA devices.
fn translation(machine: &Machine, facts: &mut Facts) {
    for nic in nics(machine).iter().filter(|nic| nic.software.is_empty()) {
        let Some(pci) = &nic.pci else { continue };
        let config = pci.config(machine, CONFIG);
        if config.len() > READ_BY_ALL && !translates(&config) {
            let advice = format!(
                "Without address translation services the packets of a virtual machine go up to the CPU: mlxconfig -d {} \
                 set ATS_ENABLED=1, and reboot.",
                pci.address
            );
            facts.add(warn("host", &format!("ATS of {}", nic.name), "off").advised(advice));
        }
    }
}
