// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! nvpm handles any contents of a machine's files. The exit code is one of the codes in the manual page, and the JSON
//! and the metrics can be parsed. The contents are the same in each run; `NVPM_EXAMPLES` makes more of them.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex::Regex;
use serde_json::Value;

use crate::node::Node;
use crate::registrations::runner;

/// Commands, each with the exit codes that nvpm(8) lists.
const COMMANDS: [(&str, &[i32]); 12] = [
    ("", &[0]),
    ("status", &[0, 3, 4]),
    ("status --all", &[0, 3, 4]),
    ("status --json", &[0, 3, 4]),
    ("status --prometheus", &[0]),
    ("check", &[0, 1, 2, 3]),
    ("regions", &[0, 1, 3]),
    ("regions --summary", &[0, 1, 3]),
    ("regions --json", &[0, 1, 3]),
    ("used", &[0, 1, 3, 4]),
    ("used --all", &[0, 1, 3, 4]),
    ("used --json", &[0, 1, 3, 4]),
];
/// Words of the kind that the files contain, and words that they do not contain.
const WORDS: [&str; 32] = [
    "0",
    "1",
    "-1",
    "00",
    "4242",
    "18446744073709551616",
    "1e9",
    "0x",
    "nan",
    "٣",
    "²",
    "0xffffffffffffffff",
    "yes",
    "mapped",
    "orphaned",
    "nv_mem",
    "0000:04:00.0",
    "[none]",
    "N/A",
    "(x)",
    ")",
    "\\040",
    "\\",
    "%",
    "{",
    "\"",
    "'",
    "#",
    "-",
    ":",
    "=",
    "..",
];
const BLANKS: [&str; 8] = [" ", "\n", "\t", "\r\n", "\0", ",", "", "  "];

fn examples() -> u32 {
    std::env::var("NVPM_EXAMPLES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Returns a good machine with a registration.
fn node() -> Node {
    let node = Node::new();
    node.change(&[
        "@list = # process started age address length client state device name\\n4242 77 5 0x7f0000000000 65536 nv_mem \
         mapped 0000:04:00.0 python3"
            .replace("@list", "/proc/driver/nv_peer_mem/regions")
            .as_str(),
        &format!("/proc/4242/stat = 4242 (a b) S {}77 0", "1 ".repeat(18)),
        "/proc/4242/status = Tgid:\\t4242\\nVmPin:\\t64 kB\\nVmRSS:\\t64 kB\\nUid:\\t0\\t0\\t0\\t0",
        "/proc/4242/comm = a b",
        "/proc/cpuinfo = flags\\t\\t: fpu hypervisor",
        "/proc/cmdline = iommu=pt",
        "/sys/class/dmi/id/product_name = Server",
        "/sys/devices/system/node/online = 0-1",
        "rdma dev 0 name mlx5_0",
        "rdma mr 0 mrlen 65536 pdn 7 pid 4242",
        "rdma mr 0 mrlen 8388608 pdn 8 odp explicit",
        "rdma pd 0 pdn 8 ctxn 3",
        "rdma ctx 0 ctxn 3 pid 4243",
        "rdma qp 0 lqpn 5 pdn 8",
        "process 4243 other 24 nvidia0 nvidia-uvm infiniband/uverbs0",
        "/proc/4243/cgroup = 0::/a",
        "/proc/4243/maps = 7f00-7f01 r-xp 0 00:00 1 /usr/lib/libnccl.so.2",
        "/sys/kernel/debug/dma_buf/bufinfo = Dma-buf Objects:\\n08388608\\t00000002\\t00080007\\t00000002\\tnvidia\\t\
         00000531\\tx\\n\\tAttached Devices:\\n\\t0000:04:00.0\\nTotal 1 devices attached",
        "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data = 1",
        "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data = 1",
        "/later/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data = 1000000",
        "/sys/kernel/mm/memory_peers/nv_mem/num_reg_bytes = 65536",
        "/sys/kernel/mm/memory_peers/nv_mem/num_dereg_bytes = 0",
    ]);
    node
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn look(node: &Node, command: &str, codes: &[i32]) -> Result<(), String> {
    let ended = node.nvpm(command);
    let fails = |why: &str| Err(format!("{command}: {why}: {:?}\n{}{}", ended.code, ended.out, ended.err));
    if !ended.code.is_some_and(|code| codes.contains(&code)) || ended.err.contains("panicked") {
        return fails("wrong end");
    }
    if command.ends_with("--json") && ended.code != Some(1) && !ended.out.is_empty() {
        let is_json = serde_json::from_str::<Value>(&ended.out).is_ok();
        return if is_json { Ok(()) } else { fails("no JSON") };
    }
    if command.ends_with("--prometheus") {
        let label = r#"[a-z]+="(?:[^"\\\n]|\\[\\"n])*""#;
        let sample = Regex::new(&format!(r"^[a-z_]+(?:\{{{label}(?:,{label})*\}})? \d+$")).unwrap();
        let is_sample = |line: &str| line.starts_with("# ") || sample.is_match(line);
        return if ended.out.lines().all(is_sample) { Ok(()) } else { fails("no metrics") };
    }
    Ok(())
}

/// Runs all commands while the file has other contents.
fn with_contents(node: &Node, file: &Path, data: &[u8]) -> Result<(), String> {
    let (before, mode) = (fs::read(file).unwrap(), fs::metadata(file).unwrap().permissions());
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(file, data).unwrap();
    let found = COMMANDS.iter().try_for_each(|(command, codes)| look(node, command, codes));
    fs::write(file, before).unwrap();
    fs::set_permissions(file, mode).unwrap();
    found.map_err(|why| format!("{}: {why}", file.display()))
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let words = vec((select(WORDS.to_vec()), select(BLANKS.to_vec())), 0..12);
    let text = words.prop_map(|pairs| pairs.iter().flat_map(|(word, blank)| [*word, *blank]).collect::<String>());
    prop_oneof![vec(any::<u8>(), 0..300), text.prop_map(String::into_bytes)]
}

#[test]
fn any_contents_of_any_file() {
    let node = node();
    let files = files(&node.machine.root);
    let strategy = (any::<Index>(), contents(), option::of(any::<Index>()));
    let tested = runner(examples()).run(&strategy, |(file, data, at)| {
        let file = file.get(&files);
        let mut new = data.clone();
        if let Some(at) = at {
            // The data is put into the old contents, and replaces up to two bytes.
            let before = fs::read(file).unwrap();
            let at = at.index(before.len() + 1);
            let rest = before.get(at + data.len() % 3..).unwrap_or_default();
            new = [&before[..at], &data, rest].concat();
        }
        with_contents(&node, file, &new).map_err(TestCaseError::fail)
    });
    tested.unwrap();
}

#[test]
fn each_file_empty_and_with_bytes_that_are_no_text() {
    let node = node();
    for file in files(&node.machine.root) {
        for data in [b"".as_slice(), b"\xff\xfe\0\x80 \n\xff\xfe\0\x80 \n"] {
            with_contents(&node, &file, data).unwrap();
        }
    }
}
