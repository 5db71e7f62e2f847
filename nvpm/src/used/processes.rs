// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads from /proc the names and containers of processes that have an RDMA device open, the amount of memory that
//! the kernel keeps pinned for them, and their open devices.
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use crate::read::machine::{Machine, decoded};
use crate::text::clean;
use crate::used::tasks::{field, status};

/// The greatest number of open files to look at: for each process, and in all. Users decide how many files are open.
const MOST_OF_ONE: usize = 8192;
const MOST_OF_ALL: usize = 1 << 17;
/// A container's identifier has this number of digits, of which `docker ps` and `crictl ps` show the first ones.
const DIGITS: usize = 64;
const SHOWN: usize = 12;
/// The greatest number of bytes of /proc/PID/cgroup. Each hierarchy has a line.
const CGROUP: u64 = 1 << 16;

/// The files that a process has open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// The names of the GPUs' device files.
    pub gpus: BTreeSet<String>,
    /// The driver's file that only programs with CUDA open. Monitors open the files of GPUs also.
    pub has_cuda: bool,
    /// A device file of any vendor's GPU.
    pub has_any_gpu: bool,
    /// The kernel counts the buffers of `io_uring` as pinned memory, too.
    pub has_io_uring: bool,
    /// The RDMA devices, as uverbs0.
    pub verbs: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub number: u32,
    pub command: String,
    /// The beginning of the container's identifier; empty outside of containers.
    pub container: String,
    /// The number of bytes that are pinned for this process: host memory, and memory of peer clients.
    pub pinned: Option<u64>,
    /// The number of bytes of host memory that the process has. More cannot be pinned.
    pub resident: Option<u64>,
    /// The open files; None if this user cannot see them.
    pub open: Option<Open>,
}

impl Process {
    pub fn has_gpu(&self) -> Option<bool> {
        self.open.as_ref().map(|open| !open.gpus.is_empty())
    }
}

/// Reads processes, and bounds the number of files that are looked at.
pub struct Reading<'a> {
    machine: &'a Machine,
    left: Cell<usize>,
}

impl<'a> Reading<'a> {
    pub fn new(machine: &'a Machine) -> Self {
        Self { machine, left: Cell::new(MOST_OF_ALL) }
    }

    /// Returns whether too many files are open, so that some were not looked at.
    pub fn is_cut(&self) -> bool {
        self.left.get() == 0
    }

    pub fn process(&self, number: u32) -> Process {
        let status = status(self.machine, number);
        let bytes = |name| kib(field(&status, name)?);
        let resident = bytes("VmRSS").map(|bytes| bytes.saturating_add(kib_or_none(&status)));
        Process {
            number,
            command: self.command(number),
            container: self.container(number, &status),
            pinned: bytes("VmPin"),
            resident,
            open: self.open(number),
        }
    }

    /// Returns the name of a process. The process chooses its name.
    pub fn command(&self, number: u32) -> String {
        let comm = decoded(&self.machine.read_at_most(&format!("/proc/{number}/comm"), 64));
        let name = clean(comm.trim_end_matches('\n')).trim().to_owned();
        if name.is_empty() { "?".to_owned() } else { name }
    }

    /// Returns the container of a process. A process with a number of its own in another namespace is in a container,
    /// although not each engine gives the container an identifier.
    fn container(&self, number: u32, status: &str) -> String {
        let groups = decoded(&self.machine.read_at_most(&format!("/proc/{number}/cgroup"), CGROUP));
        if let Some(found) = identifier(&groups) {
            return found.to_owned();
        }
        let inner = field(status, "NSpid").and_then(|text| text.split_whitespace().nth(1));
        inner.map_or(String::new(), |inner| format!("(is {} there)", clean(inner)))
    }

    /// Returns the files that a process has open; None if this user must not see them, or if there are too many.
    pub fn open(&self, number: u32) -> Option<Open> {
        let place = format!("/proc/{number}/fd");
        let files = self.machine.names(&place, MOST_OF_ONE.min(self.left.get()) + 1)?;
        let is_cut = files.len() > MOST_OF_ONE.min(self.left.get());
        self.left.set(self.left.get().saturating_sub(files.len()));
        let mut found = Open::default();
        for file in files {
            found.add(&self.machine.link(&format!("{place}/{file}")));
        }
        Some(found).filter(|_| !is_cut)
    }
}

impl Open {
    fn add(&mut self, target: &str) {
        let Some(name) = target.strip_prefix("/dev/") else {
            self.has_io_uring |= target == "anon_inode:[io_uring]";
            return;
        };
        // The simulated driver of the tests has one file, nvidia-lab.
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
        if name.strip_prefix("nvidia").is_some_and(|number| is_number(number) || number == "-lab") {
            self.gpus.insert(name.to_owned());
        }
        self.has_cuda |= ["nvidia-uvm", "nvidia-lab"].contains(&name);
        self.has_any_gpu |= ["nvidia", "kfd", "dri/"].iter().any(|begin| name.starts_with(begin));
        if let Some(verbs) = name.strip_prefix("infiniband/").filter(|name| name.starts_with("uverbs")) {
            self.verbs.insert(clean(verbs));
        }
    }
}

/// Returns the bytes in a field such as `1024 kB`.
fn kib(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn kib_or_none(status: &str) -> u64 {
    field(status, "HugetlbPages").and_then(kib).unwrap_or_default()
}

/// Returns the beginning of the first container's identifier in a list of control groups.
fn identifier(groups: &str) -> Option<&str> {
    let digits = groups.split(|letter: char| !letter.is_ascii_hexdigit());
    digits.filter(|text| text.len() == DIGITS).find_map(|text| text.get(..SHOWN))
}

/// Returns the processes with these numbers.
pub fn processes(reading: &Reading, numbers: &BTreeSet<u32>) -> HashMap<u32, Process> {
    numbers.iter().map(|number| (*number, reading.process(*number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    #[test]
    fn a_process_has_what_proc_says() {
        let made = Made::new();
        made.change([
            "/proc/42/status = NSpid:\\t42\\t1\\nVmRSS:\\t    2048 kB\\nVmPin:\\t    24 kB\\nHugetlbPages:\\t 1024 kB",
            "/proc/42/comm = a\\033[1m",
            "/proc/42/fd/3 -> /dev/nvidia0",
            "/proc/42/fd/4 -> /dev/nvidiactl",
            "/proc/42/fd/5 -> /dev/nvidia-uvm",
            "/proc/42/fd/6 -> anon_inode:[io_uring]",
            "/proc/42/fd/7 -> /dev/infiniband/uverbs1",
            "/proc/43/comm = b",
        ]);
        let machine = made.read();
        let reading = Reading::new(&machine);
        let found = reading.process(42);
        assert_eq!((found.command.as_str(), found.container.as_str()), ("a?[1m", "(is 1 there)"));
        assert_eq!((found.pinned, found.resident), (Some(24 << 10), Some(3 << 20)));
        let open = found.open.unwrap();
        assert_eq!(open.gpus.iter().collect::<Vec<_>>(), ["nvidia0"]);
        assert!(open.has_cuda && open.has_any_gpu && open.has_io_uring && open.verbs.contains("uverbs1"));
        let other = reading.process(43);
        assert_eq!((other.command.as_str(), other.pinned, other.open), ("b", None, None));
    }

    #[test]
    fn a_container_has_an_identifier() {
        let id = "a1b2c3d4e5f60718".repeat(4);
        for groups in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("12:pids:/\n1:name=systemd:/kubepods/pod1/{id}\n"),
            format!("0::/kubepods.slice/cri-containerd-{id}.scope"),
        ] {
            assert_eq!(identifier(&groups), Some("a1b2c3d4e5f6"), "{groups}");
        }
        for groups in [String::new(), "0::/user.slice".to_owned(), format!("0::/{id}0")] {
            assert_eq!(identifier(&groups), None, "{groups}");
        }
    }
}
