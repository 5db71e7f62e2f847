// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The sums of registered memory, for monitors.
use std::collections::BTreeMap;

use crate::read::machine::Machine;
use crate::used::look::{State, look};
use crate::used::screen::name;

/// Bytes of registered memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// GPU memory, by way and device.
    pub gpu: BTreeMap<(String, String), u64>,
    /// Host memory, by device. Each device has a sum.
    pub host: BTreeMap<String, u64>,
}

/// Returns the sums; none if the RDMA core cannot be asked. Memory about which nothing decides is in no sum.
pub fn sums(machine: &Machine) -> Sums {
    let look = look(machine, false);
    let mut found = Sums::default();
    if look.state != State::Seen {
        return found;
    }
    found.host = look.devices.iter().map(|device| (device.name.clone(), 0)).collect();
    for part in &look.judged.parts {
        let device = look.device(part.device).to_owned();
        if part.way.is_gpu() {
            *found.gpu.entry((name(&look, part.way).to_owned(), device)).or_default() += part.bytes();
        } else if part.way.is_host() {
            *found.host.entry(device).or_default() += part.bytes();
        }
    }
    found
}
