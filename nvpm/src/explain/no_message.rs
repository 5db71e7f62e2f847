// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether a line only quotes a message: a command behind a prompt, a comment, a pattern that someone looks for,
//! the result of a check, or a line of a program's source. Such a line shows facts, and no failure.
use std::sync::OnceLock;

use regex::bytes::Regex;

use crate::explain::pattern::expression;

/// Prompts of shells, and lines of `set -x`. A bare `#` is a prompt only before the name of a common command.
const COMMAND: &str = concat!(
    r"^(?:\([\w.-]+\) ?)?\[?[\w.-]+@[\w.-]+(?:[: ][^\s#$%]*)?\]? ?[#$%] \S|^(?:ba|z|k)?sh-[\d.]+[#$] \S|^(?:\$|❯|➜) *[\w./~-]+ *\S|^\++ [a-z./\[]",
    r"|^(?:#|[\w./~-]*[#$%]) (?:sudo |/usr/s?bin/)?(?:awk|cat|cd|curl|dkms|dmesg|docker|echo|egrep|env|export|find|git|grep|ibv?_\w+|insmod",
    r"|ip|journalctl|kubectl|ldd|ls|lsmod|lspci|make|mkdir|modinfo|modprobe|mpirun|nvidia-smi|nvpm|podman|python3?|rdma|rg|rmmod",
    r"|rpm|sed|show_gids|srun|sysctl|systemctl|tail|torchrun|ucx_\w+|uname|vi|vim|zgrep)(?: |$)",
);
/// A comment is advice or quotes a message. Programs also print lines that begin with `#`, as tables do.
const COMMENT: &str = concat!(
    r#"^(?:#+|//+|;+|--|/?\*|<!--|rem|REM) .*(?:["'`].{8,}["'`]|(?i:\b(?:if|when|see|you|your|todo|fixme|note|should|raise|try"#,
    r#"|workaround|because|otherwise|unless|e\.g\.|i\.e\.|avoids?|prevents?|happens|means|expect)\b))"#,
);
/// A pattern stands in quotation marks behind a program that looks for it. A message can name such a command as advice.
const SEARCH: &str = r#"(?:^|^sudo |\| *)(?:e?grep|zgrep|fgrep|rg|ag|awk|sed|findstr|Select-String|--grep|journalctl -g)(?: +-[-\w=.]+)* +(?:["'/]|-e )"#;
/// Someone has looked for a message and not found it, or a test of it is passed.
const RESULT: &str = concat!(
    r"(?i:\b(?:0|no) (?:lines?|match(?:es)?|hits?|occurrences?|results?)(?: were| was)?(?: found)?\b)",
    r"|(?i:\b(?:check|test|probe|assertion)\b.*\b(?:passed|succeeded|ok)\b)|^(?:ok \d|PASS(?:ED)?\b|\[ *(?:OK|PASSED) *\]|✓|✔)",
);
/// Statements of C, C++, Go, Python and shells, also within a diff.
const SOURCE: &str = concat!(
    r#"^[+-]?\s*(?:(?:pr|dev|netdev|ibdev)_\w+|v?f?printf?|printk|fprintf|snprintf|WARN(?:_ON\w*)?|LOG\w*|INFO|log\w*\.\w+|logging\.\w+"#,
    r#"|ucs_\w+|console\.\w+|raise \w+|throw \w+|return \w*[Ee]rr\w*|std::cerr|cerr|die|fatal|echo|print)\b ?[(<"'$].*["')][);,\s]*$"#,
    r#"|^[+-]?\s*(?:if|else if|elif|switch|while|for|case|goto|return|#define|#error|static|const|assert|EXPECT_\w+)\b.*[;{:\\]$"#,
);

/// Words without which an expression cannot match. An expression takes more time to make than most logs take to read.
const SEARCHES: &[&str] = &["grep", "rg ", "ag ", "awk ", "sed ", "findstr", "Select-String", "journalctl"];
const RESULTS: &[&str] = &["0 ", "o ", "heck", "est", "robe", "ssertion"];

fn matches(slot: &'static OnceLock<Option<Regex>>, pattern: &str, line: &str) -> bool {
    slot.get_or_init(|| expression(pattern)).as_ref().is_some_and(|regex| regex.is_match(line.as_bytes()))
}

pub fn is_no_message(line: &str) -> bool {
    static SLOTS: [OnceLock<Option<Regex>>; 5] = [const { OnceLock::new() }; 5];
    let may_be: [(&str, bool); 5] = [
        (COMMAND, line.get(..99).unwrap_or(line).contains(['$', '#', '%', '+', '❯', '➜'])),
        (COMMENT, line.starts_with(['#', '/', ';', '-', '*', '<', 'r', 'R'])),
        (SEARCH, SEARCHES.iter().any(|word| line.contains(word))),
        (RESULT, RESULTS.iter().any(|word| line.contains(word)) || line.starts_with(['P', 'o', '[', '✓', '✔'])),
        (SOURCE, line.ends_with(['(', ')', ';', ',', '{', ':', '\\', '"', '\''])),
    ];
    may_be.iter().zip(&SLOTS).any(|((pattern, may_be), slot)| *may_be && matches(slot, pattern, line))
}

/// The lines of a diff, which are sources.
#[derive(Default)]
pub struct Diff(bool);

impl Diff {
    /// Returns whether the next line of a log belongs to a diff.
    pub fn has(&mut self, line: &[u8]) -> bool {
        let begins = line.starts_with(b"@@ -") || line.starts_with(b"diff --git ");
        self.0 = begins
            || (self.0 && matches!(line.first(), Some(b'+' | b'-' | b' ' | b'\\')))
            || (self.0 && line.starts_with(b"index "));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_no_messages() {
        for line in [
            "$ grep -c \"Call to ibv_modify_qp failed with error No such device\" rank0.log",
            "root@gpu07:~# modprobe nv_peer_mem",
            "[user@login01 job]$ dmesg | grep 'nvidia_peermem: disagrees about version'",
            "# dmesg | tail",
            "+ echo 'failed to load nvidia-peermem module'",
            "# if you see \"ibv_reg_mr failed: Cannot allocate memory\" raise ulimit -l",
            "// ibv_reg_mr returns ENOMEM when the limit is too low",
            "dmesg | grep -i \"Unknown symbol\"",
            "The check for nvidia_peermem: disagrees about version of symbol ib_x passed (0 lines found)",
            "no matches for ibv_create_qp failed",
            "    pr_err(\"nvidia_p2p_get_pages failed\\n\");",
            "+\tif (ibv_reg_mr_failed) {",
        ] {
            assert!(is_no_message(line), "{line}");
        }
    }

    #[test]
    fn messages_are_no_quotations() {
        for line in [
            "# Out of bounds values : 128 FAILED",
            "# < failed to open interface >",
            "grep: /lib/modules/x: No such file or directory",
            "#1 ofi_memcpy () from libfabric.so.1",
            "make[1]: *** No rule to make target 'modules'.  Stop.",
            "nv_peer_mem.c:34:10: fatal error: rdma/peer_mem.h: No such file or directory",
            "ibv_reg_mr failed: Cannot allocate memory",
            "RuntimeError: NCCL error in: x.cpp:12, unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5.so: cannot open shared object file",
        ] {
            assert!(!is_no_message(line), "{line}");
        }
    }

    #[test]
    fn a_diff_ends_at_another_line() {
        let mut diff = Diff::default();
        let lines = ["@@ -1,2 +1,2 @@", " a", "+ failed", "node1: failed", "- failed"];
        assert_eq!(lines.map(|line| diff.has(line.as_bytes())), [true, true, true, false, false]);
    }
}
