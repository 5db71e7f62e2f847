// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether this system is a physical machine, and which of the node's devices a container has.
use crate::facts::fact::{Fact, Facts, bad, info};
use crate::facts::{guest, operators, pod};
use crate::read::engine::{Engine, engine};
use crate::read::machine::Machine;
use crate::read::pci::gpus;
use crate::read::place::{container, loads_modules, virtual_kind};
use crate::read::ways;

const NOT_ALL_ITS_OWN: &str = "the devices are not all its own, so distances are not judged; module and service belong \
                               to the machine around it";
const LOADS_MODULES: &str = "it sees the node's drivers, and loads modules for the node";
/// Devices and libraries of the node that programs in a container need.
const SEEN: &[(&str, &[&str])] = &[
    ("RDMA devices", &["/sys/class/infiniband/*"]),
    ("/dev/infiniband/uverbs*", &["/dev/infiniband/uverbs*"]),
    ("/dev/nvidia*", &["/dev/nvidia[0-9]*"]),
    ("libcuda", &["/usr/lib*/libcuda.so.1", "/usr/lib/*/libcuda.so.1"]),
];
const NOT_AS_CONNECTED: &str = "it shows not how the devices are really connected, so distances are not judged";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    let kind = virtual_kind(machine);
    if !container(machine).is_empty() {
        let whose = if loads_modules(machine) { LOADS_MODULES } else { NOT_ALL_ITS_OWN };
        facts.add(info("machine", "virtual", format!("{kind}: {whose}")));
        facts.add(seen(machine));
    } else if !kind.is_empty() {
        facts.add(info("machine", "virtual", format!("{kind}: {NOT_AS_CONNECTED}")));
    }
    facts.add(pod::fact(machine));
    guest::facts(machine, facts);
    facts.add(operators::driver_container(machine));
    facts.add(operators::ofed_container(machine));
}

/// Returns which devices and libraries of the node are in a container, and which are not.
fn seen(machine: &Machine) -> Fact {
    let counts: Vec<(&str, usize)> =
        SEEN.iter().map(|(name, patterns)| (*name, machine.glob(patterns).len())).collect();
    let there = counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}: {count}"));
    let there = there.collect::<Vec<_>>().join(", ");
    let lacks = counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let there = if there.is_empty() { "nothing" } else { &there };
    let value = if lacks.is_empty() { there.to_owned() } else { format!("{there}; not there: {lacks}") };
    let is_defect = !gpus(machine).is_empty() && ways::given_no_gpu(machine);
    let judge = if is_defect { bad } else { info };
    judge("machine", "container sees", value).advised(to_give(machine, &lacks))
}

/// Returns how the container gets what it lacks. NVIDIA's container toolkit gives the GPUs together with libcuda.
fn to_give(machine: &Machine, lacks: &str) -> String {
    let engine = engine(machine).unwrap_or(Engine::Unknown);
    let mut texts = Vec::new();
    if lacks.contains("nvidia") || lacks.contains("libcuda") {
        texts.push(format!("{}, by NVIDIA's container toolkit, gives GPUs and libcuda.", engine.to_give_gpus()));
    }
    if lacks.contains("RDMA") || lacks.contains("uverbs") {
        texts.push(format!("{} gives RDMA devices.", engine.to_give_devices()));
    }
    texts.join(" ")
}
