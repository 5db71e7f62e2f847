// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the ports and the firmware of RDMA devices.
use crate::facts::fact::{Fact, Facts, bad, good, info, warn};
use crate::read::machine::{Machine, base};
use crate::read::pci::nics;

const NO_SUBNET_MANAGER: &str =
    "No subnet manager has set this port up: start one (opensm) on a machine or a switch of this network.";
const NO_ETHERNET: &str =
    "Look at cable and switch, then at the interface: rdma link names it, ip link set up turns it on.";
const NO_ANSWER: &str = "dmesg | grep mlx5 shows since when; only a cold start of the node may help.";
const NO_LINK: &str = "Look at cable and switch; ibstat and iblinkinfo say more.";

/// Judges the ports. A port without a link is no defect if another port has a link.
pub fn facts(machine: &Machine, facts: &mut Facts) {
    let ports = machine.glob(&["/sys/class/infiniband/*/ports/*"]);
    let is_any_active = ports.iter().any(|port| machine.text(&format!("{port}/state")).ends_with("ACTIVE"));
    for nic in nics(machine).iter() {
        let section = format!("RDMA device {}", nic.name);
        for port in machine.glob(&[&format!("{}/ports/*", nic.directory)]) {
            facts.add(fact(machine, &section, &port, is_any_active));
        }
        let version = machine.text(&format!("{}/fw_ver", nic.directory));
        let board = machine.text(&format!("{}/board_id", nic.directory));
        if !version.is_empty() {
            let board = if board.is_empty() { board } else { format!(", board {board}") };
            facts.add(info(&section, "firmware", format!("{version}{board}")));
        }
    }
}

fn fact(machine: &Machine, section: &str, port: &str, is_any_active: bool) -> Option<Fact> {
    // States are numbered: "4: ACTIVE".
    let said = |file: &str| {
        let text = machine.text(&format!("{port}/{file}"));
        text.split_once(": ").map(|(_, state)| state.to_owned()).unwrap_or(text)
    };
    let down = if is_any_active { warn } else { bad };
    let (name, state, layer) = (format!("port {}", base(port)), said("state"), said("link_layer"));
    let value = format!("{state}, {}, {}, {layer}", said("phys_state"), said("rate"));
    if state.is_empty() {
        let value = "its state cannot be read: the device does not answer";
        let is_there = machine.exists(&format!("{port}/state"));
        return is_there.then(|| down(section, &name, value.to_owned()).advised(NO_ANSWER));
    }
    if state == "ACTIVE" {
        return Some(good(section, &name, value));
    }
    let advice = match layer.as_str() {
        "InfiniBand" if ["INIT", "ARMED"].contains(&state.as_str()) => NO_SUBNET_MANAGER,
        "Ethernet" => NO_ETHERNET,
        _ => NO_LINK,
    };
    Some(down(section, &name, value).advised(advice))
}
