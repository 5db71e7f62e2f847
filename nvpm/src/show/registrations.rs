// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the GPU memory that each process has registered, as lines or as JSON. There may be many, so no text has all
//! of them.
use std::collections::HashMap;
use std::iter::{once, once_with};

use serde::Serialize;

use crate::read::machine::Machine;
use crate::read::regions::{
    Process, Region, count, count_of_processes, left_out, names_by_pci, processes, size, total,
};
use crate::show::json_line::quoted;

fn age(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Returns a line for each process, with the number and size of its registrations. The last line has the sum.
pub fn summary<'a>(machine: &'a Machine, found: &'a [Region]) -> impl Iterator<Item = String> + 'a {
    let processes = processes(machine, found).map(|one| format!("{}: {}", one.who(machine), one.what));
    processes.chain(once_with(|| in_all(machine, found)))
}

fn in_all(machine: &Machine, found: &[Region]) -> String {
    if found.is_empty() {
        return "no GPU memory is registered".to_owned();
    }
    let cut = left_out(machine, found);
    if cut.is_empty() { format!("all: {}, {}", count(found), size(total(found))) } else { cut }
}

fn row(cells: [&str; 6]) -> String {
    let [address, length, age, client, state, device] = cells;
    format!("  {address:<18} {length:>10}  {age:>8}  {client:<16}  {state:<8}  {device}")
}

pub fn list<'a>(machine: &'a Machine, found: &'a [Region]) -> impl Iterator<Item = String> + 'a {
    let names = names_by_pci(machine);
    let head = (!found.is_empty()).then(|| row(["address", "length", "age", "client", "state", "RDMA device"]));
    let of_region = move |one: &Region| {
        let device = names.get(&one.pci).map_or(one.pci.clone(), |name| format!("{name} ({})", one.pci));
        row([&one.address, &size(one.length), &age(one.age), &one.client, &one.state, &device])
    };
    let of_process = move |process: Process<'a>| {
        let head = format!("{}: {}", process.who(machine), process.what);
        once(head).chain(process.regions.iter().map(&of_region)).collect::<Vec<_>>()
    };
    let rows = processes(machine, found).flat_map(of_process);
    head.into_iter().chain(rows).chain(once_with(|| in_all(machine, found)))
}

/// Returns the lines of one JSON object. Each registration and each process has one line.
pub fn json<'a>(machine: &'a Machine, found: &'a [Region]) -> impl Iterator<Item = String> + 'a {
    let names = names_by_pci(machine);
    let registrations = members(found.iter().map(move |one| object(one, &names)), found.len());
    let processes = members(processes(machine, found).map(|one| of_process(&one)), count_of_processes(found));
    let end = || {
        let cut = left_out(machine, found);
        let cut = if cut.is_empty() { cut } else { format!(", \"left_out\": {}", quoted(&cut)) };
        format!("  ], \"bytes\": {}{cut}}}", total(found))
    };
    once("{\"schema\": 1, \"registrations\": [".to_owned())
        .chain(registrations)
        .chain(once("  ], \"processes\": [".to_owned()))
        .chain(processes)
        .chain(once_with(end))
}

#[derive(Serialize)]
struct Registration<'a> {
    process: u64,
    command: &'a str,
    age: u64,
    address: &'a str,
    length: u128,
    client: &'a str,
    pci: Option<&'a str>,
    device: Option<&'a str>,
    state: &'a str,
}

fn object(one: &Region, names: &HashMap<String, String>) -> String {
    quoted(&Registration {
        process: one.process,
        command: &one.command,
        age: one.age,
        address: &one.address,
        length: one.length,
        client: &one.client,
        pci: Some(one.pci.as_str()).filter(|pci| *pci != "-"),
        device: names.get(&one.pci).map(String::as_str),
        state: &one.state,
    })
}

#[derive(Serialize)]
struct Owner<'a> {
    process: u64,
    command: &'a str,
    running: bool,
    registrations: usize,
    bytes: u128,
}

fn of_process(one: &Process) -> String {
    quoted(&Owner {
        process: one.number,
        command: one.command,
        running: one.running,
        registrations: one.regions.len(),
        bytes: one.bytes,
    })
}

/// Returns the members of a JSON list, one line each. COUNT is their number.
fn members(objects: impl Iterator<Item = String>, count: usize) -> impl Iterator<Item = String> {
    let line = move |(number, object)| format!("    {object}{}", if number + 1 < count { "," } else { "" });
    objects.enumerate().map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_people_use() {
        let ages = [119, 120, 7_199, 7_200, 172_799, 172_800].map(age);
        assert_eq!(ages, ["119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
