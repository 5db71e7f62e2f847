// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! How many bytes each RDMA device sends and receives now. The counters are those of a port: they count the data of all
//! programs. A rate never proves the way of the data, because data that passes host memory has the same rate. A rate can
//! only refute: what a device moves beyond the links of the GPUs is host memory (`refutation.rs`).
//!
//! No counter is switched on for this, because that would change the state of the device.
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::read::machine::Machine;
use crate::selftest::limits::limit_of_device;
use crate::used::links::{Links, STEP};

/// The time between the two looks at the counters.
const INTERVAL: Duration = Duration::from_secs(1);
/// A device with a lower rate, in bytes per second, moves no data of programs. The fabric itself sends some messages.
const LEAST: f64 = 1e6;
/// A rate below this part of the device's limit proves nothing of a program that moves much data. If the limit is not
/// known, it is this number of bytes per second.
const LITTLE: f64 = 0.01;
const LITTLE_IF_UNKNOWN: f64 = 1e8;
/// If packets have fewer bytes than this on the average, most of them may be headers: those of small messages, of
/// acknowledgements, and of requests to read.
const SMALL: f64 = 256.0;
/// The counters of a port, and their units: words that were sent and received, and packets.
const PORT: [(&str, u64); 4] = [
    ("counters/port_xmit_data", 4),
    ("counters/port_rcv_data", 4),
    ("counters/port_xmit_packets", 1),
    ("counters/port_rcv_packets", 1),
];
/// The counters of drivers, in bytes. Of several groups, the one with the most bytes counts, because the counters of
/// operations may be a part of the others.
const SENT: [&[&str]; 3] =
    [&["tx_bytes"], &["sent_bytes"], &["send_bytes", "rdma_write_bytes", "rdma_read_resp_bytes"]];
const RECEIVED: [&[&str]; 3] =
    [&["rx_bytes"], &["rcvd_bytes"], &["recv_bytes", "rdma_write_recv_bytes", "rdma_read_bytes"]];
/// Below this directory, a machine that is made of files has the second state of its counters.
const LATER: &str = "/later";

/// The rates of a device in bytes per second; None if they are not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    pub sends: Option<f64>,
    pub receives: Option<f64>,
    /// Whether the packets that are sent, and those that are received, are too small to say how much data they have.
    pub are_small: [bool; 2],
    /// The rate that the device and its ports allow.
    pub limit: Option<f64>,
    /// What the links of the GPUs moved whose memory may be registered with the device.
    pub links: Option<OfLinks>,
}

/// The rates of all links of some GPUs together, in bytes per second.
#[derive(Clone, Debug, PartialEq)]
pub struct OfLinks {
    /// The PCI addresses of the GPUs.
    pub gpus: BTreeSet<String>,
    pub send: f64,
    pub receive: f64,
}

impl Traffic {
    /// Returns whether the device moves data; None if nothing counts its data.
    pub fn moves(&self) -> Option<bool> {
        let rates = [self.sends, self.receives];
        if rates.into_iter().flatten().any(|rate| rate >= LEAST) {
            return Some(true);
        }
        rates.iter().all(Option::is_some).then_some(false)
    }

    /// Returns the least rate that says something of how programs move their data.
    pub fn floor(&self) -> f64 {
        self.limit.map_or(LITTLE_IF_UNKNOWN, |limit| limit * LITTLE)
    }

    /// Returns whether the device moves the data of programs, and in each direction less than half of what it could.
    pub fn is_below_half(&self) -> bool {
        let most = [self.sends, self.receives].into_iter().flatten().fold(0.0, f64::max);
        let are_known = self.sends.is_some() && self.receives.is_some();
        are_known && most >= self.floor() && self.limit.is_some_and(|limit| most < limit / 2.0)
    }
}

/// The state of a counter: missing, or at the end of its 32 bits, where it stays, or a number of bytes or packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Missing,
    Full,
    Known(u64),
}

/// The states of all groups of counters of a port: bytes sent, bytes received, packets sent, packets received.
type Port = [Vec<Count>; 4];

/// A first look at the counters of some devices, and at those of the GPUs whose memory they may move.
pub struct Watch {
    devices: Vec<Device>,
    links: Links,
    start: Instant,
}

struct Device {
    name: String,
    gpus: BTreeSet<String>,
    ports: Vec<Port>,
}

impl Watch {
    /// Begins with the GPUs, and also ends with them. So their links have moved all that the devices have moved.
    pub fn new(machine: &Machine, names: &[String], gpus: Vec<BTreeSet<String>>) -> Self {
        let links = Links::new(machine, gpus.iter().flatten());
        let device = |(name, gpus): (&String, BTreeSet<String>)| Device {
            name: name.clone(),
            gpus,
            ports: ports(machine, "", name),
        };
        Self { devices: names.iter().zip(gpus).map(device).collect(), links, start: Instant::now() }
    }

    /// Looks again after the interval.
    pub fn ended(mut self, machine: &Machine) -> Vec<Traffic> {
        let is_here = machine.root.is_empty();
        if is_here && !self.devices.is_empty() {
            self.wait(machine);
        }
        let seconds = if is_here { self.start.elapsed().as_secs_f64() } else { INTERVAL.as_secs_f64() };
        let place = if is_here { "" } else { LATER };
        let second: Vec<Vec<Port>> = self.devices.iter().map(|device| ports(machine, place, &device.name)).collect();
        self.links.look(machine);
        let moved = self.links.moved();
        #[allow(clippy::cast_precision_loss)]
        let per_second = |bytes: u64| bytes as f64 / seconds;
        let traffic = |(device, second): (&Device, Vec<Port>)| {
            let found: Option<Vec<&[u64; 2]>> = device.gpus.iter().map(|gpu| moved.get(gpu)).collect();
            let sum = |found: &[&[u64; 2]], way: usize| found.iter().filter_map(|bytes| bytes.get(way)).sum();
            let links = found.filter(|found| !found.is_empty()).map(|found| OfLinks {
                gpus: device.gpus.clone(),
                send: per_second(sum(&found, 0)),
                receive: per_second(sum(&found, 1)),
            });
            let [sent, received, packets_sent, packets_received] =
                [0, 1, 2, 3].map(|which| between(&device.ports, &second, which));
            Traffic {
                sends: sent.map(per_second),
                receives: received.map(per_second),
                are_small: [are_small(sent, packets_sent), are_small(received, packets_received)],
                limit: limit_of_device(machine, &device.name).map(|limit| limit.rate),
                links,
            }
        };
        self.devices.iter().zip(second).map(traffic).collect()
    }

    /// Waits until the interval has ended, and looks at the GPUs in between.
    fn wait(&mut self, machine: &Machine) {
        loop {
            let left = INTERVAL.saturating_sub(self.start.elapsed());
            if left.is_zero() {
                return;
            }
            sleep(if self.links.is_empty() { left } else { left.min(STEP) });
            self.links.look(machine);
        }
    }
}

/// Returns how much all ports have counted between two looks; None if it is not known.
fn between(first: &[Port], second: &[Port], which: usize) -> Option<u64> {
    let pairs = first.iter().zip(second).filter_map(|(one, other)| Some((one.get(which)?, other.get(which)?)));
    let counted: Option<Vec<u64>> = pairs.filter_map(|(one, other)| difference(one, other)).collect();
    let counted = counted.filter(|found| !found.is_empty() && first.len() == second.len())?;
    Some(counted.iter().sum())
}

/// Returns whether so many packets have few bytes each. If nobody counts packets, they are taken for large ones.
#[allow(clippy::cast_precision_loss)]
fn are_small(bytes: Option<u64>, packets: Option<u64>) -> bool {
    bytes.zip(packets).is_some_and(|(bytes, packets)| (bytes as f64) < packets as f64 * SMALL)
}

/// Returns the difference of two states of a port: Some(None) if it is not known, and None if the port has no
/// counters.
#[allow(clippy::option_option)]
fn difference(first: &[Count], second: &[Count]) -> Option<Option<u64>> {
    let of_group = |(one, other): (&Count, &Count)| match (one, other) {
        (Count::Missing, Count::Missing) => None,
        (Count::Known(one), Count::Known(other)) => Some(other.checked_sub(*one)),
        _ => Some(None),
    };
    let found: Vec<Option<u64>> = first.iter().zip(second).filter_map(of_group).collect();
    // An unknown difference may be greater than all others.
    if found.is_empty() { None } else { Some(found.into_iter().try_fold(0, |most, one| Some(most.max(one?)))) }
}

/// Returns the counters of each port; if no port has any, those of the device.
fn ports(machine: &Machine, place: &str, name: &str) -> Vec<Port> {
    let directory = format!("/sys/class/infiniband/{name}");
    let mut found: Vec<Port> =
        machine.glob(&[&format!("{directory}/ports/*")]).iter().map(|port| of_port(machine, place, port)).collect();
    if found.iter().flatten().flatten().all(|count| *count == Count::Missing) {
        found = vec![of_port(machine, place, &directory)];
    }
    found
}

fn of_port(machine: &Machine, place: &str, port: &str) -> Port {
    let read = |file: &str| {
        let later = machine.text(&format!("{place}{port}/{file}"));
        if later.is_empty() && !place.is_empty() { machine.text(&format!("{port}/{file}")) } else { later }
    };
    let counts = PORT.map(|(file, unit)| counted(&read(file), unit));
    if counts.iter().take(2).all(|count| *count != Count::Missing) {
        return counts.map(|count| vec![count]);
    }
    let group = |files: &&[&str]| {
        let found: Vec<u64> =
            files.iter().filter_map(|file| read(&format!("hw_counters/{file}")).parse().ok()).collect();
        if found.is_empty() {
            Count::Missing
        } else {
            Count::Known(found.iter().fold(0, |sum, one| sum.saturating_add(*one)))
        }
    };
    let [sent, received] = [SENT, RECEIVED].map(|groups| groups.iter().map(group).collect());
    [sent, received, Vec::new(), Vec::new()]
}

/// Returns what a counter of this unit has counted. A counter with 32 bits stays at its end.
fn counted(text: &str, unit: u64) -> Count {
    match text.parse::<u64>() {
        Ok(count) if count == u64::from(u32::MAX) || count == u64::MAX => Count::Full,
        Ok(count) => Count::Known(count.saturating_mul(unit)),
        Err(_) => Count::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    const PLACE: &str = "/sys/class/infiniband/mlx5_0/ports";

    /// Returns the traffic of the device after some changes.
    fn traffic(lines: &[&str]) -> (Option<f64>, Option<f64>, Option<bool>) {
        let made = Made::new();
        made.change(lines.iter().map(|line| line.replace("PORTS", PLACE)));
        let machine = made.read();
        let found = Watch::new(&machine, &["mlx5_0".to_owned()], vec![BTreeSet::new()]).ended(&machine);
        let one = found.first().unwrap();
        (one.sends, one.receives, one.moves())
    }

    #[test]
    fn a_port_counts_words() {
        let first = ["PORTS/1/counters/port_xmit_data = 1000", "PORTS/1/counters/port_rcv_data = 5"];
        assert_eq!(traffic(&first), (Some(0.0), Some(0.0), Some(false)));
        // 49 writes of 1 MiB are so many words.
        let second = "/laterPORTS/1/counters/port_xmit_data = 12846056";
        assert_eq!(traffic(&[&first[..], &[second]].concat()), (Some(49.0 * 1048576.0), Some(0.0), Some(true)));
    }

    #[test]
    fn ports_are_added() {
        let lines = [
            "port mlx5_0 2 ACTIVE LinkUp InfiniBand",
            "PORTS/1/counters/port_xmit_data = 0",
            "PORTS/1/counters/port_rcv_data = 0",
            "PORTS/2/counters/port_xmit_data = 0",
            "PORTS/2/counters/port_rcv_data = 0",
            "/laterPORTS/1/counters/port_rcv_data = 10",
            "/laterPORTS/2/counters/port_rcv_data = 100",
        ];
        assert_eq!(traffic(&lines), (Some(0.0), Some(440.0), Some(false)));
    }

    #[test]
    fn a_counter_that_is_full_tells_nothing() {
        let full = "PORTS/1/counters/port_xmit_data = 4294967295";
        assert_eq!(traffic(&[full, "PORTS/1/counters/port_rcv_data = 7"]), (None, Some(0.0), None));
        let lines = [full, "PORTS/1/counters/port_rcv_data = 7", "/laterPORTS/1/counters/port_rcv_data = 1000007"];
        assert_eq!(traffic(&lines), (None, Some(4e6), Some(true)));
    }

    #[test]
    fn a_counter_that_was_reset_tells_nothing() {
        let lines = ["PORTS/1/counters/port_xmit_data = 8", "PORTS/1/counters/port_rcv_data = 8"];
        let reset = "/laterPORTS/1/counters/port_xmit_data = 7";
        assert_eq!(traffic(&[&lines[..], &[reset]].concat()), (None, Some(0.0), None));
    }

    #[test]
    fn drivers_have_counters_of_their_own() {
        // rxe, bnxt_re, and efa, whose operations are a part of the sent bytes.
        let rxe = ["PORTS/1/hw_counters/sent_bytes = 1", "PORTS/1/hw_counters/rcvd_bytes = 2"];
        let later = ["/laterPORTS/1/hw_counters/sent_bytes = 11", "/laterPORTS/1/hw_counters/rcvd_bytes = 22"];
        assert_eq!(traffic(&[rxe, later].concat()), (Some(10.0), Some(20.0), Some(false)));
        let efa = [
            "PORTS/1/hw_counters/tx_bytes = 0",
            "PORTS/1/hw_counters/rx_bytes = 0",
            "PORTS/1/hw_counters/rdma_write_bytes = 0",
            "PORTS/1/hw_counters/rdma_write_recv_bytes = 0",
            "PORTS/1/hw_counters/rdma_read_bytes = 0",
            "/laterPORTS/1/hw_counters/tx_bytes = 3000",
            "/laterPORTS/1/hw_counters/rdma_write_bytes = 2000",
            "/laterPORTS/1/hw_counters/rdma_write_recv_bytes = 400",
            "/laterPORTS/1/hw_counters/rdma_read_bytes = 500",
        ];
        assert_eq!(traffic(&efa), (Some(3000.0), Some(900.0), Some(false)));
    }

    #[test]
    fn packets_of_few_bytes_are_small() {
        // A million packets with 256 bytes each are not small. With one packet more, the average is less.
        assert!(!are_small(Some(256_000_000), Some(1_000_000)));
        assert!(are_small(Some(256_000_000), Some(1_000_001)));
        assert!(!are_small(Some(0), Some(0)));
        assert!(!are_small(Some(30), None));
        assert!(!are_small(None, Some(1)));
    }

    #[test]
    fn less_than_half_is_less_in_both_directions() {
        let of = |sends, receives, limit| Traffic { sends, receives, limit, ..Traffic::default() }.is_below_half();
        let gigabytes = |rate: f64| Some(rate * 1e9);
        assert!(of(gigabytes(12.4), gigabytes(0.0), gigabytes(25.0)));
        assert!(!of(gigabytes(12.5), gigabytes(0.0), gigabytes(25.0)));
        assert!(!of(gigabytes(0.0), gigabytes(12.5), gigabytes(25.0)));
        assert!(of(gigabytes(0.25), Some(0.0), gigabytes(25.0)));
        // Other devices have the traffic of daemons, or nobody knows.
        assert!(!of(gigabytes(0.249), Some(0.0), gigabytes(25.0)));
        assert!(!of(gigabytes(1.0), None, gigabytes(25.0)));
        assert!(!of(gigabytes(1.0), Some(0.0), None));
    }

    #[test]
    fn a_device_without_counters_is_not_idle() {
        assert_eq!(traffic(&[]), (None, None, None));
        let of_device = "/sys/class/infiniband/mlx5_0/hw_counters";
        let lines = [format!("{of_device}/tx_bytes = 1"), format!("{of_device}/rx_bytes = 1")];
        assert_eq!(traffic(&[&lines[0], &lines[1]]), (Some(0.0), Some(0.0), Some(false)));
    }
}
