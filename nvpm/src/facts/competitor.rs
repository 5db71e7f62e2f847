// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges `nvidia_peermem`, NVIDIA's own module. Only one module can register GPU memory, so `nvidia_peermem` may be in
//! the way of `nv_peer_mem`. The module of this name may also be `nv_peer_mem` itself, or its marker.
use crate::facts::advice::{UNLOAD_PEERMEM, service};
use crate::facts::fact::{Fact, bad, good, info, warn};
use crate::facts::{peermem, pod};
use crate::read::machine::{Machine, PEERMEM, loaded_version, module_wanted};
use crate::read::modules_load::file_that_loads;
use crate::read::place::driver_in_container;
use crate::read::ways;

const OF_OPERATOR: &str = "it belongs to the GPU Operator, and the packages of nv_peer_mem here are of no use";
const ONLY_WAY: &str = "nothing else here serves GPU memory";
const ONLY_ONE: &str = "Remove nvidia-peermem from that file: only one module can serve GPU memory.";

pub fn fact(machine: &Machine) -> Fact {
    if pod::has_its_name(machine) {
        return under_this_name(machine);
    }
    if machine.exists(ways::MARKER) {
        let value = "a name only, for programs that look for it: it belongs to nv_peer_mem";
        return good("driver", PEERMEM, value);
    }
    if !module_wanted(machine) {
        return unrivalled(machine);
    }
    if machine.loaded(PEERMEM) {
        let value = "loaded: it serves the same memory, and only one module can";
        if driver_in_container(machine) {
            return warn("driver", PEERMEM, format!("{value}; {OF_OPERATOR}")).advised(pod::IN_ITS_PLACE);
        }
        let advice = format!("{UNLOAD_PEERMEM} && {}", service(machine, "restart"));
        return bad("driver", PEERMEM, value).advised(advice);
    }
    let file = file_that_loads(machine, PEERMEM);
    if !file.is_empty() {
        let value = format!("not loaded now, but {file} loads it on boot");
        return warn("driver", PEERMEM, value).advised(ONLY_ONE);
    }
    good("driver", PEERMEM, "not loaded, so it does not compete")
}

/// Returns the fact if `nv_peer_mem` itself is loaded under the name `nvidia_peermem`.
fn under_this_name(machine: &Machine) -> Fact {
    let value = format!("nv_peer_mem {} under this name, and not NVIDIA's", loaded_version(machine, PEERMEM));
    let file = file_that_loads(machine, PEERMEM);
    if file.is_empty() || peermem::on_disk(machine).is_empty() {
        return good("driver", PEERMEM, format!("{value} module"));
    }
    warn("driver", PEERMEM, format!("{value}; {file} loads NVIDIA's on boot")).advised(ONLY_ONE)
}

/// Judges `nvidia_peermem` on a node that is not meant to have `nv_peer_mem`.
fn unrivalled(machine: &Machine) -> Fact {
    if machine.loaded(PEERMEM) {
        return info("driver", PEERMEM, "loaded");
    }
    let on_disk = peermem::on_disk(machine);
    if on_disk.is_empty() {
        return info("driver", PEERMEM, "not loaded");
    }
    let mut value = "not loaded, and installed".to_owned();
    if let Some(version) = on_disk.get("version").filter(|_| !peermem::fits(machine)) {
        value = format!("{value} for driver {version}, which is not loaded");
    }
    if peermem::missed(machine) {
        return bad("driver", PEERMEM, format!("{value}: {ONLY_WAY}")).advised(peermem::LOAD);
    }
    info("driver", PEERMEM, value)
}
