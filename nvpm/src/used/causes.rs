// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Why a process with GPUs moves its data through host memory, as far as nvpm knows, and what to do first.
use indexmap::IndexMap;

use crate::facts::distances::{Distance, relation};
use crate::facts::outcomes::outcomes;
use crate::read::machine::{Machine, decoded};
use crate::read::pci::{gpus, nics};
use crate::read::ways::{in_the_way, of_pairs};
use crate::used::look::Look;
use crate::used::verdict::{Answer, Role, Row};

/// The libraries by which processes are known, with the name in data/programs.table.
const LIBRARIES: [(&str, &str); 4] =
    [("/libnccl", "NCCL, newer"), ("/libnvshmem", "NVSHMEM"), ("/libucp", "UCX"), ("/libfabric", "libfabric")];
const NCCL: &str = "NCCL, newer";
/// The greatest number of bytes of /proc/PID/maps, and of processes whose libraries are looked at.
const MAPS: u64 = 4 << 20;
const LOOKED_AT: usize = 8;
const NAMED: usize = 3;
const OF_THE_LOG: &str = "Its log says what it chose: NCCL_DEBUG=INFO or UCX_PROTO_INFO=y, and nvpm explain LOG.";

/// Returns the causes, each once, with the processes that it is about.
pub fn causes(machine: &Machine, look: &Look, answer: &Answer) -> Vec<String> {
    let mut found: IndexMap<String, Vec<u32>> = IndexMap::new();
    let staged = answer.rows.iter().filter(|row| row.role == Role::Staged && !row.memory.is_empty());
    let staged: Vec<(&Row, u32)> = staged.filter_map(|row| Some((row, row.process?))).collect();
    for (row, process) in staged.iter().take(LOOKED_AT) {
        let about = found.entry(of_staged(machine, look, row, *process)).or_default();
        if !about.contains(process) {
            about.push(*process);
        }
    }
    for other in look.without.iter().take(LOOKED_AT) {
        found.entry(of_tcp(machine, other.number)).or_default().push(other.number);
    }
    let mut causes: Vec<String> =
        found.into_iter().map(|(cause, about)| format!("{}: {cause}", numbers(&about))).collect();
    let all = staged.len().max(look.without.len());
    if all > LOOKED_AT {
        causes.push(format!("For causes, {LOOKED_AT} of {all} were looked at."));
    }
    causes
}

fn numbers(about: &[u32]) -> String {
    let named: Vec<String> = about.iter().take(NAMED).map(ToString::to_string).collect();
    let more = about.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}

fn of_staged(machine: &Machine, look: &Look, row: &Row, process: u32) -> String {
    let device = look.device(row.device);
    let in_the_way = in_the_way(machine);
    if !in_the_way.is_empty() {
        return format!("no GPU memory can be registered here: {in_the_way}. First: nvpm status.");
    }
    let pairs = of_pairs(machine);
    let ways: Vec<&String> = pairs.iter().filter(|(pair, _)| pair.1 == device).flat_map(|(_, ways)| ways).collect();
    if ways.is_empty() {
        return format!("no way leads to GPU memory with {device}. First: nvpm status {device}.");
    }
    let program = program_of(machine, process);
    let distance = nearest(machine, device);
    if let Some(distance) = distance.filter(|distance| program == Some(NCCL) && *distance > Distance::Pxb) {
        // NCCL knows no level between PHB and SYS.
        let level = if distance == Distance::Phb { "PHB" } else { "SYS" };
        return format!(
            "NCCL finds no way for {device}: distance {}. NCCL_NET_GDR_LEVEL={level} allows it; nvpm status names the \
             near device.",
            distance.name()
        );
    }
    let why = program.and_then(|program| Some((program, without_way(machine, program, device)?)));
    if let Some((program, why)) = why {
        let program = program.split(',').next().unwrap_or(program);
        return format!("{program} finds no way with {device}: {why}. First: nvpm status --all.");
    }
    let mut ways: Vec<&str> = ways.into_iter().map(String::as_str).collect();
    ways.dedup();
    format!("{device} reaches GPU memory ({}), so the program has chosen host memory. {OF_THE_LOG}", ways.join(", "))
}

/// Returns the program whose library a process has loaded.
fn program_of(machine: &Machine, process: u32) -> Option<&'static str> {
    let maps = decoded(&machine.read_at_most(&format!("/proc/{process}/maps"), MAPS));
    LIBRARIES.iter().find(|(library, _)| maps.contains(library)).map(|(_, program)| *program)
}

/// Returns the distance to the nearest GPU.
fn nearest(machine: &Machine, device: &str) -> Option<Distance> {
    let nics = nics(machine);
    let pci = nics.iter().find(|nic| nic.name == device)?.pci.as_ref().filter(|pci| !pci.path.is_empty())?;
    let gpus = gpus(machine);
    gpus.iter()
        .filter(|gpu| !gpu.pci.path.is_empty() && !gpu.coherent)
        .map(|gpu| relation(machine, &gpu.pci, pci).0)
        .min()
}

/// Returns why a program finds no way with a device; None if it finds one, or if nobody knows.
fn without_way(machine: &Machine, program: &str, device: &str) -> Option<String> {
    let every = outcomes(machine);
    let mut of_device = every.get(program)?.iter().filter(|(pair, _)| pair.1 == device).map(|(_, outcome)| outcome);
    let first = of_device.next()?;
    let is_without = first.way.is_empty() && of_device.all(|outcome| outcome.way.is_empty());
    Some(first.why.clone()).filter(|why| is_without && !why.is_empty())
}

fn of_tcp(machine: &Machine, process: u32) -> String {
    let root = format!("/proc/{process}/root/.");
    if nics(machine).is_empty() {
        return "there is no RDMA device. First: nvpm status.".to_owned();
    }
    if machine.exists(&format!("{root}/dev/")) && machine.glob(&[&format!("{root}/dev/infiniband/uverbs*")]).is_empty()
    {
        return "its container has no /dev/infiniband: give it the devices (docker run --device /dev/infiniband)."
            .to_owned();
    }
    format!("the program has chosen TCP, or does not leave this node. {OF_THE_LOG}")
}
