// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the GPUs whose memory can be registered, but whose transfers are slower than the port allows, and says why.
//! What programs do by themselves at a distance belongs to the answer: NCCL's default level is PXB
//! (src/graph/paths.cc), and UCX takes host memory for a GPU of another NUMA node (openucx/ucx#11121).
use indexmap::IndexMap;

use crate::facts::bound::{self, Part, gigabytes};
use crate::facts::distances::{Distance, nearest_devices};
use crate::read::machine::Machine;
use crate::read::names::{folded, gpu_numbers};
use crate::read::pci::{Gpu, Nic};
use crate::read::place::virtual_kind;
use crate::read::ways::usable_gpus;

/// A bound below this share of the port's rate is slow.
const SHARE: f64 = 0.8;

const NCCL_ALONE: &str = "NCCL stages in host memory, UCX does not";
const BOTH: &str = "NCCL and mostly UCX stage in host memory";
const REDIRECT: &str = "ACS redirect leads the data through the CPU";

/// GPUs that are slow for the same reason.
pub struct Slow {
    pub gpus: Vec<String>,
    pub devices: Vec<String>,
    /// The reason in few words.
    pub short: String,
    /// What programs do there by themselves; an empty text for a reason that they do not look at.
    pub programs: &'static str,
    /// The share of the port's rate that the links allow.
    share: f64,
}

impl Slow {
    fn names(&self) -> String {
        format!("GPU {} with {}", folded(&self.gpus).join(", "), folded(&self.devices).join(", "))
    }

    pub fn text(&self) -> String {
        let programs = if self.programs.is_empty() { String::new() } else { format!(": {}", self.programs) };
        format!("{}: {}{programs}", self.names(), self.short)
    }
}

/// Returns the slow GPUs, each with its nearest RDMA devices, the slowest first. A container or a virtual machine does
/// not show how its devices are really connected, so nothing is slow there for certain.
pub fn slow(machine: &Machine) -> Vec<Slow> {
    if !virtual_kind(machine).is_empty() {
        return Vec::new();
    }
    let numbers = gpu_numbers(machine);
    let mut found: IndexMap<(String, &'static str), Slow> = IndexMap::new();
    for gpu in usable_gpus(machine).iter() {
        let number = numbers.get(&gpu.name).map_or(String::new(), ToString::to_string);
        let Some((distance, nics)) = nearest_devices(machine, gpu) else { continue };
        for nic in nics {
            let Some((short, programs, share)) = reason(machine, gpu, &nic, distance) else { continue };
            let new = || Slow { gpus: Vec::new(), devices: Vec::new(), short: short.clone(), programs, share };
            let slow = found.entry((short.clone(), programs)).or_insert_with(new);
            for (names, name) in [(&mut slow.gpus, &number), (&mut slow.devices, &nic.name)] {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
    }
    let mut found: Vec<Slow> = found.into_values().collect();
    found.sort_by(|one, other| one.share.total_cmp(&other.share));
    found
}

/// Returns why a pair is slow, what programs do there by themselves, and the share of the port's rate that the links
/// allow.
fn reason(machine: &Machine, gpu: &Gpu, nic: &Nic, distance: Distance) -> Option<(String, &'static str, f64)> {
    let (far, programs) = match distance {
        Distance::Sys => ("SYS, between NUMA nodes", BOTH),
        // The data of a coherent GPU passes the processor at any distance, and programs know that.
        _ if gpu.coherent => ("", ""),
        Distance::Phb => ("PHB, through the CPU", NCCL_ALONE),
        Distance::Node => ("NODE, through the CPU", NCCL_ALONE),
        Distance::Pix | Distance::Pxb if bound::is_pair_redirected(machine, gpu, nic) => (REDIRECT, ""),
        Distance::Pix | Distance::Pxb => ("", ""),
    };
    let (narrow, part, share) = narrow(machine, gpu, nic).unwrap_or((String::new(), Part::Port, 1.0));
    // The text about a detour names ACS redirect.
    let far = if part == Part::Detour { "" } else { far };
    let texts: Vec<&str> = [narrow.as_str(), far].into_iter().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| (texts.join("; "), programs, share))
}

/// Returns the link that carries much less than the port of the RDMA device.
fn narrow(machine: &Machine, gpu: &Gpu, nic: &Nic) -> Option<(String, Part, f64)> {
    let (bound, port) = (bound::of_fastest_port(machine, gpu, nic)?, bound::of_ports(machine, nic)?);
    if bound.part == Part::Port || bound.rate >= SHARE * port.rate {
        return None;
    }
    let text = format!("at most {} of {} GB/s, {}", gigabytes(bound.rate), gigabytes(port.rate), bound.what);
    Some((text, bound.part, bound.rate / port.rate))
}

/// Returns the slow GPUs in few words, for the line of a monitor; an empty text if there is none.
pub fn summary(machine: &Machine) -> String {
    let texts: Vec<String> = slow(machine).iter().map(|one| format!("{} ({})", one.names(), one.short)).collect();
    match texts.as_slice() {
        [] => String::new(),
        [first] => format!("slow: {first}"),
        [first, others @ ..] => format!("slow: {first}, and {} more", others.len()),
    }
}
