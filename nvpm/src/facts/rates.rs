// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the rate that may be expected between a GPU and its nearest RDMA devices, and about links that several
//! devices share.
use indexmap::IndexMap;

use crate::facts::bound::{self, Bound, Direction, Part, gigabytes};
use crate::facts::distances::nearest_devices;
use crate::facts::estimate;
use crate::facts::fact::{Fact, Facts, info};
use crate::read::machine::Machine;
use crate::read::pci::{Gpu, Nic};
use crate::read::ways::usable_gpus;

/// A sum of rates that is above the rate of a link by no more than this share is no reason for a sentence.
const MARGIN: f64 = 1.01;

pub fn facts(machine: &Machine, facts: &mut Facts) {
    for gpu in usable_gpus(machine).iter() {
        facts.add(expected(machine, gpu));
        facts.add(estimate::fact(machine, gpu));
    }
    for share in shares(machine) {
        facts.add(info("PCI", &format!("share {}", share.link), share.text));
    }
}

fn expected(machine: &Machine, gpu: &Gpu) -> Option<Fact> {
    let (_, nics) = nearest_devices(machine, gpu)?;
    let mut found: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for nic in &nics {
        let Some(Bound { rate, what, part }) = bound::of_fastest_port(machine, gpu, nic) else { continue };
        // The name of the device would tell equal devices apart.
        let what = if part == Part::Device { what.replacen(&nic.name, "its link", 1) } else { what };
        found.entry((gigabytes(rate), what)).or_default().push(&nic.name);
    }
    let is_one = found.len() == 1;
    let named = |((rate, what), names): (&(String, String), &Vec<&str>)| {
        let names = if is_one { String::new() } else { format!(" with {}", names.join(" and ")) };
        format!("{rate} GB/s{names}: {what}")
    };
    let texts: Vec<String> = found.iter().map(named).collect();
    let value = format!("expected at most {}", texts.join("; "));
    (!texts.is_empty()).then(|| info(&format!("GPU {}", gpu.name), "rate", value))
}

/// A link in one direction, and the devices whose data passes the link.
struct Shared {
    /// The speed and the width.
    link: String,
    rate: f64,
    devices: IndexMap<String, f64>,
    gpus: IndexMap<String, f64>,
}

/// A link that several RDMA devices share, and a sentence about them.
pub struct Share {
    link: String,
    pub text: String,
}

/// Returns the links that carry less than their devices can move together. Data in one direction may pass links that
/// data in the other direction does not pass, because a switch redirects it.
pub fn shares(machine: &Machine) -> Vec<Share> {
    let (writes, mut reads) = (shared(machine, Direction::Writes), shared(machine, Direction::Reads));
    let only = |text: &str, which: &str| format!("{text}, only {which}");
    let mut found = Vec::new();
    for (link, text) in writes {
        let text = if reads.shift_remove(&link).is_some() { text } else { only(&text, bound::TO_GPU) };
        found.push(Share { link, text });
    }
    let of_reads = |(link, text): (String, String)| Share { link, text: only(&text, bound::FROM_GPU) };
    found.extend(reads.into_iter().map(of_reads));
    found
}

/// Returns a text for each link that carries less in one direction than its devices can move together. Each GPU counts
/// with its nearest devices, because programs use these.
fn shared(machine: &Machine, direction: Direction) -> IndexMap<String, String> {
    let mut links: IndexMap<(String, bool), Shared> = IndexMap::new();
    for gpu in usable_gpus(machine).iter() {
        for nic in nearest_devices(machine, gpu).map(|(_, nics)| nics).unwrap_or_default() {
            add_pair(machine, (gpu, &nic), direction, &mut links);
        }
    }
    let mut found = IndexMap::new();
    for ((name, _), link) in links {
        if let Some(text) = link.text() {
            found.entry(name).or_insert(text);
        }
    }
    found
}

impl Shared {
    /// Returns a text if the link carries less than its devices can move together.
    fn text(&self) -> Option<String> {
        let sum = |rates: &IndexMap<String, f64>| rates.values().sum::<f64>();
        let wanted = sum(&self.devices).min(sum(&self.gpus));
        if self.devices.len() < 2 || wanted <= MARGIN * self.rate {
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        let each = self.rate / self.devices.len() as f64;
        let names = self.devices.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (rate, each) = (gigabytes(self.rate), gigabytes(each));
        Some(format!("{names} share {rate} GB/s ({}): {each} GB/s each while all are busy", self.link))
    }
}

/// Adds the links that the data of a pair passes. The functions of a card have the same link, which is known by its
/// upper end.
fn add_pair(
    machine: &Machine,
    (gpu, nic): (&Gpu, &Nic),
    direction: Direction,
    links: &mut IndexMap<(String, bool), Shared>,
) {
    let passed = bound::of_links(machine, gpu, nic, direction);
    let of_gpu = passed.iter().find(|(link, _)| link.part == Part::Gpu).map_or(f64::INFINITY, |(_, bound)| bound.rate);
    let of_nic = bound::of_device(machine, nic).map_or(0.0, |bound| bound.rate);
    for (link, bound) in passed {
        let upper = bound::upper(machine, &link.lower).address.clone();
        let width = format!("{} x{}", link.lower.speed, link.lower.width);
        let name = if upper.is_empty() { link.lower.address.clone() } else { upper };
        let new = || Shared { link: width, rate: bound.rate, devices: IndexMap::new(), gpus: IndexMap::new() };
        let shared = links.entry((name, link.is_up)).or_insert_with(new);
        shared.rate = shared.rate.min(bound.rate);
        shared.devices.insert(nic.name.clone(), of_nic);
        shared.gpus.insert(gpu.name.clone(), of_gpu);
    }
}
