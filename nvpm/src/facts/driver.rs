// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about the NVIDIA driver.
use std::rc::Rc;

use crate::facts::advice::{Advice, INSTALL_DRIVER};
use crate::facts::defects::DEFECTS;
use crate::facts::expression::Expression;
use crate::facts::fact::{Fact, Facts, bad, good, info, warn};
use crate::facts::security::{because, refused};
use crate::facts::{competitor, gdrdrv, on_boot, unloading};
use crate::read::dma_buf::version_numbers;
use crate::read::doubts::driver_keeps_memory;
use crate::read::machine::{Fields, Machine, modinfo, rust};
use crate::read::pci::gpus;
use crate::read::ways;

const LIBRARIES: &[&str] =
    &["/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1"];
static VERSION_OF: Expression = Expression::new(r"libcuda\.so\.(\d+\.[\d.]+)$");
static STATIC_BAR1: Expression = Expression::new(r"(?m)^RegistryDwords: .*ForceStaticBar1=(0x)?0*1");
const UPDATED: &str = "The driver was updated while it was loaded: reboot, or unload the old one (nvpm status --all, \
                       driver, in use by: what has to end before). In a container: restart the container, which got \
                       the library of the driver that was loaded then.";
const LOAD: &str = "modprobe nvidia; if there is no GPU that it supports, the kernel's log says so.";
const BUILT_IN_KERNEL: &str = "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules \
                               out";
const CDMM: &str = "the driver keeps the memory of coherent GPUs to itself (NVreg_CoherentGPUMemoryMode=driver); \
                    nothing was tried with it: docs/choosing.md";

/// Returns whether the NVIDIA driver that is loaded is the proprietary one. The kernel marks a module with P if the
/// module's licence is not a free one.
pub fn is_proprietary(machine: &Machine) -> bool {
    machine.text("/sys/module/nvidia/taint").contains('P')
}

/// Returns the fields of NVIDIA's module if the module is installed. The file is looked for in the list of all modules,
/// because Debian's files do not have the name of the module.
fn installed(machine: &Machine) -> Rc<Fields> {
    machine.once(compute_installed)
}

fn compute_installed(machine: &Machine) -> Fields {
    let fields = modinfo(machine, "nvidia");
    if !fields.is_empty() {
        return fields.as_ref().clone();
    }
    let dependencies = machine.all_text(&[&format!("/lib/modules/{}/modules.dep", machine.kernel)]);
    let files = dependencies.split('\n').filter_map(|line| line.split_once(':')?.0.rsplit('/').next());
    let mut names: Vec<&str> = files
        .filter(|file| file.starts_with("nvidia"))
        .filter_map(|file| file.rsplit_once(".ko").map(|(name, _)| name))
        .collect();
    names.sort_unstable();
    let mut found = names.into_iter().map(|name| modinfo(machine, name));
    let nvidia = found.find(|fields| fields.get("name").is_some_and(|name| name == "nvidia"));
    nvidia.map(|fields| fields.as_ref().clone()).unwrap_or_default()
}

/// The licences under which NVIDIA's driver comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Open,
    Proprietary,
}

impl Flavour {
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Proprietary => "proprietary",
        }
    }
}

/// Returns the flavour of the driver that is loaded, or else of the one that is installed.
pub fn flavour(machine: &Machine) -> Option<Flavour> {
    *machine.once(compute_flavour)
}

fn compute_flavour(machine: &Machine) -> Option<Flavour> {
    let is_open = if machine.loaded("nvidia") {
        !is_proprietary(machine)
    } else {
        let fields = installed(machine);
        if fields.is_empty() {
            return None;
        }
        fields.get("license").is_some_and(|license| license.contains("GPL"))
    };
    Some(if is_open { Flavour::Open } else { Flavour::Proprietary })
}

/// Returns the version of the loaded driver. If no driver is loaded, returns the version of the installed driver. Only
/// then is the list of all modules read, because it is long.
pub fn version(machine: &Machine) -> Rc<String> {
    machine.once(compute_version)
}

fn compute_version(machine: &Machine) -> String {
    if machine.loaded("nvidia") {
        return machine.text("/sys/module/nvidia/version");
    }
    installed(machine).get("version").cloned().unwrap_or_default()
}

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if machine.loaded("nvidia") {
        let version = version(machine);
        let version = if version.is_empty() { "unknown" } else { version.as_str() };
        facts.add(good("driver", "nvidia", format!("loaded, version {version}")));
        facts.add(library(machine));
    } else {
        facts.add(not_loaded(machine));
    }
    defects(machine, facts);
    facts.add(its_flavour(machine));
    facts.add(driver_keeps_memory(machine).then(|| info("driver", "CDMM", CDMM)));
    facts.add(static_bar1(machine));
    facts.add(competitor::fact(machine));
    facts.add(on_boot::fact(machine));
    facts.add(unloading::fact(machine));
    gdrdrv::facts(machine, facts);
}

fn not_loaded(machine: &Machine) -> Fact {
    if gpus(machine).is_empty() {
        return info("driver", "nvidia", "not loaded; this machine has no NVIDIA GPU");
    }
    if ways::given_away(machine) {
        return info("driver", "nvidia", "not loaded; all GPUs are given to virtual machines");
    }
    if let Some(reason) = refused(machine, "nvidia") {
        let value = format!("not loaded; {reason}{}", because(machine));
        return bad("driver", "nvidia", value).advised(Advice::about(machine, "nvidia").filled("{to_enrol}"));
    }
    if !installed(machine).is_empty() {
        let value = format!("not loaded; version {} is installed", version(machine));
        return warn("driver", "nvidia", value).advised(LOAD);
    }
    bad("driver", "nvidia", format!("none for kernel {}", machine.kernel)).advised(INSTALL_DRIVER)
}

/// Judges whether libcuda has the version of the loaded driver. After an update without a reboot, CUDA refuses to
/// start. Directories with libraries for forward compatibility are not looked at, because those libraries may be newer.
fn library(machine: &Machine) -> Option<Fact> {
    let loaded = version(machine);
    for link in machine.glob(LIBRARIES) {
        let target = machine.link(&link);
        let is_other = |found: &&str| !version_numbers(&loaded, 1).is_empty() && **found != *loaded;
        if let Some(found) = VERSION_OF.first(&target).filter(is_other) {
            let value = format!("{found}, but the loaded driver is {loaded}: CUDA does not start");
            return Some(bad("driver", "libcuda", value).advised(UPDATED));
        }
    }
    None
}

/// Adds the known defects of this version that this machine can meet.
fn defects(machine: &Machine, facts: &mut Facts) {
    let version = version(machine);
    let number = version_numbers(&version, usize::MAX);
    for defect in DEFECTS.iter().filter(|defect| !number.is_empty() && defect.is_in(&number)) {
        if let Some(verdict) = (defect.meets)(machine) {
            let value = format!("{version} {} ({})", defect.effect, defect.source);
            facts.add(Fact::new(verdict, "driver", defect.name, value).advised(defect.advice));
        }
    }
}

fn its_flavour(machine: &Machine) -> Option<Fact> {
    let found = flavour(machine)?;
    if found == Flavour::Proprietary && rust(machine).as_str() == "in-kernel" {
        return Some(bad("driver", "flavour", BUILT_IN_KERNEL).advised(Advice::new(machine).filled("{rebuild}")));
    }
    Some(good("driver", "flavour", found.word()))
}

/// Returns a fact if the driver was told to keep all memory of a GPU in BAR1. Pinning then takes no additional part of
/// BAR1.
fn static_bar1(machine: &Machine) -> Option<Fact> {
    let params = machine.all_text(&["/proc/driver/nvidia/params"]);
    STATIC_BAR1.matches(&params).then(|| info("driver", "static BAR1", "asked for (RMForceStaticBar1)"))
}
