// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! GPUs and RDMA devices: their connections, facts about each, and the rights to use them.
use crate::facts::driver::flavour;
use crate::facts::fact::{Fact, Facts, bad, info, warn};
use crate::facts::{
    access, distances, gpu, host, kernel, lent_memory, nic, no_device, on_boot, place, port, rates, topology,
};
use crate::read::machine::Machine;
use crate::read::pci::{Pci, gpus, nics};
use crate::read::place::virtual_kind;
use crate::read::ways;

const FIND_GPU: &str = "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware.";
const WITHOUT_GPU: &str =
    "If this node is to have none, systemd-modules-load fails at each boot for that reason alone.";
pub const NOT_ON_PCI: &str = "Register host memory (cudaHostAlloc), which the GPU reaches too; nv_peer_mem serves GPUs on \
                          PCI with the drivers of data centers: docs/choosing.md.";
const NODE_UNKNOWN: &str = "Programs cannot choose the near processors: look for newer firmware (BIOS), or bind them by \
                            hand.";
/// Some machines have switches and data-direct functions that sysfs does not show. `rdma_topo`, a program of rdma-core,
/// shows them.
const RDMA_TOPO: &str = "rdma_topo of rdma-core knows more of this machine's switches and of data direct";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    place::facts(machine, facts);
    host::facts(machine, facts);
    kernel::facts(machine, facts);
    lent_memory::facts(machine, facts);
    topology::facts(machine, facts);
    let gpus = gpus(machine);
    if gpus.iter().any(|gpu| gpu.coherent) {
        facts.add(info("machine", "topology", RDMA_TOPO));
    }
    if gpus.is_empty() {
        facts.add(no_gpu(machine));
    }
    for gpu in gpus.iter() {
        gpu::facts(machine, gpu, &format!("GPU {}", gpu.name), facts);
    }
    rates::facts(machine, facts);
    let nics = nics(machine);
    if !gpus.is_empty() && !nics.is_empty() {
        no_device::missing(machine, facts);
    } else if !gpus.is_empty() {
        facts.add(no_device::why(machine));
    } else if nics.is_empty() {
        // Without a GPU, an RDMA device would have nothing to reach, so the absence of RDMA devices is no defect.
        facts.add(info("RDMA devices", "number", 0));
    }
    for nic in nics.iter() {
        nic::facts(machine, nic, &format!("RDMA device {}", nic.name), facts);
    }
    port::facts(machine, facts);
    access::facts(machine, facts);
}

fn no_gpu(machine: &Machine) -> Fact {
    let elsewhere = ways::gpu_elsewhere(machine);
    if elsewhere.is_empty() {
        return bad("GPUs", "number", 0).advised(to_find(machine));
    }
    info("GPUs", "number", format!("0 on PCI: {elsewhere}")).advised(NOT_ON_PCI)
}

/// Returns advice for a node without a GPU. If a file names modules for GPUs, and no driver is installed, the image is
/// meant for other nodes as well.
fn to_find(machine: &Machine) -> String {
    let lines = on_boot::without_gpu(machine);
    if lines.is_empty() || flavour(machine).is_some() {
        return FIND_GPU.to_owned();
    }
    format!("{WITHOUT_GPU} {} If it is to have one: {FIND_GPU}", on_boot::remove(&lines))
}

/// Judges whether the NUMA node of a device is known, because programs choose processors and devices by the NUMA node.
pub fn numa_node(machine: &Machine, section: &str, pci: &Pci) -> Option<Fact> {
    let name = "NUMA node";
    if pci.node >= 0 {
        return Some(info(section, name, pci.node));
    }
    if distances::has_several_nodes(machine) && virtual_kind(machine).is_empty() {
        return Some(warn(section, name, "unknown: the firmware does not say").advised(NODE_UNKNOWN));
    }
    None
}
