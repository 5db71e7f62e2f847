// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the reasons why files cannot show whether a way works.
use std::rc::Rc;

use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic, gpus, nics};
use crate::read::peers::{asks, own_peer_memory};
use crate::read::place::confidential;
use crate::read::products::Can;
use crate::read::ways::{DMA_BUF, of_pairs};

/// Returns the reason why files cannot show whether the ways of this node work. Returns an empty string if some pair of
/// GPU and device has a way about which there is no doubt.
pub fn uncertain(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let mut first = String::new();
        for ((gpu, nic), found) in of_pairs(machine).iter().filter(|(_, found)| !found.is_empty()) {
            let (gpus, nics) = (gpus(machine), nics(machine));
            let gpu = gpus.iter().find(|one| one.name == *gpu);
            let nic = nics.iter().find(|one| one.name == *nic);
            let (Some(gpu), Some(nic)) = (gpu, nic) else { continue };
            let doubt = doubt_of(machine, gpu, nic, found);
            if doubt.is_empty() {
                return String::new();
            }
            if first.is_empty() {
                first = doubt;
            }
        }
        first
    }
    machine.once(compute)
}

/// Returns the reason why files cannot show whether the ways of one pair work, or an empty string if they can.
fn doubt_of(machine: &Machine, gpu: &Gpu, nic: &Nic, found: &[String]) -> String {
    let kind = confidential(machine);
    if !kind.is_empty() {
        return format!("this is {kind}, in which GPUs keep their memory from other devices");
    }
    if let Some(doubt) = gpu.doubt(machine) {
        return format!("{} is {}", gpu.model(machine), doubt.why);
    }
    if gpu.coherent && driver_keeps_memory(machine) {
        return "the driver keeps the memory of coherent GPUs to itself (CDMM), which was not tried".to_owned();
    }
    if found.iter().any(|way| way == DMA_BUF) || !own_peer_memory(machine, nic).is_empty() {
        return String::new();
    }
    let asking = asks(machine, nic);
    if asking.can == Can::May { format!("{}: {}", nic.name, asking.why) } else { String::new() }
}

/// Returns whether the driver of a Grace machine keeps the GPU's memory to itself (CDMM). Otherwise the driver gives
/// this memory to the kernel as a NUMA node. Only the driver's option shows the mode.
pub fn driver_keeps_memory(machine: &Machine) -> bool {
    fn compute(machine: &Machine) -> bool {
        let loaded = machine.all_text(&["/proc/driver/nvidia/params"]);
        let value = loaded.split('\n').find_map(|line| line.strip_prefix("CoherentGPUMemoryMode: "));
        if value.is_some_and(|value| value.contains("driver")) {
            return true;
        }
        let files = machine.glob(&["/etc/modprobe.d/*.conf", "/usr/lib/modprobe.d/*.conf"]);
        machine.all_text(&files).split('\n').any(sets_driver_mode)
    }
    *machine.once(compute)
}

fn sets_driver_mode(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_option = words.next() == Some("options") && words.next() == Some("nvidia");
    is_option && words.any(|word| word.contains("NVreg_CoherentGPUMemoryMode=driver"))
}
