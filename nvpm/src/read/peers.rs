// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether the driver of an RDMA device asks for peer memory. The driver asks the RDMA core, or NVIDIA's driver
//! directly. A driver that never asks looks healthy, because registrations of other memory succeed without asking.
use std::rc::Rc;

use indexmap::IndexSet;

use crate::read::dma_buf::verbs_of;
use crate::read::machine::Machine;
use crate::read::pairs::pairs;
use crate::read::pci::{Nic, nics};
use crate::read::place::without_gpudirect;
use crate::read::products::{ASK, Can, OWN_PEER_MEMORY};

/// Whether the driver of an RDMA device asks the RDMA core for peer memory, and the reason.
pub struct Asks {
    pub can: Can,
    pub why: String,
}

/// Returns whether the device's driver asks the RDMA core for peer memory.
pub fn asks(machine: &Machine, nic: &Nic) -> Asks {
    let no = |why: String| Asks { can: Can::No, why };
    let Some(pci) = &nic.pci else { return no("not a PCI device".to_owned()) };
    if pairs(machine).iter().any(|met| met.device == pci.address) {
        return Asks { can: Can::Yes, why: "it has asked".to_owned() };
    }
    let driver = nic.driver(machine);
    let is_software = !nic.software.is_empty();
    if ASK.contains(&driver.as_str()) && !is_software {
        return Asks { can: Can::Yes, why: driver };
    }
    let module = match (is_software, nic.name.starts_with("siw")) {
        (false, _) => verbs_of(&driver),
        (true, true) => "siw",
        (true, false) => "rdma_rxe",
    };
    if OWN_PEER_MEMORY.contains(&module) && !without_gpudirect(machine).is_empty() {
        return no(format!("{}, so its driver {module} asks nobody", without_gpudirect(machine)));
    }
    // The kernel marks a module with O if the module does not belong to the kernel.
    let is_foreign = || machine.text(&format!("/sys/module/{module}/taint")).contains('O');
    if !OWN_PEER_MEMORY.contains(&module) && (driver.is_empty() || is_foreign()) {
        let module = if module.is_empty() { "unknown" } else { module };
        return Asks { can: Can::May, why: format!("whether its driver {module} asks the RDMA core is not known") };
    }
    no(format!("its driver {module} never asks the RDMA core"))
}

/// Returns the name of this device's driver if that driver asks NVIDIA's driver for GPU memory directly, without the
/// RDMA core and its clients; otherwise an empty string. The EFA driver says in the file `p2p` whether it can ask
/// directly.
pub fn own_peer_memory(machine: &Machine, nic: &Nic) -> String {
    let driver = nic.driver(machine);
    let can = OWN_PEER_MEMORY.contains(&driver.as_str()) && without_gpudirect(machine).is_empty();
    let says = |pci: &Rc<crate::read::pci::Pci>| pci.text(machine, "p2p").starts_with("NVIDIA");
    if can && nic.pci.as_ref().is_some_and(says) { driver } else { String::new() }
}

/// Returns why no device's driver asks for peer memory; an empty string if the driver of some device asks.
pub fn none_asks(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        why_none(&nics(machine).iter().map(|nic| asks(machine, nic)).collect::<Vec<_>>())
    }
    machine.once(compute)
}

/// Returns why no device asks. If one of several devices asks, or may ask, the module has something to serve.
fn why_none(found: &[Asks]) -> String {
    if found.is_empty() || found.iter().any(|one| one.can != Can::No) {
        return String::new();
    }
    let reasons: IndexSet<&str> = found.iter().map(|one| one.why.as_str()).collect();
    let reasons = reasons.into_iter().collect::<Vec<_>>().join(", ");
    if found.len() == 1 { reasons } else { format!("no RDMA device can use it ({reasons})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_device_that_may_ask_is_enough() {
        let never = "its driver never asks";
        for (answers, said) in [
            (vec![], String::new()),
            (vec![Can::No], never.to_owned()),
            (vec![Can::No, Can::No], format!("no RDMA device can use it ({never})")),
            (vec![Can::No, Can::Yes], String::new()),
            (vec![Can::Yes, Can::No], String::new()),
            (vec![Can::No, Can::May], String::new()),
        ] {
            let found: Vec<Asks> = answers.iter().map(|can| Asks { can: *can, why: never.to_owned() }).collect();
            assert_eq!(why_none(&found), said, "{answers:?}");
        }
    }
}
