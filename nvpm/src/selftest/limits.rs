// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Computes from sysfs the rate that the links between a GPU and an RDMA device allow.
use std::rc::Rc;

use crate::facts::distances::{Distance, relation};
use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic, Pci, gpus, nics, number, pci_at};
use crate::selftest::wording::general;

/// The share of a `PCIe` link's bits that is data. The link sends 128 bits as 130 bits, and a packet with 256 bytes of
/// data has 280 bytes.
const DATA: f64 = 128.0 / 130.0 * 256.0 / 280.0;
/// Links up to 5 GT/s send 8 bits as 10 bits, and a packet with 128 bytes of data has 152 bytes.
const SLOW: f64 = 5.0;
const SLOW_DATA: f64 = 8.0 / 10.0 * 128.0 / 152.0;

/// A rate in bytes per second, and the name of the part that limits the rate.
#[derive(Clone, Debug)]
pub struct Limit {
    pub rate: f64,
    pub what: String,
}

/// Returns the bridge above a device.
fn upper(machine: &Machine, pci: &Pci) -> Rc<Pci> {
    let above = pci.path.len().checked_sub(2).filter(|place| *place > 0).and_then(|place| pci.path.get(place));
    pci_at(machine, above.map_or("", String::as_str))
}

/// Returns the rate of the link of a GPU. The maximum speed counts, because the link of an idle GPU becomes faster
/// under load.
fn of_gpu(gpu: &Pci, upper: &Pci) -> Option<Limit> {
    let slot = number(&upper.max_speed);
    let speed = number(&gpu.max_speed);
    pcie("GPU", if slot > 0.0 { speed.min(slot) } else { speed }, number(&gpu.width))
}

fn pcie(what: &str, speed: f64, width: f64) -> Option<Limit> {
    if speed <= 0.0 || width <= 0.0 {
        return None;
    }
    let rate = speed * 1e9 * width / 8.0 * if speed > SLOW { DATA } else { SLOW_DATA };
    Some(Limit { rate, what: format!("{what} {} GT/s x{}", general(speed), general(width)) })
}

/// Returns the rate of a port, whose file says "400 Gb/sec (4X NDR)".
fn of_port(said: &str) -> Option<Limit> {
    let (number, _) = said.split_once(" Gb/sec")?;
    let is_number = number.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
    let rate: f64 = number.parse().ok().filter(|_| is_number)?;
    Some(Limit { rate: rate * 1e9 / 8.0, what: format!("port {number} Gb/s") })
}

fn gpu_of(machine: &Machine, pci: &str) -> Option<Rc<Gpu>> {
    gpus(machine).iter().find(|gpu| gpu.name == pci).cloned()
}

fn nic_of(machine: &Machine, name: &str) -> Option<Rc<Nic>> {
    nics(machine).iter().find(|nic| nic.name == name).cloned()
}

/// Returns the lowest limit between this GPU and this port. Returns None if no limit is known, for example because the
/// device is made of software.
pub fn limit_of(machine: &Machine, pci: &str, device: &str, path: &str) -> Option<Limit> {
    let (gpu, nic) = (gpu_of(machine, pci)?, nic_of(machine, device)?);
    let pci = nic.pci.as_ref().filter(|_| nic.software.is_empty())?;
    // The data of a coherent GPU passes NVLink-C2C, and not the GPU's link on PCI.
    let of_gpu = if gpu.coherent { None } else { of_gpu(&gpu.pci, &upper(machine, &gpu.pci)) };
    let of_nic = pcie(device, number(&pci.speed), number(&pci.width));
    lowest([of_gpu, of_nic, of_port(&machine.text(&format!("{path}/rate")))])
}

fn lowest(limits: [Option<Limit>; 3]) -> Option<Limit> {
    limits.into_iter().flatten().min_by(|one, other| one.rate.total_cmp(&other.rate))
}

/// Returns the lowest limit of an RDMA device alone, whatever memory it moves: that of its link, or of all its ports.
pub fn limit_of_device(machine: &Machine, device: &str) -> Option<Limit> {
    let nic = nic_of(machine, device)?;
    let of_ports = machine.glob(&[&format!("{}/ports/*", nic.directory)]).into_iter().filter_map(|port| {
        // A port that is down has a rate, too.
        let is_up = machine.text(&format!("{port}/state")).starts_with("4:");
        of_port(&machine.text(&format!("{port}/rate"))).filter(|_| is_up)
    });
    let of_ports = of_ports.reduce(|one, other| Limit { rate: one.rate + other.rate, what: "all ports".to_owned() });
    let pci = nic.pci.as_ref().filter(|_| nic.software.is_empty());
    let of_link = pci.and_then(|pci| pcie(device, number(&pci.speed), number(&pci.width)));
    lowest([of_ports.filter(|_| nic.software.is_empty()), of_link, None])
}

/// Returns the distance of a pair, or None for an unknown distance.
pub fn distance_of(machine: &Machine, pci: &str, device: &str) -> Option<Distance> {
    let (gpu, nic) = (gpu_of(machine, pci)?, nic_of(machine, device)?);
    let other = nic.pci.as_ref().filter(|other| !gpu.pci.path.is_empty() && !other.path.is_empty())?;
    Some(relation(machine, &gpu.pci, other).0)
}

pub fn is_software(machine: &Machine, device: &str) -> bool {
    nic_of(machine, device).is_some_and(|nic| !nic.software.is_empty() || nic.pci.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    const GPU: &str = "0000:03:00.0";
    const PORT: &str = "/sys/class/infiniband/mlx5_0/ports/1";

    /// Returns a machine whose port limits nothing.
    fn made() -> Made {
        let made = Made::new();
        made.change([format!("{PORT}/rate = 4000 Gb/sec (4X)")]);
        made
    }

    /// Returns the part that limits the rate of the GPU and the RDMA device.
    fn slowest(made: &Made) -> String {
        limit_of(&made.read(), GPU, "mlx5_0", PORT).unwrap().what
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
            let (made, [now, best, slot, device]) = (made(), speeds);
            made.change([format!("link {GPU} {now} 16 {best}"), format!("link 0000:02:00.0 {slot} 16")]);
            made.change([format!("link 0000:04:00.0 {device} 16 64.0")]);
            assert_eq!(slowest(&made), what, "{speeds:?}");
        }
    }

    #[test]
    fn the_data_of_a_coherent_gpu_does_not_pass_its_link() {
        let made = made();
        made.change([format!("link {GPU} 2.5 1")]);
        assert_eq!(slowest(&made), "GPU 2.5 GT/s x1");
        made.change([format!("/proc/driver/nvidia/gpus/{GPU}/numa_status = Node: 1")]);
        assert_eq!(slowest(&made), "mlx5_0 32 GT/s x16");
    }

    #[test]
    fn a_device_alone_has_a_limit() {
        let made = Made::new();
        let found = |made: &Made| limit_of_device(&made.read(), "mlx5_0").map(|limit| (limit.what, limit.rate / 1e9));
        let (what, rate) = found(&made).unwrap();
        assert_eq!((what.as_str(), format!("{rate:.1}")), ("port 400 Gb/s", "50.0".to_owned()));
        made.change(["port mlx5_0 2 ACTIVE LinkUp InfiniBand"]);
        assert_eq!(found(&made).unwrap().0, "mlx5_0 32 GT/s x16");
        made.change(["port mlx5_0 2 DOWN Polling InfiniBand"]);
        assert_eq!(found(&made).unwrap().0, "port 400 Gb/s");
        made.change(["port mlx5_0 1 DOWN Polling InfiniBand", "link 0000:04:00.0 8 8"]);
        assert_eq!(found(&made).unwrap().0, "mlx5_0 8 GT/s x8");
        assert!(limit_of_device(&made.read(), "mlx5_9").is_none());
    }

    fn pci(speed: &str, max_speed: &str) -> Pci {
        Pci {
            address: String::new(),
            directory: String::new(),
            path: Vec::new(),
            node: -1,
            speed: format!("{speed} GT/s"),
            width: "16".to_owned(),
            max_speed: format!("{max_speed} GT/s"),
            max_width: "16".to_owned(),
        }
    }

    #[test]
    fn links_have_the_rate_of_their_data() {
        // Gigabytes per second that are data, on a link with 16 lanes.
        for (speed, rate) in [(2.5, 3.37), (5.0, 6.74), (8.0, 14.40), (16.0, 28.81), (32.0, 57.61), (64.0, 115.23)] {
            let limit = pcie("mlx5_0", speed, 16.0).unwrap();
            assert_eq!(format!("{:.2}", limit.rate / 1e9), format!("{rate:.2}"));
            assert_eq!(limit.what, format!("mlx5_0 {speed} GT/s x16"));
        }
        assert!(pcie("mlx5_0", 0.0, 16.0).is_none() && pcie("mlx5_0", 8.0, 0.0).is_none());
    }

    #[test]
    fn the_gpu_counts_with_its_speed_under_load() {
        for (gpu, slot, what) in [
            (pci("2.5", "16.0"), pci("8.0", "32.0"), "GPU 16 GT/s x16"),
            (pci("2.5", "32.0"), pci("8.0", "8.0"), "GPU 8 GT/s x16"),
            (pci("32.0", "32.0"), pci("8.0", "Unknown"), "GPU 32 GT/s x16"),
        ] {
            assert_eq!(of_gpu(&gpu, &slot).unwrap().what, what);
        }
    }

    #[test]
    fn a_port_has_a_rate() {
        let limit = of_port("400 Gb/sec (4X NDR)").unwrap();
        assert!((limit.rate - 5e10).abs() < 1.0);
        assert_eq!(limit.what, "port 400 Gb/s");
        for said in ["", "inf Gb/sec", "1.2.3 Gb/sec", "400 Mb/sec", " Gb/sec"] {
            assert!(of_port(said).is_none(), "{said}");
        }
        let slowest = lowest([pcie("GPU", 16.0, 16.0), None, Some(limit)]).unwrap();
        assert_eq!(slowest.what, "GPU 16 GT/s x16");
    }
}
