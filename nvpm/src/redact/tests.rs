// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A report keeps the lines that explain a crash, and names no people, hosts, jobs or cards.
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

use crate::facts::fact::info;
use crate::read::kernel_log::{CRASH_LINES, wanted};
use crate::read::machine::Machine;
use crate::redact::redactor::Redactor;
use crate::text::pattern;

static EXAMPLES: &str = include_str!("examples.txt");
static CRASHES: &str = include_str!("crashes.txt");
/// A line of the log that has nothing to do with GPUs, RDMA or a crash.
const QUIET: &str = "[   10.000000] usb 1-1: new high-speed USB device number 2 using xhci_hcd";
static KERNEL_LINES: &str = include_str!("../../tests/kernel_lines.txt");
const FILES: [(&str, &str); 6] = [
    ("proc/sys/kernel/hostname", "n1"),
    ("proc/sys/kernel/osrelease", "7.3.4-test"),
    (
        "etc/hosts",
        "10.0.0.1 n1.corp.example.com n1\n10.0.0.2 node-1\n10.0.0.3 node-12 # node-99\n10.0.0.4 c3 gpu_node7\n",
    ),
    ("home/jdoe/x", ""),
    ("home/jdoe2/x", ""),
    ("home/anna.b/x", ""),
];
/// A plain name, a name with a sign, a name that begins like a program of the system, and a name with the greatest
/// length.
const SECRETS: [&str; 5] = ["hiddenjob", "hidden-job", "python_hidden", "irqhidden", "hiddenhiddenhid"];

fn machine(test: &str) -> Machine {
    let root = std::env::temp_dir().join(format!("nvpm-redact-{test}-{}", std::process::id()));
    for (name, text) in FILES {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }
    Machine::new(root.to_str().unwrap())
}

/// Calls a test with a redactor, whose machine is then removed.
fn with_redactor(test: &str, check: impl Fn(&Redactor)) {
    let machine = machine(test);
    check(&Redactor::new(&machine, ["28.39.1002.5".to_owned()]));
    fs::remove_dir_all(&machine.root).unwrap();
}

#[test]
fn examples_are_redacted() {
    let lines: Vec<&str> = EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
    assert!(lines.len() > 150);
    with_redactor("examples", |plain| {
        for pair in lines.chunks(2) {
            let text = pair[0].replace("\\n", "\n");
            let expected = pair[1].strip_prefix("    ").unwrap().replace("\\n", "\n");
            let expected = if expected == "=" { text.clone() } else { expected };
            let mut redactor = plain.clone();
            assert_eq!(redactor.text(&text), expected);
            // If the same text or the redacted text is redacted again, the numbers must be the same.
            assert_eq!(redactor.text(&text), expected);
            assert_eq!(redactor.text(&expected), expected);
        }
    });
}

fn kernel_lines(section: &str) -> Vec<String> {
    let (_, lines) = KERNEL_LINES.split_once(&format!("[{section}]\n")).unwrap();
    let lines = lines.split("\n[").next().unwrap().trim_matches('\n');
    let lines: Vec<String> = lines.split('\n').map(|line| line.replace("\\n", "\n")).collect();
    assert!(lines.len() > 20);
    lines
}

#[test]
fn the_kernels_lines_name_nobody() {
    with_redactor("named", |plain| {
        for line in kernel_lines("named") {
            for name in SECRETS {
                // The audit subsystem writes some texts in hexadecimal digits.
                let hexadecimal = name.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat();
                let secret = if line.contains("proctitle=") { &hexadecimal } else { name };
                let text = line.replace("6D6572676572747261696E", "SECRET").replace("SECRET", secret);
                let redacted = plain.clone().text(&text);
                assert!(!redacted.contains(secret) && !redacted.contains("52 54 00"), "{redacted}");
            }
        }
        let mut redactor = plain.clone();
        for line in kernel_lines("kept") {
            assert_eq!(redactor.text(&line), line);
        }
    });
}

#[test]
fn whole_names_are_found_in_any_order() {
    with_redactor("order", |plain| {
        let mut redactor = plain.clone();
        redactor.hosts = ["node", "node-1", "node-12", "web"].map(str::to_owned).into();
        assert_eq!(
            redactor.text("node-12 node-1 node web-node-1 node-13"),
            "host-1 host-2 host-3 web-host-2 host-3-13"
        );
    });
}

#[test]
fn a_name_that_one_place_gives_away_is_replaced_in_all() {
    with_redactor("learned", |plain| {
        let mut redactor = plain.clone();
        redactor.learn("CPU: 3 PID: 4711 Comm: mergertrain Tainted: P\nmounting, acct=\"bobsleigh\"");
        redactor.learn_fact(&info("use", "process 50", "my job has 1 registration of GPU memory, 64 KiB"));
        redactor.learn_json(&serde_json::json!({"processes": [{"command": "otherjob"}]}));
        let text = "mergertrain, mergertrains, my job, otherjob of bobsleigh";
        assert_eq!(redactor.text(text), "job-2, mergertrains, job-1, job-3 of user-1");
        assert_eq!(redactor.counted(), "3 x job, 1 x user");
    });
}

#[test]
fn a_process_that_is_called_like_a_word_spoils_nothing() {
    let names = "mlx5_ib error nvidia memory it 4711 0000:3b:00.0 3b:00.0 535.104.05 28.39.1002.5";
    with_redactor("words", |plain| {
        for name in names.split(' ').chain(["GPU memory"]) {
            let mut redactor = plain.clone();
            redactor.ordinary.insert("mlx5_ib".to_owned());
            redactor.learn(&format!("CPU: 3 PID: 4711 Comm: {name} Tainted: P"));
            let line = format!("nvidia mlx5_ib: error {name}: GPU memory");
            assert_eq!(redactor.text(&line), line);
        }
    });
}

#[test]
fn words_of_nvpm_stay_in_its_json() {
    with_redactor("json", |plain| {
        let mut redactor = plain.clone();
        redactor.hosts = HashSet::from(["state".to_owned()]);
        let text =
            r#"{"host": "state", "name": "state", "value": "of state", "list": [{"command": "a b"}, 1.5, null]}"#;
        let expected = "{\n \"host\": \"host-1\",\n \"name\": \"state\",\n \"value\": \"of host-1\",\n \"list\": [\n  {\n   \
                        \"command\": \"job-1\"\n  },\n  1.5,\n  null\n ]\n}\n";
        assert_eq!(redactor.json(text), expected);
        assert_eq!(redactor.json("no JSON of state"), "no JSON of host-1");
    });
}

#[test]
fn crashes_are_kept_without_the_names_of_jobs() {
    let numbers = pattern(r"\b(?:0x)?[0-9a-f]{16}\b");
    let numbers_in = |text: &str| numbers.find_iter(text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>();
    let crashes: Vec<&str> = CRASHES.split("\n== ").skip(1).collect();
    assert_eq!(crashes.len(), 10);
    with_redactor("crashes", |plain| {
        for crash in &crashes {
            let (_, text) = crash.split_once('\n').unwrap();
            let text = text.trim_matches('\n');
            let lines: Vec<&str> = text.split('\n').collect();
            // The lines of a crash that has no end are counted.
            let is_ended = lines.last().unwrap().contains("end trace");
            let quiet = std::iter::repeat_n(QUIET, CRASH_LINES);
            let found = wanted([QUIET].into_iter().chain(lines.iter().copied()).chain(quiet));
            assert_eq!(found[..lines.len()], lines);
            assert_eq!(found.len(), if is_ended { lines.len() } else { lines.len().max(CRASH_LINES) }, "{text}");
            let redacted = plain.clone().text(text);
            assert!(text.contains("secretjob") && !redacted.contains("secretjob"), "{redacted}");
            assert_eq!(numbers_in(&redacted), numbers_in(text));
            assert_eq!(pattern(r"job-\d+").replace_all(&redacted, "secretjob"), text);
        }
    });
}

#[test]
fn a_verb_or_a_kind_of_memory_is_no_host_and_no_user() {
    let sentences = [
        "CIFS: VFS: Server does not support mounting with posix SMB3.11 extensions",
        "nfs: the server did not answer, the server is not there, the server could not start",
        "nvidia: a copy of user space, of user memory and of user pages",
    ];
    let after = "The driver does not answer: user space memory, pages did not start";
    with_redactor("sentences", |plain| {
        for line in sentences {
            let mut redactor = plain.clone();
            assert_eq!(redactor.text(line), line);
            assert_eq!(redactor.text(after), after);
        }
    });
}

/// Returns the seconds of this thread's processor time that a text takes.
fn seconds(redactor: &Redactor, text: &str) -> f64 {
    let now = || std::time::Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap().as_secs_f64();
    let mut redactor = redactor.clone();
    let begun = now();
    redactor.text(text);
    now() - begun
}

#[test]
fn the_time_for_a_line_grows_in_proportion_to_its_length() {
    let pieces = [
        ["a", "a-", "a_", "a.", "1.", "a:", "stuck for ", "://", "sn=a"],
        ["=/a", "error ab in ", "in a", "nfs server ", "comm=", "a (12)", "12(", "`a", "ll header: aa "],
        ["eyJ-", "br-1", "a:/", "//a", "SN A1", "pid=1, name=", "a\"[1]", "-----BEGIN ", "subsystem "],
    ];
    // If the time grew with the square, a line that is eight times as long would take 64 times as long. The shortest of
    // three times counts, because other programs use the processor's caches, too.
    with_redactor("long", |plain| {
        for piece in pieces.as_flattened() {
            let seconds = |count: usize| seconds(plain, &piece.repeat(count));
            let short = (0..3).map(|_| seconds(1000)).fold(f64::INFINITY, f64::min);
            let most = 24.0 * short + 0.1;
            assert!((0..3).any(|_| seconds(8000) <= most), "{piece:?}: {short} s for the short line");
        }
    });
}
