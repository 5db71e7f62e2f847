// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges a node whose drivers belong to the containers of NVIDIA's operators: which module is loaded, and whether an
//! operator can replace its driver under that module.
use crate::facts::fact::{Fact, good, info, warn};
use crate::facts::pod::{self, IMAGE};
use crate::read::machine::{Machine, SERVICE, own_module};
use crate::read::place::{container, driver_in_container, ofed_in_container};
use crate::read::ways;

// A node whose driver is in the GPU Operator's container, by the module that is loaded.
const OF_CONTAINER: &str = "NVIDIA's driver is that of the GPU Operator's container (/run/nvidia/driver): a module that \
                            is built on the host is not for it";
const TAKES_UVM: &str = "NVIDIA's driver is that of the GPU Operator's container, and nv_peer_mem is loaded: the next \
                         update of the driver removes nvidia_uvm and then fails, because nv_peer_mem uses nvidia";
const LETS_DRIVER_GO: &str = "NVIDIA's driver is that of the GPU Operator's container, which unloads nv_peer_mem by its \
                              name nvidia_peermem before it replaces the driver; while GPU memory is registered, the \
                              driver stays, and the driver pod tries again";
const HAS_ITS_OWN: &str = "NVIDIA's driver is that of the GPU Operator's container, and so is nvidia_peermem, which is \
                           loaded and serves";

// A node whose OFED is in the Network Operator's container, by the module that is loaded.
const OFED_OF_CONTAINER: &str = "OFED is that of the Network Operator's container (/run/mellanox/drivers)";
const TAKES_NICS: &str = "OFED is that of the Network Operator's container, and nv_peer_mem is loaded: a restart of \
                          that container (OFED up to 25.10) removes mlx5_core, then fails at ib_uverbs or ib_core, \
                          which nv_peer_mem uses, and this node has lost its NICs";
const LETS_OFED_GO: &str = "OFED is that of the Network Operator's container, which unloads nv_peer_mem by its name \
                            nvidia_peermem at each start, before anything else; while GPU memory is registered, it \
                            ends before it unloads anything, and tries again";

const LOADS_AGAIN: &str = "Afterwards the pod of the DaemonSet nv-peer-mem loads the module again. If a restart waits, \
                           end the programs that nvpm regions names on the node.";
/// How to unload a module that the pod keeps under the name `nv_peer_mem`.
const KEEP_AWAY: &str = "keep the DaemonSet nv-peer-mem from this node, whose pod unloads the module when it leaves";
/// How to unload `nv_peer_mem` from a pod, which does not have the node's service.
const ON_THE_NODE: &str = "on the node, stop and disable the service nv_peer_mem";

/// Returns a fact if the GPU Operator's container owns the driver.
pub fn driver_container(machine: &Machine) -> Option<Fact> {
    if !driver_in_container(machine) {
        return None;
    }
    let name = "driver container";
    Some(if pod::has_its_name(machine) {
        good("machine", name, LETS_DRIVER_GO).advised(LOADS_AGAIN)
    } else if !own_module(machine).is_empty() {
        let stop = to_stop(machine, "disable --now");
        warn("machine", name, TAKES_UVM).advised(format!(
            "Before the driver is updated: {stop}. To end a loop of restarts, the same; the driver pod's next attempt \
             succeeds. With {IMAGE} no hand is needed."
        ))
    } else if ways::peermem_loaded(machine) {
        info("machine", name, HAS_ITS_OWN).advised(pod::IN_ITS_PLACE)
    } else {
        info("machine", name, OF_CONTAINER).advised(pod::USE_IMAGE)
    })
}

/// Returns a fact if the Network Operator's container owns OFED.
pub fn ofed_container(machine: &Machine) -> Option<Fact> {
    if !ofed_in_container(machine) {
        return None;
    }
    let name = "OFED container";
    Some(if pod::has_its_name(machine) {
        good("machine", name, LETS_OFED_GO).advised(LOADS_AGAIN)
    } else if !own_module(machine).is_empty() {
        warn("machine", name, TAKES_NICS).advised(to_let_go(machine))
    } else if ways::peermem_loaded(machine) {
        let value = format!("{OFED_OF_CONTAINER}, which unloads nvidia_peermem at each start");
        info("machine", name, value).advised(format!(
            "The GPU Operator's driver pod loads nvidia_peermem again (driver.rdma.enabled=true). If the driver is the \
             node's own, nobody does: modprobe nvidia-peermem on the node after each start, or use {IMAGE}."
        ))
    } else {
        info("machine", name, OFED_OF_CONTAINER).advised(format!(
            "Use {IMAGE}, which builds and loads the module for this OFED. On the host, the build needs OFA_KERNEL= in \
             /etc/nv_peer_mem-build.conf, and each restart of the container needs a hook."
        ))
    })
}

/// Returns how to keep a restart of OFED from failing at `nv_peer_mem`.
fn to_let_go(machine: &Machine) -> String {
    let stop = to_stop(machine, "stop");
    format!(
        "Before the pod of OFED is restarted or updated: {stop}. For restarts without a hand, use {IMAGE}, or give the \
         container the hooks OPENIBD_PRE_STOP and OPENIBD_POST_START, and SKIP_PREFLIGHT_CHECKS=\"false\". If the NICs \
         are gone: rmmod nv_peer_mem at the console; the container's next attempt loads OFED."
    )
}

/// Returns the command that unloads `nv_peer_mem` with VERB of systemctl. A pod does not have the node's service, and a
/// module that `make install` has installed has none.
fn to_stop(machine: &Machine, verb: &str) -> String {
    if pod::keeps_module(machine) {
        KEEP_AWAY.to_owned()
    } else if !container(machine).is_empty() {
        ON_THE_NODE.to_owned()
    } else if machine.exists(SERVICE) {
        format!("systemctl {verb} nv_peer_mem")
    } else {
        "rmmod nv_peer_mem".to_owned()
    }
}
