// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads PCI devices and the bridges above them from sysfs. Some of these devices are the GPUs and RDMA devices.
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::read::machine::{Machine, base, decoded};
use crate::read::products::{Can, Product, product_of};

pub const DEVICES: &str = "/sys/bus/pci/devices/";
/// The bytes of the configuration space of PCI Express.
pub const CONFIG: u64 = 4096;
/// The numbers of four bytes in it that users other than root can read.
pub const READ_BY_ALL: usize = 16;
const NVIDIA: &str = "0x10de";
const DISPLAY: &str = "0x03";

/// The product numbers of GH200, GB200 and GB300. The processor accesses the memory of these GPUs like its own memory.
const COHERENT: [i64; 5] = [0x2342, 0x2345, 0x2348, 0x2941, 0x31C2];

/// Returns the decimal number that a text spells, or another number.
pub fn integer(text: &str, otherwise: i64) -> i64 {
    text.trim().parse().unwrap_or(otherwise)
}

/// Returns the hexadecimal number that a text spells, or 0.
pub fn hexadecimal(text: &str) -> u64 {
    let text = text.trim();
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).unwrap_or_default()
}

/// Returns the number at the start of a text, or 0.
pub fn number(text: &str) -> f64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let found = text.get(..end).unwrap_or_default();
    let (whole, rest) = found.split_once('.').unwrap_or((found, ""));
    let part = rest.split('.').next().unwrap_or_default();
    let digits = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
    digits.parse().unwrap_or_default()
}

/// A device or a bridge.
pub struct Pci {
    pub address: String,
    pub directory: String,
    /// The root complex, the root port, the bridges, and the device itself; empty for a missing device.
    pub path: Vec<String>,
    pub node: i64,
    pub speed: String,
    pub width: String,
    pub max_speed: String,
    pub max_width: String,
}

impl Pci {
    fn new(machine: &Machine, address: &str) -> Self {
        let directory = format!("{DEVICES}{address}");
        let place = if address.is_empty() { String::new() } else { machine.target(&directory) };
        // A domain of VMD has a root complex of its own below that of the machine, so the last root complex counts.
        let below = place.rsplit_once("/pci").map_or(place.as_str(), |(_, below)| below);
        let path = format!("pci{below}").split('/').map(str::to_owned).collect();
        let path = if place.is_empty() { Vec::new() } else { path };
        let text = |attribute: &str| match address {
            "" => String::new(),
            _ => machine.text(&format!("{directory}/{attribute}")),
        };
        let speed = |attribute: &str| {
            let said = text(attribute);
            said.strip_suffix(" PCIe").unwrap_or(&said).to_owned()
        };
        let node = integer(&text("numa_node"), -1);
        let (speed, width, max_speed, max_width) = (
            speed("current_link_speed"),
            speed("current_link_width"),
            speed("max_link_speed"),
            speed("max_link_width"),
        );
        Self { address: address.to_owned(), path, node, speed, width, max_speed, max_width, directory }
    }

    /// Returns the first line of an attribute.
    pub fn text(&self, machine: &Machine, attribute: &str) -> String {
        if self.address.is_empty() { String::new() } else { machine.text(&format!("{}/{attribute}", self.directory)) }
    }

    /// Returns how the addresses of the device are translated.
    pub fn iommu(&self, machine: &Machine) -> String {
        let kind = self.text(machine, "iommu_group/type");
        if !kind.is_empty() {
            return kind;
        }
        let is_there = machine.exists(&format!("{}/iommu_group", self.directory));
        if is_there { "unknown".to_owned() } else { "none".to_owned() }
    }

    /// Returns the configuration space as numbers of four bytes. Users other than root can read only the first 64
    /// bytes.
    pub fn config(&self, machine: &Machine, size: u64) -> Vec<u32> {
        let data = machine.read_at_most(&format!("{}/config", self.directory), size);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u32::from(*byte));
        data.chunks(4).map(number).collect()
    }
}

/// Returns the device at an address. A bridge is read only once, although several devices may lie below it.
pub fn pci_at(machine: &Machine, address: &str) -> Rc<Pci> {
    fn known(_: &Machine) -> RefCell<HashMap<String, Rc<Pci>>> {
        RefCell::default()
    }
    let known = machine.once(known);
    if let Some(found) = known.borrow().get(address) {
        return found.clone();
    }
    let found = Rc::new(Pci::new(machine, address));
    known.borrow_mut().insert(address.to_owned(), found.clone());
    found
}

pub struct Gpu {
    pub name: String,
    pub driver: String,
    pub pci: Rc<Pci>,
    pub product: i64,
    pub coherent: bool,
}

impl Gpu {
    fn new(machine: &Machine, address: &str, driver: &str) -> Self {
        let pci = pci_at(machine, address);
        let product = i64::try_from(hexadecimal(&pci.text(machine, "device"))).unwrap_or_default();
        let numa = format!("/proc/driver/nvidia/gpus/{address}/numa_status");
        let coherent = COHERENT.contains(&product) || machine.exists(&numa);
        Self { name: address.to_owned(), driver: driver.to_owned(), pci, product, coherent }
    }

    /// Returns whether the GPU no longer answers on PCI. Its configuration space then reads as ones. The configuration
    /// space of a virtual function reads as ones on a healthy machine too.
    pub fn silent(&self, machine: &Machine) -> bool {
        let is_lost = self.pci.config(machine, 4) == [u32::MAX];
        is_lost && !machine.exists(&format!("{}/physfn", self.pci.directory))
    }

    /// Returns the size of BAR1 in MiB; 0 if the size is unknown. BAR1 is the window through which other devices reach
    /// the GPU's memory.
    pub fn bar1(&self, machine: &Machine) -> u64 {
        let windows = machine.lines(&format!("{}/resource", self.pci.directory));
        let mut words = windows.get(1).map(|window| window.split_whitespace()).into_iter().flatten();
        let (first, last) = (hexadecimal(words.next().unwrap_or("")), hexadecimal(words.next().unwrap_or("")));
        if last == 0 { 0 } else { last.saturating_sub(first).saturating_add(1) >> 20 }
    }

    /// Returns the largest possible size of BAR1 in MiB; 0 if the size is fixed. In the file, each bit stands for a
    /// possible size, and the lowest bit stands for 1 MiB.
    pub fn largest_bar1(&self, machine: &Machine) -> u64 {
        hexadecimal(&self.pci.text(machine, "resource1_resize")).checked_ilog2().map_or(0, |bit| 1 << bit)
    }

    /// Returns a value from the driver about this GPU; an empty string without a driver.
    pub fn information(&self, machine: &Machine, name: &str) -> String {
        let said = machine.all_text(&[format!("/proc/driver/nvidia/gpus/{}/information", self.name)]);
        let value = said.split('\n').find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().trim_matches([' ', '\t']).to_owned()
    }

    /// Returns the GPU's name from the driver. Without a driver, returns the name from the system's list of PCI
    /// devices.
    pub fn model(&self, machine: &Machine) -> String {
        let model = self.information(machine, "Model");
        if model.is_empty() { listed_name(machine, self.product) } else { model }
    }

    /// Returns the row of a product that takes no part in GPUDirect RDMA, or perhaps takes no part; None if this GPU
    /// takes part.
    pub fn doubt(&self, machine: &Machine) -> Option<&'static Product> {
        product_of(&self.model(machine))
    }

    /// Returns whether this product takes no part in GPUDirect RDMA for certain.
    pub fn excluded(&self, machine: &Machine) -> bool {
        self.doubt(machine).is_some_and(|doubt| doubt.can == Can::No)
    }

    /// Returns the number of GPU instances made by MIG.
    pub fn instances(&self, machine: &Machine) -> usize {
        let minor = self.information(machine, "Device Minor");
        if minor.is_empty() || !minor.bytes().all(|letter| letter.is_ascii_digit()) {
            return 0;
        }
        machine.glob(&[&format!("/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi[0-9]*")]).len()
    }
}

/// Returns the name of an NVIDIA product in the system's list of PCI devices, as in `GA102 (GeForce RTX 3090)`.
fn listed_name(machine: &Machine, product: i64) -> String {
    fn known(_: &Machine) -> RefCell<HashMap<i64, String>> {
        RefCell::default()
    }
    let known = machine.once(known);
    if let Some(name) = known.borrow().get(&product) {
        return name.clone();
    }
    let files = machine.glob(&["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"]);
    let name = files.iter().find_map(|file| name_in(&machine.read(file), product)).unwrap_or_default();
    known.borrow_mut().insert(product, name.clone());
    name
}

/// Returns the name of an NVIDIA product in the list. When facts are printed, square brackets enclose a list of
/// devices, so the name gets round brackets.
fn name_in(list: &[u8], product: i64) -> Option<String> {
    let begin = memchr::memmem::find(list, b"\n10de  ")?;
    let wanted = format!("\t{product:04x}  ");
    let lines = list.get(begin + 1..)?.split(|byte| *byte == b'\n').skip(1);
    let mut its_lines =
        lines.take_while(|line| !line.first().is_some_and(|first| matches!(first, b'0'..=b'9' | b'a'..=b'f')));
    let name = its_lines.find_map(|line| line.strip_prefix(wanted.as_bytes()))?;
    Some(decoded(name).trim().replace('[', "(").replace(']', ")"))
}

/// An RDMA device. If the device is made of software, its place is that of the network card below it.
pub struct Nic {
    pub name: String,
    pub directory: String,
    /// The network interface below a device made of software; empty for others.
    pub software: String,
    pub pci: Option<Rc<Pci>>,
}

impl Nic {
    fn new(machine: &Machine, name: &str) -> Self {
        let directory = format!("/sys/class/infiniband/{name}");
        let (mut place, mut software) = (directory.clone(), String::new());
        if !machine.exists(&format!("{place}/device")) {
            software = machine.text(&format!("{place}/parent"));
            if !software.is_empty() {
                place = format!("/sys/class/net/{software}");
            }
        }
        let target = machine.target(&format!("{place}/device"));
        let address = target.split('/').rfind(|part| is_address(part));
        let pci = address.map(|address| pci_at(machine, address));
        Self { name: name.to_owned(), directory, software, pci }
    }

    /// Returns the driver of the PCI device; an empty string without a PCI device.
    pub fn driver(&self, machine: &Machine) -> String {
        let place = self.pci.as_ref().map(|pci| machine.target(&format!("{}/driver", pci.directory)));
        base(&place.unwrap_or_default()).to_owned()
    }
}

/// Returns whether a part of a path ends with a PCI address.
fn is_address(part: &str) -> bool {
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut parts = part.rsplitn(3, ':');
    let (slot, bus, domain) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let Some((slot, function)) = slot.split_once('.') else { return false };
    let last = domain.get(domain.len().saturating_sub(1)..).unwrap_or_default();
    is_hex(last, 1) && is_hex(bus, 2) && is_hex(slot, 2) && matches!(function.as_bytes(), [b'0'..=b'7'])
}

/// Returns NVIDIA's display controllers, and all other devices that NVIDIA's driver drives.
pub fn gpus(machine: &Machine) -> Rc<Vec<Rc<Gpu>>> {
    fn compute(machine: &Machine) -> Vec<Rc<Gpu>> {
        let mut found = Vec::new();
        for place in machine.glob(&[&format!("{DEVICES}*")]) {
            let driver = machine.target(&format!("{place}/driver"));
            let driver = base(&driver);
            let (vendor, kind) = (machine.text(&format!("{place}/vendor")), machine.text(&format!("{place}/class")));
            if driver == "nvidia" || (vendor == NVIDIA && kind.starts_with(DISPLAY)) {
                found.push(Rc::new(Gpu::new(machine, base(&place), driver)));
            }
        }
        found
    }
    machine.once(compute)
}

pub fn nics(machine: &Machine) -> Rc<Vec<Rc<Nic>>> {
    fn compute(machine: &Machine) -> Vec<Rc<Nic>> {
        let found = machine.glob(&["/sys/class/infiniband/*"]);
        let mut names: Vec<&str> = found.iter().filter(|name| machine.exists(name)).map(|name| base(name)).collect();
        names.sort_by_cached_key(|name| counting(name));
        names.into_iter().map(|name| Rc::new(Nic::new(machine, name))).collect()
    }
    machine.once(compute)
}

/// Returns a key for sorting names as people do, so that `mlx5_2` comes before `mlx5_10`.
pub fn counting(name: &str) -> Vec<(String, u128)> {
    let mut found: Vec<(String, u128)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(end);
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        let (digits, behind) = behind.split_at(end);
        found.push((text.to_owned(), digits.parse().unwrap_or_default()));
        rest = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_texts() {
        let numbers = ["16.0 GT/s", "32", "x", "2.5.1"].map(|text| number(text).to_string());
        assert_eq!(numbers, ["16", "32", "0", "2.5"]);
        assert_eq!(
            [hexadecimal("0x10de"), hexadecimal("ff"), hexadecimal(""), hexadecimal("0xg")],
            [0x10de, 255, 0, 0]
        );
        assert_eq!([integer(" -1", 0), integer("", 7)], [-1, 7]);
    }

    #[test]
    fn a_part_of_a_path_may_be_an_address() {
        for (part, is) in [
            ("0000:3b:00.0", true),
            ("10000:01:00.1", true),
            ("pci0000:00", false),
            ("0000:3b:00.8", false),
            ("0000:3B:00.0", false),
            ("3b:00.0", false),
            ("0000:3b:000.0", false),
        ] {
            assert_eq!(is_address(part), is, "{part}");
        }
    }

    #[test]
    fn names_are_sorted_as_people_count() {
        let mut names = ["mlx5_10", "mlx5_2", "bnxt_re0", "mlx5_2a"];
        names.sort_by_cached_key(|name| counting(name));
        assert_eq!(names, ["bnxt_re0", "mlx5_2", "mlx5_2a", "mlx5_10"]);
    }

    #[test]
    fn a_product_has_the_name_of_its_vendor() {
        let list = b"1000  Other\n\t2204  Wrong\n10de  NVIDIA\n\t2204  GA102 [GeForce RTX 3090] \n\t\t1 2  x\n10df  E\n\t2205  No\n";
        assert_eq!(name_in(list, 0x2204).as_deref(), Some("GA102 (GeForce RTX 3090)"));
        assert_eq!(name_in(list, 0x2205), None);
        assert_eq!(name_in(b"", 1), None);
    }
}
