// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Advice about the image of `nv_peer_mem`, whose pod loads the module. The module then belongs to the pod, and the
//! node's service and packages have no part in it.
use crate::facts::fact::{Fact, good, warn};
use crate::read::machine::{Machine, PEERMEM, own_module};
use crate::read::place::loads_modules;
use crate::read::pod_state::pod_state;

pub const DAEMON_SET: &str = "the DaemonSet nv-peer-mem";
pub const IMAGE: &str = "the image of nv_peer_mem (docs/kubernetes.md)";
pub const USE_IMAGE: &str = "Use the image of nv_peer_mem (docs/kubernetes.md), whose pod builds and loads the module \
                             for this driver; or the container's own nvidia-peermem (driver.rdma.enabled=true), or \
                             dma-buf; or have the driver on the host (driver.enabled=false), and nv_peer_mem with it.";
pub const IN_ITS_PLACE: &str = "To have nv_peer_mem in its place: driver.rdma.enabled=false, with which the operator \
                                installs the driver of each node again, and the image of nv_peer_mem \
                                (docs/kubernetes.md).";
/// The pod unloads the module when it ends.
pub const RESTART: &str = "delete the pod of the DaemonSet nv-peer-mem on this node (kubectl -n nv-peer-mem get pods \
                           -o wide names it): it unloads the module, and the next pod loads the module again";
pub const SERVES: &str = "The module nvidia_peermem is nv_peer_mem itself, which the pod of the DaemonSet nv-peer-mem \
                          has loaded and keeps: nothing else has to be loaded.";
pub const STOP: &str = "keep the DaemonSet nv-peer-mem from this node, whose pod loads the module again, ";
const LOG: &str = "The pod of the DaemonSet nv-peer-mem builds and loads the module. kubectl -n nv-peer-mem get pods \
                   -o wide names the pod of this node, and kubectl logs shows what it did.";
/// The same inside this pod.
pub const TRIES_AGAIN: &str = "This pod builds and loads the module, and tries again by itself: its log says what it \
                               waits for. If the kernel refuses the module, dmesg on the node says why. A kernel that \
                               demands signatures needs the Secret nv-peer-mem-signing (docs/kubernetes.md, Signed \
                               modules).";

/// Returns how to set a parameter of the pod's module, as NAME=VALUE.
pub fn to_set(setting: &str) -> String {
    format!("Set {setting} in the variable NVPM_PARAMETERS of {DAEMON_SET}, whose new pods load the module with it.")
}

/// Returns whether `nv_peer_mem` is loaded under the name of NVIDIA's module, which only a pod gives it.
pub fn has_its_name(machine: &Machine) -> bool {
    own_module(machine) == PEERMEM
}

/// Returns whether a pod keeps the loaded module, under either name. Under the name `nv_peer_mem`, only the pod's state
/// says so.
pub fn keeps_module(machine: &Machine) -> bool {
    let own = own_module(machine);
    has_its_name(machine)
        || (!own.is_empty() && pod_state(machine).as_ref().as_ref().is_some_and(|pod| pod.name == own))
}

/// Returns the state of the pod on this node, if there is one.
pub fn fact(machine: &Machine) -> Option<Fact> {
    let found = pod_state(machine);
    let pod = found.as_ref().as_ref()?;
    let lasts = lasting(pod.seconds);
    let value = format!("{DAEMON_SET} keeps {} here: {} {lasts}: {}", pod.name, pod.state, pod.reason);
    Some(match pod.state.as_str() {
        "ready" | "held" => good("machine", "pod", value),
        _ => warn("machine", "pod", value).advised(LOG),
    })
}

/// Returns a duration in its largest whole unit.
fn lasting(seconds: u64) -> String {
    let (number, unit) = [(86_400, "d"), (3600, "h"), (60, "min")]
        .into_iter()
        .find(|(length, _)| seconds >= *length)
        .map_or((seconds, "s"), |(length, unit)| (seconds / length, unit));
    format!("for {number} {unit}")
}

/// Returns what to do if the module is missing, or has to be built again, and a pod builds it.
pub fn to_build(machine: &Machine) -> Option<&'static str> {
    if loads_modules(machine) { Some(TRIES_AGAIN) } else { keeps_module(machine).then_some(LOG) }
}
