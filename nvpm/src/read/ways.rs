// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The ways to register GPU memory with each RDMA device of this node.
//!
//! The verb `ibv_reg_mr` takes a pointer, which the RDMA core hands to `nv_peer_mem` or `nvidia_peermem` (peer memory).
//! The verb `ibv_reg_dmabuf_mr` takes a descriptor.
use std::collections::HashSet;
use std::rc::Rc;

use indexmap::{IndexMap, IndexSet};

use crate::read::dma_buf;
use crate::read::engine::{Engine, engine};
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{MODULE, Machine, PEERMEM, own_module, parameters};
use crate::read::pairs::{REFUSED, pairs};
use crate::read::pci::{Gpu, Nic, gpus, nics};
use crate::read::peers::{asks, none_asks, own_peer_memory};
use crate::read::place::{container, loads_modules};
use crate::read::products::Can;

pub const DMA_BUF: &str = "dma-buf";
pub const NO_DEVICE: &str = "there is no RDMA device";

/// Our marker module has the name `nvidia_peermem` also.
pub const MARKER: &str = "/sys/module/nv_peer_mem/holders/nvidia_peermem";

/// A GPU and an RDMA device.
pub type Pair = (String, String);
/// The ways of each pair, peer memory first.
pub type Pairs = IndexMap<Pair, Vec<String>>;

/// Returns whether NVIDIA's own module is loaded.
pub fn peermem_loaded(machine: &Machine) -> bool {
    let is_ours = machine.exists(MARKER) || own_module(machine) == PEERMEM;
    machine.loaded(PEERMEM) && !is_ours
}

/// Returns the module that serves `ibv_reg_mr` of GPU memory; an empty string if no module does. MODULE stands for
/// `nv_peer_mem` under either name, and PEERMEM for NVIDIA's own module.
pub fn peer_memory_by(machine: &Machine) -> &'static str {
    fn compute(machine: &Machine) -> &'static str {
        if !own_module(machine).is_empty() {
            return MODULE;
        }
        // nvidia_peermem can also be loaded with a core without peer memory, but it does nothing there.
        if peermem_loaded(machine) && !peer_memory_in(machine).is_empty() { PEERMEM } else { "" }
    }
    *machine.once(compute)
}

/// Returns the GPUs that the NVIDIA driver drives, in the order of nvidia-smi.
pub fn driven_gpus(machine: &Machine) -> Rc<Vec<Rc<Gpu>>> {
    fn compute(machine: &Machine) -> Vec<Rc<Gpu>> {
        gpus(machine).iter().filter(|gpu| gpu.driver == "nvidia").cloned().collect()
    }
    machine.once(compute)
}

/// Returns the GPUs with a driver whose memory other devices can reach.
pub fn usable_gpus(machine: &Machine) -> Rc<Vec<Rc<Gpu>>> {
    fn compute(machine: &Machine) -> Vec<Rc<Gpu>> {
        let is_usable = |gpu: &&Rc<Gpu>| !gpu.excluded(machine) && !gpu.silent(machine);
        driven_gpus(machine).iter().filter(is_usable).cloned().collect()
    }
    machine.once(compute)
}

/// Returns whether `nv_peer_mem` pins all memory so that a registration can be revoked.
pub fn revokes(machine: &Machine) -> bool {
    machine.text(&format!("{}persistent_api_support", parameters(machine))) == "0"
}

/// Returns the module that serves this GPU's memory; an empty string if no module does. With
/// `persistent_api_support=0`, `nv_peer_mem` serves only memory that can be revoked. The memory of a coherent GPU
/// cannot be revoked, because the driver maps this memory, and keeps it pinned.
pub fn peer_memory_of(machine: &Machine, gpu: &Gpu) -> &'static str {
    let peer = peer_memory_by(machine);
    if peer == MODULE && gpu.coherent && revokes(machine) { "" } else { peer }
}

/// Returns the pairs of GPU (UUID) and device (PCI address) about which the NVIDIA driver has said that the device must
/// not reach the GPU.
fn refused(machine: &Machine) -> Rc<HashSet<Pair>> {
    fn compute(machine: &Machine) -> HashSet<Pair> {
        let pairs = pairs(machine);
        let refused = pairs.iter().filter(|met| met.said == REFUSED);
        refused.map(|met| (met.gpu.to_lowercase(), met.device.clone())).collect()
    }
    machine.once(compute)
}

/// Returns the module or the driver that serves `ibv_reg_mr` of this GPU's memory with this device; an empty string if
/// none does.
fn pointer_way(machine: &Machine, gpu: &Gpu, nic: &Nic) -> String {
    let own = own_peer_memory(machine, nic);
    let Some(pci) = nic.pci.as_ref().filter(|_| own.is_empty()) else { return own };
    if asks(machine, nic).can == Can::No {
        return own;
    }
    let pair = (gpu.information(machine, "GPU UUID").to_lowercase(), pci.address.clone());
    if refused(machine).contains(&pair) { own } else { peer_memory_of(machine, gpu).to_owned() }
}

/// Returns the ways of each GPU with a driver and each RDMA device.
pub fn of_pairs(machine: &Machine) -> Rc<Pairs> {
    fn compute(machine: &Machine) -> Pairs {
        let by_dma_buf = dma_buf::taken_by(machine);
        let mut found = IndexMap::new();
        for gpu in usable_gpus(machine).iter() {
            for nic in nics(machine).iter() {
                let pointer = pointer_way(machine, gpu, nic);
                let mut ways: Vec<String> = Some(pointer).filter(|way| !way.is_empty()).into_iter().collect();
                if by_dma_buf.contains(&nic.name) {
                    ways.push(DMA_BUF.to_owned());
                }
                found.insert((gpu.name.clone(), nic.name.clone()), ways);
            }
        }
        found
    }
    machine.once(compute)
}

/// Returns the module or the driver that serves `ibv_reg_mr` for a pair of names; an empty string if none does. The
/// module that is loaded counts for a pair that no file shows.
pub fn pointer_way_of(machine: &Machine, gpu: &str, device: &str) -> String {
    let pairs = of_pairs(machine);
    let Some(ways) = pairs.get(&(gpu.to_owned(), device.to_owned())) else {
        return peer_memory_by(machine).to_owned();
    };
    ways.iter().find(|way| *way != DMA_BUF).cloned().unwrap_or_default()
}

/// Returns the modules that serve `ibv_reg_mr` of GPU memory for some pair here.
pub fn pointer_ways(machine: &Machine) -> Vec<String> {
    let pairs = of_pairs(machine);
    let found: IndexSet<&String> = pairs.values().flatten().filter(|way| *way != DMA_BUF).collect();
    found.into_iter().cloned().collect()
}

/// Returns whether this machine has GPUs with a driver, but none of them takes part in GPUDirect RDMA.
pub fn excluded_gpus(machine: &Machine) -> bool {
    !driven_gpus(machine).is_empty() && usable_gpus(machine).is_empty()
}

/// Returns why no GPU with a driver takes part; an empty string if some GPU takes part.
pub fn excluded(machine: &Machine) -> String {
    let gpus = driven_gpus(machine);
    let first = gpus.first().filter(|_| excluded_gpus(machine));
    first.map_or(String::new(), |gpu| why_unusable(machine, gpu))
}

/// Returns why a GPU with a driver takes no part; an empty string if it takes part.
pub fn why_unusable(machine: &Machine, gpu: &Gpu) -> String {
    if gpu.silent(machine) {
        return format!("GPU {} does not answer on PCI", gpu.name);
    }
    gpu.doubt(machine).map_or(String::new(), |doubt| format!("{} is {}", gpu.model(machine), doubt.why))
}

/// Returns whether this host has given all of its GPUs to virtual machines.
pub fn given_away(machine: &Machine) -> bool {
    let found = gpus(machine);
    !found.is_empty() && found.iter().all(|gpu| gpu.driver.starts_with("vfio"))
}

/// Returns why a GPU that is not on PCI takes no part; an empty string if there is none.
pub fn gpu_elsewhere(machine: &Machine) -> &'static str {
    if machine.exists("/dev/dxg") {
        return "the GPU of WSL2 is driven by Windows, and no RDMA device reaches its memory";
    }
    if machine.loaded("nvgpu") {
        return "this GPU is integrated (Tegra), and needs NVIDIA's own sample of nvidia-p2p";
    }
    ""
}

/// Returns whether this is a container that needs a GPU and has none. A container sees the node's GPUs in sysfs, but
/// CUDA needs their device files.
pub fn given_no_gpu(machine: &Machine) -> bool {
    if container(machine).is_empty() || loads_modules(machine) {
        return false;
    }
    machine.loaded("nvidia") && machine.glob(&["/dev/nvidia[0-9]*"]).is_empty()
}

/// Returns why no GPU memory can be registered; an empty string if some GPU memory can be registered.
pub fn in_the_way(machine: &Machine) -> Rc<String> {
    machine.once(first_in_the_way)
}

fn first_in_the_way(machine: &Machine) -> String {
    let said = |text: &str| text.to_owned();
    if given_away(machine) {
        return said("its GPUs are given to virtual machines, which register their memory");
    }
    if gpus(machine).is_empty() {
        let elsewhere = gpu_elsewhere(machine);
        return said(if elsewhere.is_empty() { "there is no NVIDIA GPU" } else { elsewhere });
    }
    if given_no_gpu(machine) {
        let options = engine(machine).map_or("", Engine::to_give_gpus);
        return format!("this container was given no GPU ({options})");
    }
    if !machine.loaded("nvidia") {
        return said("the NVIDIA driver is not loaded");
    }
    if driven_gpus(machine).is_empty() {
        return said("the NVIDIA driver has none of the GPUs");
    }
    if !excluded(machine).is_empty() {
        return excluded(machine);
    }
    let nics = nics(machine);
    if nics.is_empty() {
        return said(NO_DEVICE);
    }
    if of_pairs(machine).values().any(|ways| !ways.is_empty()) {
        return String::new();
    }
    if nics.iter().all(|nic| nic.pci.is_none()) {
        return said("no RDMA device is a PCI device");
    }
    if !none_asks(machine).is_empty() {
        return format!("{} for peer memory, and there is no dma-buf", none_asks(machine));
    }
    if !peer_memory_by(machine).is_empty() {
        return said("no RDMA device reaches the memory of a GPU");
    }
    if !peer_memory_in(machine).is_empty() {
        return format!("neither {MODULE} nor {PEERMEM} is loaded, and there is no dma-buf");
    }
    said("the RDMA core has no peer memory, and there is no dma-buf")
}

pub fn there_are(machine: &Machine, way: &str) -> bool {
    have(&of_pairs(machine), way)
}

/// Returns whether some pair has a way.
fn have(pairs: &Pairs, way: &str) -> bool {
    pairs.values().flatten().any(|found| found == way)
}

/// Returns whether each GPU reaches some RDMA device by a wanted way, and there are pairs.
fn each_gpu_reaches(pairs: &Pairs, is_wanted: fn(&str) -> bool) -> bool {
    let reached =
        |name: &String| pairs.iter().any(|((gpu, _), ways)| gpu == name && ways.iter().any(|way| is_wanted(way)));
    !pairs.is_empty() && pairs.keys().all(|(gpu, _)| reached(gpu))
}

fn is_dma_buf(way: &str) -> bool {
    way == DMA_BUF
}

fn needs_no_core(way: &str) -> bool {
    way != MODULE && way != PEERMEM
}

/// Returns whether each GPU reaches some RDMA device by dma-buf. This is enough for programs that use dma-buf.
pub fn dma_buf_serves(machine: &Machine) -> bool {
    each_gpu_reaches(&of_pairs(machine), is_dma_buf)
}

/// Returns whether each GPU reaches some RDMA device by a way that needs no peer memory of the core.
pub fn served_without_core(machine: &Machine) -> bool {
    each_gpu_reaches(&of_pairs(machine), needs_no_core)
}

/// Pairs that have the same ways. Each GPU of the group makes a pair with each device of the group.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    pub gpus: Vec<String>,
    pub devices: Vec<String>,
    pub ways: Vec<String>,
}

/// Returns the pairs of this machine in groups.
pub fn grouped(machine: &Machine) -> Vec<Group> {
    groups(&of_pairs(machine))
}

/// Returns pairs in groups with the same ways. Devices with the same ways at one GPU are put together first. GPUs with
/// the same devices and ways are then put together.
fn groups(pairs: &Pairs) -> Vec<Group> {
    let mut rows: IndexMap<String, IndexMap<Vec<String>, Vec<String>>> = IndexMap::new();
    for ((gpu, device), ways) in pairs {
        rows.entry(gpu.clone()).or_default().entry(ways.clone()).or_default().push(device.clone());
    }
    let mut found: IndexMap<(Vec<String>, Vec<String>), Vec<String>> = IndexMap::new();
    for (gpu, row) in rows {
        for (ways, devices) in row {
            found.entry((devices, ways)).or_default().push(gpu.clone());
        }
    }
    found.into_iter().map(|((devices, ways), gpus)| Group { gpus, devices, ways }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0000:03:00.0";
    const B: &str = "0000:83:00.0";
    const NIC: &str = "mlx5_0";
    const OTHER: &str = "efa_0";
    const OWN: &str = "efa's own";

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn pairs(found: &[(&str, &str, &[&str])]) -> Pairs {
        let pair = |(gpu, device, ways): &(&str, &str, &[&str])| (((*gpu).into(), (*device).into()), texts(ways));
        found.iter().map(pair).collect()
    }

    #[test]
    fn each_gpu_has_to_reach_a_device() {
        // The pairs, whether dma-buf serves them, and whether they are served without the core.
        type Row<'a> = (&'a [(&'a str, &'a str, &'a [&'a str])], bool, bool);
        let rows: [Row; 10] = [
            (&[], false, false),
            (&[(A, NIC, &[])], false, false),
            (&[(A, NIC, &[MODULE, DMA_BUF])], true, true),
            (&[(A, NIC, &[MODULE, PEERMEM])], false, false),
            (&[(A, NIC, &[OWN])], false, true),
            // Each GPU has to reach at least one device, and need not reach each device.
            (&[(A, NIC, &[MODULE]), (A, OTHER, &[DMA_BUF])], true, true),
            (&[(A, NIC, &[DMA_BUF]), (B, NIC, &[MODULE])], false, false),
            (&[(A, NIC, &[MODULE]), (B, NIC, &[DMA_BUF])], false, false),
            (&[(A, NIC, &[DMA_BUF]), (B, NIC, &[OWN, MODULE])], false, true),
            (&[(A, NIC, &[]), (A, OTHER, &[DMA_BUF]), (B, NIC, &[DMA_BUF]), (B, OTHER, &[])], true, true),
        ];
        for (found, by_dma_buf, without_core) in rows {
            let pairs = pairs(found);
            assert_eq!(each_gpu_reaches(&pairs, is_dma_buf), by_dma_buf, "{found:?}");
            assert_eq!(each_gpu_reaches(&pairs, needs_no_core), without_core, "{found:?}");
            for way in [MODULE, PEERMEM, DMA_BUF, OWN] {
                assert_eq!(have(&pairs, way), found.iter().any(|(.., ways)| ways.contains(&way)), "{found:?}");
            }
        }
    }

    #[test]
    fn gpus_of_a_group_have_the_same_ways_to_the_same_devices() {
        let both: &[&str] = &[MODULE, DMA_BUF];
        let found = pairs(&[
            ("a", "x", both),
            ("a", "y", both),
            ("b", "x", both),
            ("b", "y", both),
            ("c", "x", both),
            ("c", "y", &[MODULE]),
        ]);
        let group =
            |gpus: &[&str], devices, ways| Group { gpus: texts(gpus), devices: texts(devices), ways: texts(ways) };
        let expected =
            [group(&["a", "b"], &["x", "y"], both), group(&["c"], &["x"], both), group(&["c"], &["y"], &[MODULE])];
        assert_eq!(groups(&found), expected);
    }
}
