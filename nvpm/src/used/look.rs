// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Looks at this node: the registrations with their ways, the processes, and the traffic of the devices.
use std::collections::{BTreeSet, HashMap};

use crate::read::dma_buf::verbs_of;
use crate::read::machine::{Machine, own_module};
use crate::read::pci::{Nic, nics};
use crate::read::peers::{asks, own_peer_memory};
use crate::read::place::has_numbers_of_node;
use crate::read::products::{ASK, Can};
use crate::read::ways::peermem_loaded;
use crate::used::links::gpus_of;
use crate::used::objects::{self, Objects};
use crate::used::processes::{Process, Reading, processes};
use crate::used::tasks::Tasks;
use crate::used::traffic::{Traffic, Watch};
use crate::used::ways::{Evidence, Judged, Nature, Paging, judged};
use crate::used::witnesses::{buffers, list, peers};

/// Drivers that mark registrations with paging on demand, and drivers without paging.
const MARKS: [&str; 1] = ["mlx5_ib"];
const PAGES_NOTHING: [&str; 9] = ["bnxt_re", "efa", "irdma", "hns3", "erdma", "mlx4_core", "qede", "mana_ib", "ionic"];
/// The greatest number of processes that are asked for their GPUs.
const MOST: usize = 1 << 16;

/// Whether the RDMA core can be asked about the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Seen,
    NoDevice,
    /// The files show devices that the RDMA core does not.
    OtherNamespace,
    Refused(String),
}

/// A process outside of RDMA: with GPUs, or with an RDMA device of somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    pub number: u32,
    pub command: String,
}

/// The state of the node.
#[allow(clippy::struct_excessive_bools)]
pub struct Look {
    pub state: State,
    pub devices: Vec<Nature>,
    pub traffic: Vec<Traffic>,
    pub processes: HashMap<u32, Process>,
    /// Each process that has a device open, with the place of the device.
    pub opened: Vec<(u32, usize)>,
    pub judged: Judged,
    /// Programs with CUDA that have no RDMA device open. They are searched only if no other process has a GPU.
    pub without: Vec<Other>,
    /// Processes that have an RDMA device open and made nothing there, as children of processes that have ended do.
    pub keepers: Vec<Other>,
    /// The name of the way by pointer, if the module does not list the registrations.
    pub pointer: &'static str,
    /// The bytes of peer memory on the whole node.
    pub peer_bytes: Option<u64>,
    pub has_list: bool,
    pub has_buffers: bool,
    pub has_node_numbers: bool,
    /// Whether processes that are not seen have ended.
    pub sees_all: bool,
    pub cut: Vec<String>,
    /// The devices that the files show, and the RDMA core does not.
    pub foreign: Vec<String>,
    /// Whether too many files were open to look at all.
    pub is_cut: bool,
}

impl Look {
    /// Returns the name of a device.
    pub fn device(&self, place: usize) -> &str {
        self.devices.get(place).map_or("?", |device| device.name.as_str())
    }

    /// Returns whether the files of each process that has an RDMA device open were seen.
    pub fn has_seen_files(&self) -> bool {
        self.processes.values().all(|process| process.open.is_some())
    }
}

/// Looks at this node. Without traffic, only registrations are looked at, which takes no second and no search of all
/// processes.
pub fn look(machine: &Machine, with_traffic: bool) -> Look {
    let mut tasks = Tasks::default();
    let read = objects::read(machine, &mut tasks);
    let is_without = nics(machine).is_empty();
    let (state, found) = match read {
        Ok(found) if !found.devices.is_empty() => (State::Seen, found),
        _ if is_without => (State::NoDevice, Objects::default()),
        Ok(found) => (State::OtherNamespace, found),
        Err(why) => (State::Refused(why.to_string()), Objects::default()),
    };
    let names: Vec<String> = found.devices.iter().map(|device| device.name.clone()).collect();
    let devices: Vec<Nature> = names.iter().map(|name| nature(machine, name)).collect();
    let reading = Reading::new(machine);
    let mut numbers: BTreeSet<u32> = found.opened.iter().map(|(process, _)| *process).collect();
    numbers.extend(found.registrations.iter().filter_map(|one| one.process));
    let processes = processes(&reading, &numbers);
    let has_node_numbers = has_numbers_of_node(machine);
    let sees_all = has_node_numbers && !tasks.has_unseen;
    let peers = peers(machine);
    let evidence = Evidence {
        list: list(machine),
        peers,
        buffers: buffers(machine),
        has_node_numbers,
        sees_all,
        is_whole: found.cut.is_empty(),
    };
    let judged = judged(&found.registrations, &devices, &processes, &evidence);
    let has_gpus = processes.values().any(|process| process.has_gpu() == Some(true));
    let has_orphans = found.registrations.iter().any(|one| one.process.is_none());
    let is_needed = with_traffic && (!has_gpus || has_orphans);
    let others = if is_needed { others(machine, &reading, &processes) } else { Others::default() };
    // The search of all processes takes longer than a GPU's counters may be left alone.
    let gpus = gpus_of(machine, &judged.parts, &processes, devices.len());
    let watch = with_traffic.then(|| Watch::new(machine, &names, gpus));
    let traffic = watch.map_or(Vec::new(), |watch| watch.ended(machine));
    Look {
        state,
        devices,
        traffic,
        processes,
        opened: found.opened,
        judged,
        without: if has_gpus { Vec::new() } else { others.with_cuda },
        keepers: if has_orphans { others.with_verbs } else { Vec::new() },
        pointer: pointer(machine),
        peer_bytes: peers.filter(|peers| !peers.is_unsure).map(|peers| peers.bytes),
        has_list: evidence.list.is_some(),
        has_buffers: evidence.buffers.is_some(),
        has_node_numbers,
        sees_all,
        foreign: nics(machine).iter().map(|nic| nic.name.clone()).filter(|name| !names.contains(name)).collect(),
        cut: found.cut,
        is_cut: reading.is_cut(),
    }
}

/// Returns the module by which pointers are registered, if there is only one.
fn pointer(machine: &Machine) -> &'static str {
    match (own_module(machine).is_empty(), peermem_loaded(machine)) {
        (false, _) => "nv_peer_mem",
        (true, true) => "nvidia_peermem",
        (true, false) => "pointer",
    }
}

fn nature(machine: &Machine, name: &str) -> Nature {
    let nics = nics(machine);
    let Some(nic) = nics.iter().find(|nic| nic.name == name) else {
        return Nature {
            name: name.to_owned(),
            pci: String::new(),
            paging: Paging::Unknown,
            own_memory: String::new(),
        };
    };
    let driver = if nic.software.is_empty() { verbs_of(&nic.driver(machine)).to_owned() } else { String::new() };
    let paging = match driver.as_str() {
        driver if MARKS.contains(&driver) => Paging::Marked,
        driver if PAGES_NOTHING.contains(&driver) => Paging::Never,
        _ => Paging::Unknown,
    };
    let pci = nic.pci.as_ref().map_or(String::new(), |pci| pci.address.clone());
    Nature { name: name.to_owned(), pci, paging, own_memory: own_memory(machine, nic) }
}

/// Returns the driver that may take GPU memory without the RDMA core's peer memory; otherwise an empty text. A driver
/// that does not belong to the kernel may.
fn own_memory(machine: &Machine, nic: &Nic) -> String {
    let own = own_peer_memory(machine, nic);
    let driver = nic.driver(machine);
    if !own.is_empty() || ASK.contains(&driver.as_str()) || !nic.software.is_empty() {
        return own;
    }
    let may = asks(machine, nic).can == Can::May;
    match (may, driver.is_empty()) {
        (false, _) => String::new(),
        (true, true) => "of this device".to_owned(),
        (true, false) => driver,
    }
}

/// Processes that have made no object of an RDMA device.
#[derive(Default)]
struct Others {
    with_cuda: Vec<Other>,
    with_verbs: Vec<Other>,
}

/// Searches the files of all other processes. This takes longer than all else, so it is done only if it is needed.
fn others(machine: &Machine, reading: &Reading, known: &HashMap<u32, Process>) -> Others {
    let mut found = Others::default();
    let numbers = machine.names("/proc", MOST).unwrap_or_default();
    let mut numbers: Vec<u32> = numbers.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    for number in numbers.into_iter().filter(|number| !known.contains_key(number)) {
        let Some(open) = reading.open(number) else { continue };
        let other = || Other { number, command: reading.command(number) };
        if open.has_cuda && !open.gpus.is_empty() && open.verbs.is_empty() {
            found.with_cuda.push(other());
        }
        if !open.verbs.is_empty() {
            found.with_verbs.push(other());
        }
    }
    found
}
