// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether the module will be loaded after a boot.
use crate::facts::fact::{Fact, good, info, warn};
use crate::facts::pod;
use crate::read::conf::configured;
use crate::read::machine::{CONF, MODULE, Machine, SERVICE};
use crate::read::modules_load::file_that_loads;
use crate::read::place::loads_modules;

const NAME: &str = "on boot";
const ENABLED: &[&str] = &[
    "/etc/systemd/system/*.wants/nv_peer_mem.service",
    "/etc/rc[2345].d/S*nv_peer_mem",
    "/etc/rc.d/rc[2345].d/S*nv_peer_mem",
];

const LOAD_ON_BOOT: &str = "echo nv_peer_mem >/etc/modules-load.d/nv_peer_mem.conf, or install the package with the \
                            service: docs/installing.md.";
const POD_LOADS: &str = "loaded by the pod of the DaemonSet nv-peer-mem";
const NOT_BOTH: &str = "only one of the two can be loaded";
const SET_ONBOOT: &str = "Write ONBOOT=yes into it, or ONBOOT=no if that is meant.";

pub fn fact(machine: &Machine) -> Option<Fact> {
    if pod::keeps_module(machine) {
        return Some(beside_pod(machine));
    }
    if loads_modules(machine) {
        return None;
    }
    if !machine.exists(SERVICE) {
        let file = file_that_loads(machine, MODULE);
        return Some(if file.is_empty() {
            warn("module", NAME, format!("not loaded: there is no {SERVICE}")).advised(LOAD_ON_BOOT)
        } else {
            good("module", NAME, format!("loaded, by {file}"))
        });
    }
    Some(match configured(machine, "ONBOOT").as_str() {
        "no" => info("module", NAME, format!("no: ONBOOT=no in {CONF}")),
        "unclear" => {
            warn("module", NAME, format!("not loaded: ONBOOT= in {CONF} is neither yes nor no")).advised(SET_ONBOOT)
        }
        "yes" if machine.glob(ENABLED).is_empty() => {
            warn("module", NAME, "not loaded: the service is not enabled").advised(to_enable(machine))
        }
        "yes" => good("module", NAME, "loaded"),
        _ => warn("module", NAME, format!("not loaded: no ONBOOT=yes in {CONF}")).advised(SET_ONBOOT),
    })
}

/// Judges what a boot loads on a node whose module belongs to a pod. The node's own service would load a second one,
/// and the kernel refuses whichever comes later. A pod that keeps the module under its own name finds the one that was
/// loaded, or the service leaves the module to the pod.
fn beside_pod(machine: &Machine) -> Fact {
    if !pod::has_its_name(machine) {
        return good("module", NAME, POD_LOADS);
    }
    let file = file_that_loads(machine, MODULE);
    if !file.is_empty() {
        let value = format!("{POD_LOADS}, and {file} loads {MODULE}: {NOT_BOTH}");
        return warn("module", NAME, value).advised(format!("Remove {MODULE} from {file}."));
    }
    if !machine.glob(ENABLED).is_empty() && configured(machine, "ONBOOT") == "yes" {
        let value = format!("{POD_LOADS}, and the service loads {MODULE}: {NOT_BOTH}");
        return warn("module", NAME, value).advised(format!("Write ONBOOT=no into {CONF}."));
    }
    good("module", NAME, POD_LOADS)
}

fn to_enable(machine: &Machine) -> &'static str {
    if machine.exists("/run/systemd/system") {
        "systemctl enable nv_peer_mem"
    } else if machine.exists("/etc/debian_version") {
        "update-rc.d nv_peer_mem defaults"
    } else {
        "chkconfig --add nv_peer_mem"
    }
}
