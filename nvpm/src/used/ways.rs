// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Decides for each registration by which way its memory was registered, and says what proves this.
//!
//! The kernel does not tell the kinds of registrations apart, so several facts decide together. The kernel counts host
//! memory and memory of peer clients as pinned (`VmPin` of the process), and neither dma-bufs nor memory that is paged
//! on demand. `VmPin` also counts queues and the buffers of `io_uring`, so a small `VmPin` proves more than a large
//! `VmPin`. If the facts do not decide, the registration is unknown, with the bounds that hold.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use crate::read::regions::size;
use crate::used::objects::{EVERYTHING, Registration};
use crate::used::peer_share::{Share, shares};
use crate::used::processes::Process;
use crate::used::witnesses::{Buffers, Exporter, List, Peers, exporter};

const PAGE: u64 = 4096;
/// Registrations up to this length may be memory of the RDMA device itself, which is not pinned either.
const DEVICE_MEMORY: u64 = 256 << 10;

/// How memory was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// GPU memory, by the module `nv_peer_mem`, which lists the registration.
    Listed,
    /// GPU memory, by some client of peer memory.
    Pointer,
    /// GPU memory, as a dma-buf.
    DmaBuf,
    /// Host memory: pinned, or exported as a dma-buf.
    Host,
    /// Host memory that the device pages on demand.
    Paged,
    Unknown,
}

impl Way {
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Listed | Self::Pointer | Self::DmaBuf)
    }

    pub fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Paged)
    }
}

/// Whether a driver pages memory on demand, and marks such registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    Marked,
    Never,
    Unknown,
}

/// The properties of a device that decide about registrations.
#[derive(Clone, Debug)]
pub struct Nature {
    pub name: String,
    /// The PCI address; empty for a device without PCI.
    pub pci: String,
    pub paging: Paging,
    /// The driver, if it may take GPU memory without the RDMA core's peer memory; else empty.
    pub own_memory: String,
}

/// The facts beside the registrations.
pub struct Evidence {
    pub list: Option<List>,
    pub peers: Option<Peers>,
    pub buffers: Option<Buffers>,
    /// Whether the numbers of processes are those of the node, as in the module's list.
    pub has_node_numbers: bool,
    /// Whether a registration without a process belongs to a process that has ended. Otherwise the process may only be
    /// hidden from this user.
    pub sees_all: bool,
    /// Whether all registrations of all devices were read.
    pub is_whole: bool,
}

/// Registrations by the same process with the same device, with the same length and the same proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub process: Option<u32>,
    pub device: usize,
    pub length: u64,
    pub count: u64,
    pub way: Way,
    pub proof: Rc<str>,
}

impl Part {
    /// Returns the number of bytes. A registration of the whole address space has none that could be added.
    pub fn bytes(&self) -> u64 {
        if self.length == EVERYTHING { 0 } else { self.length.saturating_mul(self.count) }
    }

    fn pages(&self) -> u64 {
        self.length.checked_next_multiple_of(PAGE).unwrap_or(self.length)
    }
}

/// The decisions.
#[derive(Debug, Default)]
pub struct Judged {
    pub parts: Vec<Part>,
    /// The numbers of registrations in the module's list, and of attached dma-bufs, that no device lists as memory.
    /// Programs make them for queues (`DevX`).
    pub listed_alone: u64,
    pub attached_alone: u64,
}

/// Returns how the memory of all registrations was registered.
pub fn judged(
    registrations: &[Registration],
    devices: &[Nature],
    processes: &HashMap<u32, Process>,
    evidence: &Evidence,
) -> Judged {
    let mut judge = Judge::new(registrations, devices, processes, evidence);
    judge.listed();
    judge.longer_than_pinned();
    judge.as_often_as_attached();
    judge.needed_to_explain();
    judge.not_to_be_called_host();
    judge.pinned();
    judge.ended()
}

/// An undecided part, and why it cannot be called host memory.
struct Open {
    part: Part,
    doubt: Option<Rc<str>>,
}

struct Judge<'a> {
    open: Vec<Open>,
    done: Vec<Part>,
    devices: &'a [Nature],
    processes: &'a HashMap<u32, Process>,
    evidence: &'a Evidence,
    /// The undecided parts of each process, and the sum of their pages.
    of_process: HashMap<u32, Vec<usize>>,
    sums: HashMap<u32, u64>,
    /// The bytes that are pinned for a process, less those of its registrations in the module's list.
    budgets: HashMap<u32, u64>,
    /// The entries of the module's list and the dma-bufs that belong to no part yet.
    listed: HashMap<(u64, String, u64), u64>,
    attached: HashMap<String, BTreeMap<(u64, String), u64>>,
    /// The proofs. Many parts share the same proof.
    proofs: HashSet<Rc<str>>,
}

impl<'a> Judge<'a> {
    fn new(
        registrations: &[Registration],
        devices: &'a [Nature],
        processes: &'a HashMap<u32, Process>,
        evidence: &'a Evidence,
    ) -> Self {
        let mut counts: BTreeMap<(Option<u32>, usize, u64, bool), u64> = BTreeMap::new();
        for one in registrations {
            *counts.entry((one.process, one.device, one.length, one.is_paged)).or_default() += 1;
        }
        let mut found = Self {
            open: Vec::new(),
            done: Vec::new(),
            devices,
            processes,
            evidence,
            of_process: HashMap::new(),
            sums: HashMap::new(),
            budgets: HashMap::new(),
            listed: evidence.list.as_ref().map(|list| list.count.clone()).unwrap_or_default(),
            attached: evidence.buffers.as_ref().map(|buffers| buffers.attached.clone()).unwrap_or_default(),
            proofs: HashSet::new(),
        };
        let paged: Rc<str> = "the device pages it on demand (netlink: odp)".into();
        let everything: Rc<str> = "the whole address space, which only paging on demand allows".into();
        for ((process, device, length, is_paged), count) in counts {
            let part = Part { process, device, length, count, way: Way::Unknown, proof: "".into() };
            if is_paged {
                let proof = if length == EVERYTHING { everything.clone() } else { paged.clone() };
                found.done.push(Part { way: Way::Paged, proof, ..part });
            } else {
                found.add(part);
            }
        }
        for process in processes.values() {
            found.budgets.extend(process.pinned.map(|pinned| (process.number, pinned)));
        }
        found
    }

    fn add(&mut self, part: Part) {
        if let Some(process) = part.process {
            self.of_process.entry(process).or_default().push(self.open.len());
            let sum = self.sums.entry(process).or_default();
            *sum = sum.saturating_add(part.pages().saturating_mul(part.count));
        }
        self.open.push(Open { part, doubt: None });
    }

    fn shared(&mut self, text: &str) -> Rc<str> {
        if let Some(known) = self.proofs.get(text) {
            return known.clone();
        }
        let proof: Rc<str> = text.into();
        self.proofs.insert(proof.clone());
        proof
    }

    fn nature(&self, part: &Part) -> Option<&'a Nature> {
        self.devices.get(part.device)
    }

    fn pci(&self, part: &Part) -> &'a str {
        self.nature(part).map_or("", |nature| nature.pci.as_str())
    }

    fn process(&self, part: &Part) -> Option<&'a Process> {
        self.processes.get(&part.process?)
    }

    /// Decides COUNT registrations of the part at a place.
    fn decide(&mut self, at: usize, count: u64, way: Way, proof: &Rc<str>) {
        let Some(open) = self.open.get_mut(at) else { return };
        let count = count.min(open.part.count);
        if count == 0 {
            return;
        }
        open.part.count -= count;
        let pages = open.part.pages().saturating_mul(count);
        if let Some(process) = open.part.process {
            let sum = self.sums.entry(process).or_default();
            *sum = sum.saturating_sub(pages);
            if way == Way::Listed {
                self.budgets.entry(process).and_modify(|budget| *budget = budget.saturating_sub(pages));
            }
        }
        self.done.push(Part { count, way, proof: proof.clone(), ..open.part.clone() });
    }

    /// Returns the places of the parts that are undecided.
    fn undecided(&self) -> Vec<usize> {
        let left = self.open.iter().enumerate().filter(|(_, open)| open.part.count > 0);
        left.map(|(at, _)| at).collect()
    }

    fn part(&self, at: usize) -> Option<Part> {
        self.open.get(at).map(|open| open.part.clone()).filter(|part| part.count > 0)
    }

    fn doubt(&mut self, at: usize, why: &Rc<str>) {
        if let Some(open) = self.open.get_mut(at) {
            open.doubt.get_or_insert_with(|| why.clone());
        }
    }

    /// Returns how many bytes of a process are not pinned, at least.
    fn missing(&self, process: u32) -> u64 {
        let (sum, budget) = (self.sums.get(&process), self.budgets.get(&process));
        sum.zip(budget).map_or(0, |(sum, budget)| sum.saturating_sub(*budget))
    }

    // ---- the module's list ----

    /// Takes the registrations that the module lists. Its list has the process, the device and the length of each.
    fn listed(&mut self) {
        if self.listed.is_empty() {
            return;
        }
        if !self.evidence.has_node_numbers {
            self.listed_with_other_numbers();
            return;
        }
        let proof: Rc<str> = "nv_peer_mem lists it for this process".into();
        for at in self.undecided() {
            let Some(part) = self.part(at) else { continue };
            let Some(process) = part.process else { continue };
            // Before the first use by a device, the list has no device.
            for pci in [self.pci(&part), "-"] {
                self.take_listed(at, &(u64::from(process), pci.to_owned(), part.length), &proof);
            }
        }
        self.listed_for_ended_processes();
    }

    /// Decides as many registrations of a part as the list still has of a key.
    fn take_listed(&mut self, at: usize, key: &(u64, String, u64), proof: &Rc<str>) {
        let (Some(part), Some(left)) = (self.part(at), self.listed.get_mut(key)) else { return };
        let count = part.count.min(*left);
        *left -= count;
        self.decide(at, count, Way::Listed, proof);
    }

    /// Takes the registrations of processes that have ended, and whose children keep the device open.
    fn listed_for_ended_processes(&mut self) {
        let mut by_memory: HashMap<(String, u64), Vec<u64>> = HashMap::new();
        for (process, pci, length) in self.listed.iter().filter(|(_, left)| **left > 0).map(|(key, _)| key) {
            if u32::try_from(*process).map_or(true, |number| !self.processes.contains_key(&number)) {
                by_memory.entry((pci.clone(), *length)).or_default().push(*process);
            }
        }
        for at in self.undecided() {
            let Some(part) = self.part(at).filter(|part| part.process.is_none()) else { continue };
            let mut owners = by_memory.get(&(self.pci(&part).to_owned(), part.length)).cloned().unwrap_or_default();
            owners.sort_unstable();
            for process in owners {
                let proof = format!("nv_peer_mem lists it for process {process}, which has ended").into();
                self.take_listed(at, &(process, self.pci(&part).to_owned(), part.length), &proof);
            }
        }
    }

    /// Compares numbers of registrations, because in this container the processes have other numbers than in the list.
    fn listed_with_other_numbers(&mut self) {
        let mut listed: HashMap<(String, u64), u64> = HashMap::new();
        for ((_, pci, length), count) in std::mem::take(&mut self.listed) {
            *listed.entry((pci, length)).or_default() += count;
        }
        let mut alike: HashMap<(String, u64), Vec<usize>> = HashMap::new();
        for at in self.undecided() {
            if let Some(part) = self.part(at) {
                alike.entry((self.pci(&part).to_owned(), part.length)).or_default().push(at);
            }
        }
        let all: Rc<str> = "nv_peer_mem lists as many registrations of this length as the device".into();
        for (key, places) in alike {
            let Some(listed) = listed.get(&key) else { continue };
            let count: u64 = places.iter().filter_map(|at| self.part(*at)).map(|part| part.count).sum();
            let some: Rc<str> = format!("nv_peer_mem lists {listed} of {count} registrations of this length").into();
            for at in places {
                if *listed == count && self.evidence.is_whole {
                    self.decide(at, count, Way::Listed, &all);
                } else {
                    self.doubt(at, &some);
                }
            }
        }
    }

    // ---- memory that is not pinned ----

    /// Decides about each registration that is longer than all memory that is pinned for its process.
    fn longer_than_pinned(&mut self) {
        for at in self.undecided() {
            let Some(part) = self.part(at) else { continue };
            let budget = part.process.and_then(|process| self.budgets.get(&process)).copied();
            let Some(budget) = budget.filter(|budget| part.pages() > *budget) else { continue };
            // The registrations of a part may belong to several dma-bufs.
            while let Some(rest) = self.part(at) {
                self.not_pinned(at, &rest, budget);
            }
        }
    }

    /// Decides about one or more registrations of a part that is not pinned.
    fn not_pinned(&mut self, at: usize, part: &Part, budget: u64) {
        let (count, way, proof) = self.of_not_pinned(part, budget);
        let proof = self.shared(&proof);
        self.decide(at, count.max(1), way, &proof);
    }

    fn of_not_pinned(&mut self, part: &Part, budget: u64) -> (u64, Way, String) {
        let pinned = format!("longer than all pinned memory of the process ({})", size(budget.into()));
        let Some(nature) = self.nature(part) else { return (part.count, Way::Unknown, pinned) };
        let Some(buffers) = &self.evidence.buffers else {
            let (way, why) = without_list_of_buffers(part, nature, self.process(part));
            return (part.count, way, format!("{pinned}, {why}"));
        };
        if let Some(((length, name), left)) = self.fitting(&nature.pci, part.length) {
            let count = part.count.min(left);
            self.take_attached(&nature.pci, (length, &name), count);
            let buffer = of_buffer(length, &name);
            return (count, way_of(&name), format!("{pinned}; {buffer} is attached to {}", nature.name));
        }
        let has_none = buffers.attached.get(&nature.pci).is_none_or(BTreeMap::is_empty) && !buffers.is_cut;
        let (way, why) = match nature.paging {
            Paging::Unknown if has_none && part.length > DEVICE_MEMORY => {
                (Way::Paged, "and no dma-buf is attached to the device, so the device pages it on demand")
            }
            _ if part.length <= DEVICE_MEMORY => (Way::Unknown, "so it may be memory of the device itself"),
            _ => (Way::Unknown, "but no dma-buf of its size is attached to the device"),
        };
        (part.count, way, format!("{pinned}, {why}"))
    }

    /// Returns the smallest dma-buf that is attached to a device and has room for a registration.
    fn fitting(&self, pci: &str, length: u64) -> Option<((u64, String), u64)> {
        let sizes = self.attached.get(pci)?;
        let found = sizes.range((length, String::new())..).next();
        found.map(|(key, left)| (key.clone(), *left))
    }

    /// Takes some dma-bufs of a device. Sizes without any dma-bufs left are removed, so that searches stay short.
    fn take_attached(&mut self, pci: &str, (length, name): (u64, &str), count: u64) {
        let Some(sizes) = self.attached.get_mut(pci) else { return };
        let key = (length, name.to_owned());
        let left = sizes.remove(&key).map_or(0, |left| left.saturating_sub(count));
        if left > 0 {
            sizes.insert(key, left);
        }
    }

    /// Decides about lengths of which a device has as many dma-bufs attached as registrations. `VmPin` alone would not
    /// name them in a process that has large queues.
    fn as_often_as_attached(&mut self) {
        if !self.evidence.is_whole || self.evidence.buffers.as_ref().is_none_or(|buffers| buffers.is_cut) {
            return;
        }
        let alike = self.by_device_and_length();
        let mut slots: Vec<(String, u64, String, u64)> = Vec::new();
        for (pci, sizes) in &self.attached {
            slots.extend(sizes.iter().map(|((length, name), left)| (pci.clone(), *length, name.clone(), *left)));
        }
        slots.sort_unstable();
        for (pci, length, name, left) in slots {
            let places = alike.get(&(pci.clone(), length)).cloned().unwrap_or_default();
            let parts: Vec<Part> = places.iter().filter_map(|at| self.part(*at)).collect();
            let is_short = |part: &Part| part.process.is_some_and(|process| self.missing(process) > 0);
            let count: u64 = parts.iter().map(|part| part.count).sum();
            if count != left || !parts.iter().all(is_short) {
                continue;
            }
            self.take_attached(&pci, (length, &name), left);
            let buffer = of_buffer(length, &name);
            let proof =
                format!("not all memory of the process is pinned; {buffer} is attached as often as registered").into();
            for at in places {
                self.decide(at, u64::MAX, way_of(&name), &proof);
            }
        }
    }

    fn by_device_and_length(&self) -> HashMap<(String, u64), Vec<usize>> {
        let mut found: HashMap<(String, u64), Vec<usize>> = HashMap::new();
        for at in self.undecided() {
            if let Some(part) = self.part(at) {
                found.entry((self.pci(&part).to_owned(), part.length)).or_default().push(at);
            }
        }
        found
    }

    /// Decides about dma-bufs without which a process would have more memory registered than is pinned. If some of
    /// several would suffice, nothing says which.
    fn needed_to_explain(&mut self) {
        let mut processes: Vec<u32> = self.of_process.keys().copied().collect();
        processes.retain(|process| self.budgets.contains_key(process));
        processes.sort_unstable();
        for process in processes {
            let missing = self.missing(process);
            if missing == 0 {
                continue;
            }
            let places = self.of_process.get(&process).cloned().unwrap_or_default();
            let candidates: Vec<(usize, u64, u64, String)> = places
                .iter()
                .filter_map(|at| {
                    let part = self.part(*at)?;
                    let ((length, name), left) = self.fitting(self.pci(&part), part.length)?;
                    (length == part.length).then(|| (*at, part.count.min(left), part.pages(), name))
                })
                .collect();
            let all = candidates
                .iter()
                .fold(0_u64, |sum, (_, count, pages, _)| sum.saturating_add(count.saturating_mul(*pages)));
            let least = candidates.iter().map(|(_, _, pages, _)| *pages).min().unwrap_or_default();
            if all >= missing && all - least < missing {
                for (at, count, _, name) in candidates {
                    let Some(part) = self.part(at) else { continue };
                    self.take_attached(self.pci(&part), (part.length, &name), count);
                    let buffer = of_buffer(part.length, &name);
                    let proof = format!("{} of the process is not pinned; {buffer} is attached", size(missing.into()));
                    self.decide(at, count, way_of(&name), &proof.into());
                }
            }
            let missing = self.missing(process);
            if missing > 0 {
                let why = format!("at least {} of this process's memory is not pinned", size(missing.into())).into();
                for at in places {
                    self.doubt(at, &why);
                }
            }
        }
    }

    /// Marks registrations that may be dma-bufs although enough memory is pinned, because the kernel counts other
    /// things as pinned, too.
    fn not_to_be_called_host(&mut self) {
        let why: Rc<str> =
            "a dma-buf of this size is attached to the device, and belongs to no other registration".into();
        let ring: Rc<str> =
            "a larger dma-buf is attached to the device, and io_uring may have pinned the memory".into();
        let unseen: Rc<str> = "its process cannot be seen from here".into();
        let ended: Rc<str> = "its process has ended, and another one keeps the device open".into();
        for at in self.undecided() {
            let Some(part) = self.part(at) else { continue };
            let fitting = self.fitting(self.pci(&part), part.length);
            let has_ring = self.process(&part).and_then(|one| one.open.as_ref()).is_some_and(|open| open.has_io_uring);
            match fitting {
                Some(((length, _), _)) if length == part.length => self.doubt(at, &why),
                Some(_) if has_ring => self.doubt(at, &ring),
                _ => {}
            }
            if !part.process.is_some_and(|process| self.budgets.contains_key(&process)) {
                self.doubt(at, if self.evidence.sees_all && part.process.is_none() { &ended } else { &unseen });
            }
        }
    }

    // ---- memory that is pinned: of peer clients, or of the host ----

    fn pinned(&mut self) {
        let left = self.left_of_peers();
        let mut candidates = Vec::new();
        for at in self.undecided() {
            let Some(part) = self.part(at) else { continue };
            let is_doubtful = self.open.get(at).is_some_and(|open| open.doubt.is_some());
            let process = self.process(&part);
            let has_no_gpu = process.and_then(|one| one.open.as_ref()).is_some_and(|open| !open.has_any_gpu);
            let driver = self.nature(&part).map_or("", |nature| nature.own_memory.as_str());
            if is_doubtful {
                candidates.push(at);
            } else if has_no_gpu {
                self.decide(at, u64::MAX, Way::Host, &"pinned, and the process has no GPU open".into());
            } else if !driver.is_empty() {
                let why =
                    format!("pinned, and the driver {driver} takes GPU memory itself, which nothing counts").into();
                self.doubt(at, &why);
            } else {
                match &left {
                    Left::Nothing(why) => self.decide(at, u64::MAX, Way::Host, why),
                    Left::Unknown(why) => self.doubt(at, why),
                    Left::Some(_) => candidates.push(at),
                }
            }
        }
        if let Left::Some(peers) = left {
            self.share(peers, &candidates);
        }
    }

    /// Returns how much memory clients of peer memory hold, beside the registrations that the module lists.
    fn left_of_peers(&self) -> Left {
        let Some(peers) = self.evidence.peers else {
            return Left::Nothing("pinned, and the RDMA core has no peer memory".into());
        };
        if let Some(list) = self.evidence.list.as_ref().filter(|list| !list.is_cut) {
            if peers.are_ours {
                return Left::Nothing("pinned, and nv_peer_mem does not list it".into());
            }
            let registrations = list.count.values().sum();
            let bytes = peers.bytes.saturating_sub(list.bytes);
            return Self::left(Peers {
                bytes,
                registrations: peers.registrations.saturating_sub(registrations),
                ..peers
            });
        }
        Self::left(peers)
    }

    fn left(peers: Peers) -> Left {
        if peers.is_unsure {
            return Left::Unknown("pinned, and the RDMA core does not count peer memory".into());
        }
        if peers.bytes == 0 {
            return Left::Nothing("pinned, and no client of peer memory holds any".into());
        }
        Left::Some(peers)
    }

    /// Decides by the counters of peer memory. The counters cover the whole node.
    fn share(&mut self, mut peers: Peers, candidates: &[usize]) {
        for at in candidates {
            let Some(part) = self.part(*at) else { continue };
            let resident = self.process(&part).and_then(|process| process.resident);
            let is_doubtful = self.open.get(*at).is_some_and(|open| open.doubt.is_some());
            if let Some(resident) = resident.filter(|resident| part.length > *resident && !is_doubtful) {
                let proof =
                    format!("pinned, and longer than all host memory of the process ({})", size(resident.into()));
                self.decide(*at, u64::MAX, Way::Pointer, &proof.into());
                peers.bytes = peers.bytes.saturating_sub(part.bytes());
                peers.registrations = peers.registrations.saturating_sub(part.count);
            }
        }
        let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
        let left: Vec<(usize, Part)> = candidates.iter().filter_map(|at| Some((*at, self.part(*at)?))).collect();
        for (_, part) in &left {
            *lengths.entry(part.length).or_default() += part.count;
        }
        let all: u64 = lengths.iter().fold(0, |sum, (length, count)| sum.saturating_add(length.saturating_mul(*count)));
        let found = if self.evidence.is_whole { shares(&lengths, peers.bytes, peers.registrations) } else { None };
        let only: Rc<str> = "pinned; no other choice of lengths gives what the RDMA core counts as peer memory".into();
        let bounds = format!("pinned; {} of {} are peer memory", size(peers.bytes.min(all).into()), size(all.into()));
        let bounds: Rc<str> = bounds.into();
        for (at, part) in left {
            let is_doubtful = self.open.get(at).is_some_and(|open| open.doubt.is_some());
            match found.as_ref().and_then(|found| found.get(&part.length)) {
                Some(Share::All) => self.decide(at, u64::MAX, Way::Pointer, &only),
                Some(Share::None) if !is_doubtful => self.decide(at, u64::MAX, Way::Host, &only),
                _ => self.doubt(at, &bounds),
            }
        }
    }

    fn ended(mut self) -> Judged {
        let unknown: Rc<str> = "nothing decides".into();
        for at in self.undecided() {
            let why = self.open.get(at).and_then(|open| open.doubt.clone()).unwrap_or_else(|| unknown.clone());
            self.decide(at, u64::MAX, Way::Unknown, &why);
        }
        self.done.sort_by(|one, other| {
            let key = |part: &Part| (part.process.is_none(), part.process, part.device, part.way);
            key(one).cmp(&key(other)).then(other.length.cmp(&one.length))
        });
        let attached_alone = self.attached.values().flat_map(BTreeMap::values).sum();
        Judged { parts: self.done, listed_alone: self.listed.values().sum(), attached_alone }
    }
}

/// The peer memory that may belong to undecided registrations.
enum Left {
    Nothing(Rc<str>),
    Some(Peers),
    Unknown(Rc<str>),
}

/// Returns what a registration is that is not pinned, if nobody lists the dma-bufs that devices have attached.
fn without_list_of_buffers(part: &Part, nature: &Nature, process: Option<&Process>) -> (Way, &'static str) {
    let has_no_gpu = process.and_then(|one| one.open.as_ref()).is_some_and(|open| !open.has_any_gpu);
    match nature.paging {
        _ if part.length <= DEVICE_MEMORY => (Way::Unknown, "so a dma-buf, or memory of the device itself"),
        _ if has_no_gpu => (Way::Unknown, "so a dma-buf, but the process has no GPU open"),
        Paging::Marked => (Way::DmaBuf, "and the device does not page it on demand, so a dma-buf"),
        Paging::Never => (Way::DmaBuf, "and this driver pages nothing on demand, so a dma-buf"),
        Paging::Unknown => (Way::Unknown, "so a dma-buf, or paged on demand, which this driver does not say"),
    }
}

fn way_of(name: &str) -> Way {
    match exporter(name) {
        Exporter::Gpu => Way::DmaBuf,
        Exporter::Host => Way::Host,
        Exporter::Unknown => Way::Unknown,
    }
}

fn of_buffer(length: u64, name: &str) -> String {
    format!("a dma-buf of {name} with {}", size(length.into()))
}
