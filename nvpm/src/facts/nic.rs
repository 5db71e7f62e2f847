// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about an RDMA device: its place, the ways by which it reaches GPU memory, and its settings.
use crate::facts::devices::numa_node;
use crate::facts::fact::{Fact, Facts, bad, good, info, unread, warn};
use crate::facts::never::never;
use crate::facts::{efa, vf};
use crate::read::machine::Machine;
use crate::read::pci::{Nic, Pci, READ_BY_ALL, gpus};
use crate::read::pci_express::{RELAXED_ORDERING, SETTINGS, device_control};
use crate::read::peers::{asks, own_peer_memory};
use crate::read::place::virtual_kind;
use crate::read::products::{Can, OWN_PEER_MEMORY};
use crate::read::{dma_buf, ways};

const LEAST_REQUEST: u32 = 512;

const ONLY_DMA_BUF: &str = "nv_peer_mem and nvidia_peermem serve only devices whose drivers ask the RDMA core: mlx5, and \
                            drivers of other vendors in their own versions. Use dma-buf: docs/choosing.md.";
const TRY_DMA_BUF: &str = "nvpm selftest registers a dma-buf with this device.";
const SKIP_DMA_BUF: &str = "Programs that ask the device get a yes, and fail when they register: let them register \
                            pointers (docs/choosing.md has their settings). Newer firmware may have ODP (ibv_devinfo -v: \
                            general_odp_caps).";
const NEEDS_PEERS: &str = "Peer memory does without ODP: it needs an RDMA core of OFED, and nv_peer_mem. Newer firmware \
                           may have ODP (ibv_devinfo -v: general_odp_caps).";
const SOFTWARE: &str = "A device made of software (rxe, siw) reaches host memory only: use an RDMA device on PCI.";
pub const BY_PSM: &str = "Omni-Path reaches GPU memory without verbs: by PSM2 or libfabric's psm2 and opx, with the hfi1 \
                      that Cornelis or Intel built for CUDA (HFI1_GPU, PSM2_CUDA=1). nv_peer_mem is not needed.";
const NO_RELAXED_ORDERING: &str =
    "off: writes wait for each other; the firmware, or the kernel for some processors, turns it off";

pub fn facts(machine: &Machine, nic: &Nic, section: &str, facts: &mut Facts) {
    let Some(pci) = &nic.pci else {
        let value = "not a PCI device: it cannot reach GPU memory";
        facts.add(bad(section, "place", value).advised("Use an RDMA device on PCI."));
        return;
    };
    let over = if nic.software.is_empty() { String::new() } else { format!(", software over {}", nic.software) };
    facts.add(info(section, "place", format!("{}{over}{}", pci.address, vf::text(machine, pci))));
    vf::facts(machine, nic, section, facts);
    facts.add(asks_for_peers(machine, nic, section));
    facts.add(takes_dma_buf(machine, nic, section));
    facts.add(numa_node(machine, section, pci));
    facts.add(iommu(machine, section, pci));
    if nic.software.is_empty() && !vf::is_one(machine, pci) {
        settings(machine, section, pci, facts);
    }
}

/// Returns whether this machine has GPUs whose memory the device should reach.
fn has_gpus(machine: &Machine) -> bool {
    !gpus(machine).is_empty() && !ways::given_away(machine) && never(machine).is_none()
}

/// Returns a fact about a device if it is not certain that the device's driver asks the RDMA core for peer memory.
fn asks_for_peers(machine: &Machine, nic: &Nic, section: &str) -> Option<Fact> {
    let (name, own) = ("peer memory", own_peer_memory(machine, nic));
    if !own.is_empty() {
        return Some(good(section, name, format!("its driver {own} has its own, without the RDMA core")));
    }
    let asking = asks(machine, nic);
    let certainty = match asking.can {
        Can::Yes => return None,
        Can::May => "perhaps",
        Can::No => "no",
    };
    let (mut why, driver) = (asking.why, nic.driver(machine));
    let advice = if asking.can == Can::No && OWN_PEER_MEMORY.contains(&driver.as_str()) {
        let (lacks, advice) = efa::lacks(machine);
        why = lacks;
        advice
    } else if driver == "hfi1" {
        BY_PSM
    } else if nic.software.is_empty() {
        ONLY_DMA_BUF
    } else {
        SOFTWARE
    };
    let is_useless = asking.can == Can::No && ways::of_pairs(machine).values().all(Vec::is_empty);
    let judge = if is_useless && has_gpus(machine) { bad } else { info };
    Some(judge(section, name, format!("{certainty}: {why}")).advised(advice))
}

fn takes_dma_buf(machine: &Machine, nic: &Nic, section: &str) -> Option<Fact> {
    if !dma_buf::lacking(machine).is_empty() {
        return None;
    }
    let answers = dma_buf::answers(machine);
    let found = answers.get(&nic.name)?;
    let said = match (found.sure, found.yes) {
        (false, _) => "perhaps",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let value = format!("{said}: {}", found.why);
    if !found.misleads {
        return Some(info(section, "dma-buf", value).advised(if found.sure { "" } else { TRY_DMA_BUF }));
    }
    let advice = if ways::pointer_ways(machine).is_empty() { NEEDS_PEERS } else { SKIP_DMA_BUF };
    let judge = if has_gpus(machine) { warn } else { info };
    Some(judge(section, "dma-buf", value).advised(advice))
}

fn iommu(machine: &Machine, section: &str, pci: &Pci) -> Fact {
    let kind = pci.iommu(machine);
    match kind.as_str() {
        "none" => return good(section, "IOMMU", "none"),
        "identity" => return good(section, "IOMMU", "identity: addresses are not translated"),
        _ => {}
    }
    // The data of a coherent GPU goes through the CPU anyway, so the IOMMU does not lengthen its path.
    let gpus = gpus(machine);
    let is_coherent = !gpus.is_empty() && gpus.iter().all(|gpu| gpu.coherent);
    let slow = if is_coherent { "which takes time" } else { "so data is routed through the CPU" };
    let option = if machine.processor == "aarch64" { "iommu.passthrough=1" } else { "iommu=pt" };
    warn(section, "IOMMU", format!("{kind}: addresses are translated, {slow}"))
        .advised(format!("Put {option} on the kernel's command line and reboot."))
}

/// Adds facts about settings of the RDMA device. The GPU's own settings do not matter, because the RDMA device sends
/// the read requests, and the GPU only answers.
fn settings(machine: &Machine, section: &str, pci: &Pci, facts: &mut Facts) {
    let config = pci.config(machine, SETTINGS);
    if (1..=READ_BY_ALL).contains(&config.len()) {
        facts.add(unread(section, "MaxReadReq", "PCI settings of RDMA devices"));
    }
    let Some(control) = device_control(&config) else { return };
    let request = 128 << ((control >> 12) & 7);
    let fact = if request < LEAST_REQUEST && virtual_kind(machine).is_empty() {
        warn(section, "MaxReadReq", request).advised(format!(
            "Reads are cut small. Until the next reboot: setpci -s {} CAP_EXP+8.w=5000:7000 allows 4096 bytes; for good, \
             see the firmware's settings.",
            pci.address
        ))
    } else {
        info(section, "MaxReadReq", request)
    };
    facts.add(fact);
    let ordering = if control & RELAXED_ORDERING == 0 { NO_RELAXED_ORDERING } else { "on" };
    facts.add(info(section, "relaxed ordering", ordering));
}
