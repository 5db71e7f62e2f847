// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the module: whether it is loaded, whether it is installed, and its parameters.
use crate::facts::advice::{Advice, service};
use crate::facts::after_boot;
use crate::facts::fact::{Fact, Facts, Verdict, bad, good, info, warn};
use crate::facts::never::never;
use crate::facts::{peermem, pod};
use crate::read::conf::{REFUSED, configuration};
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{
    CALLBACK, CONF, MODULE, Machine, SERVICE, base, loaded_version, module_wanted, own_file, own_module, parameters,
    rust, statistics,
};
use crate::read::pci::{gpus, nics};
use crate::read::peers::none_asks;
use crate::read::place::{driver_in_container, loads_modules};
use crate::read::ways;

const COMPILED: &[(&str, &str)] = &[
    ("in-kernel", "in-kernel: with the kernel's own Rust crates"),
    ("prebuilt", "prebuilt: with a kernel crate of its own, compiled before"),
];

const OTHER_PACKAGE: &str = "{restart_service}; if that loads the same one again, remove the other package: modinfo \
                             nv_peer_mem says which file it is.";
const CALLBACK_STAYS: &str = "it stays loaded until the next boot, because the NVIDIA driver may call it late; \
                              nv_peer_mem can be unloaded and updated meanwhile";
const CALLBACK_LEFT: &str = "is still loaded and stays until the next boot, because the NVIDIA driver may call it \
                             late; it needs neither driver nor RDMA core";
const POD_HAS_FILE: &str = "not on this system: the pod that has loaded the module has its file, and loads it again \
                            after a boot";
const NODE_HAS_FILE: &str = "not here: the files of the node's modules are on the node";

// Reasons for which a machine can do without the module.
const NOT_NEEDED: &str = "programs that register GPU memory as dma-buf do without it";
const NO_PEER_MEMORY: &str = "it could not be used with this RDMA core, which has no peer memory";
const PEERMEM_SERVES: &str = "nvidia_peermem serves the same programs";
const NO_GPU: &str = "this machine has no NVIDIA GPU";
const GIVEN_AWAY: &str = "the GPUs are given to virtual machines, and the module belongs there";
const NO_GPU_GIVEN: &str = "this container was given no GPU";
const EXCLUDED: &str = "it serves none of the GPUs here";
const NEVER: &str = "nothing can register GPU memory here";
const NONE_ASKS: &str = "it serves none of the RDMA devices here";
const PEERMEM_IS_HERE: &str = "nvidia_peermem is installed, and would serve the same programs";
const LOAD: &str = "modprobe nv_peer_mem; if that fails, dmesg | grep nv_peer_mem says why.";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    facts.add(state(machine));
    facts.add(installed(machine));
    facts.add(callback(machine));
    let rust = rust(machine);
    if let Some((_, how)) = COMPILED.iter().find(|(kind, _)| *kind == rust.as_str()) {
        facts.add(info("module", "rust", how));
    }
    for file in machine.glob(&[&format!("{}*", parameters(machine))]) {
        if machine.readable(&file) {
            facts.add(info("module", base(&file), machine.text(&file)));
        }
    }
    if module_wanted(machine) {
        facts.add(unclear(machine));
        facts.add(after_boot::fact(machine));
    }
}

/// Returns the version of the installed module. An empty text if none is installed.
pub fn installed_version(machine: &Machine) -> String {
    own_file(machine).get("version").cloned().unwrap_or_default()
}

fn state(machine: &Machine) -> Fact {
    let (on_disk, name) = (installed_version(machine), own_module(machine));
    if !name.is_empty() {
        return state_of_loaded(machine, &on_disk, name);
    }
    let (verdict, without) = of_absence(machine);
    let is_missed = verdict == Verdict::Bad || (module_wanted(machine) && !gpus(machine).is_empty());
    let without = without.map(|why| format!("; {why}")).unwrap_or_default();
    let (value, advice): (_, fn(&Machine) -> String) = if on_disk.is_empty() {
        let value = format!("not loaded, and not installed for kernel {}{without}", machine.kernel);
        (value, |machine| Advice::new(machine).filled("{install}"))
    } else {
        (format!("not loaded{without}"), to_load)
    };
    let fact = Fact::new(verdict, "module", "state", value);
    if is_missed { fact.advised(advice(machine)) } else { fact }
}

fn state_of_loaded(machine: &Machine, on_disk: &str, name: &str) -> Fact {
    let loaded = loaded_version(machine, name);
    let version = if name == MODULE { loaded.clone() } else { format!("{loaded}, under the name {name}") };
    if !machine.exists(&statistics(machine)) {
        let value = format!("loaded, version {version}, and not the one that belongs to this service");
        return warn("module", "state", value).advised(Advice::new(machine).filled(OTHER_PACKAGE));
    }
    if !on_disk.is_empty() && on_disk != loaded {
        let value = format!("loaded, version {version}; version {on_disk} is installed");
        return warn("module", "state", value).advised(service(machine, "restart"));
    }
    good("module", "state", format!("loaded, version {version}"))
}

/// Returns how to load an installed module. A module of the host is not for a driver that is in the GPU Operator's
/// container, and would keep the operator from replacing that driver.
fn to_load(machine: &Machine) -> String {
    if driver_in_container(machine) {
        return pod::USE_IMAGE.to_owned();
    }
    if machine.exists(SERVICE) { format!("{SERVICE} start; if that fails, it says why.") } else { LOAD.to_owned() }
}

/// Returns the verdict if the module is not loaded, and the reason if this is no defect.
pub fn of_absence(machine: &Machine) -> (Verdict, Option<&'static str>) {
    let is_fine = |why| (Verdict::None, Some(why));
    if gpus(machine).is_empty() {
        return is_fine(NO_GPU);
    }
    if ways::given_away(machine) {
        return is_fine(GIVEN_AWAY);
    }
    if ways::excluded_gpus(machine) {
        return is_fine(EXCLUDED);
    }
    if never(machine).is_some() {
        return is_fine(NEVER);
    }
    if ways::given_no_gpu(machine) {
        return is_fine(NO_GPU_GIVEN);
    }
    if !nics(machine).is_empty() && !none_asks(machine).is_empty() {
        return is_fine(NONE_ASKS);
    }
    if !module_wanted(machine) && !ways::peer_memory_by(machine).is_empty() {
        return is_fine(PEERMEM_SERVES);
    }
    if peermem::missed(machine) {
        return is_fine(PEERMEM_IS_HERE);
    }
    let has_core = !peer_memory_in(machine).is_empty();
    if !ways::dma_buf_serves(machine) {
        if module_wanted(machine) || has_core || !machine.loaded("ib_core") {
            return (Verdict::Bad, None);
        }
        // The RDMA core without peer memory is the defect here. The absence of the module is no further defect.
        return is_fine(NO_PEER_MEMORY);
    }
    // A module that is installed, and that the RDMA core can use, was installed for a purpose. So its absence from the
    // kernel gets a warning.
    let is_expected = module_wanted(machine) && has_core;
    (if is_expected { Verdict::Warn } else { Verdict::None }, Some(NOT_NEEDED))
}

/// Returns a fact about the installed module, because the fact `state` is only about the loaded module.
fn installed(machine: &Machine) -> Option<Fact> {
    let (is_loaded, on_disk) = (!own_module(machine).is_empty(), installed_version(machine));
    let kernel = &machine.kernel;
    match (is_loaded, on_disk.is_empty()) {
        (_, true) if pod::keeps_module(machine) => Some(info("module", "installed", POD_HAS_FILE)),
        (true, true) if loads_modules(machine) => Some(info("module", "installed", NODE_HAS_FILE)),
        (true, true) => {
            let value = format!("not for kernel {kernel}: it will be gone after a reboot");
            Some(bad("module", "installed", value).advised(Advice::new(machine).filled("{install}")))
        }
        (false, false) => Some(good("module", "installed", format!("version {on_disk} for kernel {kernel}"))),
        _ => None,
    }
}

/// Returns a fact about the callback module, which stays loaded because it cannot be unloaded. The fact says that this
/// is right, so that nobody takes the module for a leftover.
fn callback(machine: &Machine) -> Option<Fact> {
    if !machine.loaded(CALLBACK) {
        return None;
    }
    let name = format!("{CALLBACK}, version {}", loaded_version(machine, CALLBACK));
    let is_alone = own_module(machine).is_empty();
    let value = if is_alone { format!("{name}, {CALLBACK_LEFT}") } else { format!("{name}: {CALLBACK_STAYS}") };
    Some(good("module", "callback module", value))
}

/// Returns a fact with the lines of the configuration that are not understood.
fn unclear(machine: &Machine) -> Option<Fact> {
    let configuration = configuration(machine);
    let refused = configuration.iter().filter(|(name, _)| name == REFUSED).map(|(_, line)| line.as_str());
    let refused = refused.collect::<Vec<_>>().join("; ");
    if refused.is_empty() {
        return None;
    }
    let advice = format!("Correct it in {CONF}: ONBOOT= or MARKER=, and yes or no.");
    Some(warn("module", "configuration", format!("not understood: {refused}")).advised(advice))
}
