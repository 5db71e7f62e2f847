// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! nvpm goes on if a file of the kernel does not answer, and says which. A FIFO that nobody writes stands for such a
//! file.
use std::fs;
use std::os::fd::AsFd;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::pipe;
use serde_json::Value;

use crate::node::Node;

const GPU: &str = "0000:03:00.0";
const INFORMATION: &str = "/proc/driver/nvidia/gpus/0000:03:00.0/information";

fn silent(node: &Node, path: &str) {
    node.change(&[&format!("{path} = x")]);
    let file = node.machine.root.join(path.trim_start_matches('/'));
    fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_driver_that_does_not_answer() {
    let node = Node::new();
    silent(&node, INFORMATION);
    let ended = node.nvpm("check");
    let begin = "NVPM CRITICAL - kernel/nvidia_driver: does not answer (/proc/driver/nvidia/gpus/";
    assert!(ended.out.starts_with(begin) && ended.code == Some(2), "{}", ended.out);
    let said = node.nvpm("status").out;
    assert!(said.starts_with("No GPU memory can be registered now: the NVIDIA driver does not answer"), "{said}");
    assert!(said.contains("first to do   kernel, NVIDIA driver: "), "{said}");
    let first = said.lines().find(|line| line.starts_with("  !!")).unwrap();
    assert!(first.contains("kernel, NVIDIA driver: does not answer"), "{first}");
    let said: Value = serde_json::from_str(&node.nvpm("status --json").out).unwrap();
    assert_eq!(said["facts"][0]["id"], "kernel/nvidia_driver");
}

#[test]
fn a_report_has_all_other_facts_and_starts_no_program_that_would_hang() {
    let node = Node::new();
    let good = node.nvpm("report --as-it-is").out;
    silent(&node, INFORMATION);
    node.program("nvidia-smi", "exit 9");
    let ended = node.nvpm("report --as-it-is");
    assert!(ended.code == Some(0) && !good.contains("kernel, NVIDIA driver"), "{}", ended.err);
    let status = good.split("==== versions.txt").next().unwrap();
    let lines: Vec<&str> = status.lines().filter(|line| line.starts_with("  ok")).collect();
    assert!(lines.len() > 5);
    for line in lines {
        assert!(ended.out.contains(line), "{line}");
    }
    // These are two calls of nvidia-smi, and the selftest.
    let hangs = "(not run, because the NVIDIA driver does not answer: see status.txt)";
    assert_eq!(ended.out.matches(hangs).count(), 3, "{}", ended.out);
}

#[test]
fn other_files_that_do_not_answer() {
    for (path, fact) in [
        ("/sys/class/infiniband/mlx5_0/fw_ver", "rdma_device_mlx5_0"),
        ("/sys/class/infiniband/mlx5_0/ports/1/state", "rdma_device_mlx5_0"),
        ("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware"),
        ("/proc/driver/nvidia/params", "suspend_lock_of_the_nvidia_driver"),
        ("/sys/bus/pci/devices/0000:03:00.0/config", &format!("pci_device_{GPU}")),
    ] {
        let node = Node::new();
        silent(&node, path);
        let said = node.nvpm("status --json").out;
        assert!(said.contains(&format!("\"kernel/{fact}\"")), "{path}");
        assert!(said.contains(&format!("does not answer ({path}, since ")), "{path}");
    }
}

#[test]
fn of_two_processes_whose_mappings_do_not_answer_only_the_first_is_asked() {
    let node = Node::new();
    let line = |number: u32| format!("{number} 7 5 0x7f0000000000 65536 nv_mem mapped - a");
    node.change(&[
        "/sys/module/nv_peer_mem/statistics/reachable_regions = 2",
        "/proc/sys/vm/max_map_count = 65530",
        &format!("/proc/driver/nv_peer_mem/regions = {}\\n{}", line(41), line(42)),
    ]);
    silent(&node, "/proc/41/maps");
    silent(&node, "/proc/42/maps");
    let said = node.nvpm("status --all").out;
    assert!(said.contains("(/proc/41/maps, since ") && !said.contains("/proc/42/maps"), "{said}");
    assert!(said.contains("process 42"), "{said}");
}

#[test]
fn no_process_can_be_started_and_all_is_read() {
    // The limit of processes does not hold for root, so the test looks at what another user gets.
    let node = Node::new();
    let good = node.nvpm("status --all").out;
    let shell = "ulimit -n 4096; for i in $(seq 3 1200); do eval \"exec $i</dev/null\"; done 2>/dev/null; exec \"$@\"";
    let mut command = std::process::Command::new("bash");
    command.args(["-c", shell, "bash"]).arg(crate::node::program()).args(["status", "--all"]);
    let ended: crate::node::Ended = command.envs(node.environment()).output().unwrap().into();
    // A process may have inherited more than 1,024 open files.
    assert_eq!(ended.out, good, "{}", ended.err);
}

#[test]
fn the_output_ends_with_nvpm_and_not_with_the_reading_process() {
    // The reading process may be left behind, and must not keep a pipe of nvpm's caller open.
    let node = Node::new();
    silent(&node, INFORMATION);
    let (reading, writing) = pipe().unwrap();
    fcntl_setfd(writing.as_fd(), FdFlags::empty()).unwrap();
    let mut child = node.command().arg("check").stdout(Stdio::piped()).spawn().unwrap();
    drop(writing);
    let mut rest = [0; 1];
    // The end of the pipe comes when nobody has it open any more.
    assert_eq!(rustix::io::read(&reading, &mut rest).unwrap(), 0);
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

// ---- a reading process that an earlier nvpm has left behind ----

const KILLED: &str = "0000000000000100";

/// Adds a process with the users that it has: real, effective, saved, and that of the file system.
fn put_process(node: &Node, number: u32, name: &str, pending: &str, file: &str, users: &[String]) {
    let place = format!("/proc/{number}");
    let users = if users.is_empty() { String::new() } else { format!("\\nUid:\\t{}", users.join("\\t")) };
    node.change(&[
        "/proc/stat = cpu 1 2 3\\nbtime 1700000000",
        &format!("{place}/comm = {name}"),
        &format!("{place}/status = Name:\\t{name}{users}\\nSigPnd:\\t0000\\nShdPnd:\\t{pending}"),
        &format!("{place}/stat = {number} ({name}) D {}{number}00 0", "0 ".repeat(18)),
        &format!("{place}/fd/0 -> /dev/null"),
        &format!("{place}/fd/4 -> pipe:[5]"),
        &format!("{place}/fd/12 -> {file}"),
    ]);
}

fn own() -> Vec<String> {
    vec![rustix::process::geteuid().as_raw().to_string(); 4]
}

/// Returns the value of the fact about the driver, if it does not answer.
fn silence(node: &Node) -> Option<String> {
    let said: Value = serde_json::from_str(&node.nvpm("status --json").out).unwrap();
    let fact = said["facts"].as_array().unwrap().iter().find(|fact| fact["id"] == "kernel/nvidia_driver")?.clone();
    Some(fact["value"].as_str().unwrap().to_owned())
}

#[test]
fn a_file_for_which_an_earlier_nvpm_waits_is_not_read_again() {
    let node = Node::new();
    for number in [9, 8] {
        put_process(&node, number, "nvpm-reader", KILLED, INFORMATION, &own());
    }
    silent(&node, INFORMATION);
    // The first of the two processes was started eight seconds after the boot, at 1700000000.
    let said = node.command().env("TZ", "UTC").args(["status", "--json"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains(&format!("does not answer ({INFORMATION}, since ")), "{said}");
    assert!(said.contains("22:13:28"), "{said}");
}

#[test]
fn other_processes_say_nothing_about_a_file() {
    for (name, pending, file) in [
        ("nvpm-readers", KILLED, INFORMATION),
        ("python3", KILLED, INFORMATION),
        ("nvpm-reader", "0000000000000000", INFORMATION),
        ("nvpm-reader", "0000000000000080", INFORMATION),
        ("nvpm-reader", KILLED, "/home/x/proc"),
    ] {
        let node = Node::new();
        put_process(&node, 9, name, pending, file, &own());
        assert_eq!(silence(&node), None, "{name} {pending} {file}");
    }
}

#[test]
fn a_process_of_another_user_says_nothing() {
    // A user who starts a program such as su remains its real user, may choose its name, and may kill it.
    let mut all = vec![Vec::new()];
    for place in 0..4 {
        let mut users = own();
        users[place] = "65534".to_owned();
        all.push(users);
    }
    for users in all {
        let node = Node::new();
        put_process(&node, 9, "nvpm-reader", KILLED, INFORMATION, &users);
        assert_eq!(silence(&node), None, "{users:?}");
    }
}
