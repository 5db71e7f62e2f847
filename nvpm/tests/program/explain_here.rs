// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! If a log is of this node, `nvpm explain` compares its cause with the facts of `nvpm status`.
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::node::Node;

const MEMLOCK: &str = "NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory\n";
const ENOMEM: &str = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n";
const EFAULT: &str = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address\n";
const UNIT: &str = "/usr/lib/systemd/system/slurmd.service = [Service]\\nLimitMEMLOCK=";
const FACT: &str = "This node: access, memory lock slurmd: ";

fn node(lines: &[&str]) -> Node {
    let node = Node::new();
    node.change(lines);
    node
}

fn with_limit(limit: &str) -> Node {
    node(&[&format!("{UNIT}{limit}")])
}

/// Returns the answer for a text on the standard input, with single blanks.
fn explain(node: &Node, log: &str) -> String {
    let command = &mut node.command();
    let command = command.args(["explain", "--here", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut nvpm = command.spawn().unwrap();
    nvpm.stdin.take().unwrap().write_all(log.as_bytes()).unwrap();
    in_one_line(&nvpm.wait_with_output().unwrap().stdout)
}

fn explain_files(node: &Node, files: &[&Path]) -> String {
    in_one_line(&node.command().arg("explain").args(files).output().unwrap().stdout)
}

fn in_one_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_node_confirms_and_contradicts() {
    let said = explain(&with_limit("64K"), MEMLOCK);
    assert!(said.contains(FACT) && said.contains(" That fits."), "{said}");
    let said = explain(&with_limit("infinity"), MEMLOCK);
    assert!(said.contains(FACT) && said.contains(" That speaks against this cause now."), "{said}");
}

#[test]
fn the_node_chooses_between_causes() {
    let said = explain(&node(&[]), ENOMEM);
    assert!(said.contains("the limit on locked memory"), "{said}");
    let said = explain(&node(&[&format!("{UNIT}infinity"), "bar1 0000:03:00.0 256 131072"]), ENOMEM);
    let (_, cause) = said.split_once("Cause").unwrap_or_else(|| panic!("{said}"));
    assert!(cause.split("To do").next().unwrap().contains("BAR1 has room for"), "{said}");
}

#[test]
fn the_node_adds_no_cause() {
    let node = node(&[&format!("{UNIT}64K"), "bar1 0000:03:00.0 256 131072"]);
    assert!(!explain(&node, MEMLOCK).contains("BAR1"));
    assert!(!explain(&node, "hello\n").contains("Cause"));
}

#[test]
fn the_advice_is_that_of_the_node() {
    let node = node(&["- /sys/module/nv_peer_mem /sys/module/nvidia_peermem /sys/kernel/mm/memory_peers"]);
    let said = explain(&node, EFAULT);
    assert!(said.contains("To do: /etc/init.d/nv_peer_mem start"), "{said}");
}

/// Writes a log of a host, and returns its file.
fn log(node: &Node, name: &str, host: &str) -> std::path::PathBuf {
    let file = node.scratch().join(name);
    fs::write(&file, format!("{host}:9:9 [0] {MEMLOCK}")).unwrap();
    file
}

fn own_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim().split('.').next().unwrap().to_owned()
}

#[test]
fn a_log_with_the_name_of_the_node_is_of_the_node() {
    let (node, own) = (with_limit("64K"), own_name());
    for (host, is_own) in [(own.clone(), true), (format!("{own}1"), false), (format!("{own}.example.org"), true)] {
        let said = explain_files(&node, &[&log(&node, "x.log", &host)]);
        assert_eq!(said.contains("This node"), is_own, "{host}: {said}");
    }
}

#[test]
fn the_node_says_nothing_about_logs_from_before_its_boot() {
    // The node may have been set up differently then. The newest log counts.
    let (node, own) = (with_limit("64K"), own_name());
    let [old, new] = ["old", "new"].map(|name| log(&node, name, &own));
    let up = fs::read_to_string("/proc/uptime").unwrap();
    let up: f64 = up.split(' ').next().unwrap().parse().unwrap();
    let before = SystemTime::now() - Duration::from_secs_f64(up) - Duration::from_secs(3600);
    fs::File::options().write(true).open(&old).unwrap().set_modified(before).unwrap();
    assert!(!explain_files(&node, &[&old]).contains("This node"));
    assert!(explain_files(&node, &[&old, &new]).contains("This node"));
}
