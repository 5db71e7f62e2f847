// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The keeper's next step, in each state of a node.
use super::*;
use crate::files::Files;
use crate::node::{DRIVER_READY, OFED_READY};

const MINE: &str = "nvidia_peermem";
const PLAIN: &str = "nv_peer_mem";

fn step(node: &Files) -> Step {
    decide(node, MINE, "2.0.0", false)
}

fn named(node: &Files, name: &str) -> Step {
    decide(node, name, "2.0.0", false)
}

fn waits(node: &Files, reason: &str) {
    assert_eq!(step(node), Step::stay(State::Waiting, reason));
}

fn loads(node: &Files) {
    assert_eq!(step(node).todo, Do::Load, "{:?}", step(node));
}

#[test]
fn the_first_start() {
    let node = Files::new();
    waits(&node, NO_DRIVER);
    node.load_build("nvidia", "1", 0, "coming");
    waits(&node, STARTING);
    node.load("nvidia");
    waits(&node, NO_CORE);
    node.load("ib_core");
    waits(&node, NO_CORE);
    node.load_core("1", "");
    waits(&node, NO_PEER_MEMORY);
    node.load_core("2", "ib_core");
    loads(&node);
}

/// OFED replaces the kernel's own core.
#[test]
fn the_core_gets_peer_memory() {
    let node = Files::new();
    node.load("nvidia");
    node.load_core("inbox", "");
    waits(&node, NO_PEER_MEMORY);
    node.load_core("25.10", "ib_core");
    assert_eq!(node.peer_memory_in(), "ib_core");
    node.load_core("inbox", "");
    assert_eq!(node.peer_memory_in(), "");
}

#[test]
fn either_module_of_the_core_has_peer_memory() {
    for exporter in ["ib_core", "ib_uverbs"] {
        let node = Files::new();
        node.load("nvidia");
        node.load_core("1", exporter);
        assert_eq!(node.peer_memory_in(), exporter);
        loads(&node);
    }
}

/// The driver's manager unloads `nvidia_uvm` before `nvidia_peermem` and `nvidia`. A module that is loaded between
/// these steps would make the manager fail.
#[test]
fn the_drivers_container_unloads() {
    let node = Files::ready();
    node.contain_driver();
    loads(&node);
    node.remove("/sys/module/nvidia_uvm");
    waits(&node, NO_UVM);
    // The node's own driver loads nvidia_uvm only when a program uses CUDA.
    node.remove("/run/nvidia");
    loads(&node);
}

/// The root directory appears after the driver is loaded, and can stay after a kill.
#[test]
fn each_sign_of_a_drivers_container() {
    for sign in ["nvidia-driver.pid", "driver/usr/bin/nvidia-smi"] {
        let node = Files::ready();
        node.put("/run/nvidia/driver/lib/firmware/x", "");
        loads(&node);
        node.put(&format!("/run/nvidia/{sign}"), "");
        waits(&node, NO_UVM);
    }
}

/// The older container has no lock. Its directory usr/src stays when it ends.
#[test]
fn each_sign_of_an_ofed_container() {
    for sign in [".lock", "usr/src/x"] {
        let node = Files::ready();
        node.put("/run/mellanox/drivers/other", "");
        loads(&node);
        node.put(&format!("/run/mellanox/drivers/{sign}"), "");
        waits(&node, OFED_NOT_READY);
        node.put(OFED_READY, "");
        loads(&node);
    }
}

/// On RHEL, the container's script unloads `nvidia_uvm`, fails at `nvidia`, which `nvidia_peermem` holds, unloads
/// `nvidia_peermem`, and ends without an error. The container's file with its process number and the container's root
/// directory are gone then. The next container does not load `nvidia_uvm`.
#[test]
fn the_drivers_container_has_left_half_a_driver() {
    let node = Files::ready();
    node.put("/run/nvidia/nvidia-driver.state", "digest\n");
    waits(&node, NO_UVM);
    node.load("nvidia_uvm");
    loads(&node);
}

/// The container has unloaded the module, and unloads the core after minutes.
#[test]
fn the_ofed_container_is_not_ready() {
    let node = Files::ready();
    node.contain_ofed();
    loads(&node);
    node.remove(OFED_READY);
    waits(&node, OFED_NOT_READY);
    // Nothing but the lock is left when the container is away.
    node.remove("/run/mellanox/drivers/.lock");
    loads(&node);
}

#[test]
fn nvidias_module() {
    let node = Files::ready();
    node.load_build("nvidia_peermem", "570.195.03", 0, "live");
    for name in [MINE, PLAIN] {
        assert_eq!(named(&node, name), Step::stay(State::Blocked, NVIDIAS));
    }
}

/// The node's own service has loaded the module and the marker.
#[test]
fn the_marker_is_not_nvidias_module() {
    let node = Files::ready();
    node.load_own(PLAIN, "2.0.0", 0);
    node.load_build("nvidia_peermem", "2.0.0", 0, "live");
    assert_eq!(named(&node, PLAIN).state, State::Ready);
    let there = named(&node, MINE);
    assert!(there.state == State::Ready && there.reason.contains("under another name than nvidia_peermem"));
}

#[test]
fn ready() {
    for name in [MINE, PLAIN] {
        let node = Files::ready();
        node.load_own(name, "2.0.0", 0);
        let reason = format!("{name} 2.0.0 is registered with the RDMA core");
        assert_eq!(named(&node, name), Step::stay(State::Ready, reason));
        assert!(named(&node, name).state.is_ready());
    }
}

/// An operator's script unloads the module while the pod looks at the node.
#[test]
fn unloaded_at_any_moment() {
    let node = Files::ready();
    node.load_own(MINE, "2.0.0", 0);
    let own = node.own().unwrap();
    node.remove("/sys/module/nvidia_peermem");
    assert!(!keep(&node, &own, MINE, "2.0.0", false).state.is_ready());
    loads(&node);
}

/// Cores with a directory in sysfs show their clients there.
#[test]
fn not_registered() {
    let node = Files::new();
    node.load_core("1", "ib_core");
    node.load_own(MINE, "2.0.0", 0);
    node.put("/sys/kernel/mm/memory_peers/nv_mem/version", "");
    let ready = || step(&node).state.is_ready();
    assert!(ready());
    node.remove("/sys/kernel/mm/memory_peers/nv_mem");
    assert!(!ready());
    node.remove("/sys/kernel/mm/memory_peers");
    node.remove("/sys/module/ib_core/holders/nvidia_peermem");
    assert!(!ready());
    node.put("/sys/module/ib_uverbs/holders/nvidia_peermem", "");
    assert!(ready());
    node.load_own(MINE, "2.0.0", 0);
    node.put("/sys/module/nvidia_peermem/initstate", "coming\n");
    assert!(!ready());
}

#[test]
fn another_version() {
    for (references, then) in [(0, Do::Unload), (1, Do::Nothing)] {
        let node = Files::new();
        node.load_core("1", "ib_core");
        node.load_own(MINE, "1.9.0", references);
        let there = step(&node);
        assert!(there.todo == then && there.reason.contains("this pod has version 2.0.0"));
        assert_eq!(there.state.is_ready(), references > 0);
    }
}

#[test]
fn asked_to_unload() {
    for (references, then) in [(0, Do::Unload), (2, Do::Nothing)] {
        let node = Files::ready();
        assert_eq!(decide(&node, MINE, "2.0.0", true), Step::stay(State::Unloaded, ASKED));
        node.load_own(MINE, "2.0.0", references);
        assert_eq!(decide(&node, MINE, "2.0.0", true).todo, then);
    }
}

#[test]
fn a_container_ends() {
    for (name, away, goes) in [
        (PLAIN, DRIVER_READY, true),
        (PLAIN, OFED_READY, true),
        (MINE, DRIVER_READY, true),
        // The OFED container unloads this name itself.
        (MINE, OFED_READY, false),
    ] {
        let node = Files::ready();
        node.contain_driver();
        node.contain_ofed();
        node.load_own(name, "2.0.0", 0);
        assert_eq!(named(&node, name).state, State::Ready);
        node.remove(away);
        assert_eq!(named(&node, name).todo, if goes { Do::Unload } else { Do::Nothing });
        node.load_own(name, "2.0.0", 1);
        let held = named(&node, name);
        assert_eq!((held.state, held.todo), (if goes { State::Held } else { State::Ready }, Do::Nothing));
        node.remove(&format!("/sys/module/{name}"));
        let reason = if away == DRIVER_READY { DRIVER_NOT_READY } else { OFED_NOT_READY };
        assert_eq!(named(&node, name), Step::stay(State::Waiting, reason));
    }
}

/// An early version of the operator has no file that says that the driver's container is ready.
#[test]
fn an_early_operator() {
    let node = Files::ready();
    node.contain_driver();
    node.remove("/run/nvidia/validations");
    loads(&node);
}

/// The driver's container has left `nvidia_uvm` out, and reports success.
#[test]
fn no_cuda() {
    let node = Files::ready();
    node.contain_driver();
    node.load_own(MINE, "2.0.0", 0);
    assert_eq!(step(&node).state, State::Ready);
    node.remove("/sys/module/nvidia_uvm");
    waits(&node, NO_UVM);
}
