// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says which traffic is not GPU memory: what an RDMA device moves beyond the links of all GPUs whose memory is
//! registered with the device.
//!
//! TODO[LINK]: if NVML counts what RDMA devices read and write, the sentence can be certain, and the first line can say
//! so.
use crate::facts::bound::gigabytes;
use crate::used::look::Look;
use crate::used::traffic::{OfLinks, Traffic};

/// A device must move this number of times what the links move. The device counts the headers of the fabric, which
/// are almost a quarter of packets with 256 bytes of data over Ethernet, and most of smaller packets, which are left
/// out. NVML counts the headers of PCI, which were 9 % on an H200.
const CLEARLY: f64 = 2.0;
/// A direction with less than this part of the other direction may have only acknowledgements and requests to read,
/// which belong to the data of the other direction and never come from GPU memory.
const OWN_DATA: f64 = 0.1;
/// The greatest number of GPUs to name.
const NAMED: usize = 2;

/// Returns a sentence for each device whose traffic is not all GPU memory. If NVML does not count, there is none.
pub fn refutations(look: &Look) -> Vec<String> {
    let devices = look.devices.iter().zip(&look.traffic);
    devices.filter_map(|(device, traffic)| sentence(&device.name, traffic)).collect()
}

/// Data that the device sends leaves the GPU, and data that the device receives reaches the GPU. The direction with the
/// greater difference is named.
fn sentence(device: &str, traffic: &Traffic) -> Option<String> {
    let links = traffic.links.as_ref()?;
    let [sends_small, receives_small] = traffic.are_small;
    let ways = [
        ("sends", traffic.sends.filter(|_| !sends_small), links.send),
        ("receives", traffic.receives.filter(|_| !receives_small), links.receive),
    ];
    let ways = ways.into_iter().filter_map(|(verb, device, gpus)| Some((verb, device?, gpus)));
    let most = [traffic.sends, traffic.receives].into_iter().flatten().fold(0.0, f64::max);
    let least = traffic.floor().max(most * OWN_DATA);
    let refuted = ways.filter(|(_, device, gpus)| *device >= least && *device > CLEARLY * gpus);
    let (verb, moved, gpus) = refuted.max_by(|one, other| (one.1 - one.2).total_cmp(&(other.1 - other.2)))?;
    let rate = |rate: f64| format!("{} GB/s", gigabytes(rate));
    let (moved, by_links, rest) = (rate(moved), rate(gpus), rate(moved - gpus));
    let whose = names(links);
    Some(format!(
        "{device} {verb} {moved}, but NVML counts {by_links} on {whose}: at least {rest} seem to be host memory, of \
         whatever program."
    ))
}

fn names(links: &OfLinks) -> String {
    let named: Vec<&str> = links.gpus.iter().take(NAMED).map(String::as_str).collect();
    match (links.gpus.len(), named.as_slice()) {
        (1, [only]) => format!("the link of GPU {only}"),
        (2, _) => format!("the links of the GPUs {}", named.join(" and ")),
        (count, _) => format!("the links of {count} GPUs"),
    }
}
