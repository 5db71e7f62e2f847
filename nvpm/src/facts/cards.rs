// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The network cards on PCI that could be RDMA devices, and their vendors.
use std::rc::Rc;

use crate::read::machine::{Machine, base};
use crate::read::network::MELLANOX;
use crate::read::pci::DEVICES;

pub const AMAZON: &str = "0x1d0f";
const NETWORK: &str = "0x02";
/// Amazon also makes many other cards. The numbers are those of the cards for RDMA.
const EFA: [&str; 4] = ["0xefa0", "0xefa1", "0xefa2", "0xefa3"];

/// The network that a vendor's cards make.
#[derive(Clone, Copy)]
pub enum Network {
    /// The cards become RDMA devices by two modules, which may be one.
    Verbs { core: &'static str, verbs: &'static str },
    /// The network has no verbs; programs reach GPU memory in another way.
    Other(&'static str),
}

pub struct Vendor {
    pub id: &'static str,
    pub network: Network,
    /// The position of the vendor's cards in the order in which cards are looked at.
    pub rank: usize,
}

impl Vendor {
    pub fn without_verbs(&self) -> &'static str {
        match self.network {
            Network::Other(why) => why,
            Network::Verbs { .. } => "",
        }
    }
}

const fn verbs(rank: usize, id: &'static str, core: &'static str, verbs: &'static str) -> Vendor {
    Vendor { id, network: Network::Verbs { core, verbs }, rank }
}

static VENDORS: [Vendor; 7] = [
    verbs(0, MELLANOX, "mlx5_core", "mlx5_ib"),
    verbs(1, AMAZON, "efa", "efa"),
    Vendor {
        id: "0x17db",
        network: Network::Other("HPE Slingshot has no verbs; programs reach GPU memory by libfabric's provider cxi"),
        rank: 2,
    },
    Vendor {
        id: "0x1ae0",
        network: Network::Other(
            "Google's network card has no verbs; NCCL reaches GPU memory by Google's TCPX or TCPXO",
        ),
        rank: 3,
    },
    verbs(4, "0x1414", "mana", "mana_ib"),
    verbs(5, "0x14e4", "bnxt_en", "bnxt_re"),
    verbs(6, "0x8086", "ice", "irdma"),
];

pub struct Card {
    pub address: String,
    pub vendor: &'static Vendor,
    pub driver: String,
}

/// Returns the cards on PCI that could be RDMA devices. A vendor that also makes many other cards is known by the
/// driver or by the product number.
pub fn cards(machine: &Machine) -> Rc<Vec<Card>> {
    machine.once(compute)
}

fn compute(machine: &Machine) -> Vec<Card> {
    let mut found = Vec::new();
    for place in machine.glob(&[&format!("{DEVICES}*")]) {
        let (vendor, kind) = (machine.text(&format!("{place}/vendor")), machine.text(&format!("{place}/class")));
        let vendor = VENDORS.iter().find(|one| one.id == vendor);
        let Some(vendor) = vendor.filter(|_| kind.starts_with(NETWORK)) else { continue };
        let driver = base(&machine.target(&format!("{place}/driver"))).to_owned();
        let is_known = match vendor.network {
            Network::Verbs { core, verbs } => vendor.id == MELLANOX || driver == core || driver == verbs,
            Network::Other(_) => true,
        };
        if is_known || EFA.contains(&machine.text(&format!("{place}/device")).as_str()) {
            found.push(Card { address: base(&place).to_owned(), vendor, driver });
        }
    }
    found
}
