// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! NVIDIA's own module `nvidia_peermem`, which can take the place of `nv_peer_mem` on this node.
use std::rc::Rc;

use crate::facts::advice::forbidding_line;
use crate::facts::expression::Expression;
use crate::facts::security::refused;
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{DESCRIPTION, Fields, Machine, PEERMEM, modinfo, module_wanted};
use crate::read::pci::{gpus, nics};
use crate::read::peers::none_asks;
use crate::read::place::container;
use crate::read::ways;

pub const LOAD: &str = "modprobe nvidia-peermem; for each boot: echo nvidia-peermem \
                        >/etc/modules-load.d/nvidia-peermem.conf. It came with NVIDIA's driver; if it answers Invalid \
                        argument, install the driver again, now that this RDMA core is there. Or install nv_peer_mem \
                        in its place: docs/installing.md.";

static NAMED: Expression = Expression::new(r"(?m)^[^:\n]*\b(nvidia[\w-]*[-_]peermem)\.ko[^:\n]*:");

/// Returns the fields of NVIDIA's installed `nvidia_peermem`. None if this kernel has no such module. The description
/// shows whether a file of this name is `nv_peer_mem`. Debian's files have another name, which the list of all modules
/// has.
pub fn on_disk(machine: &Machine) -> Rc<Fields> {
    machine.once(compute_on_disk)
}

fn compute_on_disk(machine: &Machine) -> Fields {
    let fields = modinfo(machine, PEERMEM);
    if fields.get("description").is_some_and(|description| description == DESCRIPTION) {
        return Fields::new();
    }
    if !fields.is_empty() {
        return fields.as_ref().clone();
    }
    let dependencies = machine.all_text(&[&format!("/lib/modules/{}/modules.dep", machine.kernel)]);
    let Some(name) = NAMED.every(&dependencies).min() else { return Fields::new() };
    let fields = modinfo(machine, name);
    if fields.is_empty() { Fields::from([("name".to_owned(), name.to_owned())]) } else { fields.as_ref().clone() }
}

/// Returns whether the installed `nvidia_peermem` is that of the loaded NVIDIA driver, because the kernel refuses
/// another one.
pub fn fits(machine: &Machine) -> bool {
    let loaded = machine.text("/sys/module/nvidia/version");
    loaded.is_empty() || on_disk(machine).get("version").is_none_or(|version| *version == loaded)
}

/// Returns whether `nvidia_peermem` is installed here and not loaded, and nothing that can be seen keeps it from being
/// loaded and used.
fn can_load(machine: &Machine) -> bool {
    !on_disk(machine).is_empty()
        && fits(machine)
        && !machine.loaded(PEERMEM)
        && !peer_memory_in(machine).is_empty()
        && container(machine).is_empty()
        && refused(machine, PEERMEM).is_none()
        && forbidding_line(machine, PEERMEM).is_none()
}

/// Returns whether loading `nvidia_peermem` is the first thing to do: this node has no way to register GPU memory,
/// `nv_peer_mem` is not meant to be here, and `nvidia_peermem` can be loaded.
pub fn missed(machine: &Machine) -> bool {
    *machine.once(compute_missed)
}

fn compute_missed(machine: &Machine) -> bool {
    !gpus(machine).is_empty()
        && !ways::given_away(machine)
        && !ways::excluded_gpus(machine)
        && (nics(machine).is_empty() || none_asks(machine).is_empty())
        && !module_wanted(machine)
        && !ways::dma_buf_serves(machine)
        && can_load(machine)
}
