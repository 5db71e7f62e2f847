// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Decides the keeper's next step from the state of the node.
//!
//! Each operator's container has a file that exists while the container is ready. When the file is missing, the
//! container may replace its driver, so the module is not loaded. The OFED container unloads `nvidia_peermem` itself,
//! and does not know `nv_peer_mem`, so `nv_peer_mem` is let go then. The driver's container also knows
//! `nvidia_peermem`, but RHEL's script unloads in a wrong order: `nvidia_uvm` is gone by then, and the script notices
//! nothing. So either name is let go when that container ends.
//!
//! Two more waits follow from these scripts. The driver's manager unloads `nvidia_uvm` before `nvidia_peermem` and
//! `nvidia`, so without `nvidia_uvm` the driver may be on its way out. The script of the older OFED container unloads
//! `nvidia_peermem` before it removes its file (serve.rs).
use crate::node::{Loaded, Node};

const NO_DRIVER: &str = "NVIDIA's driver is not loaded: the module nvidia is missing. The GPU Operator's driver pod loads it, \
                         or the node's own driver package";
const STARTING: &str = "NVIDIA's driver is being loaded";
const NO_UVM: &str = "the module nvidia_uvm is not loaded, so CUDA does not work on this node: the driver's container is \
                      unloading or loading the driver. If this lasts, the container has left the driver half unloaded: \
                      reboot the node";
const NO_CORE: &str = "the RDMA core is not loaded: the module ib_core or ib_uverbs is missing. The Network Operator's OFED \
                       pod loads them, or the node's own RDMA packages";
const OFED_NOT_READY: &str = "the OFED container is not ready (/run/mellanox/drivers/.driver-ready is missing): it may \
                              replace the RDMA core now, and a module above the core would make it fail. If no OFED pod is \
                              to run on this node any more, reboot the node";
const DRIVER_NOT_READY: &str = "the driver's container is not ready (/run/nvidia/validations/.driver-ctr-ready is missing): \
                                it may unload the driver now. The container is ready a minute after it has loaded the \
                                driver";
const NO_PEER_MEMORY: &str = "the RDMA core that is loaded has no peer memory: it is the kernel's own. Where no OFED is to \
                              come, programs use dma-buf, and this pod is not needed";
const NVIDIAS: &str = "NVIDIA's own nvidia_peermem is loaded, and only one module can serve GPU memory. Set \
                       driver.rdma.enabled=false in the ClusterPolicy, so that the driver's pod stops loading it, and unload \
                       it on the node: rmmod nvidia_peermem";
const ASKED: &str = "the module was unloaded on request (nv-peer-mem unload). Restart the pod to load it again";

/// The states of the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Building,
    Loading,
    Ready,
    Held,
    Unloading,
    Unloaded,
    Blocked,
    Failed,
}

impl State {
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Building,
        Self::Loading,
        Self::Ready,
        Self::Held,
        Self::Unloading,
        Self::Unloaded,
        Self::Blocked,
        Self::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Building => "building",
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Held => "held",
            Self::Unloading => "unloading",
            Self::Unloaded => "unloaded",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }

    /// Returns the state with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns whether the module serves.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Held)
    }
}

/// What the keeper does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    Nothing,
    Load,
    Unload,
}

/// The keeper's state, the reason in words, and what to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub state: State,
    pub reason: String,
    pub todo: Do,
}

impl Step {
    fn stay(state: State, reason: impl Into<String>) -> Self {
        Self { state, reason: reason.into(), todo: Do::Nothing }
    }
}

/// Returns the next step towards a module called NAME, of VERSION. ASKED tells whether somebody has asked that the
/// module stays unloaded.
pub fn decide(node: &Node, name: &str, version: &str, asked: bool) -> Step {
    if let Some(own) = node.own() {
        return keep(node, &own, name, version, asked);
    }
    if asked {
        return Step::stay(State::Unloaded, ASKED);
    }
    if node.others().is_some() {
        return Step::stay(State::Blocked, NVIDIAS);
    }
    match wait(node) {
        Some(reason) => Step::stay(State::Waiting, reason),
        None => Step { state: State::Loading, reason: "both neighbours are here".to_owned(), todo: Do::Load },
    }
}

/// Returns why the module cannot be loaded yet; None if it can.
pub fn wait(node: &Node) -> Option<&'static str> {
    let Some(driver) = node.module("nvidia") else { return Some(NO_DRIVER) };
    if !driver.live {
        return Some(STARTING);
    }
    if node.lacks_uvm() {
        return Some(NO_UVM);
    }
    if !node.has_core() {
        return Some(NO_CORE);
    }
    if node.ofed_leaves() {
        return Some(OFED_NOT_READY);
    }
    if node.peer_memory_in().is_empty() {
        return Some(NO_PEER_MEMORY);
    }
    node.driver_leaves().then_some(DRIVER_NOT_READY)
}

/// Returns what happens to OWN, the loaded module of this project. Others may unload the module at any moment.
fn keep(node: &Node, own: &Loaded, name: &str, version: &str, asked: bool) -> Step {
    let Loaded { name: loaded, version: found, .. } = own;
    if !node.registered(loaded) {
        return Step::stay(State::Loading, format!("{loaded} is loaded, and not registered with the RDMA core yet"));
    }
    let serves = format!("{loaded} {found} is registered with the RDMA core");
    let why = if asked {
        "somebody has asked to unload it".to_owned()
    } else if loaded != name {
        let reason = format!(
            "{serves}, under another name than {name}: the node's own service or an earlier pod has loaded it. Unload it \
             there, and this pod loads its own"
        );
        return Step::stay(State::Ready, reason);
    } else if found != version {
        format!("this pod has version {version}")
    } else if name == "nv_peer_mem" && node.ofed_leaves() {
        "the OFED container is ending or starting".to_owned()
    } else if node.driver_leaves() {
        "the driver's container is ending or starting".to_owned()
    } else if node.lacks_uvm() {
        return Step::stay(State::Waiting, NO_UVM);
    } else {
        return Step::stay(State::Ready, serves);
    };
    if own.references > 0 {
        return Step::stay(State::Held, format!("{serves}; {why}, but programs have GPU memory registered"));
    }
    Step { state: State::Unloading, reason: why, todo: Do::Unload }
}

#[cfg(test)]
mod tests;
