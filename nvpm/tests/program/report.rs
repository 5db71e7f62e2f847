// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A report names no people, hosts and jobs, and keeps nvpm's own words.
use std::collections::HashMap;
use std::process::Stdio;

use serde_json::Value;

use crate::node::{Ended, Node};

const CHANGES: [&str; 8] = [
    "/etc/hosts = 10.0.0.1 n1.corp.example.com n1\\n10.0.0.4 c3 gpu_node7",
    "/home/alice/x = ",
    "/proc/version = Linux version 6.1 (jdoe@buildbox) (gcc 12.2.0)",
    "/etc/modprobe.d/site.conf = # tuned by jdoe@corp, alice: ticket 4\\noptions nvidia NVreg_X=1 # alice likes it",
    "/sys/module/nv_peer_mem/statistics/reachable_regions = 1",
    "/proc/driver/nv_peer_mem/regions = 42 5 5 0x7f0000000000 65536 nv_mem mapped - secretjob\\n\
     43 5 5 0x7f0000000000 65536 nv_mem mapped - python3",
    "/sys/class/infiniband/enxb8cef6123456/parent = enxb8cef6123456",
    "/proc/cmdline = ro secret=4 iommu=pt",
];
const LOG: &str = "echo \"$@\" | grep -q -- --no-hostname || exit 1\n\
                   echo '[    1.0] kernel: rpcrdma: to nfs01.corp.example.com from c3'\n\
                   echo '[    2.0] kernel: WARNING: CPU: 3 PID: 4711 at x'\n\
                   echo '[    2.0] kernel: CPU: 3 PID: 4711 Comm: secretjob Tainted: P'\n\
                   echo '[    2.0] kernel: RIP: 0010:__alloc_pages+0x2e4/0x310'\n\
                   echo '[    2.0] kernel: ---[ end trace 0 ]---'";

/// Returns the texts of a report of a machine with this name, by their names.
fn report_of(host: &str, options: &str) -> HashMap<String, String> {
    let node = Node::new();
    node.change(&CHANGES);
    node.change(&[&format!("/proc/sys/kernel/hostname = {host}")]);
    node.program("journalctl", LOG);
    texts(&node.nvpm(&format!("report --no-selftest {options}")))
}

/// Returns the texts of a report by their names.
fn texts(ended: &Ended) -> HashMap<String, String> {
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let out = format!("\n{}", ended.out);
    let parts = out.split("\n==== ").filter_map(|part| part.split_once(" ====\n"));
    parts.map(|(name, said)| (name.to_owned(), said.to_owned())).collect()
}

fn object(said: &str) -> Value {
    serde_json::from_str(said).unwrap()
}

#[test]
fn nothing_leaks() {
    let said = report_of("n1.corp.example.com", "");
    let names = ["n1.corp", "nfs01", "example.com", "jdoe", "alice", "buildbox", "secretjob", "ticket", "b8cef6123456"];
    for (part, text) in &said {
        for name in names {
            assert!(!text.contains(name), "{part}: {name}");
        }
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(!words.into_iter().any(|word| ["n1", "c3"].contains(&word)), "{part}");
    }
    assert_eq!(object(&said["status.json"])["host"], "host-1");
    let processes = object(&said["regions.json"])["processes"].clone();
    assert_eq!([&processes[0]["command"], &processes[1]["command"]], ["job-1", "python3"]);
    assert!(said["files.txt"].contains("options nvidia NVreg_X=1\n") && said["files.txt"].contains("\niommu=pt\n"));
    assert!(said["status.txt"].contains("process 42               job-1, which has ended, has 1 registration"));
    for kept in ["Comm: job-1 Tainted", "from host-", "RIP: 0010:", "---[ end trace"] {
        assert!(said["kernel.log"].contains(kept), "{kept}");
    }
    let readme = &said["README.txt"];
    assert!(readme.contains("\nTaken out: ") && readme.contains(" x address, ") && readme.contains("\nKept: "));
    assert!(readme.contains(" x host, 1 x job, "), "{readme}");
}

#[test]
fn all_stays_if_the_user_asks_for_it() {
    let said = report_of("n1.corp.example.com", "--as-it-is");
    assert_eq!(object(&said["status.json"])["host"], "n1.corp.example.com");
    assert!(said["regions.json"].contains("secretjob") && said["files.txt"].contains("(jdoe@buildbox)"));
    assert!(said["README.txt"].contains("Taken out: nothing, as asked (--as-it-is)."));
}

/// nvpm's own names, keys and identifiers are not redacted, because all machines have the same ones.
#[test]
fn a_host_may_be_called_like_a_word_of_nvpm() {
    let other = report_of("zz9", "");
    let headings = |said: &HashMap<String, String>| {
        let lines = said["status.txt"].lines().filter(|line| line.starts_with(char::is_alphabetic));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let facts = |said: &HashMap<String, String>, key: &str| {
        let facts = object(&said["status.json"])["facts"].as_array().unwrap().clone();
        facts.into_iter().map(|fact| fact[key].clone()).collect::<Vec<_>>()
    };
    for host in ["gpu", "node", "GPU", "state", "link", "distance", "a", "nearest"] {
        let said = report_of(host, "");
        assert_eq!(object(&said["status.json"])["host"], "host-1");
        for key in ["id", "section", "name", "verdict"] {
            assert_eq!(facts(&said, key), facts(&other, key), "{host}");
        }
        assert_eq!(object(&said["status.json"])["ways"], object(&other["status.json"])["ways"]);
        if !["state", "link"].contains(&host) {
            assert_eq!(said["status.txt"], other["status.txt"]);
        }
        assert_eq!(headings(&said), headings(&other), "{host}");
    }
}

#[test]
fn an_archive_is_a_new_file_of_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let node = Node::new();
    let path = node.scratch().join("r.tar.gz");
    let command = format!("report --no-selftest --write {}", path.display());
    let ended = node.nvpm(&command);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.starts_with("Written: ") && ended.out.ends_with("README.txt). Read it before you send it.\n"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = node.nvpm(&command);
    assert_eq!(again.err, format!("nvpm report: {} cannot be written: File exists\n", path.display()));
    assert_eq!(again.code, Some(1));
}

#[test]
fn a_name_that_one_place_gives_away_stands_in_no_other() {
    // Three names stand where no pattern finds them. nvpm knows the first name from another line of the kernel's log,
    // the second from the list of registrations, and the third, which has a blank, from the fact about a process.
    let node = Node::new();
    node.change(&[
        "/etc/modprobe.d/site.conf = options nvidia NVreg_X=mergertrain",
        "/sys/module/nv_peer_mem/statistics/reachable_regions = 2",
        "/proc/driver/nv_peer_mem/regions = 50 5 5 0x7f0000000000 65536 nv_mem mapped - otherjob\\n\
         51 5 5 0x7f0000000000 65536 nv_mem mapped - my\\\\040job",
    ]);
    node.program(
        "journalctl",
        "echo '[    1.0] kernel: nvidia: mergertrain did something'\n\
         echo '[    2.0] kernel: WARNING: CPU: 3'\n\
         echo '[    2.0] kernel: CPU: 3 PID: 4711 Comm: mergertrain Tainted: P'\n\
         echo '[    3.0] kernel: nvidia: seen by otherjob, and by my job, and by mergertrains'",
    );
    let said = texts(&node.nvpm("report --no-selftest"));
    for (part, text) in &said {
        for name in ["mergertrain ", "mergertrain\n", "otherjob", "my job"] {
            assert!(!text.contains(name), "{part}: {name}");
        }
    }
    assert!(said["status.txt"].matches("job-").count() >= 2, "{}", said["status.txt"]);
    let log = &said["kernel.log"];
    assert!(log.contains("kernel: nvidia: job-") && log.contains("mergertrains"), "{log}");
}

#[test]
fn people_are_users_with_high_numbers_and_the_present_user_and_owners_of_homes() {
    let node = Node::new();
    let people = ["first_one", "last_one", "later_one", "sudo_user", "logname", "jdoe", "jdoe2", "anna.b"];
    let others = ["system_one", "nobody", "user"];
    let numbers =
        [("system_one", 999), ("first_one", 1000), ("last_one", 60000), ("nobody", 65534), ("later_one", 70000)];
    let users: Vec<String> = numbers.iter().map(|(name, number)| format!("{name}:x:{number}:0::/:/")).collect();
    node.change(&[
        &format!("/etc/passwd = {}", users.join("\\n")),
        "/home/jdoe/x =",
        "/home/jdoe2/x =",
        "/home/anna.b/x =",
        &format!("/etc/modprobe.d/site.conf = options nvidia NVreg_X= {} {}", people.join(" "), others.join(" ")),
    ]);
    let mut command = node.command();
    for name in ["SUDO_USER", "LOGNAME", "USER"] {
        command.env(name, name.to_lowercase());
    }
    let said = texts(&command.args(["report", "--no-selftest"]).output().unwrap().into());
    let numbered: Vec<String> = (1..=people.len()).map(|number| format!("user-{number}")).collect();
    let expected = format!("options nvidia NVreg_X= {} {}\n", numbered.join(" "), others.join(" "));
    assert!(said["files.txt"].contains(&expected), "{}", said["files.txt"]);
}

#[test]
fn a_program_of_a_report_gets_nothing_to_read() {
    // It must not read from the terminal of nvpm's user.
    let node = Node::new();
    node.program("uname", "cat; echo has read all");
    let mut command = node.command();
    command.args(["report", "--no-selftest"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let kept_open = child.stdin.take();
    let ended: Ended = child.wait_with_output().unwrap().into();
    drop(kept_open);
    assert!(texts(&ended)["versions.txt"].contains("has read all"), "{}", ended.out);
}
