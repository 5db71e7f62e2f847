// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Registrations that other users have made cost nvpm little time and memory, and hide no others. Each command runs in
//! a process that the kernel ends if it takes more than SECONDS of processor time, or more than MEMORY bytes.
use std::process::Command;

use crate::node::{Ended, Node, program};

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
