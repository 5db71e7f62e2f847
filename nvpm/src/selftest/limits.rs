// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The bound of a trial's rate, and the distance of its pair. A trial knows its GPU and its RDMA device by their names.
use std::rc::Rc;

use crate::facts::bound::{self, Bound};
use crate::facts::distances::{Distance, relation};
use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic, gpus, nics};

fn gpu_of(machine: &Machine, pci: &str) -> Option<Rc<Gpu>> {
    gpus(machine).iter().find(|gpu| gpu.name == pci).cloned()
}

fn nic_of(machine: &Machine, name: &str) -> Option<Rc<Nic>> {
    nics(machine).iter().find(|nic| nic.name == name).cloned()
}

/// Returns the bounds of this GPU and this port to the GPU, which the device writes, and from the GPU.
pub fn bounds_of(machine: &Machine, pci: &str, device: &str, port: &str) -> [Option<Bound>; 2] {
    let pair = gpu_of(machine, pci).zip(nic_of(machine, device));
    pair.map_or([None, None], |(gpu, nic)| bound::of_directions(machine, &gpu, &nic, port))
}

/// Returns the bound of an RDMA device alone, whatever memory it moves: that of its link, or of all its ports.
pub fn limit_of_device(machine: &Machine, device: &str) -> Option<Bound> {
    bound::of_device(machine, &*nic_of(machine, device)?)
}

/// Returns the distance of a pair, or None for an unknown distance.
pub fn distance_of(machine: &Machine, pci: &str, device: &str) -> Option<Distance> {
    let (gpu, nic) = (gpu_of(machine, pci)?, nic_of(machine, device)?);
    let other = nic.pci.as_ref().filter(|other| !gpu.pci.path.is_empty() && !other.path.is_empty())?;
    Some(relation(machine, &gpu.pci, other).0)
}

pub fn is_software(machine: &Machine, device: &str) -> bool {
    nic_of(machine, device).is_some_and(|nic| !nic.software.is_empty() || nic.pci.is_none())
}
