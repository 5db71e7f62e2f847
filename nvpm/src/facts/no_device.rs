// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says why this node has no RDMA device. The device's driver may be refused or missing. One of its two modules may be
//! loaded, but not the other, for example if they belong to different RDMA stacks. The network of this node may have no
//! verbs.
use crate::facts::advice::Advice;
use crate::facts::cards::{AMAZON, Card, Network, cards};
use crate::facts::core_advice::{ofed, restart};
use crate::facts::fact::{Fact, Facts, bad, info, warn};
use crate::facts::security::{because, refused};
use crate::read::engine::engine;
use crate::read::machine::Machine;
use crate::read::network::MELLANOX;
use crate::read::pci::{DEVICES, nics};
use crate::read::place::container;

const SECTION: &str = "RDMA devices";
/// The class of a card on PCI with ports for InfiniBand.
const INFINIBAND: &str = "0x0207";

const NOTHING_ON_PCI: &str = "lspci lists no card of a known vendor of RDMA devices: check slot, power and firmware; in \
                              a virtual machine, whether it was given one.";
const NO_EFA: &str =
    "Run AWS's EFA installer, or modprobe efa; dmesg | grep efa shows why the driver does not take the card.";
const GIVEN_UP: &str = "dmesg | grep mlx5 says why. Where the firmware does not answer any more (Fatal error, health \
                        recovery failed), a cold start of the node is needed. A device can also be in the network \
                        namespace of a pod (rdma system).";
const IF_IT_SAYS: &str = "If it says \"disagrees about version of symbol\" or \"Unknown symbol\",";
const NEW_INITRAMFS: &str = "make the initramfs anew (update-initramfs -u, or dracut -f).";

/// Returns a fact that says why a node with GPUs has no RDMA device.
pub fn why(machine: &Machine) -> Fact {
    // A container sees the cards of the node on PCI, but not their drivers' work.
    if let Some(engine) = engine(machine) {
        let advice = format!(
            "{} gives the container the node's RDMA devices. nvpm on the node says whether it has any.",
            engine.to_give_devices()
        );
        return none("0: this container has none", advice);
    }
    let found = cards(machine);
    let Some(card) = first_of(&found) else {
        return none("0", NOTHING_ON_PCI);
    };
    let Network::Verbs { core, verbs } = card.vendor.network else {
        return info(SECTION, "number", format!("0: {}, without this module", card.vendor.without_verbs()));
    };
    for module in [core, "ib_core", verbs] {
        if let Some(reason) = refused(machine, module) {
            let advice = Advice::about(machine, module).word("to_enrol").unwrap_or_default();
            return none(format!("0: {reason}{}", because(machine)), advice);
        }
    }
    let address = &card.address;
    if card.driver.starts_with("vfio") {
        let advice = format!("{address} is given to a virtual machine (vfio): RDMA is done there.");
        return none(format!("0: {address} is not here"), advice);
    }
    if card.driver.is_empty() {
        return none(format!("0: the card {address} has no driver"), no_driver(machine, card));
    }
    half(machine, card, verbs)
}

/// Returns the card that is looked at first: one that is made for RDMA, and one without a driver before others.
fn first_of(cards: &[Card]) -> Option<&Card> {
    cards.iter().min_by_key(|card| (card.vendor.rank, !card.driver.is_empty()))
}

/// Returns how programs reach GPU memory by a network that has no verbs; an empty text for any other network, and
/// without a card.
pub fn without_verbs(machine: &Machine) -> &'static str {
    first_of(&cards(machine)).map_or("", |card| card.vendor.without_verbs())
}

fn none(value: impl std::fmt::Display, advice: impl Into<String>) -> Fact {
    bad(SECTION, "number", value).advised(advice)
}

fn no_driver(machine: &Machine, card: &Card) -> String {
    match card.vendor.network {
        Network::Verbs { core, .. } if card.vendor.id != AMAZON => format!(
            "modprobe {core}; dmesg | grep {core} shows why not. If there is no such module, install OFED or the \
             kernel's modules (linux-modules-extra-{} on Ubuntu).",
            machine.kernel
        ),
        _ => NO_EFA.to_owned(),
    }
}

/// Adds the cards made for RDMA that are no RDMA devices, on a node where other RDMA devices work.
pub fn missing(machine: &Machine, facts: &mut Facts) {
    if !container(machine).is_empty() {
        return;
    }
    for card in cards(machine).iter() {
        let (address, driver) = (&card.address, &card.driver);
        let name = format!("card {address}");
        if [MELLANOX, AMAZON].contains(&card.vendor.id) && driver.is_empty() {
            let value = format!("{address} has no driver, so it is no RDMA device");
            facts.add(bad(SECTION, &name, value).advised(no_driver(machine, card)));
        } else if has_given_up(machine, card) {
            let value = format!("{driver} drives {address}, which is no RDMA device");
            facts.add(warn(SECTION, &name, value).advised(GIVEN_UP));
        }
    }
}

/// Returns whether a card's driver has given up the RDMA device, as mlx5 does if the firmware does not answer any more.
/// An Ethernet card can be used without RDMA, and the RDMA device of a virtual function may be in a pod, so only the
/// physical functions for InfiniBand count.
fn has_given_up(machine: &Machine, card: &Card) -> bool {
    let place = format!("{DEVICES}{}", card.address);
    let is_device = nics(machine).iter().any(|nic| nic.pci.as_ref().is_some_and(|pci| pci.address == card.address));
    card.driver == "mlx5_core"
        && machine.text(&format!("{place}/class")).starts_with(INFINIBAND)
        && !machine.exists(&format!("{place}/physfn"))
        && !is_device
}

/// Returns a fact about a card whose driver makes no RDMA device, because it needs a second module.
fn half(machine: &Machine, card: &Card, verbs: &str) -> Fact {
    let (address, core, ofed) = (&card.address, &card.driver, ofed(machine));
    let state = if machine.loaded(verbs) { "loaded, and has made none" } else { "not loaded" };
    let mut value = format!("0: the card {address} has its driver {core}, and {verbs} is {state}");
    if !ofed.is_empty() {
        value = format!("{value}; {ofed} is installed");
    }
    let why = if ofed.is_empty() {
        // Without an OFED, both modules are the kernel's own, and one of them is older than the other.
        format!(
            "{core} and ib_core are of two builds of the kernel: reboot into the newest kernel, and {NEW_INITRAMFS}"
        )
    } else if card.vendor.id == MELLANOX {
        format!(
            "{core} and ib_core are of two stacks, of OFED and of the kernel: {}. If udev loads the kernel's own \
             modules again: echo 'blacklist mlx5_core' and 'blacklist mlx5_ib' >/etc/modprobe.d/inbox-rdma.conf, and \
             {NEW_INITRAMFS}",
            restart(machine)
        )
    } else {
        // The core of an OFED takes only drivers that were built for it.
        format!(
            "ib_core is that of OFED, and the kernel's own {verbs} does not fit it: build the vendor's {verbs} for \
             OFED, or remove OFED and use dma-buf."
        )
    };
    let begin = format!(
        "{address} has its driver {core}, and no RDMA device: {verbs} is {state}. modprobe {verbs}, then dmesg | grep \
         {verbs}."
    );
    none(value, format!("{begin} {IF_IT_SAYS} {why}"))
}

/// Returns the reason for the first line of nvpm's output.
pub fn headline(machine: &Machine) -> Option<String> {
    let fact = why(machine);
    let (_, reason) = fact.value.split_once(": ")?;
    Some(reason.to_owned()).filter(|reason| !reason.is_empty())
}
