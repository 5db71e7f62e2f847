// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The ways of registrations, with the numbers that kernels 6.12 and 7.3 showed for them.
use std::collections::{BTreeMap, HashMap};

use crate::used::objects::{EVERYTHING, Registration};
use crate::used::processes::{Open, Process};
use crate::used::ways::{Evidence, Judged, Nature, Paging, Way, judged};
use crate::used::witnesses::{Buffers, List, Peers};

const MIB: u64 = 1 << 20;
/// The queues of two connections, which the kernel counts as pinned.
const QUEUES: u64 = 24 << 10;
const PCI: [&str; 2] = ["0000:04:00.0", "0000:05:00.0"];

/// A node with two mlx5 devices.
struct Node {
    devices: Vec<Nature>,
    registrations: Vec<Registration>,
    processes: HashMap<u32, Process>,
    evidence: Evidence,
}

impl Node {
    fn new() -> Self {
        let device = |(number, pci): (usize, &&str)| Nature {
            name: format!("mlx5_{number}"),
            pci: (*pci).to_owned(),
            paging: Paging::Marked,
            own_memory: String::new(),
        };
        Self {
            devices: PCI.iter().enumerate().map(device).collect(),
            registrations: Vec::new(),
            processes: HashMap::new(),
            evidence: Evidence {
                list: None,
                peers: None,
                buffers: None,
                has_node_numbers: true,
                sees_all: true,
                is_whole: true,
            },
        }
    }

    /// Adds a process that root sees, with GPUs, and with registrations of the first device.
    fn process(&mut self, number: u32, pinned: u64, lengths: &[u64]) {
        let open = Open { has_any_gpu: true, ..Open::default() };
        let process =
            Process { number, pinned: Some(pinned), resident: Some(1 << 40), open: Some(open), ..Process::default() };
        self.processes.insert(number, process);
        self.registers(Some(number), lengths);
    }

    fn registers(&mut self, process: Option<u32>, lengths: &[u64]) {
        let one = |length: &u64| Registration { device: 0, process, length: *length, is_paged: false };
        self.registrations.extend(lengths.iter().map(one));
    }

    fn open(&mut self, number: u32) -> &mut Open {
        self.processes.get_mut(&number).unwrap().open.as_mut().unwrap()
    }

    fn list(&mut self, lines: &[(u64, &str, u64)]) {
        let mut count = HashMap::new();
        for (process, pci, length) in lines {
            *count.entry((*process, (*pci).to_owned(), *length)).or_default() += 1;
        }
        let bytes = lines.iter().map(|line| line.2).sum();
        self.evidence.list = Some(List { count, bytes, is_cut: false });
    }

    fn attached(&mut self, lines: &[(u64, &str, u64)]) {
        let mut sizes = BTreeMap::new();
        for (size, name, count) in lines {
            sizes.insert((*size, (*name).to_owned()), *count);
        }
        self.evidence.buffers = Some(Buffers { attached: HashMap::from([(PCI[0].to_owned(), sizes)]), is_cut: false });
    }

    fn peers(&mut self, bytes: u64, registrations: u64) {
        self.evidence.peers = Some(Peers { bytes, registrations, ..Peers::default() });
    }

    fn judged(&self) -> Judged {
        judged(&self.registrations, &self.devices, &self.processes, &self.evidence)
    }

    /// Returns the length, the number and the way of each part of a process.
    fn ways(&self, process: impl Into<Option<u32>>) -> Vec<(u64, u64, Way)> {
        let process = process.into();
        let parts = self.judged().parts.into_iter().filter(|part| part.process == process);
        let mut found: Vec<_> = parts.map(|part| (part.length / MIB, part.count, part.way)).collect();
        found.sort_unstable();
        found
    }

    fn proof(&self, process: impl Into<Option<u32>>) -> String {
        let process = process.into();
        self.judged().parts.iter().find(|part| part.process == process).unwrap().proof.to_string()
    }
}

#[test]
fn the_module_lists_its_registrations() {
    let mut node = Node::new();
    node.process(221, 10 * MIB + QUEUES, &[5 * MIB, 5 * MIB]);
    node.process(193, 8 * MIB + QUEUES, &[4 * MIB, 4 * MIB]);
    node.list(&[(221, PCI[0], 5 * MIB), (221, "-", 5 * MIB), (221, PCI[1], 4 * MIB), (193, PCI[1], 4 * MIB)]);
    node.evidence.peers = Some(Peers { bytes: 18 * MIB, registrations: 4, is_unsure: false, are_ours: true });
    assert_eq!(node.ways(221), [(5, 1, Way::Listed), (5, 1, Way::Listed)]);
    // A registration with another device is none of this device, and a whole list says so.
    assert_eq!(node.ways(193), [(4, 2, Way::Host)]);
    assert_eq!(node.proof(193), "pinned, and nv_peer_mem does not list it");
    assert_eq!(node.judged().listed_alone, 2);
}

#[test]
fn memory_that_is_not_pinned_is_a_dma_buf() {
    let mut node = Node::new();
    node.process(230, QUEUES, &[6 * MIB, 6 * MIB]);
    assert_eq!(node.ways(230), [(6, 2, Way::DmaBuf)]);
    assert!(node.proof(230).starts_with("longer than all pinned memory of the process (24 KiB)"));
    node.attached(&[(6 * MIB, "nv_dmabuf", 2)]);
    assert_eq!(node.ways(230), [(6, 2, Way::DmaBuf)]);
    assert!(node.proof(230).ends_with("a dma-buf of nv_dmabuf with 6 MiB is attached to mlx5_0"));
    // A registration may be a part of a larger dma-buf.
    node.attached(&[(64 * MIB, "nvidia", 1), (4 * MIB, "nvidia", 9)]);
    assert_eq!(node.ways(230), [(6, 1, Way::DmaBuf), (6, 1, Way::Unknown)]);
    assert_eq!(node.judged().attached_alone, 9);
}

#[test]
fn a_dma_buf_of_host_memory_is_host_memory() {
    let mut node = Node::new();
    node.process(7, QUEUES, &[6 * MIB]);
    node.attached(&[(6 * MIB, "udmabuf", 1)]);
    assert_eq!(node.ways(7), [(6, 1, Way::Host)]);
    node.attached(&[(6 * MIB, "vgem", 1)]);
    assert_eq!(node.ways(7), [(6, 1, Way::Unknown)]);
}

#[test]
fn paging_on_demand_is_never_a_dma_buf() {
    let mut node = Node::new();
    node.process(245, QUEUES, &[]);
    for length in [8 * MIB, EVERYTHING] {
        node.registrations.push(Registration { device: 0, process: Some(245), length, is_paged: true });
    }
    assert_eq!(node.ways(245), [(8, 1, Way::Paged), (EVERYTHING / MIB, 1, Way::Paged)]);
    let bytes: u64 = node.judged().parts.iter().map(super::ways::Part::bytes).sum();
    assert_eq!(bytes, 8 * MIB);
    // rxe does not mark such registrations. Only a list of all dma-bufs tells them from dma-bufs.
    let mut node = Node::new();
    node.devices[0].paging = Paging::Unknown;
    node.process(449, 0, &[12 * MIB]);
    assert_eq!(node.ways(449), [(12, 1, Way::Unknown)]);
    node.attached(&[]);
    assert_eq!(node.ways(449), [(12, 1, Way::Paged)]);
    // mlx5 would have marked the registration, so something else is wrong with the sum.
    node.devices[0].paging = Paging::Marked;
    assert_eq!(node.ways(449), [(12, 1, Way::Unknown)]);
}

#[test]
fn memory_of_the_device_is_no_dma_buf() {
    let mut node = Node::new();
    node.process(5, 0, &[256 << 10, (256 << 10) + 1]);
    assert_eq!(node.ways(5), [(0, 1, Way::DmaBuf), (0, 1, Way::Unknown)]);
    node.attached(&[]);
    assert_eq!(node.ways(5), [(0, 1, Way::Unknown), (0, 1, Way::Unknown)]);
}

#[test]
fn a_process_without_a_gpu_has_no_dma_buf_of_one() {
    let mut node = Node::new();
    node.process(5, 0, &[MIB]);
    node.open(5).has_any_gpu = false;
    assert_eq!(node.ways(5), [(1, 1, Way::Unknown)]);
    node.attached(&[(MIB, "nvidia", 1)]);
    assert_eq!(node.ways(5), [(1, 1, Way::DmaBuf)]);
}

#[test]
fn queues_hide_no_dma_buf() {
    // NIXL by UCX: 150.1 MiB of host memory, four dma-bufs, and 4.3 MiB of queues.
    let mut node = Node::new();
    let host = 150 * MIB + (MIB / 10).next_multiple_of(4096);
    node.process(9, host + 4 * MIB + 300 * 1024, &[host, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB]);
    assert_eq!(node.ways(9), [(2, 4, Way::Unknown), (150, 1, Way::Unknown)].map(|part| part).to_vec());
    assert!(node.proof(9).starts_with("at least 3.7 MiB of this process's memory is not pinned"));
    node.attached(&[(2 * MIB, "nv_dmabuf", 4)]);
    assert_eq!(node.ways(9), [(2, 4, Way::DmaBuf), (150, 1, Way::Host)]);
}

#[test]
fn only_as_many_as_needed_are_dma_bufs() {
    // Two registrations are equal, but only the first is a dma-buf.
    let mut node = Node::new();
    node.process(9, 8 * MIB + QUEUES, &[8 * MIB, 8 * MIB]);
    node.attached(&[(8 * MIB, "nvidia", 1)]);
    assert_eq!(node.ways(9), [(8, 1, Way::DmaBuf), (8, 1, Way::Host)]);
    // Two dma-bufs are attached, a single dma-buf would explain the sum, and no fact says which.
    let mut node = Node::new();
    node.process(9, 28 * MIB + QUEUES, &[8 * MIB, 9 * MIB, 20 * MIB]);
    node.process(10, 17 * MIB, &[8 * MIB, 9 * MIB]);
    node.attached(&[(8 * MIB, "nvidia", 1), (9 * MIB, "nvidia", 1)]);
    assert_eq!(node.ways(9), [(8, 1, Way::Unknown), (9, 1, Way::Unknown), (20, 1, Way::Unknown)]);
    // The other process has all of its memory pinned, but a dma-buf of such a size is somewhere.
    assert_eq!(node.ways(10), [(8, 1, Way::Unknown), (9, 1, Way::Unknown)]);
}

#[test]
fn a_dma_buf_that_io_uring_hides_is_not_called_host_memory() {
    let mut node = Node::new();
    node.process(9, 100 * MIB, &[8 * MIB, 4 * MIB]);
    node.attached(&[(8 * MIB, "nvidia", 1)]);
    assert_eq!(node.ways(9), [(4, 1, Way::Host), (8, 1, Way::Unknown)]);
    assert!(node.judged().parts.iter().any(|part| part.proof.starts_with("a dma-buf of this size is attached")));
    // The smaller one may be a part of the dma-buf.
    node.open(9).has_io_uring = true;
    assert_eq!(node.ways(9), [(4, 1, Way::Unknown), (8, 1, Way::Unknown)]);
    node.attached(&[]);
    assert_eq!(node.ways(9), [(4, 1, Way::Host), (8, 1, Way::Host)]);
}

#[test]
fn without_peer_memory_pinned_memory_is_host_memory() {
    let mut node = Node::new();
    node.process(361, 8 * MIB + QUEUES, &[4 * MIB, 4 * MIB]);
    assert_eq!(node.ways(361), [(4, 2, Way::Host)]);
    assert_eq!(node.proof(361), "pinned, and the RDMA core has no peer memory");
    node.peers(0, 0);
    assert_eq!(node.proof(361), "pinned, and no client of peer memory holds any");
    assert_eq!(node.ways(361), [(4, 2, Way::Host)]);
    // EFA takes GPU memory without the core.
    node.devices[0].own_memory = "efa".to_owned();
    assert_eq!(node.ways(361), [(4, 2, Way::Unknown)]);
    node.open(361).has_any_gpu = false;
    assert_eq!(node.ways(361), [(4, 2, Way::Host)]);
}

#[test]
fn counters_of_peer_memory_decide() {
    // nvidia-peermem: 10 MiB and 20 MiB by pointer, 8 MiB of host memory.
    let mut node = Node::new();
    node.process(324, 10 * MIB + QUEUES, &[5 * MIB, 5 * MIB]);
    node.process(333, 8 * MIB + QUEUES, &[4 * MIB, 4 * MIB]);
    node.process(342, 20 * MIB + QUEUES, &[10 * MIB, 10 * MIB]);
    node.peers(30 * MIB, 4);
    assert_eq!(node.ways(324), [(5, 2, Way::Pointer)]);
    assert_eq!(node.ways(333), [(4, 2, Way::Host)]);
    assert_eq!(node.ways(342), [(10, 2, Way::Pointer)]);
    // Two processes with the same lengths.
    let mut node = Node::new();
    node.process(1, 10 * MIB, &[5 * MIB, 5 * MIB]);
    node.process(2, 10 * MIB, &[5 * MIB, 5 * MIB]);
    node.peers(10 * MIB, 2);
    assert_eq!(node.ways(1), [(5, 2, Way::Unknown)]);
    assert_eq!(node.proof(1), "pinned; 10 MiB of 20 MiB are peer memory");
    node.peers(20 * MIB, 4);
    assert_eq!(node.ways(2), [(5, 2, Way::Pointer)]);
    // A process without a GPU takes no part.
    node.peers(10 * MIB, 2);
    node.open(1).has_any_gpu = false;
    assert_eq!((node.ways(1), node.ways(2)), (vec![(5, 2, Way::Host)], vec![(5, 2, Way::Pointer)]));
    // The counters also count memory for queues, which is no registration.
    let mut node = Node::new();
    node.process(1, 4 * MIB, &[4 * MIB]);
    node.peers(8 * MIB, 2);
    assert_eq!(node.ways(1), [(4, 1, Way::Unknown)]);
    node.evidence.peers = Some(Peers { is_unsure: true, ..Peers::default() });
    assert_eq!(node.ways(1), [(4, 1, Way::Unknown)]);
}

#[test]
fn more_than_all_host_memory_is_gpu_memory() {
    let mut node = Node::new();
    node.process(1, 64 * MIB, &[64 * MIB]);
    node.process(2, 64 * MIB, &[64 * MIB]);
    node.processes.get_mut(&1).unwrap().resident = Some(63 * MIB);
    node.peers(64 * MIB, 1);
    assert_eq!((node.ways(1), node.ways(2)), (vec![(64, 1, Way::Pointer)], vec![(64, 1, Way::Host)]));
}

#[test]
fn lists_that_are_cut_decide_less() {
    let mut node = Node::new();
    node.process(1, 5 * MIB, &[5 * MIB]);
    node.peers(5 * MIB, 1);
    node.evidence.is_whole = false;
    assert_eq!(node.ways(1), [(5, 1, Way::Unknown)]);
    let mut node = Node::new();
    node.process(9, 20 * MIB + QUEUES, &[20 * MIB, 2 * MIB]);
    node.attached(&[(2 * MIB, "nvidia", 1)]);
    node.evidence.buffers.as_mut().unwrap().is_cut = true;
    assert_eq!(node.ways(9), [(2, 1, Way::DmaBuf), (20, 1, Way::Host)]);
    node.list(&[(9, PCI[0], 2 * MIB)]);
    node.evidence.list.as_mut().unwrap().is_cut = true;
    node.evidence.peers = Some(Peers { bytes: 30 * MIB, registrations: 3, is_unsure: false, are_ours: true });
    assert_eq!(node.ways(9), [(2, 1, Way::Listed), (20, 1, Way::Unknown)]);
}

#[test]
fn registrations_outlive_their_process() {
    // A child keeps the device open. The list still names its parent, which has ended.
    let mut node = Node::new();
    node.registers(None, &[3 * MIB, 4 * MIB]);
    node.process(5, 4 * MIB, &[4 * MIB]);
    node.list(&[(271, PCI[0], 3 * MIB)]);
    node.evidence.peers = Some(Peers { bytes: 3 * MIB, registrations: 1, is_unsure: false, are_ours: true });
    assert_eq!(node.ways(None), [(3, 1, Way::Listed), (4, 1, Way::Unknown)]);
    assert_eq!(node.proof(None), "nv_peer_mem lists it for process 271, which has ended");
    let proof = |node: &Node| node.judged().parts.iter().map(|part| part.proof.to_string()).collect::<Vec<_>>();
    assert!(proof(&node).contains(&"its process has ended, and another one keeps the device open".to_owned()));
    node.evidence.sees_all = false;
    assert!(proof(&node).contains(&"its process cannot be seen from here".to_owned()));
    // The rest does not make another process undecidable.
    assert_eq!(node.ways(5), [(4, 1, Way::Host)]);
}

#[test]
fn a_container_has_other_numbers_than_the_list() {
    let mut node = Node::new();
    (node.evidence.has_node_numbers, node.evidence.sees_all) = (false, false);
    node.process(1, 2 * MIB, &[2 * MIB]);
    node.registers(None, &[5 * MIB, 5 * MIB, 7 * MIB]);
    // The process with the number 1 of the list is another one.
    node.list(&[(269, PCI[0], 2 * MIB), (300, PCI[0], 5 * MIB), (1, PCI[0], 9 * MIB)]);
    node.evidence.peers = Some(Peers { bytes: 16 * MIB, registrations: 3, is_unsure: false, are_ours: true });
    assert_eq!(node.ways(1), [(2, 1, Way::Listed)]);
    assert_eq!(node.ways(None), [(5, 2, Way::Unknown), (7, 1, Way::Unknown)]);
    let proofs: Vec<String> = node.judged().parts.iter().map(|part| part.proof.to_string()).collect();
    assert!(proofs.contains(&"nv_peer_mem lists 1 of 2 registrations of this length".to_owned()), "{proofs:?}");
    assert!(proofs.contains(&"its process cannot be seen from here".to_owned()), "{proofs:?}");
}

#[test]
fn without_root_pinned_memory_is_bounded() {
    // The registrations of the module without its list, and a dma-buf.
    let mut node = Node::new();
    node.process(1, 8 * MIB + QUEUES, &[4 * MIB, 4 * MIB]);
    node.process(2, 10 * MIB + QUEUES, &[5 * MIB, 5 * MIB]);
    node.process(3, QUEUES, &[6 * MIB]);
    node.processes.values_mut().for_each(|process| process.open = None);
    node.evidence.peers = Some(Peers { bytes: 9 * MIB, registrations: 2, is_unsure: false, are_ours: true });
    assert_eq!(node.ways(1), [(4, 2, Way::Unknown)]);
    assert_eq!(node.proof(2), "pinned; 9 MiB of 18 MiB are peer memory");
    assert_eq!(node.ways(3), [(6, 1, Way::DmaBuf)]);
}
