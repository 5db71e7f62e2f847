// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! No command asks the name service, which may not answer. A library that is loaded before the C library notes each
//! question, and never answers.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::{Ended, Node};

/// Two users, of whom only the first has a name in /etc/passwd.
const LIST: &str = "42 1234 5 0x7f0000000000 65536 nv_mem pinned - train\\n\
                    43 1234 5 0x7f0000000000 65536 nv_mem pinned - other";

struct Outage {
    node: Node,
    library: PathBuf,
    asked: PathBuf,
}

impl Outage {
    fn new() -> Self {
        let node = Node::new();
        node.change(&[
            &format!("/proc/driver/nv_peer_mem/regions = {LIST}"),
            "/sys/module/nv_peer_mem/statistics/reachable_regions = 2",
            "/etc/passwd = root:x:0:0:::\\nbobsleigh:x:1042:1042:::",
        ]);
        for number in [42, 43] {
            let users = format!("\\t{}", 1000 + number).repeat(4);
            node.change(&[
                &format!("/proc/{number}/stat = {number} (a) S {}1234 0 0", "0 ".repeat(18)),
                &format!("/proc/{number}/status = Uid:{users}"),
            ]);
        }
        node.program("dmesg", "echo 'nvidia: bobsleigh has started a program'");
        node.program("journalctl", "");
        let (library, asked) = (node.scratch().join("silent.so"), node.scratch().join("asked"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/doubles/verbs/silent_names.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let made = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        assert!(made.unwrap().success());
        Self { node, library, asked }
    }

    fn with_library(&self, command: &mut Command) -> Ended {
        command.env("LD_PRELOAD", &self.library).env("ASKED", &self.asked).output().unwrap().into()
    }

    fn nvpm(&self, words: &str) -> Ended {
        self.with_library(self.node.command().args(words.split(' ')))
    }

    fn questions(&self) -> String {
        fs::read_to_string(&self.asked).unwrap_or_default()
    }
}

#[test]
fn the_library_takes_the_place_of_the_c_library() {
    let outage = Outage::new();
    let ended = outage.with_library(Command::new("timeout").args(["2", "id", "-un"]));
    assert_eq!((ended.code, outage.questions().as_str()), (Some(124), "getpwuid\n"));
}

#[test]
fn no_command_asks() {
    let outage = Outage::new();
    let words = ["check", "status", "status --all", "status --json", "status --prometheus", "regions --json", "help"];
    for words in words.into_iter().chain(["explain --here -", "compare -", "regions", "regions --summary", "holders"]) {
        outage.nvpm(words);
        assert_eq!(outage.questions(), "", "{words}");
    }
}

#[test]
fn users_have_the_names_of_the_file_or_numbers() {
    let said = Outage::new().nvpm("regions --summary").out;
    assert!(
        said.contains("process 42 (train, user bobsleigh)") && said.contains("process 43 (other, user 1043)"),
        "{said}"
    );
}

#[test]
fn a_report_takes_out_the_names_of_the_file() {
    let outage = Outage::new();
    let ended = outage.nvpm("report --no-selftest");
    assert_eq!((ended.code, outage.questions().as_str()), (Some(0), ""), "{}", ended.err);
    assert!(ended.out.contains("nvidia: user-1 has started a program"), "{}", ended.out);
}
