// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the settings of PCI Express that a device's configuration space has. Users other than root cannot read them.
use std::cell::RefCell;
use std::collections::HashMap;

use crate::read::machine::{Machine, base};
use crate::read::pci::{Pci, READ_BY_ALL};

const CAPABILITY: u32 = 16;
/// The most capabilities of a device.
const MOST_CAPABILITIES: usize = 48;
/// In the control register: packets of this device may have relaxed ordering.
pub const RELAXED_ORDERING: u32 = 1 << 4;
/// The bytes of the configuration space that have the list of capabilities.
pub const SETTINGS: u64 = 256;
/// The values of `MaxPayload`, by the bits 7 to 5 of the control register. The last two values are reserved.
const PAYLOADS: [Option<u32>; 8] = [Some(128), Some(256), Some(512), Some(1024), Some(2048), Some(4096), None, None];

/// Returns the device control register of PCI Express, which is in the device's list of capabilities. None if the
/// register cannot be read.
pub fn device_control(config: &[u32]) -> Option<u32> {
    if config.len() <= READ_BY_ALL {
        return None;
    }
    let mut at = (config.get(13)? & 0xFF) as usize;
    for _ in 0..MOST_CAPABILITIES {
        if at < 64 || at + 8 >= 4 * config.len() {
            break;
        }
        let head = *config.get(at / 4)?;
        if head & 0xFF == CAPABILITY {
            return config.get(at / 4 + 2).copied();
        }
        at = ((head >> 8) & 0xFF) as usize;
    }
    None
}

/// Returns whether a device certainly sends no packet with relaxed ordering.
pub fn keeps_order(config: &[u32]) -> bool {
    device_control(config).is_some_and(|control| control & RELAXED_ORDERING == 0)
}

/// Returns the most bytes of data that a packet of this device may have. None if the setting cannot be read. A bridge
/// is read only once, although the paths of many pairs pass it.
pub fn max_payload(machine: &Machine, pci: &Pci) -> Option<u32> {
    fn known(_: &Machine) -> RefCell<HashMap<String, Option<u32>>> {
        RefCell::default()
    }
    let known = machine.once(known);
    if let Some(found) = known.borrow().get(&pci.address) {
        return *found;
    }
    let found = if pci.address.is_empty() { None } else { payload_in(&pci.config(machine, SETTINGS)) };
    known.borrow_mut().insert(pci.address.clone(), found);
    found
}

fn payload_in(config: &[u32]) -> Option<u32> {
    let control = device_control(config)?;
    PAYLOADS.get(((control >> 5) & 7) as usize).copied().flatten()
}

/// Returns the address of the device that has the link and the settings of this one. This is the physical function of a
/// virtual function, and the device itself otherwise.
pub fn with_link(machine: &Machine, pci: &Pci) -> String {
    let physical = machine.target(&format!("{}/physfn", pci.directory));
    if physical.is_empty() { pci.address.clone() } else { base(&physical).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;
    use crate::read::pci::pci_at;

    #[test]
    fn the_control_register_is_in_the_list_of_capabilities() {
        let mut config = vec![0; 64];
        config[13] = 0x40;
        config[16] = 0x5001;
        config[20] = 0x0002_0010;
        config[22] = 0x2930;
        assert_eq!(device_control(&config), Some(0x2930));
        config[16] = 0x4001;
        assert_eq!(device_control(&config), None);
        assert_eq!(device_control(&config[..16]), None);
        assert_eq!(device_control(&[]), None);
    }

    #[test]
    fn three_bits_are_the_payload() {
        let made = Made::new();
        let payload = || {
            let machine = made.read();
            max_payload(&machine, &pci_at(&machine, "0000:04:00.0"))
        };
        for (control, bytes) in [
            ("2910", Some(128)),
            ("2930", Some(256)),
            ("5050", Some(512)),
            ("00b0", Some(4096)),
            ("00d0", None),
            ("ffff", None),
        ] {
            made.change([format!("settings 0000:04:00.0 {control}")]);
            assert_eq!(payload(), bytes, "{control}");
        }
        made.change(["zeros 64 /sys/bus/pci/devices/0000:04:00.0/config"]);
        assert_eq!(payload(), None);
    }
}
