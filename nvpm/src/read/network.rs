// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the networks and the mounted storage that stop when the RDMA stack is restarted.
use std::collections::BTreeSet;
use std::rc::Rc;

use indexmap::{IndexMap, IndexSet};

use crate::read::machine::{Machine, base};

pub const MELLANOX: &str = "0x15b3";
const INTERFACES: &str = "/sys/class/net/";
const OPEN_VSWITCH: &str = "ovs-system";
/// Bonds, bridges and VLANs above each other.
const MOST_LEVELS: usize = 4;

/// Modules of storage that use the RDMA stack, or that an OFED installs for such storage. While one of these modules is
/// in use, the RDMA stack cannot be unloaded.
const STORAGE: [&str; 21] = [
    "nvme",
    "nvme_core",
    "nvme_rdma",
    "nvmet",
    "nvmet_rdma",
    "ib_iser",
    "ib_isert",
    "ib_srp",
    "ib_srpt",
    "rpcrdma",
    "svcrdma",
    "xprtrdma",
    "ko2iblnd",
    "beegfs",
    "smbdirect",
    "cifs",
    "rds_rdma",
    "lnet",
    "lustre",
    "gpfs",
    "mmfs26",
];
/// Programs of GPFS and Weka use the cards directly, so these file systems hold no module.
const BY_CARD: [&str; 3] = ["beegfs", "gpfs", "wekafs"];
const BY_NETWORK: [&str; 2] = ["lustre", "ceph"];
const STACK: [&str; 6] = ["mlx_compat", "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "rdma_cm"];

/// Returns the interfaces of cards whose driver belongs to an OFED, and the bonds, bridges and VLANs above these
/// interfaces. Each name comes with the interface of the card itself.
fn on_devices(machine: &Machine) -> Rc<IndexMap<String, String>> {
    fn compute(machine: &Machine) -> IndexMap<String, String> {
        let mut found = IndexMap::new();
        for place in machine.glob(&[&format!("{INTERFACES}*")]) {
            let is_card = !machine.target(&format!("{place}/device")).is_empty();
            if is_card && machine.text(&format!("{place}/device/vendor")) == MELLANOX {
                found.insert(base(&place).to_owned(), base(&place).to_owned());
            }
        }
        for _ in 0..MOST_LEVELS {
            for (name, card) in found.clone() {
                for upper in uppers(machine, &name) {
                    found.entry(upper).or_insert_with(|| card.clone());
                }
            }
        }
        found
    }
    machine.once(compute)
}

/// Returns the interfaces that use an interface.
fn uppers(machine: &Machine, name: &str) -> Vec<String> {
    let master = machine.link(&format!("{INTERFACES}{name}/master"));
    let links = machine.glob(&[&format!("{INTERFACES}{name}/upper_*")]);
    let uppers = links.iter().filter_map(|link| base(link).strip_prefix("upper_"));
    Some(base(&master)).filter(|name| !name.is_empty()).into_iter().chain(uppers).map(str::to_owned).collect()
}

/// Returns the interfaces that have a default route of IPv4 or IPv6.
fn default_routes(machine: &Machine) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in machine.lines("/proc/net/route").iter().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [name, "00000000", rest @ ..] = fields.as_slice() {
            if rest.get(5).is_none_or(|mask| *mask == "00000000") {
                found.insert((*name).to_owned());
            }
        }
    }
    for line in machine.lines("/proc/net/ipv6_route") {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [target, "00", _, _, _, _, _, _, _, name] = fields.as_slice() {
            if target.len() == 32 && target.bytes().all(|letter| letter == b'0') {
                found.insert((*name).to_owned());
            }
        }
    }
    found.remove("lo");
    found
}

/// Returns the networks that stop when the cards' drivers are unloaded.
pub fn networks(machine: &Machine) -> Rc<Vec<String>> {
    fn compute(machine: &Machine) -> Vec<String> {
        let mut cards: IndexMap<String, String> = (*on_devices(machine)).clone();
        let switched = cards.get(OPEN_VSWITCH).cloned();
        let mut routes = Vec::new();
        for name in default_routes(machine) {
            // The ports of Open vSwitch, such as br-ex, have no link to the cards of the switch.
            if let Some(card) = switched.as_ref().filter(|_| !machine.exists(&format!("{INTERFACES}{name}/device"))) {
                cards.entry(name.clone()).or_insert_with(|| card.clone());
            }
            if let Some(card) = cards.get(&name) {
                let over = if *card == name { String::new() } else { format!(", over {card}") };
                routes.push(format!("this node's default route ({name}{over})"));
            }
        }
        if routes.is_empty() { only_network(machine, &cards).into_iter().collect() } else { routes }
    }
    machine.once(compute)
}

/// Returns the only network of this node if it is reached by the cards.
fn only_network(machine: &Machine, cards: &IndexMap<String, String>) -> Option<String> {
    let places = machine.glob(&[&format!("{INTERFACES}*")]);
    let names = places.iter().map(|place| base(place)).filter(|name| *name != "lo");
    let is_up = |name: &&str| machine.text(&format!("{INTERFACES}{name}/operstate")) == "up";
    let up: BTreeSet<&str> = names.filter(is_up).collect();
    let is_only = !up.is_empty() && up.iter().all(|name| cards.contains_key(*name));
    is_only.then(|| format!("this node's only network ({})", up.into_iter().collect::<Vec<_>>().join(", ")))
}

/// Returns whether some network is reached by an interface of the cards. Storage may then be reached by this interface,
/// too.
fn carries_traffic(machine: &Machine) -> bool {
    fn compute(machine: &Machine) -> bool {
        let cards = on_devices(machine);
        let lines = machine.lines("/proc/net/route");
        lines.iter().skip(1).any(|line| line.split_whitespace().next().is_some_and(|name| cards.contains_key(name)))
    }
    *machine.once(compute)
}

/// Returns the file systems and disks that are reached by the cards, or may be reached by them.
pub fn storage(machine: &Machine) -> Rc<Vec<String>> {
    fn compute(machine: &Machine) -> Vec<String> {
        let mut found = Vec::new();
        for line in machine.lines("/proc/mounts") {
            let fields: Vec<&str> = line.split_whitespace().chain([""; 4]).take(4).collect();
            let [source, place, kind, options] = fields.as_slice() else { continue };
            let is_by_card = BY_CARD.contains(kind);
            let is_remote = is_by_card
                || BY_NETWORK.contains(kind)
                || ["nfs", "cifs", "smb3"].iter().any(|begin| kind.starts_with(begin));
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let is_rdma = options.split(|letter| !is_word(letter)).any(|word| word == "rdma");
            let is_by_rdma = is_rdma || is_by_card || source.contains("@o2ib");
            if is_remote && (is_by_rdma || carries_traffic(machine)) {
                found.push(format!("{place} ({kind})"));
            }
        }
        for place in machine.glob(&["/sys/class/nvme/nvme*"]) {
            let transport = machine.text(&format!("{place}/transport"));
            if transport == "rdma" || (transport == "tcp" && carries_traffic(machine)) {
                found.push(base(&place).to_owned());
            }
        }
        found
    }
    machine.once(compute)
}

/// Returns the modules of storage that keep the RDMA stack from being unloaded.
pub fn holders(machine: &Machine) -> Rc<Vec<String>> {
    fn compute(machine: &Machine) -> Vec<String> {
        let places = STACK.iter().flat_map(|module| machine.glob(&[&format!("/sys/module/{module}/holders/*")]));
        let found: IndexSet<String> = places.map(|place| base(&place).to_owned()).collect();
        found.into_iter().filter(|name| STORAGE.contains(&name.as_str())).collect()
    }
    machine.once(compute)
}

/// Returns what a restart of the RDMA stack would stop; an empty string if it would stop nothing.
pub fn stopped(machine: &Machine) -> String {
    let mut parts = (*networks(machine)).clone();
    let storage = storage(machine);
    if !storage.is_empty() {
        parts.push(format!("mounted storage: {}", storage.join(", ")));
    }
    parts.join(" and ")
}
