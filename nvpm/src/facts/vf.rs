// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about virtual functions (SR-IOV). A virtual function has no identity unless the host gave an identity. The
//! physical function has the PCI settings and the link of its virtual functions.
use crate::facts::fact::{Fact, Facts, bad, warn};
use crate::read::machine::{Machine, base};
use crate::read::pci::{Nic, Pci};

/// The product numbers of the virtual functions of ConnectX-4 to ConnectX-8 and `BlueField`, from the list of devices
/// in Linux' drivers/net/ethernet/mellanox/mlx5/core/main.c.
const MLX5: &[&str] = &["0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"];
const MELLANOX: &str = "0x15b3";
const NO_GUID: &str = "0000:0000:0000:0000";
const NO_MAC: &str = "00:00:00:00:00:00";

const SET_GUID: &str = "On the host: ip link set PF vf N node_guid GUID, and port_guid, then take the virtual function \
                        from its driver and give it back (unbind and bind of mlx5_core), before it goes to a virtual \
                        machine or a pod. With an SR-IOV operator: its policy and the ib-sriov CNI set them.";
const SET_MAC: &str = "On the host: ip link set PF vf N mac MAC, and state auto, before the virtual function goes to a \
                       virtual machine or a pod.";

/// Returns the address of the physical function. An empty text if it is not of this system.
fn physical(machine: &Machine, pci: &Pci) -> String {
    base(&machine.target(&format!("{}/physfn", pci.directory))).to_owned()
}

/// Returns whether this is a virtual function. In a virtual machine, only its product number shows that.
pub fn is_one(machine: &Machine, pci: &Pci) -> bool {
    let is_known = pci.text(machine, "vendor") == MELLANOX && MLX5.contains(&pci.text(machine, "device").as_str());
    is_known || machine.exists(&format!("{}/physfn", pci.directory))
}

pub fn text(machine: &Machine, pci: &Pci) -> String {
    if !is_one(machine, pci) {
        return String::new();
    }
    let physical = physical(machine, pci);
    let of = if physical.is_empty() { physical } else { format!(" of {physical}") };
    format!(", a virtual function{of}")
}

/// Adds facts about a missing identity, which only a virtual function can miss.
pub fn facts(machine: &Machine, nic: &Nic, section: &str, facts: &mut Facts) {
    if let Some(pci) = &nic.pci {
        facts.add(guid(machine, nic, section));
        port_guids(machine, nic, section, facts);
        facts.add(address(machine, nic, pci, section));
    }
}

/// Returns a defect if no port of the device is up, because then the missing identity is the reason.
fn judged(machine: &Machine, nic: &Nic, section: &str, name: &str, value: String) -> Fact {
    let states = machine.glob(&[&format!("{}/ports/*/state", nic.directory)]);
    let is_up = states.iter().any(|state| machine.text(state).ends_with("ACTIVE"));
    if is_up { warn(section, name, value) } else { bad(section, name, value) }
}

fn guid(machine: &Machine, nic: &Nic, section: &str) -> Option<Fact> {
    let found = machine.text(&format!("{}/node_guid", nic.directory));
    if found != NO_GUID {
        return None;
    }
    let value = format!("{found}: the host gave this virtual function none, so its port does not come up");
    Some(judged(machine, nic, section, "node GUID", value).advised(SET_GUID))
}

/// Adds the `InfiniBand` ports without a GUID, which is the second half of the port's first GID.
fn port_guids(machine: &Machine, nic: &Nic, section: &str, facts: &mut Facts) {
    for port in machine.glob(&[&format!("{}/ports/*", nic.directory)]) {
        let (gid, layer) = (machine.text(&format!("{port}/gids/0")), machine.text(&format!("{port}/link_layer")));
        if layer == "InfiniBand" && gid.ends_with(&format!(":{NO_GUID}")) {
            let value = format!("port {} has none, so it does not come up", base(&port));
            facts.add(judged(machine, nic, section, "port GUID", value).advised(SET_GUID));
        }
    }
}

/// Judges the hardware address of the network interface over an Ethernet device.
fn address(machine: &Machine, nic: &Nic, pci: &Pci, section: &str) -> Option<Fact> {
    let places = machine.glob(&["/sys/class/net/*/device"]);
    let of_device = places.iter().filter(|place| base(&machine.target(place)) == pci.address);
    let mut interfaces: Vec<String> = of_device.map(|place| place.trim_end_matches("/device").to_owned()).collect();
    interfaces.extend(machine.glob(&[&format!("{}/net/*", pci.directory)]));
    if !interfaces.iter().any(|place| machine.text(&format!("{place}/address")) == NO_MAC) {
        return None;
    }
    let value = format!("{NO_MAC}: the host gave this virtual function none");
    Some(judged(machine, nic, section, "MAC", value).advised(SET_MAC))
}
