// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the distances of GPUs and RDMA devices. The distances have the same names as in `nvidia-smi topo -m`.
use std::collections::BTreeMap;
use std::rc::Rc;

use indexmap::{IndexMap, IndexSet};

use crate::facts::fact::{Fact, Facts, good, info, warn};
use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic, Pci, gpus, nics};
use crate::read::place::{container, virtual_kind};
use crate::read::root_complex::forwards;

pub const SECTION: &str = "distance";
pub const NEAREST: &str = "nearest";

const NCCL_COHERENT: &str = "Only NCCL before 2.27 needs a setting: NCCL_NET_GDR_C2C=1, which 2.26 knows.";
/// The report `Mellanox/nv_peer_memory#50` is about a machine that was slower with this setting than without it.
const NCCL_PHB: &str = "NCCL takes host memory here by itself, because it is often faster through a processor than \
                        GPUDirect. NCCL_NET_GDR_LEVEL=PHB turns GPUDirect on: keep it only if nccl-tests are faster \
                        with it than without it.";
/// If two devices are below different root ports, their distance does not prove that data gets through.
const DROPS: &str = "Some root complexes drop requests between their root ports, or only those that read: nvpm \
                     selftest shows it, in both directions.";

/// The distance of two devices, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    Pix,
    Pxb,
    Phb,
    Node,
    Sys,
}

impl Distance {
    pub const ALL: [Self; 5] = [Self::Pix, Self::Pxb, Self::Phb, Self::Node, Self::Sys];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pix => "under one PCIe switch",
            Self::Pxb => "under several PCIe switches, without passing the CPU",
            Self::Phb => "one root complex: through the CPU",
            Self::Node => "two root complexes of one NUMA node",
            Self::Sys => "across NUMA nodes, or nobody says which",
        }
    }

    fn is_below_switch(self) -> bool {
        matches!(self, Self::Pix | Self::Pxb)
    }
}

/// Returns whether a fact is the distance of two devices, and not about the nearest device.
pub fn is_of_pair(fact: &Fact) -> bool {
    fact.section == SECTION && !fact.name.ends_with(&format!(" {NEAREST}"))
}

pub fn has_several_nodes(machine: &Machine) -> bool {
    machine.text("/sys/devices/system/node/online").contains([',', '-'])
}

/// Returns the distance of two devices, and the bridges on the path between them. Bridges that are above both devices
/// are left out.
pub fn relation(machine: &Machine, one: &Pci, other: &Pci) -> (Distance, Vec<String>) {
    if one.path.first() != other.path.first() {
        let is_same = one.node == other.node && one.node >= 0;
        // If the machine has only one NUMA node, both devices are at this node, even if no file says so.
        let is_unsaid = one.node == -1 && other.node == -1 && !has_several_nodes(machine);
        return (if is_same || is_unsaid { Distance::Node } else { Distance::Sys }, Vec::new());
    }
    let common = one.path.iter().zip(&other.path).take_while(|(one, other)| one == other).count();
    if common == 1 {
        return (Distance::Phb, Vec::new());
    }
    let farther = one.path.len().max(other.path.len()) - common;
    let bridges = |pci: &Pci| pci.path.get(common..pci.path.len().saturating_sub(1)).unwrap_or_default().to_vec();
    let distance = if farther > 2 { Distance::Pxb } else { Distance::Pix };
    (distance, [bridges(one), bridges(other)].concat())
}

/// Adds the distance from a GPU to each RDMA device, and a fact about the nearest device. Adds the bridges between the
/// GPU and the devices to BETWEEN.
pub fn facts(machine: &Machine, gpu: &Gpu, between: &mut IndexSet<String>, facts: &mut Facts) {
    let mut found: IndexMap<Distance, Vec<String>> = IndexMap::new();
    for nic in nics(machine).iter() {
        let Some(pci) = nic.pci.as_ref().filter(|pci| !pci.path.is_empty()) else { continue };
        let (distance, bridges) = relation(machine, &gpu.pci, pci);
        found.entry(distance).or_default().push(nic.name.clone());
        // No data passes the bridges between a device and a GPU whose memory no device reaches.
        if !gpu.excluded(machine) {
            between.extend(bridges);
        }
        facts.add(info(SECTION, &format!("{} {}", gpu.name, nic.name), distance.name()));
    }
    if let Some((distance, names)) = found.iter().min_by_key(|(distance, _)| **distance) {
        facts.add(nearest(machine, gpu, *distance, &names.join(", ")));
    }
}

/// Judges only the RDMA device that is nearest to the GPU. Each GPU needs one near device; that other devices are far
/// away is normal.
fn nearest(machine: &Machine, gpu: &Gpu, least: Distance, value: &str) -> Fact {
    let name = format!("{} {NEAREST}", gpu.name);
    if !virtual_kind(machine).is_empty() || gpu.excluded(machine) {
        return info(SECTION, &name, value);
    }
    if least.is_below_switch() {
        return good(SECTION, &name, value);
    }
    // The memory of a coherent GPU is reached through the processor, so the data passes the processor at any distance.
    if gpu.coherent && least != Distance::Sys {
        return good(SECTION, &name, value).advised(NCCL_COHERENT);
    }
    if least == Distance::Phb {
        if forwards(machine, false) {
            return good(SECTION, &name, value).advised(NCCL_PHB);
        }
        let value = format!("{value}, at another root port: nothing shows that data gets through");
        return info(SECTION, &name, value).advised(format!("{DROPS} {NCCL_PHB}"));
    }
    let place = if gpu.coherent { "processor" } else { "root complex" };
    // NCCL has no distance NODE: it counts two root complexes of one NUMA node as one.
    let level = if least == Distance::Node { "PHB" } else { "SYS" };
    warn(SECTION, &name, format!("{value} ({})", least.name())).advised(format!(
        "No RDMA device is near. Put one into a slot of this GPU's {place}. Until then, NCCL takes host memory here by \
         itself. NCCL_NET_GDR_LEVEL={level} turns GPUDirect on, and may be slower: keep it only if nccl-tests are \
         faster with it."
    ))
}

/// Returns the RDMA devices on PCI that are nearest to a GPU, and their distance. None if there is no such device.
pub fn nearest_devices(machine: &Machine, gpu: &Gpu) -> Option<(Distance, Vec<Rc<Nic>>)> {
    if gpu.pci.path.is_empty() {
        return None;
    }
    let mut found: BTreeMap<Distance, Vec<Rc<Nic>>> = BTreeMap::new();
    for nic in nics(machine).iter().filter(|nic| nic.software.is_empty()) {
        if let Some(pci) = nic.pci.as_ref().filter(|pci| !pci.path.is_empty()) {
            found.entry(relation(machine, &gpu.pci, pci).0).or_default().push(nic.clone());
        }
    }
    found.pop_first()
}

/// Returns why no distance proves that data gets from device to device on this machine. Returns an empty text if some
/// GPU and some RDMA device are below one switch, or at a root complex that is known to forward data.
pub fn unproven(machine: &Machine) -> &'static str {
    if !container(machine).is_empty() {
        return "";
    }
    if !virtual_kind(machine).is_empty() {
        return "in a virtual machine";
    }
    let (gpus, nics) = (gpus(machine), nics(machine));
    let mut found = IndexSet::new();
    for gpu in gpus.iter().filter(|gpu| !gpu.pci.path.is_empty()) {
        for pci in nics.iter().filter_map(|nic| nic.pci.as_ref()).filter(|pci| !pci.path.is_empty()) {
            found.insert(relation(machine, &gpu.pci, pci).0);
        }
    }
    let is_coherent = gpus.iter().any(|gpu| gpu.coherent);
    if found.is_empty() || is_coherent || found.iter().any(|distance| distance.is_below_switch()) {
        return "";
    }
    let is_within = found.contains(&Distance::Phb);
    if forwards(machine, !is_within) {
        return "";
    }
    if is_within { "through this root complex" } else { "between two root complexes" }
}
