// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the NVIDIA driver's answers about pairs of a GPU and an RDMA device. The module asks the driver when memory of
//! the GPU is first registered with the device.
use std::rc::Rc;

use crate::read::machine::Machine;

pub const FILE: &str = "/proc/driver/nv_peer_mem/pairs";
pub const OURS: &str = "ours";
pub const DRIVER: &str = "driver";
pub const REFUSED: &str = "refused";

/// A pair, and the driver's answer. The GPU has its UUID (GPU-...), and the device its PCI address.
pub struct Pair {
    pub gpu: String,
    pub device: String,
    pub said: String,
}

pub fn pairs(machine: &Machine) -> Rc<Vec<Pair>> {
    fn compute(machine: &Machine) -> Vec<Pair> {
        let pair = |line: &String| {
            let mut words = line.split_whitespace();
            let found = (words.next()?, words.next()?, words.next()?, words.next());
            let (gpu, device, said @ (OURS | DRIVER | REFUSED), None) = found else { return None };
            Some(Pair { gpu: gpu.into(), device: device.into(), said: said.into() })
        };
        machine.lines(FILE).iter().filter(|line| !line.starts_with('#')).filter_map(pair).collect()
    }
    machine.once(compute)
}
