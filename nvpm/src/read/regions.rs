// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the module's list of the GPU memory that each process has registered. The list has the names of processes. In
//! these names, the module writes each character as an octal number, except plain letters, digits and signs.
use std::collections::HashMap;
use std::rc::Rc;

use crate::read::machine::{Machine, base, decoded, own_module, statistics};
use crate::read::pci::nics;
use crate::text::clean;

pub const LIST: &str = "/proc/driver/nv_peer_mem/regions";

const NOT_LOADED: &str = "nv_peer_mem is not loaded: no GPU memory is registered through it. \
                          nvpm says whether this machine needs it, and how to load it.";
const TOO_OLD: &str = "the nv_peer_mem that is loaded is older than this command and keeps no list. \
                       When nobody uses it: modprobe -r nv_peer_mem && modprobe nv_peer_mem";
const NOT_ROOT: &str = "only root can read who has memory registered. Try: sudo nvpm regions";
const NO_CAPABILITY: &str = "cannot be read: that takes the capability CAP_SYS_ADMIN, which root has not in most \
                             containers. Try it outside, as root: nvpm regions";

/// The greatest number of bytes of the list that are read: to list registrations, and to judge the machine. A user may
/// have millions of registrations, and must not decide how long root's monitor takes. A line has about 70 bytes.
pub const TO_LIST: u64 = 6 << 20;
pub const TO_JUDGE: u64 = 1 << 20;
/// A list with fewer registrations is never too long.
const MANY: usize = 1000;
/// The greatest number of processes about which the status has a fact.
pub const MOST_PROCESSES: usize = 64;
const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
/// The numbers of a list have at most so many digits.
const DIGITS: [usize; 3] = [10, 20, 10];

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub process: u64,
    /// The start of the process in ticks since boot, with up to 20 digits.
    pub started: u128,
    /// The age of the registration in seconds.
    pub age: u64,
    pub address: String,
    pub length: u128,
    pub client: String,
    pub state: String,
    pub pci: String,
    pub command: String,
}

impl Region {
    /// Returns whether another one is the same registration at a later time. A program may register the same memory
    /// again.
    pub fn is_older(&self, later: &Self) -> bool {
        let identity = |one: &Self| (one.process, one.started, one.address.clone(), one.length);
        identity(self) == identity(later) && later.age >= self.age
    }

    fn process(&self) -> (u64, u128) {
        (self.process, self.started)
    }
}

/// The list cannot be read, for a reason.
#[derive(Debug)]
pub struct Unreadable {
    /// The exit code of `nvpm regions`.
    pub code: u8,
    pub reason: String,
}

fn need_list(machine: &Machine) -> Result<(), Unreadable> {
    let fails = |code: u8, reason: &str| Err(Unreadable { code, reason: reason.to_owned() });
    if own_module(machine).is_empty() {
        return fails(3, NOT_LOADED);
    }
    if !machine.exists(LIST) {
        return fails(1, TOO_OLD);
    }
    if !machine.readable(LIST) {
        return fails(1, NOT_ROOT);
    }
    if machine.read_at_most(LIST, 1).is_empty() {
        return fails(1, &format!("{}{LIST} {NO_CAPABILITY}", machine.root));
    }
    Ok(())
}

fn natural<T: std::str::FromStr>(text: &str, most_digits: usize) -> Option<T> {
    let is_number = !text.is_empty() && text.len() <= most_digits && text.bytes().all(|letter| letter.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns the registration in a line of the list, or None for any other text. A later version of the module may append
/// fields to the line. The last field that is read, the name of the process, may be empty, because processes choose
/// their names.
fn parsed(line: &str) -> Option<Region> {
    let mut fields = line.split(' ');
    let mut next = || fields.next();
    let [process, started, age] = DIGITS;
    let (process, started, age) = (natural(next()?, process)?, natural(next()?, started)?, natural(next()?, age)?);
    let (address, length) = (next()?, natural(next()?, 20)?);
    let (client, state, pci, command) = (next()?, next()?, next()?, next()?);
    let words = [address, client, state, pci];
    if words.iter().any(|word| word.is_empty())
        || words.iter().any(|word| word.contains(is_blank))
        || command.contains(is_blank)
    {
        return None;
    }
    let command = clean(command).replace("\\040", " ");
    Some(Region {
        process,
        started,
        age,
        address: address.to_owned(),
        length,
        client: client.to_owned(),
        state: state.to_owned(),
        pci: pci.to_owned(),
        command: if command.is_empty() { "?".to_owned() } else { command },
    })
}

fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

/// Returns the registrations in the first bytes of the list, sorted by process. The registrations of each process begin
/// with the oldest.
pub fn regions(machine: &Machine, most: u64) -> Result<Vec<Region>, Unreadable> {
    need_list(machine)?;
    let mut data = machine.read_at_most(LIST, most);
    // If the list is longer, its last line may be cut.
    if data.len() as u64 == most {
        data.truncate(data.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
    }
    let mut found: Vec<Region> = decoded(&data).split('\n').filter_map(parsed).collect();
    found.sort_by(|one, other| {
        let by_age = one.process().cmp(&other.process()).then(other.age.cmp(&one.age));
        by_age.then_with(|| one.address.cmp(&other.address))
    });
    Ok(found)
}

/// Returns the registrations by which the machine is judged. The list is read only once, because the kernel holds the
/// module's lock while it writes the list.
pub fn judged(machine: &Machine) -> Rc<Result<Vec<Region>, Unreadable>> {
    fn compute(machine: &Machine) -> Result<Vec<Region>, Unreadable> {
        regions(machine, TO_JUDGE)
    }
    machine.once(compute)
}

/// Returns the registrations whose memory is being freed at this moment. The list is read again. Returns no
/// registration if the list cannot be read any more.
pub fn revoking(machine: &Machine) -> Vec<Region> {
    let found = regions(machine, TO_JUDGE).unwrap_or_default();
    found.into_iter().filter(|one| one.state == "revoking").collect()
}

/// Returns a text with the number of all registrations if the list is too long, so that FOUND has only a part of them;
/// otherwise an empty string.
pub fn left_out(machine: &Machine, found: &[Region]) -> String {
    let live = found.iter().filter(|one| one.state != "orphaned").count();
    let said = machine.text(&format!("{}reachable_regions", statistics(machine)));
    // Registrations begin and end between two reads, so a small difference means nothing.
    match natural::<usize>(&said, 18) {
        Some(all) if all > live && found.len() >= MANY => {
            format!("only the first {} registrations of {said} were read", found.len())
        }
        _ => String::new(),
    }
}

/// A process and its regions.
pub struct Process<'a> {
    pub number: u64,
    pub command: &'a str,
    pub regions: &'a [Region],
    pub bytes: u128,
    pub running: bool,
    pub what: String,
}

impl<'a> Process<'a> {
    fn new(machine: &Machine, found: &'a [Region]) -> Option<Self> {
        let first = found.first()?;
        let (number, command, started) = (first.process, first.command.as_str(), first.started.to_string());
        // The name of the process in this file may contain blanks, so the fields are counted after the parenthesis that
        // ends the name. Field 19 is the start time. If the start time is not that of the registration, the
        // process has ended, and another process has its number now.
        let stat = machine.text(&format!("/proc/{number}/stat"));
        let fields = stat.rsplit_once(") ").map_or(stat.as_str(), |(_, fields)| fields);
        let running = fields.split_whitespace().nth(19) == Some(started.as_str());
        let bytes = total(found);
        let what = format!("{} of GPU memory, {}", count(found), size(bytes));
        Some(Self { number, command, regions: found, bytes, running, what })
    }

    /// Returns a text with the name of the user.
    pub fn who(&self, machine: &Machine) -> String {
        let by = if self.running { user(machine, self.number) } else { String::new() };
        let by = if by.is_empty() { by } else { format!(", user {by}") };
        let ended = if self.running { "" } else { ", which has ended" };
        format!("process {} ({}{by}{ended})", self.number, self.command)
    }
}

/// Returns the name of the user who owns the process, or the user's number. If the owner is unknown, returns an empty
/// string.
fn user(machine: &Machine, process: u64) -> String {
    let status = machine.all_text(&[format!("/proc/{process}/status")]);
    let line = status.split('\n').find_map(|line| line.strip_prefix("Uid:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map_or(String::new(), |number| machine.user(number))
}

/// Returns the processes of sorted registrations.
pub fn processes<'a>(machine: &Machine, found: &'a [Region]) -> impl Iterator<Item = Process<'a>> {
    let groups = found.chunk_by(|one, other| one.process() == other.process());
    groups.filter_map(|group| Process::new(machine, group))
}

/// Returns the processes that have registered the most memory, sorted by number. If several processes have the same
/// amount, the processes with the smallest numbers are returned.
pub fn largest<'a>(machine: &Machine, found: &'a [Region]) -> Vec<Process<'a>> {
    let mut groups: Vec<&[Region]> = found.chunk_by(|one, other| one.process() == other.process()).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(total(group)));
    groups.truncate(MOST_PROCESSES);
    groups.sort_by_key(|group| group.first().map(Region::process));
    groups.into_iter().filter_map(|group| Process::new(machine, group)).collect()
}

pub fn count_of_processes(found: &[Region]) -> usize {
    found.chunk_by(|one, other| one.process() == other.process()).count()
}

/// Returns the names of the RDMA devices at each PCI address.
pub fn names_by_pci(machine: &Machine) -> HashMap<String, String> {
    let mut names: HashMap<String, Vec<String>> = HashMap::new();
    for nic in nics(machine).iter().filter(|nic| nic.software.is_empty()) {
        if let Some(pci) = &nic.pci {
            names.entry(pci.address.clone()).or_default().push(nic.name.clone());
        }
    }
    names.into_iter().map(|(address, names)| (address, names.join(","))).collect()
}

pub fn total(found: &[Region]) -> u128 {
    found.iter().map(|one| one.length).sum()
}

/// Returns a number of bytes as text, in the largest unit that is not larger than the number.
pub fn size(number: u128) -> String {
    let power = (number.checked_ilog2().unwrap_or(0) / 10).min(4);
    let unit = 1_u128 << (10 * power);
    let name = UNITS.get(power as usize).copied().unwrap_or_default();
    #[allow(clippy::cast_precision_loss)]
    let value = number as f64 / unit as f64;
    if number % unit == 0 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
}

pub fn count(found: &[Region]) -> String {
    format!("{} registration{}", found.len(), if found.len() == 1 { "" } else { "s" })
}

/// Returns numbers and names of the processes that have an RDMA device open, because only these processes can hold
/// registrations. The search reads every descriptor of every process, which takes seconds on a busy node. So `holders`
/// searches only if the list names no process.
fn open_devices(machine: &Machine) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for process in machine.glob(&["/proc/[0-9]*"]) {
        let files = machine.glob(&[&format!("{process}/fd/*")]);
        if files.iter().any(|file| machine.link(file).starts_with("/dev/infiniband/uverbs")) {
            // If the process has ended, `comm` is empty. A name may consist of blanks only, and becomes "?" then.
            let comm = decoded(&machine.read(&format!("{process}/comm")));
            let name = clean(comm.trim_end_matches('\n')).trim().to_owned();
            let name = if name.is_empty() { "?".to_owned() } else { name };
            if let Some(number) = base(&process).parse().ok().filter(|_| !comm.is_empty()) {
                found.push((number, name));
            }
        }
    }
    found.sort();
    found
}

/// Returns a text about each process that keeps the module from being unloaded. Orphans do not keep the module, so they
/// are left out. If the list names no process, or cannot be read, returns texts about the processes that have an RDMA
/// device open. An older module has no list that can be read.
pub fn holders(machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(all) = judged(machine).as_ref() {
        let live: Vec<Region> = all.iter().filter(|one| one.state != "orphaned").cloned().collect();
        found.extend(processes(machine, &live).map(|process| format!("{} has {}", process.who(machine), process.what)));
        found.extend(Some(left_out(machine, all)).filter(|text| !text.is_empty()));
    }
    if found.is_empty() {
        let devices = open_devices(machine).into_iter();
        return devices.map(|(number, name)| format!("process {number} ({name}) has an RDMA device open")).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_registration() {
        let line = "4242 1000 7 0x7f0000000000 1048576 nv_mem live 0000:3b:00.0 my\\040job";
        let region = parsed(line).unwrap();
        assert_eq!((region.process, region.length, region.command.as_str()), (4242, 1048576, "my job"));
        assert!(parsed(&format!("{line} more fields")).is_some());
        assert_eq!(parsed("1 1 1 0x0 1 a b c ").unwrap().command, "?");
        for wrong in
            ["", "1 1 1 0x0 1 a b c", "# 1 1 0x0 1 a b c d", "-1 1 1 0x0 1 a b c d", "1 1 12345678901 0x0 1 a b c d"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_have_their_units() {
        for (number, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 30, "1 GiB"),
            (5 << 50, "5120 TiB"),
        ] {
            assert_eq!(size(number), text);
        }
    }

    #[test]
    fn a_registration_is_the_same_one_later() {
        let one = parsed("1 2 3 0x10 4 a live c d").unwrap();
        let later = |line: &str| one.is_older(&parsed(line).unwrap());
        assert!(later("1 2 3 0x10 4 a revoking c d") && later("1 2 9 0x10 4 a live c d"));
        assert!(!later("1 2 2 0x10 4 a live c d") && !later("1 2 3 0x20 4 a live c d"));
    }
}
