// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The RDMA core: whether it has peer memory, and the clients that the module has registered with it.
use crate::facts::advice::{Advice, service};
use crate::facts::core_advice::{get_core, ofed};
use crate::facts::expression::Expression;
use crate::facts::fact::{Fact, Facts, bad, good, info, warn};
use crate::facts::never::never;
use crate::facts::pod;
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{Machine, PEERS, SERVICE, parameters, statistics};
use crate::read::pci::{gpus, nics};
use crate::read::ways;

static OLD_OFED: Expression = Expression::new(r"[A-Za-z]-(4\.[1-9]|5\.0)-");
const SECTION: &str = "RDMA core";
const PERSISTENT: &str = "persistent: memory is pinned until it is deregistered";
const REVOCABLE: &str = "revocable: a registration ends when its memory is freed";
const SET_OLD: &str = "echo 'options nv_peer_mem peerdirect_support=1' >>/etc/modprobe.d/nv_peer_mem.conf && \
                       {restart_service}";
const SET_NEW: &str = "Remove peerdirect_support=1 from /etc/modprobe.d, or rebuild the module: {rebuild}. Then \
                       {restart_service}";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    facts.add(peer_memory(machine));
    facts.add(built_for(machine));
    clients(machine, facts);
}

fn peer_memory(machine: &Machine) -> Fact {
    let name = "peer memory";
    let found = peer_memory_in(machine);
    if !found.is_empty() {
        let ofed = ofed(machine);
        let of = if ofed.is_empty() { String::new() } else { format!(", {ofed}") };
        return good(SECTION, name, format!("yes, in {found}{of}"));
    }
    if machine.loaded("ib_core") {
        let value = "no: the one that is loaded does not have it";
        if nics(machine).is_empty() || gpus(machine).is_empty() || ways::given_away(machine) {
            return info(SECTION, name, value);
        }
        if never(machine).is_some() {
            return info(SECTION, name, value);
        }
        if ways::dma_buf_serves(machine) {
            let value = format!("{value}; dma-buf serves, but not programs that register a pointer");
            return info(SECTION, name, value).advised(get_core(machine));
        }
        if ways::served_without_core(machine) {
            return info(SECTION, name, value);
        }
        return bad(SECTION, name, value).advised(get_core(machine));
    }
    let loads = if machine.exists(SERVICE) { format!("; {SERVICE} start loads it") } else { String::new() };
    info(SECTION, name, format!("not loaded yet{loads}"))
}

/// Compares two generations of the peer memory interface. The loaded module was built for one generation, and the
/// installed `MLNX_OFED` has the other.
fn built_for(machine: &Machine) -> Option<Fact> {
    let core = machine.text(&format!("{}core_api", statistics(machine)));
    if core.is_empty() {
        return None;
    }
    let (name, ofed) = ("built for", ofed(machine));
    if ofed.is_empty() {
        return Some(info(SECTION, name, core));
    }
    let is_set_old = machine.text(&format!("{}peerdirect_support", parameters(machine))) == "1";
    let is_for_old = core.starts_with("MLNX_OFED 4.1") || is_set_old;
    let is_old = OLD_OFED.matches(&ofed);
    if is_for_old == is_old {
        return Some(good(SECTION, name, core));
    }
    if is_old {
        let value = format!("{core}: this older core skips the clients");
        return Some(bad(SECTION, name, value).advised(to_set(machine, "1", SET_OLD)));
    }
    let value = format!("{core}, but loaded for MLNX_OFED 4.1 to 5.0");
    Some(warn(SECTION, name, value).advised(to_set(machine, "0", SET_NEW)))
}

/// Returns how to give the parameter `peerdirect_support` this value. TEMPLATE is the advice for a module that does not
/// belong to a pod.
fn to_set(machine: &Machine, setting: &str, template: &str) -> String {
    if pod::keeps_module(machine) {
        return pod::to_set(&format!("peerdirect_support={setting}"));
    }
    Advice::new(machine).filled(template)
}

fn clients(machine: &Machine, facts: &mut Facts) {
    let has_peers = machine.exists(PEERS);
    for line in machine.lines(&format!("{}clients", statistics(machine))) {
        let mut words = line.split_whitespace();
        let Some(client) = words.next() else { continue };
        let is_persistent = words.eq(["persistent"]);
        let (name, how) = (format!("client {client}"), if is_persistent { PERSISTENT } else { REVOCABLE });
        if !has_peers {
            facts.add(info(SECTION, &name, how));
        } else if machine.exists(&format!("{PEERS}/{client}")) {
            facts.add(good(SECTION, &name, how));
        } else {
            let value = format!("the RDMA core does not list it (ls {PEERS})");
            facts.add(bad(SECTION, &name, value).advised(service(machine, "restart")));
        }
    }
}
