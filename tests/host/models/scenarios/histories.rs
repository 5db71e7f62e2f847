// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Plays long random histories, in one order each. The other scenarios explore all orders of a few
//! calls. No result is predicted: the models check the contracts in each call, and that nothing is
//! left at the end.

use std::{cell::Cell, rc::Rc};

use proptest::{collection::vec, prelude::*, sample::select};

use super::cast::*;
use crate::{
    explore::{count, explored, Preemptions::Any},
    random,
    rdma::{Registration, Request, KINDS},
    world::{as_process, world},
};

/// The number of histories for each kind of RDMA core, and the largest number of acts in a history.
const HISTORIES: u32 = 100;
const ACTS: usize = 60;

#[derive(Clone, Debug)]
enum Act {
    Allocate(u64),
    Free(u64),
    /// A process registers memory at an address.
    Register(i32, u64, Shape),
    /// A process deregisters one of the registrations.
    Deregister(i32, usize),
    /// The given number of calls of a kind succeed, and the next call fails.
    Fail(usize, u32),
    /// All registrations end, and the module is unloaded and loaded in this mode.
    Reload(bool),
}

/// The registered part of the memory, and the properties of the device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    both_pages: bool,
    fixed: bool,
    device_fails: bool,
    never_complete: bool,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let place = || select(&[A, B][..]);
    let process = || prop_oneof![4 => Just(OWNER), 1 => Just(OTHER)];
    let rarely = || prop::bool::weighted(0.1);
    let shape = (any::<bool>(), any::<bool>(), rarely(), rarely()).prop_map(
        |(both_pages, fixed, device_fails, never_complete)| Shape {
            both_pages,
            fixed,
            device_fails,
            never_complete,
        },
    );
    let act = prop_oneof![
        4 => place().prop_map(Act::Allocate),
        3 => place().prop_map(Act::Free),
        8 => (process(), place(), shape).prop_map(|(who, at, shape)| Act::Register(who, at, shape)),
        6 => (process(), any::<usize>()).prop_map(|(who, which)| Act::Deregister(who, which)),
        2 => (0..4_usize, 0..6_u32).prop_map(|(kind, successes)| Act::Fail(kind, successes)),
        1 => any::<bool>().prop_map(Act::Reload),
    ];
    vec(act, 0..ACTS)
}

fn request(address: u64, shape: Shape) -> Request {
    Request {
        cannot_be_revoked: shape.fixed,
        device_fails: shape.device_fails,
        never_complete: shape.never_complete,
        ..match shape.both_pages {
            true => two_pages(address),
            false => page(address),
        }
    }
}

/// Lets a call of a kind fail after some successes, or never with [`None`].
fn fail(kind: usize, successes: Option<u32>) {
    let world = world();
    let faults = &world.faults;
    let kinds = [
        &faults.allocation,
        &faults.mapping,
        &faults.get,
        &faults.persistent,
    ];
    match successes {
        Some(successes) => kinds[kind].set(successes),
        None => kinds[kind].clear(),
    }
}

/// Ends all registrations. From now on, no call fails.
fn end_all(held: &mut Vec<Rc<Registration>>) {
    (0..4).for_each(|kind| fail(kind, None));
    for registration in held.drain(..) {
        deregister(&registration);
    }
}

fn play(acts: &[Act]) {
    let mut module = Module::revocable();
    let mut held = Vec::new();
    for act in acts {
        match *act {
            Act::Allocate(address) if world().driver.objects(address) == 0 => allocate(address),
            Act::Free(address) if world().driver.objects(address) > 0 => free(address),
            Act::Allocate(_) | Act::Free(_) => {}
            Act::Register(who, address, shape) => {
                held.extend(as_process(who, || register(request(address, shape))).ok());
            }
            Act::Deregister(who, which) => {
                if let Some(at) = which.checked_rem(held.len()) {
                    let registration = held.swap_remove(at);
                    as_process(who, || deregister(&registration));
                }
            }
            Act::Fail(kind, successes) => fail(kind, Some(successes)),
            Act::Reload(persistent) => {
                end_all(&mut held);
                module.unload();
                module = match persistent {
                    true => Module::persistent(),
                    false => Module::revocable(),
                };
            }
        }
    }
    end_all(&mut held);
    for address in [A, B] {
        if world().driver.objects(address) > 0 {
            free(address);
        }
    }
    module.unload();
}

#[test]
fn leave_nothing_behind() {
    let mut interleavings = 0;
    for core in KINDS {
        let total = Cell::new(0);
        random::check(HISTORIES, acts(), |acts| {
            total.set(total.get() + count(Any, core, move || play(&acts)));
        });
        interleavings += total.get();
    }
    explored("random histories", Any, interleavings);
}
