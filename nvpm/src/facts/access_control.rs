// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about access control services (ACS) of bridges, which redirect data between GPUs and RDMA devices.
use indexmap::IndexSet;

use crate::facts::fact::{Fact, good, unread};
use crate::facts::topology::Doubt;
use crate::read::machine::Machine;
use crate::read::pci::{CONFIG, Pci, READ_BY_ALL, pci_at};
use crate::read::pci_express::{SETTINGS, keeps_order};

const SECTION: &str = "PCI";
const CAPABILITY: u32 = 13;
const REQUEST_REDIRECT: u32 = 1 << 2;
const COMPLETION_REDIRECT: u32 = 1 << 3;
pub const DIRECT_TRANSLATED: u32 = 1 << 6;
const ATS_CAPABILITY: u32 = 15;
const ATS_ENABLE: u32 = 1 << 31;

/// Returns the first register after the header of an extended capability; 0 if the device does not have the capability.
pub fn extended(config: &[u32], capability: u32) -> u32 {
    let mut at = 64;
    for _ in 0..960 {
        let [header, first, ..] = *config.get(at..).unwrap_or_default() else { break };
        if header & 0xFFFF == capability {
            return first;
        }
        at = (header >> 22) as usize;
        if at < 64 {
            break;
        }
    }
    0
}

/// Returns the control register of ACS.
pub fn control(config: &[u32]) -> u32 {
    extended(config, CAPABILITY) >> 16
}

/// Returns whether a switch sends the requests that a device below this port makes to another port up to the root
/// complex. Addresses that the device has translated itself (ATS) may go directly.
pub fn redirects_requests(machine: &Machine, port: &Pci, device: &Pci) -> bool {
    let found = control(&port.config(machine, CONFIG));
    let is_direct = found & DIRECT_TRANSLATED != 0 && translates(&device.config(machine, CONFIG));
    found & REQUEST_REDIRECT != 0 && !is_direct
}

/// Returns whether a switch certainly sends the answers that a GPU below this port gives to an RDMA device at another
/// port up to the root complex. The switch may send answers with relaxed ordering directly. An answer has the ordering
/// of the request.
pub fn redirects_completions(machine: &Machine, port: &Pci, device: &Pci) -> bool {
    let is_on = control(&port.config(machine, CONFIG)) & COMPLETION_REDIRECT != 0;
    is_on && keeps_order(&device.config(machine, SETTINGS))
}

/// Returns whether a device translates addresses itself.
pub fn translates(config: &[u32]) -> bool {
    extended(config, ATS_CAPABILITY) & ATS_ENABLE != 0
}

/// Judges whether bridges send packets between their ports up to the root complex, which is a detour.
pub fn fact(machine: &Machine, bridges: &IndexSet<String>, doubt: Doubt) -> Option<Fact> {
    let configs: Vec<Vec<u32>> = bridges.iter().map(|bridge| pci_at(machine, bridge).config(machine, CONFIG)).collect();
    let redirects = |config: &[u32]| control(config) & (REQUEST_REDIRECT | COMPLETION_REDIRECT) != 0;
    let named = bridges.iter().zip(&configs).filter(|(_, config)| redirects(config));
    let redirecting: Vec<&str> = named.map(|(bridge, _)| bridge.as_str()).collect();
    if let Some(first) = redirecting.first() {
        let names = redirecting.join(" ");
        let value = format!("redirect is on at {names}: data between GPUs and RDMA devices is routed through the CPU");
        return Some(doubt(SECTION, "ACS", &value).advised(format!(
            "For each of them, until the next reboot: setpci -s {first} ECAP_ACS+6.w=0:c. For good: ACS off in the \
             firmware, or pci=disable_acs_redir={first} on the kernel's command line. Not on a machine that gives these \
             devices to virtual machines: ACS keeps them apart."
        )));
    }
    if configs.iter().any(|config| config.len() <= READ_BY_ALL) {
        return Some(unread(SECTION, "ACS", "ACS of the bridges"));
    }
    (!bridges.is_empty()).then(|| good(SECTION, "ACS", "redirect is off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_found_in_their_list() {
        let mut config = vec![0; 1024];
        config[64] = 1 | (80 << 22);
        config[80] = 0x0001_000D;
        config[81] = 0x000C_0000;
        assert_eq!((control(&config), extended(&config, 15)), (0xC, 0));
        // A list that leads back to itself has an end.
        config[80] = 64 << 22;
        assert_eq!(control(&config), 0);
        assert_eq!(control(&config[..65]), 0);
    }
}
