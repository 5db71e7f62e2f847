// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Computes the upper bound of the rate between a GPU and an RDMA device. Only links and ports make a bound. What the
//! root complex or the processors allow is not known, so it is an estimate (`estimate.rs`), and no part of the bound.
//!
//! A path begins with the root complex. Then come pairs of bridges that are the two ends of a link: the root port and
//! the upstream port of a switch, then a downstream port of this switch and the next upstream port. The lower end of
//! each link thus has an even place in the path.
use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use crate::facts::access_control::{redirects_completions, redirects_requests};
use crate::facts::link_rate::data_rate;
use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic, Pci, number, pci_at};
use crate::read::pci_express::{max_payload, with_link};
use crate::read::place::guest_kind;

/// How a bound of one direction says which direction it is.
pub const TO_GPU: &str = "to the GPU";
pub const FROM_GPU: &str = "from the GPU";
/// The place of the first downstream port of a switch in a path.
const FIRST_DOWNSTREAM: usize = 3;

/// A rate in bytes per second that no transfer exceeds, and the part that limits the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub rate: f64,
    pub what: String,
    pub part: Part,
}

/// What an RDMA device does with GPU memory. The data of writes is in requests of the device, and the data of reads in
/// answers of the GPU, which may take another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Writes,
    Reads,
}

/// The part that limits a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Gpu,
    Device,
    /// A link between bridges.
    Hop,
    /// A link between bridges that the data passes twice, up and down, because a switch redirects the data (ACS).
    Detour,
    Port,
}

/// Returns bytes per second in gigabytes, with more digits for a slow rate.
pub fn gigabytes(rate: f64) -> String {
    if rate >= 1e8 { format!("{:.1}", rate / 1e9) } else { format!("{:.3}", rate / 1e9) }
}

/// Returns the bound of a GPU and a port of an RDMA device in one direction. Returns None if no limit is known, for
/// example because the device is made of software.
pub fn of_direction(machine: &Machine, gpu: &Gpu, nic: &Nic, port: &str, direction: Direction) -> Option<Bound> {
    nic.pci.as_ref().filter(|_| nic.software.is_empty())?;
    let links = of_links(machine, gpu, nic, direction).into_iter().map(|(_, bound)| bound);
    lowest(links.chain(of_port(&machine.text(&format!("{port}/rate")))).collect())
}

/// Returns the bounds of a GPU and a port of an RDMA device to the GPU, which the device writes, and from the GPU.
pub fn of_directions(machine: &Machine, gpu: &Gpu, nic: &Nic, port: &str) -> [Option<Bound>; 2] {
    [Direction::Writes, Direction::Reads].map(|direction| of_direction(machine, gpu, nic, port, direction))
}

/// Returns the lower bound of both directions. If they differ, because a switch redirects the data of one of them, the
/// bound says which direction it is.
pub fn lower([writes, reads]: [Option<Bound>; 2]) -> Option<Bound> {
    let (writes, reads) = (writes?, reads?);
    let only = |bound: Bound, which: &str| Bound { what: format!("{}, only {which}", bound.what), ..bound };
    Some(match writes.rate.total_cmp(&reads.rate) {
        Ordering::Less => only(writes, TO_GPU),
        Ordering::Equal => writes,
        Ordering::Greater => only(reads, FROM_GPU),
    })
}

/// Returns the links that the data of a pair passes in one direction, each with its bound.
pub fn of_links(machine: &Machine, gpu: &Gpu, nic: &Nic, direction: Direction) -> Vec<(Link, Bound)> {
    let Some(pci) = nic.pci.as_ref().filter(|_| nic.software.is_empty()) else { return Vec::new() };
    let path = Path::new(machine, gpu, pci, direction);
    let payload = path.payload(machine);
    let bound = |link: Link| link.bound(machine, &nic.name, payload).map(|bound| (link, bound));
    path.links.into_iter().filter_map(bound).collect()
}

/// Returns the bound of an RDMA device alone, whatever memory it moves: that of its link, or of all its ports together.
pub fn of_device(machine: &Machine, nic: &Nic) -> Option<Bound> {
    let pci = nic.pci.as_ref().filter(|_| nic.software.is_empty())?;
    let own = pci_at(machine, &with_link(machine, pci));
    let link = Link { lower: own.clone(), part: Part::Device, is_up: true };
    let of_ports =
        active_ports(machine, nic).into_iter().filter_map(|port| of_port(&machine.text(&format!("{port}/rate"))));
    let sum = |one: Bound, other: Bound| Bound { rate: one.rate + other.rate, what: "all ports".to_owned(), ..one };
    let of_link = link.bound(machine, &nic.name, max_payload(machine, &own));
    lowest(of_link.into_iter().chain(of_ports.reduce(sum)).collect())
}

/// Returns the bound of a GPU and the fastest port of an RDMA device.
pub fn of_fastest_port(machine: &Machine, gpu: &Gpu, nic: &Nic) -> Option<Bound> {
    lower(of_directions(machine, gpu, nic, &fastest_port(machine, nic)))
}

/// Returns the rate of the fastest port of an RDMA device.
pub fn of_ports(machine: &Machine, nic: &Nic) -> Option<Bound> {
    of_port(&machine.text(&format!("{}/rate", fastest_port(machine, nic))))
}

/// Returns whether a switch sends the data of a pair up to the root complex, in at least one direction.
pub fn is_pair_redirected(machine: &Machine, gpu: &Gpu, nic: &Nic) -> bool {
    let Some(pci) = nic.pci.as_ref().filter(|_| !gpu.coherent) else { return false };
    [Direction::Writes, Direction::Reads].into_iter().any(|direction| is_redirected(machine, &gpu.pci, pci, direction))
}

/// Returns the directory of the fastest port; an empty text if no port is up. A port that is down has a rate, too,
/// which does not count.
fn fastest_port(machine: &Machine, nic: &Nic) -> String {
    let rate = |port: &String| of_port(&machine.text(&format!("{port}/rate"))).map_or(0.0, |bound| bound.rate);
    let port = active_ports(machine, nic).into_iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
    port.unwrap_or_default()
}

fn active_ports(machine: &Machine, nic: &Nic) -> Vec<String> {
    let ports = machine.glob(&[&format!("{}/ports/*", nic.directory)]);
    ports.into_iter().filter(|port| machine.text(&format!("{port}/state")).ends_with("ACTIVE")).collect()
}

/// Returns the rate of a port, whose file says "400 Gb/sec (4X NDR)".
fn of_port(said: &str) -> Option<Bound> {
    let (number, _) = said.split_once(" Gb/sec")?;
    let is_number = number.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
    let rate: f64 = number.parse().ok().filter(|_| is_number)?;
    Some(Bound { rate: rate * 1e9 / 8.0, what: format!("port {number} Gb/s"), part: Part::Port })
}

/// Returns the lowest bound. Of equal ones, the first counts, which is the nearest to the GPU. Several links between
/// bridges that are equally slow are all named, because a better one alone would change nothing.
fn lowest(bounds: Vec<Bound>) -> Option<Bound> {
    let rate = bounds.iter().map(|bound| bound.rate).min_by(f64::total_cmp)?;
    let mut equal = bounds.into_iter().filter(|bound| bound.rate <= rate);
    let first = equal.next()?;
    if !matches!(first.part, Part::Hop | Part::Detour) {
        return Some(first);
    }
    let others: Vec<Bound> = equal.collect();
    let is_hop = |bound: &&Bound| matches!(bound.part, Part::Hop | Part::Detour);
    let named = std::iter::once(&first).chain(others.iter().filter(is_hop));
    let texts: Vec<&str> = named.map(|one| one.what.as_str()).collect();
    Some(Bound { what: texts.join(" and "), ..first })
}

/// A link, known by its lower end.
pub struct Link {
    pub lower: Rc<Pci>,
    pub part: Part,
    /// The data that the RDMA device writes passes the link upwards.
    pub is_up: bool,
}

impl Link {
    fn bound(&self, machine: &Machine, device: &str, payload: Option<u32>) -> Option<Bound> {
        let (lower, width) = (&self.lower, number(&self.lower.width));
        // The link of an idle GPU becomes faster under load.
        let speed = if self.part == Part::Gpu { best_speed(machine, lower) } else { number(&lower.speed) };
        let rate = data_rate(speed, width, payload)?;
        let link = format!("{speed} GT/s x{width}");
        let what = match self.part {
            Part::Gpu => format!("GPU {link}"),
            Part::Device => format!("{device} {link}"),
            Part::Detour => format!("{link} at hop {}, up and down by ACS redirect", lower.address),
            Part::Hop | Part::Port => format!("{link} at hop {}", lower.address),
        };
        Some(Bound { rate, what, part: self.part })
    }
}

/// Returns the upper end of a link.
pub fn upper(machine: &Machine, lower: &Pci) -> Rc<Pci> {
    let above = lower.path.len().checked_sub(2).filter(|place| *place > 0).and_then(|place| lower.path.get(place));
    pci_at(machine, above.map_or("", String::as_str))
}

/// Returns the best speed that both ends of a link can.
fn best_speed(machine: &Machine, lower: &Pci) -> f64 {
    let slot = number(&upper(machine, lower).max_speed);
    let speed = number(&lower.max_speed);
    if slot > 0.0 { speed.min(slot) } else { speed }
}

/// The links that the data of a pair passes, from the GPU to the RDMA device.
pub struct Path {
    pub links: Vec<Link>,
}

impl Path {
    pub fn new(machine: &Machine, gpu: &Gpu, device: &Pci, direction: Direction) -> Self {
        let own = |pci: &Pci, part: Part| {
            let lower = pci_at(machine, &with_link(machine, pci));
            Link { lower, part, is_up: part == Part::Device }
        };
        let hops = |pci: &Pci, places: Range<usize>, part: Part, is_up: bool| {
            let lower = hops(machine, pci, places).into_iter();
            lower.map(|lower| Link { lower, part, is_up }).collect::<Vec<Link>>()
        };
        let mut links = Vec::new();
        // The data of a coherent GPU passes NVLink-C2C and the processor, and not the GPU's link on PCI.
        let common = if gpu.coherent { 0 } else { common(&gpu.pci, device) };
        if !gpu.coherent {
            links.push(own(&gpu.pci, Part::Gpu));
            links.extend(hops(&gpu.pci, common..gpu.pci.path.len(), Part::Hop, false).into_iter().rev());
        }
        if !gpu.coherent && is_redirected(machine, &gpu.pci, device, direction) {
            links.extend(hops(device, 0..common, Part::Detour, true).into_iter().rev());
        }
        links.extend(hops(device, common..device.path.len(), Part::Hop, true));
        links.push(own(device, Part::Device));
        Self { links }
    }

    /// Returns the least `MaxPayload` of the devices on the path, as far as it can be read. No packet is larger.
    fn payload(&self, machine: &Machine) -> Option<u32> {
        let ends = self.links.iter().flat_map(|link| [link.lower.clone(), upper(machine, &link.lower)]);
        ends.filter_map(|end| max_payload(machine, &end)).min()
    }
}

/// Returns how many parts of two paths are the same.
fn common(one: &Pci, other: &Pci) -> usize {
    one.path.iter().zip(&other.path).take_while(|(one, other)| one == other).count()
}

/// Returns the lower ends of the links between bridges that are at these places of a device's path. The last link is
/// the device's own, which is left out. A virtual machine's bridges are made of software, and have no rate.
fn hops(machine: &Machine, pci: &Pci, places: Range<usize>) -> Vec<Rc<Pci>> {
    if !guest_kind(machine).is_empty() {
        return Vec::new();
    }
    let last = pci.path.len().saturating_sub(1);
    let chosen = places.filter(|place| *place >= 2 && place % 2 == 0 && *place < last);
    chosen.filter_map(|place| Some(pci_at(machine, pci.path.get(place)?))).collect()
}

/// Returns whether the switch that is above both devices sends the data up to the root complex. The port that decides is
/// the one by which the data enters the part of the path that both devices have in common: for writes that of the RDMA
/// device, which sends the data with its requests, and for reads that of the GPU, which sends the data with its answers.
fn is_redirected(machine: &Machine, gpu: &Pci, device: &Pci, direction: Direction) -> bool {
    let common = common(gpu, device);
    let from = match direction {
        Direction::Writes => device,
        Direction::Reads => gpu,
    };
    let is_switch = common >= FIRST_DOWNSTREAM && common % 2 == 1 && common + 1 < from.path.len();
    let Some(port) = from.path.get(common).filter(|_| is_switch) else { return false };
    let port = pci_at(machine, port);
    match direction {
        Direction::Writes => redirects_requests(machine, &port, device),
        Direction::Reads => redirects_completions(machine, &port, device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;
    use crate::read::pci::{gpus, nics};

    const GPU: &str = "0000:03:00.0";
    const PORT: &str = "/sys/class/infiniband/mlx5_0/ports/1";

    /// Returns the bound of the GPU and the RDMA device with these numbers, in gigabytes per second.
    fn bound(made: &Made, gpu: usize, nic: usize) -> (String, String) {
        let machine = made.read();
        let (gpus, nics) = (gpus(&machine), nics(&machine));
        let found = of_fastest_port(&machine, &gpus[gpu], &nics[nic]).unwrap();
        (format!("{:.1}", found.rate / 1e9), found.what)
    }

    #[track_caller]
    fn check(made: &Made, rate: &str, what: &str) {
        assert_eq!(bound(made, 0, 0), (rate.to_owned(), what.to_owned()));
    }

    /// Returns a machine whose port limits nothing.
    fn without_limit() -> Made {
        let made = Made::new();
        made.change([format!("{PORT}/rate = 4000 Gb/sec (4X)")]);
        made
    }

    #[test]
    fn the_slowest_part_limits_a_pair() {
        // The speed of the GPU's link now, its best speed, the best speed of the slot, and the speed of the RDMA
        // device's link.
        for (speeds, what) in [
            (["2.5", "32.0", "32.0", "16.0"], "mlx5_0 16 GT/s x16"),
            (["2.5", "16.0", "32.0", "32.0"], "GPU 16 GT/s x16"),
            (["2.5", "32.0", "8.0", "16.0"], "GPU 8 GT/s x16"),
            (["32.0", "32.0", "Unknown", "64.0"], "GPU 32 GT/s x16"),
        ] {
            let (made, [now, best, slot, device]) = (without_limit(), speeds);
            made.change([format!("link {GPU} {now} 16 {best}"), format!("link 0000:02:00.0 {slot} 16")]);
            made.change([format!("link 0000:04:00.0 {device} 16 64.0")]);
            assert_eq!(bound(&made, 0, 0).1, what, "{speeds:?}");
        }
    }

    #[test]
    fn a_narrow_link_between_bridges_counts_if_the_data_passes_it() {
        let made = Made::new();
        made.change(["link 0000:01:00.0 8.0 8 32.0 16"]);
        // The uplink of the switch that both are below carries nothing.
        check(&made, "50.0", "port 400 Gb/s");
        // At another root port, the data passes the uplink: 8 GB/s x 128/130 x 256/280.
        made.change(["bridges 0 pci0000:00/0000:00:03.0"]);
        made.change(["nic mlx5_0 pci0000:00/0000:00:03.0/0000:05:00.0 0"]);
        check(&made, "7.2", "8 GT/s x8 at hop 0000:01:00.0");
        // At another root complex, too.
        made.change(["far 1"]);
        check(&made, "7.2", "8 GT/s x8 at hop 0000:01:00.0");
        // A virtual machine's bridges are made of software.
        made.change(["/proc/cpuinfo = flags : fpu hypervisor"]);
        check(&made, "50.0", "port 400 Gb/s");
    }

    #[test]
    fn equally_slow_links_are_named_together() {
        let made = Made::new();
        let port = "pci0000:80/0000:80:01.0";
        made.change([format!("bridges 0 {port} {port}/0000:81:00.0 {port}/0000:81:00.0/0000:82:00.0")]);
        made.change([format!("nic mlx5_0 {port}/0000:81:00.0/0000:82:00.0/0000:83:00.0 0")]);
        made.change(["link 0000:01:00.0 16.0 4", "link 0000:81:00.0 16.0 4"]);
        check(&made, "7.2", "16 GT/s x4 at hop 0000:01:00.0 and 16 GT/s x4 at hop 0000:81:00.0");
        made.change(["link 0000:81:00.0 8.0 8"]);
        check(&made, "7.2", "16 GT/s x4 at hop 0000:01:00.0 and 8 GT/s x8 at hop 0000:81:00.0");
        // The GPU's own link is the first of equal ones.
        made.change([format!("link {GPU} 8.0 8")]);
        check(&made, "7.2", "GPU 8 GT/s x8");
    }

    #[test]
    fn redirected_data_passes_the_uplink_of_the_switch() {
        let made = Made::new();
        made.change(["link 0000:01:00.0 8.0 8 32.0 16"]);
        // 0x1d is what the kernel sets. The device may use relaxed ordering, with which answers go directly.
        made.change(["settings 0000:04:00.0 2930", "acs 0000:02:00.0 29"]);
        check(&made, "50.0", "port 400 Gb/s");
        made.change(["acs 0000:02:01.0 29"]);
        check(&made, "7.2", "8 GT/s x8 at hop 0000:01:00.0, up and down by ACS redirect, only to the GPU");
        // Completion redirect alone does not lead writes away.
        made.change(["acs 0000:02:01.0 8"]);
        check(&made, "50.0", "port 400 Gb/s");
        // At another root port, the data passes the uplink in any case, and once.
        made.change(["bridges 0 pci0000:00/0000:00:03.0"]);
        made.change(["nic mlx5_0 pci0000:00/0000:00:03.0/0000:05:00.0 0", "acs 0000:00:03.0 29"]);
        check(&made, "7.2", "8 GT/s x8 at hop 0000:01:00.0");
    }

    #[test]
    fn each_direction_has_the_redirect_of_the_port_that_its_data_enters() {
        const DETOUR: &str = "8 GT/s x8 at hop 0000:01:00.0, up and down by ACS redirect";
        const DIRECT: &str = "port 400 Gb/s";
        // The control registers of ACS above the GPU and above the RDMA device: request redirect is 4, completion
        // redirect 8, and direct translated peer-to-peer 64. The device keeps the order of its packets.
        for (gpu, device, writes, reads) in [
            (0, 0, DIRECT, DIRECT),
            (0, 4, DETOUR, DIRECT),
            (4, 0, DIRECT, DIRECT),
            (8, 0, DIRECT, DETOUR),
            (0, 8, DIRECT, DIRECT),
            (29, 0, DIRECT, DETOUR),
            (0, 29, DETOUR, DIRECT),
            (29, 29, DETOUR, DETOUR),
        ] {
            let made = Made::new();
            made.change(["link 0000:01:00.0 8.0 8 32.0 16", "settings 0000:04:00.0 2920"]);
            made.change([format!("acs 0000:02:00.0 {gpu}"), format!("acs 0000:02:01.0 {device}")]);
            let machine = made.read();
            let (of_gpu, of_nic) = (&gpus(&machine)[0], &nics(&machine)[0]);
            let found = |direction| of_direction(&machine, of_gpu, of_nic, PORT, direction).unwrap().what;
            let expected = (writes.to_owned(), reads.to_owned());
            assert_eq!((found(Direction::Writes), found(Direction::Reads)), expected, "{gpu} {device}");
            assert_eq!(is_pair_redirected(&machine, of_gpu, of_nic), [writes, reads].contains(&DETOUR));
            let only = match (writes == DETOUR, reads == DETOUR) {
                (true, false) => format!("{DETOUR}, only to the GPU"),
                (false, true) => format!("{DETOUR}, only from the GPU"),
                _ => writes.to_owned(),
            };
            assert_eq!(bound(&made, 0, 0).1, only);
        }
    }

    #[test]
    fn the_least_payload_of_the_path_counts() {
        // 16 GT/s x8 are 16 GB/s, and 15.754 without the code of the link. With 128 bytes of data in 152 that makes
        // 13.266, with 256 in 280 14.403, and with 512 in 536 15.048.
        for (device, rate) in [("2910", "13.3"), ("2930", "14.4"), ("2950", "15.0"), ("29f0", "15.0")] {
            let made = without_limit();
            made.change(["link 0000:04:00.0 16.0 8".to_owned(), format!("settings 0000:04:00.0 {device}")]);
            check(&made, rate, "mlx5_0 16 GT/s x8");
        }
        // The second of two devices, and a bridge, have less.
        let made = without_limit();
        made.change(["link 0000:04:00.0 16.0 8", "settings 0000:04:00.0 2950", &format!("settings {GPU} 2930")]);
        check(&made, "14.4", "mlx5_0 16 GT/s x8");
        made.change(["settings 0000:02:01.0 2910"]);
        check(&made, "13.3", "mlx5_0 16 GT/s x8");
        // The root port is above the switch, and the data does not pass it.
        made.change(["settings 0000:02:01.0 2950", "settings 0000:00:01.0 2910"]);
        check(&made, "14.4", "mlx5_0 16 GT/s x8");
    }

    #[test]
    fn the_data_of_a_coherent_gpu_does_not_pass_its_link() {
        let made = without_limit();
        made.change([format!("link {GPU} 2.5 1")]);
        // 0.25 GB/s x 8/10 x 256/280 are 0.229.
        check(&made, "0.2", "GPU 2.5 GT/s x1");
        made.change([format!("/proc/driver/nvidia/gpus/{GPU}/numa_status = Node: 1")]);
        check(&made, "57.6", "32 GT/s x16 at hop 0000:01:00.0");
    }

    #[test]
    fn of_two_gpus_and_two_devices_the_second_decides() {
        let made = Made::new();
        let port = "pci0000:80/0000:80:01.0";
        made.change([format!("bridges 0 {port} {port}/0000:81:00.0")]);
        made.change([format!("bridges 0 {port}/0000:81:00.0/0000:82:00.0 {port}/0000:81:00.0/0000:82:01.0")]);
        made.change([format!("gpu {port}/0000:81:00.0/0000:82:00.0/0000:83:00.0 0")]);
        made.change([format!("nic mlx5_1 {port}/0000:81:00.0/0000:82:01.0/0000:84:00.0 0")]);
        made.change(["link 0000:81:00.0 16.0 4", "acs 0000:82:01.0 4"]);
        check(&made, "50.0", "port 400 Gb/s");
        let slow = ("7.2".to_owned(), "16 GT/s x4 at hop 0000:81:00.0".to_owned());
        assert_eq!(bound(&made, 0, 1), slow);
        assert_eq!(bound(&made, 1, 0), slow);
        assert_eq!(bound(&made, 1, 1), (slow.0, format!("{}, up and down by ACS redirect, only to the GPU", slow.1)));
    }

    #[test]
    fn a_port_has_a_rate_while_it_is_up() {
        let made = Made::new();
        made.change(["port mlx5_0 2 ACTIVE LinkUp InfiniBand"]);
        made.change(["/sys/class/infiniband/mlx5_0/ports/2/rate = 200 Gb/sec (4X HDR)"]);
        check(&made, "50.0", "port 400 Gb/s");
        made.change([format!("{PORT}/state = 1: DOWN")]);
        check(&made, "25.0", "port 200 Gb/s");
        made.change(["/sys/class/infiniband/mlx5_0/ports/2/state = 1: DOWN"]);
        check(&made, "57.6", "GPU 32 GT/s x16");
        for said in ["", "inf Gb/sec", "1.2.3 Gb/sec", "400 Mb/sec", " Gb/sec"] {
            assert!(of_port(said).is_none(), "{said}");
        }
    }

    #[test]
    fn a_device_alone_has_the_bound_of_its_link_or_of_all_its_ports() {
        let made = Made::new();
        let found = || {
            let machine = made.read();
            let found = of_device(&machine, &nics(&machine)[0]).unwrap();
            (format!("{:.1}", found.rate / 1e9), found.what)
        };
        assert_eq!(found(), ("50.0".to_owned(), "port 400 Gb/s".to_owned()));
        made.change(["port mlx5_0 2 ACTIVE LinkUp InfiniBand"]);
        assert_eq!(found(), ("57.6".to_owned(), "mlx5_0 32 GT/s x16".to_owned()));
        made.change(["link 0000:04:00.0 64.0 16"]);
        assert_eq!(found(), ("100.0".to_owned(), "all ports".to_owned()));
    }

    #[test]
    fn a_virtual_function_has_the_link_of_its_physical_function() {
        let made = without_limit();
        let directory = "/sys/bus/pci/devices/0000:04:00.0";
        made.change([format!("- {directory}/current_link_width {directory}/current_link_speed")]);
        check(&made, "57.6", "GPU 32 GT/s x16");
        made.change(["pci pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.1 0x15b3 0x020700 0"]);
        made.change(["link 0000:04:00.1 16.0 8".to_owned(), format!("{directory}/physfn -> ../0000:04:00.1")]);
        made.change(["settings 0000:04:00.1 2930"]);
        check(&made, "14.4", "mlx5_0 16 GT/s x8");
    }
}
