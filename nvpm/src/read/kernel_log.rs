// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Chooses the lines of the kernel's log that a bug report needs: lines about GPUs and RDMA devices, and all lines of
//! each crash report, because its registers and its stack name no device.
use std::sync::LazyLock;

use regex::Regex;

use crate::read::machine::Machine;
use crate::text::pattern;

static SPOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let words =
        r"nv_peer_mem|nvidia|NVRM|peer_mem|\bib_|infiniband|rdma|mlx|irdma|bnxt|\befa\b|\bmana_|iommu|dmar|aer:";
    pattern(&format!("(?i){words}|Call Trace"))
});
/// A line that CRASH matches begins a crash report. A line that `CRASH_ENDS` matches ends most reports.
static CRASH: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        r"\bBUG\b|WARNING:|\bOops\b|cut here|general protection|refcount_t|blocked for more than",
        "corruption|[Uu]nable to handle|Internal error|stack guard|soft lockup|[Hh]ard LOCKUP",
        "self-detected stall|detected stalls|Kernel panic|KASAN:|UBSAN:|KCSAN:|SError|Unhandled fault",
        "Bad page|double fault",
    ];
    pattern(&words.join("|"))
});
static CRASH_ENDS: LazyLock<Regex> = LazyLock::new(|| pattern("end trace|end Kernel panic"));
/// The number of lines that are taken from a crash report in which no line matches `CRASH_ENDS`.
pub const CRASH_LINES: usize = 80;

/// A long log is shortened in the middle. The first lines stay because the first crash may cause others, and the last
/// lines because they are the newest.
const FIRST_LINES: usize = 500;
const LAST_LINES: usize = 1500;

const JOURNAL: [&str; 7] = ["journalctl", "-k", "-b", "--no-pager", "--no-hostname", "-o", "short-monotonic"];
const COMMANDS: [&[&str]; 3] = [&JOURNAL, &["dmesg", "--kernel"], &["dmesg"]];
/// The beginning of a line of journalctl: a time in brackets, and the program that has written the line into the
/// kernel's log. The words of programs other than the kernel are not known, so no pattern can take names out of them.
static WRITER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[ *\d+\.\d+\] ([^ :]+): "));
/// A record of the audit has the names and the arguments of processes, in many fields.
static AUDIT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\baudit: type=\d+ ).+"));
const UNREAD: &str = "(the kernel's log cannot be read: run this as root)";

/// Returns the lines to keep. A line that repeats the kernel's command line is left out, because a report must not
/// contain all of the command line, and a record of the audit is emptied.
pub fn wanted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), 0_usize);
    for line in lines {
        if CRASH.is_match(line) {
            left = CRASH_LINES;
        }
        if (left > 0 || SPOKEN.is_match(line)) && !line.contains("ommand line") {
            found.push(AUDIT.replace(line, "${1}(left out)").into_owned());
        }
        left = if CRASH_ENDS.is_match(line) { 0 } else { left.saturating_sub(1) };
    }
    found
}

fn shortened(lines: Vec<String>) -> Vec<String> {
    let out = lines.len().saturating_sub(FIRST_LINES + LAST_LINES);
    if out == 0 {
        return lines;
    }
    let (first, last) = (lines.get(..FIRST_LINES), lines.get(FIRST_LINES + out..));
    let note = [format!("({out} lines are left out here)")];
    [first.unwrap_or_default(), &note, last.unwrap_or_default()].concat()
}

/// Returns whether a line of journalctl is the kernel's own, or has no known form.
fn is_of_kernel(line: &str) -> bool {
    WRITER.captures(line).is_none_or(|found| found.get(1).is_some_and(|writer| writer.as_str() == "kernel"))
}

/// Returns the chosen lines of this boot, or a text that the log cannot be read.
pub fn kernel_log(machine: &Machine) -> String {
    for command in COMMANDS {
        let (well, printed) = machine.run(command);
        if well && !printed.is_empty() {
            let is_journal = command == JOURNAL.as_slice();
            let lines = printed.split('\n').filter(|line| !is_journal || is_of_kernel(line));
            return shortened(wanted(lines)).join("\n") + "\n";
        }
    }
    format!("{UNREAD}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_shortened_in_the_middle() {
        let lines = |count: usize| (0..count).map(|number| format!("nvidia {number}")).collect::<Vec<_>>();
        assert_eq!(shortened(lines(2000)).len(), 2000);
        let found = shortened(lines(2003));
        assert_eq!(found.len(), 2001);
        assert_eq!(found.get(499..502).unwrap(), ["nvidia 499", "(3 lines are left out here)", "nvidia 503"]);
    }

    #[test]
    fn a_crash_is_kept_to_its_end() {
        let log = "usb 1\nBUG: x\nRIP: y\n---[ end trace 0 ]---\nusb 2\nnvidia: z\nKernel command line: nvidia\n";
        assert_eq!(wanted(log.lines()), ["BUG: x", "RIP: y", "---[ end trace 0 ]---", "nvidia: z"]);
        // The command line is left out even inside a crash.
        let log = "WARNING: x\n[1] Kernel command line: nvidia ks=x\n[3] usb 1-1: new";
        assert_eq!(wanted(log.lines()), ["WARNING: x", "[3] usb 1-1: new"]);
    }

    #[test]
    fn lines_about_these_devices_are_kept() {
        let lines = [
            "[1] Kernel command line: nvidia ks=x",
            "[2] NVRM: loading",
            "[3] usb 1-1: new",
            "[4] mlx5_core 0000:04:00.0: firmware",
            "[5] DMAR: fault",
        ];
        assert_eq!(wanted(lines.into_iter()), [lines[1], lines[3], lines[4]]);
        // The fields of the audit's records have names of processes, and their arguments.
        let audit = "mlx5 audit: type=1400 audit(1): comm=\"secret\"";
        assert_eq!(wanted(audit.lines()), ["mlx5 audit: type=1400 (left out)"]);
        let audit = "[6] audit: type=1309 audit(1.1:2): argc=2 a0=\"nvidia-x\" a1=\"--token\" a2=\"hunter2\"";
        assert_eq!(wanted(audit.lines()), ["[6] audit: type=1309 (left out)"]);
    }

    #[test]
    fn lines_of_programs_are_not_the_kernels() {
        for (line, is) in [
            ("[    1.5] kernel: x", true),
            ("[   12.25] systemd[1]: y", false),
            ("nvidia: z", true),
            ("[ 1.5] no", true),
        ] {
            assert_eq!(is_of_kernel(line), is, "{line}");
        }
    }
}
