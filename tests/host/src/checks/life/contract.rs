// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Neighbours that keep their contracts: every order of their events.

use super::{
    neighbours::{Core, Neighbours, Seen, Setting},
    walk::every_sequence,
};

const SETTING: Setting = Setting {
    core: Core::Current,
    ticket: 0,
    one_thread: false,
    other_process: false,
    undone_by_release: false,
};

fn walk(setting: Setting) -> Seen {
    let seen = Seen::default();
    let sequences = every_sequence(|| Neighbours::new(setting, &seen));
    seen.sequences.add(sequences);
    println!("{setting:?}: {seen:?}");
    seen
}

/// What two threads can do to each other did all happen.
fn assert_telling(seen: &Seen) {
    for counter in [
        &seen.waits,
        &seen.forgets,
        &seen.tells,
        &seen.nothings,
        &seen.revoked_before_bind,
        &seen.revoked_before_mapped,
        &seen.unmap_lost,
        &seen.put_lost,
        &seen.rests,
        &seen.mapping_last,
    ] {
        assert!(counter.get() > 0, "{seen:?}");
    }
}

#[test]
fn current_core() {
    let seen = walk(SETTING);
    assert_telling(&seen);
    assert!(seen.release_waits.get() > 0);
    assert!(seen.release_waits_for_rest.get() > 0);
    assert_eq!(seen.release_inside.get(), 0);
}

#[test]
fn core_that_deregisters_under_its_lock() {
    let seen = walk(Setting {
        core: Core::Locked,
        ticket: 1,
        ..SETTING
    });
    assert_telling(&seen);
}

#[test]
fn core_that_deregisters_inside_the_invalidation() {
    let seen = walk(Setting {
        core: Core::Reentrant,
        ticket: u64::MAX,
        ..SETTING
    });
    assert_telling(&seen);
    assert!(seen.release_inside.get() > 0);
    assert!(seen.release_waits.get() > 0);
    assert!(seen.release_waits_for_rest.get() > 0);
}

#[test]
fn deregistration_from_another_process() {
    for core in [Core::Current, Core::Locked, Core::Reentrant] {
        let seen = walk(Setting {
            core,
            other_process: true,
            ..SETTING
        });
        assert_telling(&seen);
    }
}

#[test]
fn memory_freed_by_the_thread_that_registered_it() {
    for core in [Core::Current, Core::Locked, Core::Reentrant] {
        let seen = walk(Setting {
            core,
            one_thread: true,
            ..SETTING
        });
        assert!(seen.tells.get() > 0);
        assert_eq!(seen.release_waits.get(), 0);
    }
}

#[test]
fn every_setting() {
    let (mut sequences, mut steps) = (0, 0);
    for core in [Core::Current, Core::Locked, Core::Reentrant] {
        for one_thread in [false, true] {
            for other_process in [false, true] {
                let seen = walk(Setting {
                    core,
                    one_thread,
                    other_process,
                    ..SETTING
                });
                sequences += seen.sequences.get();
                steps += seen.steps.get();
            }
        }
    }
    println!("{sequences} sequences, {steps} steps");
    assert!(sequences > 5_000);
}

/// When `release` has returned, the core may let go of the device: no mapping for it may be left
/// to undo, in any thread.
#[test]
fn no_mapping_outlives_release() {
    for core in [Core::Current, Core::Locked, Core::Reentrant] {
        walk(Setting {
            core,
            undone_by_release: true,
            ..SETTING
        });
    }
}
