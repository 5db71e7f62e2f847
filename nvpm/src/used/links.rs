// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! How many bytes the GPUs' own links move, as NVML counts them. If an RDMA device moves clearly more, the rest is host
//! memory. The reverse proves nothing, because copies between GPU and host memory pass the same link.
//!
//! The driver counts in 32 bits, and a fast link moves so much in less than a tenth of a second. So the counters are
//! looked at so often that no round is missed. If two looks were too far apart, the sum is not known.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::read::gpu_links::name_of;
use crate::read::machine::{Machine, decoded};
use crate::read::pci::{gpus, number, pci_at};
use crate::read::pci_express::with_link;
use crate::used::processes::Process;
use crate::used::ways::{Part, Way};

/// The time between two looks at the counters.
pub const STEP: Duration = Duration::from_millis(10);
/// After this number of bytes, a counter begins again.
const ROUND: u64 = 1 << 32;

/// The bytes that a link has sent and received until a look, which began and ended at some times.
struct Sample {
    begin: Duration,
    end: Duration,
    bytes: [u64; 2],
}

struct Link {
    address: String,
    /// The bytes per second that no link of this speed and width exceeds.
    most: f64,
    samples: Vec<Sample>,
}

/// The links of some GPUs, while they are watched.
pub struct Links {
    links: Vec<Link>,
    start: Instant,
}

impl Links {
    /// Takes a first look at the links of the GPUs with these addresses.
    pub fn new<'a>(machine: &Machine, addresses: impl IntoIterator<Item = &'a String>) -> Self {
        let addresses: BTreeSet<&String> = addresses.into_iter().collect();
        let link = |address: &&String| Some(Link::new(address, most(machine, address)?));
        let mut found = Self { links: addresses.iter().filter_map(link).collect(), start: Instant::now() };
        found.look(machine);
        // NVML has found the GPUs at the first look, which takes long.
        found.links.iter_mut().for_each(|link| link.samples.clear());
        found.look(machine);
        found
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Looks at the counters again. A GPU whose counters cannot be read is not asked again.
    pub fn look(&mut self, machine: &Machine) {
        let start = self.start;
        self.links.retain_mut(|link| link.look(machine, start).is_some());
    }

    /// Returns the bytes that each GPU has sent and received, as far as they are known.
    pub fn moved(&self) -> BTreeMap<String, [u64; 2]> {
        self.links.iter().filter_map(|link| Some((link.address.clone(), moved(&link.samples, link.most)?))).collect()
    }
}

impl Link {
    fn new(address: &str, most: f64) -> Self {
        Self { address: address.to_owned(), most, samples: Vec::new() }
    }

    fn look(&mut self, machine: &Machine, start: Instant) -> Option<()> {
        let begin = start.elapsed();
        let text = decoded(&machine.contents(&name_of(&self.address), None).ok()?);
        let end = start.elapsed();
        let found: Option<Vec<Sample>> = text.lines().map(|line| sample(line, begin, end)).collect();
        let found = found.filter(|found| !found.is_empty())?;
        if machine.root.is_empty() {
            self.samples.extend(found);
        } else {
            self.samples = found;
        }
        Some(())
    }
}

/// Reads a look. On a machine that is made of files, the file has a line for each look of the second, which begins with
/// the time in milliseconds.
fn sample(line: &str, begin: Duration, end: Duration) -> Option<Sample> {
    let numbers: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    match *numbers?.as_slice() {
        [sent, received] => Some(Sample { begin, end, bytes: [sent, received] }),
        [time, sent, received] => {
            let time = Duration::from_millis(time);
            Some(Sample { begin: time, end: time, bytes: [sent, received] })
        }
        _ => None,
    }
}

/// Returns the bytes that no link of this GPU exceeds in a second; None if the GPU's link is not known.
fn most(machine: &Machine, address: &str) -> Option<f64> {
    let own = pci_at(machine, &with_link(machine, &pci_at(machine, address)));
    let rate = number(&own.max_speed) * 1e9 * number(&own.max_width) / 8.0;
    Some(rate).filter(|rate| *rate > 0.0)
}

/// Returns the bytes between the first and the last look. Returns None if a counter may have begun again twice between
/// two looks.
fn moved(samples: &[Sample], most: f64) -> Option<[u64; 2]> {
    let mut sums = [0_u64; 2];
    for pair in samples.windows(2) {
        let [one, other] = pair else { return None };
        #[allow(clippy::cast_precision_loss)]
        if other.end.saturating_sub(one.begin).as_secs_f64() * most >= ROUND as f64 {
            return None;
        }
        for (sum, (first, second)) in sums.iter_mut().zip(one.bytes.into_iter().zip(other.bytes)) {
            let difference = second.checked_sub(first).or_else(|| (second + ROUND).checked_sub(first))?;
            *sum = sum.saturating_add(difference);
        }
    }
    (samples.len() > 1).then_some(sums)
}

/// Returns for each device the GPUs whose memory may be registered with the device; none if no GPU memory is, or if it is
/// not known whose.
pub fn gpus_of(
    machine: &Machine,
    parts: &[Part],
    processes: &HashMap<u32, Process>,
    devices: usize,
) -> Vec<BTreeSet<String>> {
    let known = Known::new(machine);
    let of_device = |device: usize| {
        let parts =
            parts.iter().filter(|part| part.device == device && (part.way.is_gpu() || part.way == Way::Unknown));
        let found: Option<Vec<BTreeSet<String>>> = parts.map(|part| known.gpus_of(part, processes)).collect();
        found.unwrap_or_default().into_iter().flatten().collect()
    };
    (0..devices).map(of_device).collect()
}

/// The GPUs of the machine by the names of their device files.
struct Known {
    by_file: HashMap<String, String>,
    all: BTreeSet<String>,
    /// The data of coherent GPUs passes no link of PCI.
    has_coherent: bool,
}

impl Known {
    fn new(machine: &Machine) -> Self {
        let gpus = gpus(machine);
        let file = |minor: String| format!("nvidia{minor}");
        Self {
            by_file: gpus
                .iter()
                .map(|gpu| (file(gpu.information(machine, "Device Minor")), gpu.name.clone()))
                .collect(),
            all: gpus.iter().map(|gpu| gpu.name.clone()).collect(),
            has_coherent: gpus.iter().any(|gpu| gpu.coherent),
        }
    }

    /// Returns the GPUs of a process with registered memory. Memory that was registered by its address can be that of
    /// any of NVIDIA's GPUs if the process cannot be seen. A dma-buf can then also come from other devices.
    fn gpus_of(&self, part: &Part, processes: &HashMap<u32, Process>) -> Option<BTreeSet<String>> {
        if self.has_coherent {
            return None;
        }
        let open = part.process.and_then(|number| processes.get(&number)?.open.as_ref());
        match open.filter(|open| !open.gpus.is_empty()) {
            Some(open) => open.gpus.iter().map(|file| self.by_file.get(file).cloned()).collect(),
            None if part.way == Way::DmaBuf => None,
            None => Some(self.all.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a link of 64 GB/s, whose counters begin again after 67 ms.
    fn of(looks: &[(u64, u64)]) -> Option<u64> {
        let samples: Vec<Sample> =
            looks.iter().map(|(time, sent)| sample(&format!("{time} {sent} 0"), STEP, STEP).unwrap()).collect();
        moved(&samples, 64e9).map(|[sent, _]| sent)
    }

    #[test]
    fn a_counter_begins_again_after_4_gib() {
        assert_eq!(of(&[(0, 7), (60, 4_000_000_000), (120, 5)]), Some(4294967296 - 2));
        // 49 GB in a second are more than eleven rounds.
        let looks: Vec<(u64, u64)> = (0..=50).map(|step| (step * 20, step * 980_000_000 % ROUND)).collect();
        assert_eq!(of(&looks), Some(49_000_000_000));
        // A counter with more bits that goes back was reset.
        assert_eq!(of(&[(0, ROUND + 9), (60, 8)]), None);
        assert_eq!(of(&[(0, ROUND + 9), (60, ROUND + 10)]), Some(1));
    }

    #[test]
    fn looks_that_are_too_far_apart_tell_nothing() {
        assert_eq!(of(&[(0, 7), (67, 8)]), Some(1));
        assert_eq!(of(&[(0, 7), (68, 8)]), None);
        assert_eq!(of(&[(0, 7), (10, 8), (78, 8), (80, 9)]), None);
        assert_eq!(of(&[(0, 7)]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_look_takes_its_whole_time() {
        let time = Duration::from_millis;
        let looks = |begin, end| {
            let second = Sample { begin: time(40), end: time(end), bytes: [9, 2] };
            moved(&[Sample { begin: time(begin), end: time(20), bytes: [7, 1] }, second], 64e9)
        };
        assert_eq!(looks(0, 60), Some([2, 1]));
        assert_eq!(looks(0, 70), None);
        assert_eq!(looks(10, 70), Some([2, 1]));
    }

    #[test]
    fn a_line_has_the_counters_and_perhaps_a_time() {
        for line in ["", "1", "1 2 3 4", "1 x", "-1 2", "a 1 2"] {
            assert!(sample(line, STEP, STEP).is_none(), "{line}");
        }
        assert_eq!(sample("5 6", STEP, STEP).unwrap().bytes, [5, 6]);
        assert_eq!(sample("4 5 6", STEP, STEP).unwrap().bytes, [5, 6]);
    }
}
