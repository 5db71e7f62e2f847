// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about links of PCI Express that are slower than possible.
use indexmap::IndexMap;

use crate::facts::fact::{Fact, Facts, good};
use crate::facts::topology::Doubt;
use crate::read::machine::Machine;
use crate::read::pci::{Pci, gpus, nics, number, pci_at};

const RESEAT: &str = "Take the card out and put it in again, clean its contacts, look at riser, cable and the \
                      firmware's setting of the slot.";
const WIDER_SLOT: &str = "Put the card into a wider slot, or see whether the firmware divides this one (bifurcation).";
const FASTER_SLOT: &str = "See the firmware's setting of the slot's speed; a riser or a cable that is not made for it, \
                           or a bad contact, lowers it too.";

struct Link {
    now: String,
    /// The reason why the link is slower than both ends allow, and advice. Both texts are empty for a good link.
    reason: String,
    advice: &'static str,
}

/// Judges the link between a device and UPPER, the bridge above it. `idles` says that the device slows its link down
/// while it is idle.
fn judge(pci: &Pci, upper: &Pci, idles: bool) -> Link {
    let now = format!("{} x{}", pci.speed, pci.width);
    let least = |own: f64, upper: f64| if upper > 0.0 { own.min(upper) } else { own };
    let own = number(&pci.max_width);
    let full = least(own, number(&upper.max_width));
    let best = least(number(&pci.max_speed), number(&upper.max_speed));
    let (reason, advice) = if number(&pci.width) < full {
        (format!("both ends can x{full}"), RESEAT)
    } else if full < own {
        (format!("the slot has x{full}, the device can x{}", pci.max_width), WIDER_SLOT)
    } else if number(&pci.speed) >= best {
        (String::new(), "")
    } else if idles {
        let now = format!("{now}, can {best} GT/s: GPUs are slower when idle");
        return Link { now, reason: String::new(), advice: "" };
    } else {
        (format!("both ends can {best} GT/s"), FASTER_SLOT)
    };
    Link { now, reason, advice }
}

fn has_link(pci: &Pci) -> bool {
    number(&pci.width) > 0.0
}

/// Judges the link between a device and its slot.
pub fn fact(machine: &Machine, section: &str, pci: &Pci, doubt: Doubt, idles: bool) -> Option<Fact> {
    if !has_link(pci) {
        return None;
    }
    let upper = match pci.path.as_slice() {
        [_, .., upper, _] => upper,
        _ => "",
    };
    let link = judge(pci, &pci_at(machine, upper), idles);
    if link.reason.is_empty() {
        return Some(good(section, "link", link.now));
    }
    Some(doubt(section, "link", &format!("{}: {}", link.now, link.reason)).advised(link.advice))
}

/// Adds a fact about each link between two bridges, and no link twice. A path begins with the root complex. Then come
/// pairs of bridges that are the two ends of a link: the root port and the upstream port of a switch, then the
/// downstream port of that switch and the next upstream port.
pub fn bridge_facts(machine: &Machine, doubt: Doubt, facts: &mut Facts) {
    let (gpus, nics) = (gpus(machine), nics(machine));
    let devices = gpus.iter().map(|gpu| &gpu.pci).chain(nics.iter().filter_map(|nic| nic.pci.as_ref()));
    let mut uppers: IndexMap<&str, &str> = IndexMap::new();
    for pci in devices {
        let bridges = pci.path.get(1..pci.path.len().saturating_sub(1)).unwrap_or_default();
        for pair in bridges.chunks_exact(2) {
            if let [upper, lower] = pair {
                uppers.insert(lower, upper);
            }
        }
    }
    let mut fast = 0;
    for (name, upper) in uppers {
        let pci = pci_at(machine, name);
        if !has_link(&pci) {
            continue;
        }
        let link = judge(&pci, &pci_at(machine, upper), false);
        if link.reason.is_empty() {
            fast += 1;
        } else {
            let value = format!("{}: {}", link.now, link.reason);
            facts.add(doubt("PCI", &format!("link {name}"), &value).advised(link.advice));
        }
    }
    if fast > 0 {
        facts.add(good("PCI", "links of bridges", format!("as fast as both ends can: {fast}")));
    }
}
