// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds ports of RDMA devices, and their addresses.
use nvpm_foreign::queue_pair::PortAddress;

use crate::read::machine::{Machine, base};
use crate::selftest::failure::Failure;

const ACTIVE: &str = "ACTIVE";
/// The beginning of an IPv4 address that is written as a GID.
const IPV4: u128 = 0xffff;
/// The beginning of a link-local IPv6 address.
const LINK_LOCAL: u128 = 0xfe80;

pub struct Port {
    pub device: String,
    pub number: u8,
    pub path: String,
    state: String,
    needs_gid: bool,
}

impl Port {
    fn new(machine: &Machine, device: &str, path: String) -> Option<Self> {
        let number = base(&path).parse().ok()?;
        let needs_gid = machine.text(&format!("{path}/link_layer")) != "InfiniBand";
        let mut port = Self { device: device.to_owned(), number, path, state: String::new(), needs_gid };
        port.state = port.now(machine);
        Some(port)
    }

    /// Returns the present state. The file contains a text like "4: ACTIVE".
    fn now(&self, machine: &Machine) -> String {
        let said = machine.text(&format!("{}/state", self.path));
        let state = said.rsplit(' ').next().unwrap_or_default();
        if state.is_empty() { "unknown".to_owned() } else { state.to_owned() }
    }

    /// Returns the present state if the port is not active any more.
    pub fn lost(&self, machine: &Machine) -> Option<String> {
        Some(self.now(machine)).filter(|state| state != ACTIVE)
    }

    /// Returns the address of the port. On InfiniBand, only a subnet can demand a GID.
    pub fn address(&self, machine: &Machine, is_gid_demanded: bool) -> Result<PortAddress, Failure> {
        let needs_gid = self.needs_gid || is_gid_demanded;
        let gid = if needs_gid { Some(self.gid(machine)?) } else { None };
        Ok(PortAddress { number: self.number, gid })
    }

    /// Returns index and bytes of the GID that programs also choose.
    fn gid(&self, machine: &Machine) -> Result<(u8, [u8; 16]), Failure> {
        let entry = |index: u8| {
            let text = machine.text(&format!("{}/gids/{index}", self.path)).replace(':', "");
            // An unused GID is zero, or cannot be read.
            let address = u128::from_str_radix(&text, 16).ok().filter(|address| *address != 0)?;
            Some(Gid { index, address, kind: machine.text(&format!("{}/gid_attrs/types/{index}", self.path)) })
        };
        // An address handle has 8 bits for the index.
        let best = (0..=u8::MAX).filter_map(entry).min_by_key(Gid::order);
        best.map(|best| (best.index, best.address.to_be_bytes())).ok_or_else(|| {
            Failure(format!("port {} has no GID: give its network interface an address, or set it up", self.number))
        })
    }
}

/// An entry in the table of addresses of a port.
struct Gid {
    index: u8,
    address: u128,
    kind: String,
}

impl Gid {
    /// Returns the place in the order in which addresses are chosen: `RoCE` v2 before v1, then IPv4 before IPv6, then
    /// other addresses before link-local addresses, then the first.
    fn order(&self) -> (bool, bool, bool, u8) {
        let (is_ipv4, is_link_local) = (self.address >> 32 == IPV4, self.address >> 112 == LINK_LOCAL);
        (!self.kind.contains("v2"), !is_ipv4, is_link_local, self.index)
    }
}

/// Returns the first active port of the device. The error is the reason why there is none.
pub fn usable_port(machine: &Machine, device: &str) -> Result<Port, String> {
    let directory = format!("/sys/class/infiniband/{device}");
    // Devices for InfiniBand and for RoCE have the kind "1: CA".
    let kind = machine.text(&format!("{directory}/node_type"));
    if !kind.starts_with('1') {
        let kind = if kind.is_empty() { "unknown" } else { &kind };
        return Err(format!("its kind ({kind}) has no queue pairs that connect without a connection manager"));
    }
    let paths = machine.glob(&[&format!("{directory}/ports/*")]);
    first_active(paths.into_iter().filter_map(|path| Port::new(machine, device, path)).collect())
}

/// Returns the active port with the lowest number.
fn first_active(mut ports: Vec<Port>) -> Result<Port, String> {
    ports.sort_by_key(|port| port.number);
    let states: Vec<String> = ports.iter().map(|port| format!("port {} is {}", port.number, port.state)).collect();
    let states = if states.is_empty() { "it has none".to_owned() } else { states.join(", ") };
    let active = ports.into_iter().find(|port| port.state == ACTIVE);
    active.ok_or_else(|| format!("no active port ({states})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    const PORTS: &str = "/sys/class/infiniband/mlx5_0/ports";
    const ZERO: u128 = 0;
    const LOCAL: u128 = (0xfe80 << 112) + 1;
    const V4: u128 = 0xffff_0a00_0001;
    const GLOBAL: u128 = (0x2001_0db8 << 96) + 1;
    const V1: &str = "IB/RoCE v1";
    const V2: &str = "RoCE v2";

    #[test]
    fn the_address_is_that_of_other_programs() {
        let tables: [(&[(u128, &str)], u8); 9] = [
            (&[(LOCAL, V2), (GLOBAL, V2)], 1),
            (&[(GLOBAL, V2), (LOCAL, V2)], 0),
            (&[(LOCAL, V2), (GLOBAL, V2), (V4, V2)], 2),
            (&[(V4, V1), (LOCAL, V2)], 1),
            (&[(V4, V1), (LOCAL, V1), (LOCAL, V2), (GLOBAL, V2)], 3),
            (&[(LOCAL, V1), (GLOBAL, V1), (V4, V1)], 2),
            (&[(V4 + 1, V2), (V4, V2)], 0),
            (&[(LOCAL + 1, V2), (LOCAL, V2)], 0),
            (&[(ZERO, V2), (LOCAL, V2), (ZERO, V2)], 1),
        ];
        for (entries, expected) in tables {
            let made = Made::new();
            made.change([format!("- {PORTS}/1/gids {PORTS}/1/gid_attrs")]);
            for (index, (address, kind)) in entries.iter().enumerate() {
                made.change([format!("{PORTS}/1/gids/{index} = {}", written(*address))]);
                made.change([format!("{PORTS}/1/gid_attrs/types/{index} = {kind}")]);
            }
            let machine = made.read();
            let port = Port::new(&machine, "mlx5_0", format!("{PORTS}/1")).unwrap();
            let address = entries[usize::from(expected)].0.to_be_bytes();
            assert_eq!(port.gid(&machine).map_err(|why| why.0), Ok((expected, address)), "{entries:x?}");
        }
    }

    /// Returns an address as sysfs shows it.
    fn written(address: u128) -> String {
        let digits = format!("{address:032x}");
        (0..8).map(|group| &digits[4 * group..4 * group + 4]).collect::<Vec<_>>().join(":")
    }

    #[test]
    fn the_active_port_with_the_lowest_number_counts() {
        let made = Made::new();
        let found = || usable_port(&made.read(), "mlx5_0").map(|port| port.number);
        made.change(["port mlx5_0 1 DOWN LinkUp InfiniBand", "port mlx5_0 10 ACTIVE LinkUp InfiniBand"]);
        made.change(["port mlx5_0 2 ACTIVE LinkUp InfiniBand"]);
        assert_eq!(found(), Ok(2));
        made.change(["port mlx5_0 10 INIT Polling InfiniBand", "port mlx5_0 2 DOWN Polling InfiniBand"]);
        let text = "no active port (port 1 is DOWN, port 2 is DOWN, port 10 is INIT)";
        assert_eq!(found(), Err(text.to_owned()));
        made.change([format!("- {PORTS}")]);
        assert_eq!(found(), Err("no active port (it has none)".to_owned()));
    }
}
