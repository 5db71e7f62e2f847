// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Registrations that other users have made cost nvpm little time and memory, and hide no others. Each command runs in
//! a process that the kernel ends if it takes more than SECONDS of processor time, or more than MEMORY bytes.
use std::process::Command;

use crate::node::{Ended, Node, program};
use crate::rdma;

const SECONDS: u32 = 20;
const MEMORY: u32 = 150 << 20;
const MANY: u32 = 130_000;
const REGIONS: &str = "/sys/module/nv_peer_mem/statistics/reachable_regions";

fn limited(node: &Node, words: &str) -> Ended {
    let mut command = Command::new("prlimit");
    command.args([format!("--cpu={SECONDS}"), format!("--as={MEMORY}")]).arg(program());
    let ended: Ended = command.args(words.split(' ')).envs(node.environment()).output().unwrap().into();
    assert!(ended.code.is_some() && !ended.err.contains("panicked"), "{words}: {:?} {}", ended.code, ended.err);
    ended
}

/// Returns a machine on which PROCESSES processes have MANY registrations.
fn busy(processes: u32) -> Node {
    let node = Node::new();
    let line = |number: u32| {
        let process = 1 + number % processes;
        format!("{process} 5 10 0x{number:x} 65536 nv_mem mapped 0000:03:00.0 t\\n")
    };
    let list: String = (0..MANY).map(line).collect();
    node.change(&[&format!("{REGIONS} = {MANY}"), &format!("/proc/driver/nv_peer_mem/regions := # head\\n{list}")]);
    node
}

#[test]
fn many_registrations_of_one_process() {
    let node = busy(1);
    limited(&node, "check");
    let said = limited(&node, "regions --json").out;
    assert!(said.contains(&format!(" registrations of {MANY} were read")));
}

#[test]
fn many_registrations_of_as_many_processes() {
    let node = busy(MANY);
    for words in ["check", "status --prometheus"] {
        limited(&node, words);
    }
    for words in ["status --all", "regions", "regions --json", "holders"] {
        let said = limited(&node, words).out;
        assert!(said.contains(&format!(" registrations of {MANY} were read")), "{words}");
    }
}

#[test]
fn nothing_is_left_out_of_a_short_list() {
    // The last line counts, though it has no end, and the counter may be ahead of the list.
    let node = Node::new();
    let lines: Vec<String> = (0..8).map(|at| format!("7 5 10 0x{at} 65536 nv_mem mapped 0000:03:00.0 t")).collect();
    let list = format!("/proc/driver/nv_peer_mem/regions := {}", lines.join("\\n"));
    node.change(&[&format!("{REGIONS} = 9"), &list]);
    assert!(limited(&node, "regions").out.ends_with("all: 8 registrations, 512 KiB\n"));
}

/// Returns a machine on which many processes have MANY registrations with a device. LENGTH gives each its length.
fn with_objects(processes: u32, length: impl Fn(u32) -> u64) -> Node {
    let node = Node::new();
    node.change(&["rdma dev 0 name mlx5_0"]);
    let one = |number: u32| {
        let (length, process) = (length(number).to_string(), (1000 + number % processes).to_string());
        rdma::message("mr", "0", &["mrlen", &length, "mrn", "1", "pdn", "7", "pid", &process])
    };
    let list: Vec<u8> = (0..MANY).flat_map(one).collect();
    let directory = node.machine.root.join("rdma-netlink/mr");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("0"), list).unwrap();
    for process in 0..processes {
        node.change(&[&format!("process {} python3 24 nvidia0 nvidia-uvm infiniband/uverbs0", 1000 + process)]);
    }
    node
}

#[test]
fn many_registrations_with_a_device() {
    for node in [with_objects(500, |_| 65536), with_objects(500, |number| 1_000_000 + 4096 * u64::from(number))] {
        for words in ["used", "used --all", "used --json"] {
            let said = limited(&node, words).out;
            assert!(said.contains("GPUDirect RDMA"), "{words}: {said}");
            assert!(
                limited(&node, "status --prometheus")
                    .out
                    .contains("\nnvpm_host_memory_registered_bytes{device=\"mlx5_0\"} ")
            );
            assert!(said.lines().count() < 2000 && (words != "used" || said.lines().count() <= 13), "{words}: {said}");
        }
    }
    // A list is cut where it is too long, and the answer says so.
    let node = with_objects(1, |_| 65536);
    let file = node.machine.root.join("rdma-netlink/mr/0");
    let list = std::fs::read(&file).unwrap();
    std::fs::write(&file, list.repeat(1 + (12 << 20) / list.len())).unwrap();
    assert!(limited(&node, "used").out.contains("Only a part of the registrations was read: mlx5_0."));
}
