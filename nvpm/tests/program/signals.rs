// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! If a user interrupts nvpm, or a scheduler ends it, the programs that nvpm has started end, also their children. For
//! example, a selftest holds a GPU and a device.
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};

use crate::node::{Node, program};

/// Waits until something is so. A busy machine may need long.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        sleep(Duration::from_millis(10));
    }
}

fn is_running(number: &str) -> bool {
    fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

fn interrupt(signal: Signal) {
    let node = Node::new();
    let note = node.scratch().join("number");
    let noted = note.display();
    node.program("uname", &format!("sleep 300 &\necho $! >{noted}.new\nmv {noted}.new {noted}\nwait"));
    // A shell that runs the tests in the background makes them ignore SIGINT.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program()).args(["report", "--no-selftest"]);
    let mut nvpm = command.envs(node.environment()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the program has started", || Path::new(&note).exists());
    kill_process(Pid::from_raw(i32::try_from(nvpm.id()).unwrap()).unwrap(), signal).unwrap();
    let status = nvpm.wait().unwrap();
    let is_ended = status.code() == Some(128 + signal.as_raw()) || status.signal() == Some(signal.as_raw());
    assert!(is_ended, "{status:?} after {signal:?}");
    let number = fs::read_to_string(&note).unwrap();
    until("the program's child has ended", || !is_running(number.trim()));
}

#[test]
fn each_signal_that_ends_nvpm_ends_its_programs() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        interrupt(signal);
    }
}

#[test]
fn a_page_that_a_signal_interrupts_is_removed() {
    let node = Node::new();
    let page = node.scratch().join("page.html");
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program()).args(["compare", "--html"]).arg(&page);
    // The standard input has no end, so the page is never written.
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let nvpm = command.spawn().unwrap();
    until("the file is there", || page.exists());
    kill_process(Pid::from_raw(i32::try_from(nvpm.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    let ended = wait_with_open_input(nvpm);
    assert_eq!(ended.code, Some(128 + Signal::TERM.as_raw()), "{}", ended.err);
    assert_eq!(ended.err, format!("nvpm compare: {} is not written\n", page.display()));
    assert!(!page.exists());
}

/// Waits for the end of a process whose standard input stays open.
fn wait_with_open_input(mut nvpm: std::process::Child) -> crate::node::Ended {
    let _input = nvpm.stdin.take();
    nvpm.wait_with_output().unwrap().into()
}

#[test]
fn a_file_of_a_report_is_whole_or_not_there() {
    let node = Node::new();
    let file = env::temp_dir().join(format!("{}.tar.gz", node.scratch().file_name().unwrap().to_string_lossy()));
    let ended: crate::node::Ended =
        node.command().args(["report", "--no-selftest", "--write"]).arg(&file).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let listed = Command::new("tar").arg("-tzf").arg(&file).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("nvpm-report/README.txt"));
    fs::remove_file(file).unwrap();
}
