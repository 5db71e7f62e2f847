// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Runs the program over the public logs in tests/logs, and counts the answers.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const LOGS: &[&str] = &[include_str!("logs/threads.txt"), include_str!("logs/reports.txt")];
/// The least share of right first answers in percent, and the largest share of wrong ones, among logs with a cause.
const RIGHT: usize = 95;
const WRONG: usize = 1;

struct Log {
    title: &'static str,
    text: String,
    causes: Vec<&'static str>,
}

fn logs() -> Vec<Log> {
    LOGS.iter().flat_map(|file| file.split("\n\n")).filter_map(log_of).collect()
}

fn log_of(block: &'static str) -> Option<Log> {
    // A comment stands before a title. A line of a log can begin with the same sign.
    let mut lines = block.lines().skip_while(|line| line.is_empty() || line.starts_with('#'));
    let title = lines.next()?;
    let (about, text): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("=> "));
    let causes = about.first().and_then(|line| line.strip_prefix("=> ")).expect("a log has a cause");
    Some(Log { title, text: text.join("\n"), causes: causes.split(" or ").collect() })
}

fn run(options: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nvpm-bin"))
        .arg("explain")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may end before it has read all.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the program ends")
}

fn object(log: &str) -> Value {
    serde_json::from_slice(&run(&["--json", "-"], log.as_bytes()).stdout).expect("an object")
}

#[test]
fn an_error_that_no_case_has_names_no_cause() {
    for words in ["Connection reset by peer", "Address family not supported by protocol"] {
        let answer = object(&format!("ibv_open_device(mlx5_0) failed: {words}\n"));
        assert_ne!(answer["answer"], "cause", "{words}");
    }
    assert_eq!(object("ibv_open_device(mlx5_0) failed\n")["answer"], "cause");
}

#[test]
fn public_logs_are_answered() {
    let (mut right, mut wrong, mut silent, mut all) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for log in logs() {
        let answer = object(&log.text);
        let kind = answer["answer"].as_str().expect("a kind");
        let first = answer["causes"][0]["cause"].as_str().filter(|_| kind == "cause").unwrap_or_default();
        if log.causes == ["no cause"] {
            assert_eq!(first, "", "a control has no cause: {}", log.title);
            continue;
        }
        assert_ne!(kind, "nothing", "an all-clear for a failure: {}", log.title);
        all += 1;
        match first {
            "" => silent.push(log.title),
            _ if log.causes.contains(&first) => right.push(log.title),
            _ => wrong.push(format!("{} {first}", log.title)),
        }
    }
    let figures = format!("{all} logs: {} right first, wrong: {wrong:#?}, silent: {silent:#?}", right.len());
    println!("{figures}");
    assert!(right.len() * 100 >= all * RIGHT, "{figures}");
    assert!(wrong.len() * 100 <= all * WRONG, "{figures}");
}

#[test]
fn an_answer_has_twelve_lines_at_most_and_begins_with_a_command() {
    for log in logs() {
        let output = run(&["-"], log.text.as_bytes());
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.lines().count() <= 12, "{}:\n{text}", log.title);
        assert!(output.stderr.is_empty(), "{}", log.title);
        if output.status.code() == Some(3) {
            let begins = text.lines().skip(1).take(2).any(|line| line.starts_with("First: "));
            assert!(begins, "{}:\n{text}", log.title);
        }
    }
}

#[test]
fn success_has_a_sentence() {
    let log = "a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n\
               b:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [receive] via NET/IB/0/GDRDMA\n";
    let output = run(&["-"], log.as_bytes());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("NCCL uses GPUDirect RDMA on 2 of 2 channels, with IB."), "{text}");
    assert_eq!(output.status.code(), Some(0));
    let only_start = run(&["-"], b"a:1:1 [0] NCCL INFO DMA-BUF is available on GPU device 0\n");
    let text = String::from_utf8(only_start.stdout).expect("text");
    assert!(text.contains("no line says whether GPUDirect RDMA is used"), "a capability is no use:\n{text}");
}

#[test]
fn exit_codes_are_those_that_the_help_names() {
    for (options, input, code) in [
        (&["-"][..], &b"ibv_reg_mr failed: Cannot allocate memory"[..], 3),
        (&["-"], b"mlx5_9: strange failure", 4),
        (&["-"], b"all is well", 4),
        (&["-"], b"Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", 0),
        (&["-"], b"", 1),
        (&["/nonexistent/log"], b"", 2),
        (&["--since", "-1h"], b"", 2),
        (&["--nonsense"], b"", 2),
        (&["--help"], b"", 0),
        (&["--list"], b"", 0),
    ] {
        let output = run(options, input);
        assert_eq!(output.status.code(), Some(code), "{options:?} {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_line_of_a_megabyte_is_read() {
    for part in ["failed to ibv_", "(", "NET/IB : Got completion with error 12, opcode 1 ", "\\n"] {
        let line = part.repeat((1 << 20) / part.len());
        assert!(run(&["-"], line.as_bytes()).status.code().is_some(), "{part}");
    }
}
