// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says which modules and which service keep the NVIDIA driver from being unloaded.
use crate::facts::fact::{Fact, info};
use crate::facts::pod;
use crate::read::machine::{Machine, PEERMEM, base};
use crate::read::ways;

/// The order in which modules have to go before nvidia can.
const USERS: &[&str] = &[
    "nv_peer_mem",
    "nvidia_peermem",
    "efa_nv_peermem",
    "nvidia_fs",
    "gdrdrv",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
];
const PERSISTENCED: &str = "/run/nvidia-persistenced/*.pid";
const UNITS: &[&str] = &[
    "/etc/systemd/system/nvidia-persistenced.service",
    "/usr/lib/systemd/system/nvidia-persistenced.service",
    "/lib/systemd/system/nvidia-persistenced.service",
];
const HOLDS_BAR1: &str = "gdrdrv pins GPU memory and uses BAR1, as registrations do";

pub fn fact(machine: &Machine) -> Option<Fact> {
    if !machine.loaded("nvidia") {
        return None;
    }
    let holds = |name: &&&str| machine.loaded(name) && holds(machine, name);
    let modules: Vec<&str> = USERS.iter().filter(holds).copied().collect();
    let service = (!machine.glob(&[PERSISTENCED]).is_empty()).then_some("nvidia-persistenced");
    if modules.is_empty() && service.is_none() {
        return None;
    }
    let mut value = modules.iter().copied().chain(service).collect::<Vec<_>>().join(", ");
    if modules.contains(&"gdrdrv") {
        value = format!("{value}; {HOLDS_BAR1}");
    }
    let how = if machine.glob(UNITS).is_empty() { "end" } else { "systemctl stop" };
    let stop = service.map(|service| format!("{how} {service}, ")).unwrap_or_default();
    let pod = if pod::keeps_module(machine) { pod::STOP } else { "" };
    let modules = modules.iter().copied().chain(["nvidia"]).collect::<Vec<_>>().join(" ");
    let advice = format!(
        "Only to load another driver without a reboot: end the programs that use a GPU (fuser -v /dev/nvidia*), \
         {stop}{pod}then modprobe -r {modules}."
    );
    Some(info("driver", "in use by", value).advised(advice))
}

/// Returns whether the module uses nvidia, directly or by another of its modules. The marker of `nv_peer_mem` has the
/// name `nvidia_peermem`, and goes with `nv_peer_mem`.
fn holds(machine: &Machine, name: &str) -> bool {
    if name == PEERMEM && machine.exists(ways::MARKER) {
        return false;
    }
    let holders = machine.glob(&["/sys/module/nvidia/holders/*", "/sys/module/nvidia_*/holders/*"]);
    holders.iter().any(|holder| base(holder) == name)
}
