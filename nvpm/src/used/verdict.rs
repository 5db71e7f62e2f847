// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The answer: whether GPUDirect RDMA is used. Registered GPU memory is called used only while its device moves data.
use std::collections::{BTreeMap, BTreeSet};

use crate::read::regions::size;
use crate::used::look::{Look, State};
use crate::used::traffic::Traffic;
use crate::used::usage::Usage;
use crate::used::ways::{Part, Way};

/// The greatest number of proofs to keep for a process and a way. Different lengths may have different proofs.
const PROOFS: usize = 8;

/// The part that a process takes in GPUDirect RDMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The process has GPUs, and only host memory registered.
    Staged,
    /// Nothing decides what the process has registered.
    Unknown,
    /// The process has GPU memory registered.
    Direct,
    /// The process has host memory registered, and this user cannot see whether it has GPUs.
    Host,
    /// The process has host memory registered, and no GPU.
    NoGpu,
    /// The process has an RDMA device open, and nothing registered.
    Nothing,
}

impl Role {
    /// Returns the word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Staged => "host memory only",
            Self::Unknown => "unknown",
            Self::Direct => "GPU memory",
            Self::Host => "host memory",
            Self::NoGpu => "no GPU",
            Self::Nothing => "nothing registered",
        }
    }
}

/// The memory that a process has registered with a device. Without a process, the memory of all processes that cannot
/// be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub process: Option<u32>,
    pub device: usize,
    pub role: Role,
    /// The number of registrations, their bytes, and the proofs, by way.
    pub memory: BTreeMap<Way, (u64, u64, BTreeSet<String>)>,
}

impl Row {
    fn of(&self, is_wanted: impl Fn(Way) -> bool) -> u64 {
        self.memory.iter().filter(|(way, _)| is_wanted(**way)).map(|(_, (_, bytes, _))| bytes).sum()
    }

    pub fn host_bytes(&self) -> u64 {
        self.of(Way::is_host)
    }

    pub fn unknown_bytes(&self) -> u64 {
        self.of(|way| way == Way::Unknown)
    }

    pub fn has_gpu_memory(&self) -> bool {
        self.memory.keys().any(|way| way.is_gpu())
    }
}

pub struct Answer {
    pub first: String,
    pub usage: Usage,
    pub rows: Vec<Row>,
}

/// Returns the role of a process with this memory. `has_gpu` is None if this user cannot see the process's files.
fn role(memory: &BTreeSet<Way>, has_gpu: Option<bool>) -> Role {
    if memory.iter().any(|way| way.is_gpu()) {
        return Role::Direct;
    }
    if memory.contains(&Way::Unknown) {
        return Role::Unknown;
    }
    match (memory.is_empty(), has_gpu) {
        (true, _) => Role::Nothing,
        (false, Some(true)) => Role::Staged,
        (false, Some(false)) => Role::NoGpu,
        (false, None) => Role::Host,
    }
}

/// Returns a row for each process and device, sorted by process.
pub fn rows(look: &Look) -> Vec<Row> {
    let mut parts: BTreeMap<(bool, Option<u32>, usize), Vec<&Part>> = BTreeMap::new();
    for (process, device) in &look.opened {
        parts.entry((false, Some(*process), *device)).or_default();
    }
    for part in &look.judged.parts {
        parts.entry((part.process.is_none(), part.process, part.device)).or_default().push(part);
    }
    let mut ways: BTreeMap<Option<u32>, BTreeSet<Way>> = BTreeMap::new();
    for ((_, process, _), those) in &parts {
        ways.entry(*process).or_default().extend(those.iter().map(|part| part.way));
    }
    let row = |((_, process, device), those): (&(bool, Option<u32>, usize), &Vec<&Part>)| {
        let has_gpu = process.and_then(|number| look.processes.get(&number)?.has_gpu());
        let mut memory: BTreeMap<Way, (u64, u64, BTreeSet<String>)> = BTreeMap::new();
        for part in those {
            let (count, bytes, proofs) = memory.entry(part.way).or_default();
            *count += part.count;
            *bytes = bytes.saturating_add(part.bytes());
            if proofs.len() < PROOFS {
                proofs.insert(part.proof.to_string());
            }
        }
        let role = ways.get(process).map_or(Role::Nothing, |ways| role(ways, has_gpu));
        Row { process: *process, device: *device, role, memory }
    };
    parts.iter().map(row).collect()
}

/// Counts processes by kind.
#[derive(Default)]
struct Tally {
    /// GPU memory is registered, and the device moves data, moves none, or does not say.
    moving: usize,
    idle: usize,
    blind: usize,
    staged: usize,
    /// The staged processes whose devices move data.
    sending: usize,
    unknown: usize,
    host: usize,
    no_gpu: usize,
    nothing: usize,
    /// The devices that do not count bytes.
    uncounted: BTreeSet<String>,
    /// The bytes of GPU memory whose processes cannot be seen, and whether one of their devices moves data.
    unseen: u64,
    unseen_move: bool,
    /// The bytes of other memory of such processes.
    unseen_unknown: u64,
}

impl Tally {
    /// Returns the state of a node that has GPU memory registered.
    fn usage(&self) -> Usage {
        if self.staged > 0 { Usage::Partly } else { Usage::Direct }
    }
}

fn tally(look: &Look, rows: &[Row]) -> Tally {
    let mut found = Tally::default();
    for rows in rows.chunk_by(|one, other| one.process == other.process) {
        let Some(first) = rows.first() else { continue };
        let with_gpu = rows.iter().filter(|row| first.role != Role::Direct || row.has_gpu_memory());
        let moves = |row: &Row| look.traffic.get(row.device).and_then(Traffic::moves);
        let moves: Vec<(Option<bool>, usize)> = with_gpu.map(|row| (moves(row), row.device)).collect();
        let is_moving = moves.iter().any(|(moves, _)| *moves == Some(true));
        let blind =
            moves.iter().filter(|(moves, _)| moves.is_none()).map(|(_, device)| look.device(*device).to_owned());
        let blind: Vec<String> = blind.collect();
        if first.process.is_none() {
            found.unseen += rows.iter().map(|row| row.of(Way::is_gpu)).sum::<u64>();
            found.unseen_move |= is_moving;
            found.unseen_unknown += rows.iter().map(Row::unknown_bytes).sum::<u64>();
            continue;
        }
        match first.role {
            Role::Direct if is_moving => found.moving += 1,
            Role::Direct if !blind.is_empty() => {
                found.blind += 1;
                found.uncounted.extend(blind);
            }
            Role::Direct => found.idle += 1,
            Role::Staged => {
                found.staged += 1;
                found.sending += usize::from(is_moving);
            }
            Role::Unknown => found.unknown += 1,
            Role::Host => found.host += 1,
            Role::NoGpu => found.no_gpu += 1,
            Role::Nothing => found.nothing += 1,
        }
    }
    found
}

/// Returns a number of processes as text.
pub fn processes(count: usize) -> String {
    format!("{count} process{}", if count == 1 { "" } else { "es" })
}

pub fn answer(look: &Look) -> Answer {
    let rows = rows(look);
    let (first, usage) = match &look.state {
        State::Seen => of_seen(look, &tally(look, &rows)),
        State::NoDevice => without_device(look),
        State::OtherNamespace => (OTHER_NAMESPACE.to_owned(), Usage::Unknown),
        State::Refused(why) => {
            (format!("{CANNOT_TELL}: the RDMA core does not list what is registered ({why})."), Usage::Unknown)
        }
    };
    Answer { first, usage, rows }
}

const CANNOT_TELL: &str = "Whether GPUDirect RDMA is in use cannot be told";
const OTHER_NAMESPACE: &str = "Whether GPUDirect RDMA is in use cannot be told here: the RDMA devices belong to \
                               another network namespace (rdma system: netns exclusive). Ask there, or on the node.";

fn without_device(look: &Look) -> (String, Usage) {
    let text = "No RDMA: this node has no RDMA device.";
    match look.without.len() {
        0 => (text.to_owned(), Usage::Idle),
        count => (format!("{text} {} with GPUs can only use TCP.", processes(count)), Usage::WithoutRdma),
    }
}

fn of_seen(look: &Look, tally: &Tally) -> (String, Usage) {
    let direct = tally.moving + tally.idle + tally.blind;
    if direct > 0 {
        return (of_direct(look, tally, direct), tally.usage());
    }
    if tally.unknown > 0 {
        return of_unknown(look, tally);
    }
    // The rest of the registrations could contain GPU memory.
    if !look.cut.is_empty() {
        return (format!("{CANNOT_TELL}: not all registrations of {} were read.", look.cut.join(", ")), Usage::Unknown);
    }
    if tally.staged > 0 {
        let who = match tally.staged {
            1 => "1 process with GPUs has".to_owned(),
            count => format!("{count} processes with GPUs have"),
        };
        return (format!("GPUDirect RDMA is not in use: {who} host memory registered only."), Usage::Host);
    }
    if tally.unseen > 0 {
        let how = if tally.unseen_move { "in use" } else { "set up" };
        let unseen = size(tally.unseen.into());
        return (
            format!("GPUDirect RDMA is {how} by processes that cannot be seen here: {unseen} of GPU memory."),
            Usage::Direct,
        );
    }
    if tally.unseen_unknown > 0 {
        return of_unknown(look, tally);
    }
    let without = look.without.len();
    if without > 0 && tally.host == 0 {
        let text = if without == 1 {
            "No RDMA: 1 process uses GPUs, and has no RDMA device open.".to_owned()
        } else {
            format!("No RDMA: {without} processes use GPUs, and none of them has an RDMA device open.")
        };
        return (format!("{text} Data for other nodes goes by TCP."), Usage::WithoutRdma);
    }
    let text = match (tally.host, tally.no_gpu, tally.nothing) {
        (0, 0, 0) => "No RDMA: no process has an RDMA device open.",
        (0, 0, _) => "GPUDirect RDMA is not in use: no process has memory registered with an RDMA device.",
        (0, _, _) => "GPUDirect RDMA is not in use: the processes that use RDMA have no GPU.",
        _ => "GPUDirect RDMA is not in use: no GPU memory is registered with an RDMA device.",
    };
    (text.to_owned(), Usage::Idle)
}

fn of_direct(look: &Look, tally: &Tally, direct: usize) -> String {
    let known = direct + tally.staged;
    // A user who cannot see the GPUs of other processes does not know how many have GPUs.
    let of_all = |count: usize| {
        let is_all = look.has_seen_files() && tally.unknown == 0 && (look.sees_all || tally.unseen_unknown == 0);
        if is_all {
            format!("{count} of {known} process{} with GPUs", if known == 1 { "" } else { "es" })
        } else {
            processes(count)
        }
    };
    let mut parts = Vec::new();
    if tally.moving > 0 {
        parts.push(format!("GPUDirect RDMA is in use by {}", of_all(tally.moving)));
        if tally.idle + tally.blind > 0 {
            parts.push(format!("{} more set up", tally.idle + tally.blind));
        }
    } else if tally.idle > 0 {
        parts.push(format!("GPUDirect RDMA is set up by {}, and no data moves now", of_all(tally.idle + tally.blind)));
    } else {
        let devices = tally.uncounted.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        parts.push(format!(
            "GPUDirect RDMA is set up by {}; nothing counts the bytes of {devices}",
            of_all(tally.blind)
        ));
    }
    if tally.sending > 0 {
        parts.push(format!("{} send{} host memory only", tally.sending, if tally.sending == 1 { "s" } else { "" }));
    }
    let quiet = tally.staged - tally.sending;
    if quiet > 0 {
        parts.push(format!("{quiet} ha{} host memory registered only", if quiet == 1 { "s" } else { "ve" }));
    }
    if tally.unknown > 0 {
        parts.push(format!("of {} more nobody can tell", tally.unknown));
    }
    format!("{}.", parts.join("; "))
}

/// Returns the answer if no process certainly has GPU memory registered. The counters of the node may still show that
/// some process has.
fn of_unknown(look: &Look, tally: &Tally) -> (String, Usage) {
    let bytes = look.peer_bytes.unwrap_or_default();
    if bytes == 0 {
        let who = match tally.unknown {
            0 => format!("{} are registered by processes that cannot be seen here", size(tally.unseen_unknown.into())),
            count => format!("{} may have GPU or host memory registered", processes(count)),
        };
        return (format!("{CANNOT_TELL}: {who}."), Usage::Unknown);
    }
    let how = if look.traffic.iter().any(|traffic| traffic.moves() == Some(true)) { "in use" } else { "set up" };
    let is_blind = !look.has_seen_files() || (!look.has_list && look.pointer == "nv_peer_mem");
    let whom = if is_blind { " As root, nvpm used says by whom." } else { "" };
    let way = if look.pointer == "pointer" { "by pointer".to_owned() } else { format!("by {}", look.pointer) };
    let size = size(bytes.into());
    (format!("GPUDirect RDMA is {how} on this node: {size} of GPU memory are registered {way}.{whom}"), tally.usage())
}
