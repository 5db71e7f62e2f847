// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Knows the root complexes through which devices reach each other. They are those in the kernel's own list, because
//! kernel developers have tried requests between the root ports of these root complexes. A root complex that is not
//! listed may drop such requests, or may drop only read requests.
use crate::read::machine::Machine;
use crate::read::pci::{DEVICES, hexadecimal};

/// The Intel server processors in `pci_p2pdma_whitelist` of drivers/pci/p2pdma.c. The numbers are those of the first
/// device on their root buses. The older processors are listed for devices below the same host bridge only
/// (`REQ_SAME_HOST_BRIDGE`).
const WITHIN: [u64; 4] = [0x3C00, 0x3C01, 0x2F00, 0x2F01];
const ACROSS: [u64; 6] = [0x2020, 0x2030, 0x2031, 0x2032, 0x2033, 0x09A2];
const INTEL: &str = "0x8086";
/// The first family of AMD processors that forward requests. In the kernel's p2pdma.c, all processors from this family
/// on do so.
const ZEN: u64 = 0x17;

/// Returns whether the kernel's list has this machine's root complex, for devices below different root complexes or
/// below one.
pub fn forwards(machine: &Machine, is_across: bool) -> bool {
    let known = machine.once(compute);
    if is_across { known.0 } else { known.1 }
}

/// Returns the answers for different root complexes and for one.
fn compute(machine: &Machine) -> (bool, bool) {
    let processor = machine.all_text(&["/proc/cpuinfo"]);
    let value = |name: &str| {
        let value = processor.split('\n').find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(": "));
        value.unwrap_or_default()
    };
    let family = value("cpu family").parse::<u64>();
    if let (true, Ok(family)) = (value("vendor_id").starts_with("AuthenticAMD"), family) {
        return (family >= ZEN, family >= ZEN);
    }
    let mut bridges = Vec::new();
    for place in machine.glob(&[&format!("{DEVICES}*:00.0")]) {
        if machine.text(&format!("{place}/vendor")) == INTEL {
            bridges.push(hexadecimal(&machine.text(&format!("{place}/device"))));
        }
    }
    let is_across = bridges.iter().any(|bridge| ACROSS.contains(bridge));
    (is_across, is_across || bridges.iter().any(|bridge| WITHIN.contains(bridge)))
}
