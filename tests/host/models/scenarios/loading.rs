// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests loading the module. The steps must have the right order, and nothing may be left after a
//! step has failed.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{spawn, world},
};

/// Returns the names of the clients that the files show.
fn shown() -> [Option<&'static str>; 3] {
    let names = world().linux.files.names().expect("there are files");
    names.map(|name| Some(name?.to_str().unwrap()))
}

#[test]
fn with_three_clients() {
    explore(Any, || {
        let module = Module::persistent();
        let names = ["nv_mem", "nv_mem_revocable", "nv_mem_fixed"];
        assert_eq!(world().rdma.names(), names);
        assert_eq!(shown(), names.map(Some));
        module.unload();
    });
}

#[test]
fn with_two_clients() {
    explore(Any, || {
        let module = Module::revocable();
        assert_eq!(world().rdma.names(), ["nv_mem", "nv_mem_nc"]);
        assert_eq!(shown(), [None, Some("nv_mem"), Some("nv_mem_nc")]);
        module.unload();
    });
}

#[test]
fn not_beside_another() {
    explore(Any, || {
        world().faults.other_serves.set(true);
        assert_eq!(Module::not_loaded(true), Some(-16));
    });
}

/// Lets each step fail. The steps connect the module to `nv_peer_mem_callback`, register each
/// client, and create each of the two kinds of files.
#[test]
fn not_if_a_step_fails() {
    explore(Any, || {
        for (step, error) in [-93, -22, -22, -22, -12, -12].into_iter().enumerate() {
            let why = Module::refused(true, step as u32);
            assert_eq!(why, Some(error), "step {step}");
            assert!(world().rdma.names().is_empty(), "step {step}");
            assert_eq!(world().linux.files.names(), None, "step {step}");
        }
        for (step, error) in [-93, -22, -22, -12, -12].into_iter().enumerate() {
            assert_eq!(Module::refused(false, step as u32), Some(error), "{step}");
        }
        assert_eq!(
            Module::refused(false, 5),
            None,
            "loading has more than five steps"
        );
    });
}

/// A core gives the module no function that revokes registrations. No client may stay registered,
/// because the module cannot be loaded.
#[test]
fn not_with_a_core_that_cannot_revoke() {
    explore(Any, || {
        for persistent in [true, false] {
            world().faults.no_invalidate.set(true);
            assert_eq!(Module::not_loaded(persistent), Some(-22));
            assert!(world().rdma.names().is_empty());
            world().faults.no_invalidate.set(false);
            assert_eq!(Module::not_loaded(persistent), None);
        }
    });
}

/// Lets each allocation fail. Loading allocates the two tables, a structure for each client, and one
/// for the function that revokes.
#[test]
fn not_if_an_allocation_fails() {
    explore(Any, || {
        for successes in 0..6 {
            world().faults.allocation.set(successes);
            assert_eq!(Module::not_loaded(true), Some(-12), "after {successes}");
        }
        world().faults.allocation.set(6);
        assert_eq!(
            Module::not_loaded(true),
            None,
            "loading allocates more than six times"
        );
    });
}

/// If the last step of loading fails, no registration may have succeeded before.
#[test]
fn not_while_somebody_registers() {
    explore(Any, || {
        // Four steps succeed, which are the callbacks, two clients, and the first kind of files.
        // The next step fails.
        refused_while_somebody_registers(4, -12);
    });
}

/// A registration may succeed while the module is being loaded, but only after every step of
/// loading has succeeded.
#[test]
fn while_somebody_registers() {
    explore(Any, || {
        allocate(A);
        let registering = spawn("reg", OWNER, || end(register(page(A))));
        let module = Module::revocable();
        registering.join().unwrap();
        module.unload();
        free(A);
    });
}
