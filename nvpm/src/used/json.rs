// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the answer as one JSON object. Each process and each device has a line of its own.
use std::collections::BTreeSet;
use std::iter::once;

use serde::Serialize;

use crate::read::machine::Machine;
use crate::show::json_line::quoted;
use crate::used::causes::causes;
use crate::used::look::{Look, Other as Seen, look};
use crate::used::refutation::refutations;
use crate::used::screen::{name, notes};
use crate::used::verdict::{Answer, Row, answer};

/// The greatest number of processes. A user decides how many there are.
const MOST: usize = 4096;

#[derive(Serialize)]
#[allow(clippy::struct_field_names)]
struct Process<'a> {
    process: Option<u32>,
    command: Option<&'a str>,
    container: Option<&'a str>,
    device: &'a str,
    gpus: Option<&'a BTreeSet<String>>,
    verdict: &'a str,
    memory: Vec<Memory<'a>>,
}

#[derive(Serialize)]
struct Memory<'a> {
    way: &'a str,
    registrations: u64,
    bytes: u64,
    proof: Vec<&'a str>,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names)]
struct Device<'a> {
    device: &'a str,
    pci: Option<&'a str>,
    sends: Option<u64>,
    receives: Option<u64>,
    limit: Option<u64>,
    gpus_send: Option<u64>,
    gpus_receive: Option<u64>,
}

#[derive(Serialize)]
struct Other<'a> {
    process: u32,
    command: &'a str,
}

fn of_row(look: &Look, row: &Row) -> String {
    let process = row.process.and_then(|number| look.processes.get(&number));
    let memory = row.memory.iter().map(|(way, (registrations, bytes, proofs))| Memory {
        way: name(look, *way),
        registrations: *registrations,
        bytes: *bytes,
        proof: proofs.iter().map(String::as_str).collect(),
    });
    quoted(&Process {
        process: row.process,
        command: process.map(|process| process.command.as_str()),
        container: process.map(|process| process.container.as_str()).filter(|id| !id.is_empty()),
        device: look.device(row.device),
        gpus: process.and_then(|process| process.open.as_ref()).map(|open| &open.gpus),
        verdict: row.role.word(),
        memory: memory.collect(),
    })
}

/// Returns the object of this moment.
pub fn lines_of(machine: &Machine) -> Vec<String> {
    let look = look(machine, true);
    lines(machine, &look, &answer(&look))
}

/// Returns the object in several lines.
pub fn lines(machine: &Machine, look: &Look, answer: &Answer) -> Vec<String> {
    let rows: Vec<String> = answer.rows.iter().take(MOST).map(|row| of_row(look, row)).collect();
    let devices = look.devices.iter().enumerate().map(|(place, device)| {
        let traffic = look.traffic.get(place);
        let links = traffic.and_then(|traffic| traffic.links.as_ref());
        #[allow(clippy::cast_sign_loss)]
        let number = |rate: Option<f64>| rate.map(|rate| rate.round() as u64);
        quoted(&Device {
            device: &device.name,
            pci: Some(device.pci.as_str()).filter(|pci| !pci.is_empty()),
            sends: number(traffic.and_then(|traffic| traffic.sends)),
            receives: number(traffic.and_then(|traffic| traffic.receives)),
            limit: number(traffic.and_then(|traffic| traffic.limit)),
            gpus_send: number(links.map(|links| links.send)),
            gpus_receive: number(links.map(|links| links.receive)),
        })
    });
    let others = |those: &[Seen]| {
        let other = |one: &Seen| quoted(&Other { process: one.number, command: &one.command });
        those.iter().take(MOST).map(other).collect::<Vec<_>>().join(", ")
    };
    let mut notes = notes(look, answer);
    if answer.rows.len() > MOST {
        notes.push(format!("Only the first {MOST} of {} rows are here.", answer.rows.len()));
    }
    let first = format!(
        "{{\"schema\": 1, \"host\": {}, \"answer\": {}, \"state\": {}, \"exit_code\": {}, \"processes\": [",
        quoted(&machine.host),
        quoted(&answer.first),
        quoted(&answer.usage.word()),
        answer.usage.exit_code()
    );
    let read = format!("{{\"module_list\": {}, \"dma_bufs\": {}}}", look.has_list, look.has_buffers);
    let end = format!(
        "  ], \"without_rdma\": [{}], \"also_open\": [{}], \"peer_memory\": {}, \"read\": {read}, \
         \"refutations\": {}, \"causes\": {}, \"notes\": {}}}",
        others(&look.without),
        others(&look.keepers),
        quoted(&look.peer_bytes),
        quoted(&refutations(look)),
        quoted(&causes(machine, look, answer)),
        quoted(&notes)
    );
    once(first)
        .chain(members(rows))
        .chain(once("  ], \"devices\": [".to_owned()))
        .chain(members(devices.collect()))
        .chain(once(end))
        .collect()
}

/// Returns the members of a list, one line each.
fn members(objects: Vec<String>) -> impl Iterator<Item = String> {
    let count = objects.len();
    let line = move |(number, object)| format!("    {object}{}", if number + 1 < count { "," } else { "" });
    objects.into_iter().enumerate().map(line)
}
