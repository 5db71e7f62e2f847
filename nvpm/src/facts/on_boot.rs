// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges the files that name modules for each boot: a module that this node cannot load makes systemd-modules-load
//! fail, at each boot.
use crate::facts::fact::{Fact, info, warn};
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{Machine, base};
use crate::read::modules_load::{Line, loaded_on_boot};
use crate::read::pci::gpus;
use crate::read::ways;

/// These modules need NVIDIA's driver, and the driver needs a GPU.
const OF_GPUS: &[&str] = &[
    "nvidia",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
    "nvidia_peermem",
    "efa_nv_peermem",
    "gdrdrv",
    "nvidia_fs",
];
const NO_GPU: &str = "this node has no NVIDIA GPU";
const GIVEN_AWAY: &str = "the GPUs are given to virtual machines";
const NO_CORE: &str = "the RDMA core has no peer memory, and nvidia_peermem answers Invalid argument";

/// Returns the lines with modules that need a GPU, on a node that has none.
pub fn without_gpu(machine: &Machine) -> Vec<Line> {
    if !gpus(machine).is_empty() && !ways::given_away(machine) {
        return Vec::new();
    }
    let lines = loaded_on_boot(machine);
    let is_vain = |line: &&Line| OF_GPUS.contains(&line.module.as_str()) && !machine.loaded(&line.module);
    lines.iter().filter(is_vain).cloned().collect()
}

pub fn remove(lines: &[Line]) -> String {
    let lines = lines.iter().map(text_of).collect::<Vec<_>>().join(", ");
    format!("Remove {lines}. Then systemctl restart systemd-modules-load.")
}

/// An update would bring back the line of a package's file.
fn text_of(line: &Line) -> String {
    let text = format!("the line {} from {}", line.module, line.file);
    if line.file.starts_with("/etc/") {
        return text;
    }
    let name = base(&line.file);
    format!("{text} (or hide this file of a package: ln -s /dev/null /etc/modules-load.d/{name})")
}

pub fn fact(machine: &Machine) -> Option<Fact> {
    let found = without_gpu(machine);
    if !found.is_empty() {
        let names: Vec<String> = found.iter().map(|line| format!("{} ({})", line.module, line.file)).collect();
        let why = if gpus(machine).is_empty() { NO_GPU } else { GIVEN_AWAY };
        let names = names.join(", ");
        let value = format!("{names} cannot be loaded, because {why}: systemd-modules-load fails at each boot");
        return Some(warn("driver", "modules-load.d", value).advised(remove(&found)));
    }
    let lines = loaded_on_boot(machine);
    let peermem: Vec<Line> = lines.iter().filter(|line| line.module == "nvidia_peermem").cloned().collect();
    let is_refused = machine.loaded("ib_core") && peer_memory_in(machine).is_empty();
    let first = peermem.first()?;
    if !is_refused || machine.loaded("nvidia_peermem") {
        return None;
    }
    let value = format!("nvidia_peermem ({}) cannot be loaded, because {NO_CORE}", first.file);
    Some(info("driver", "modules-load.d", value).advised(remove(&peermem)))
}
