// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The copy of libibverbs that a protection domain belongs to. A process may have several copies: a
//! Python wheel brings libibverbs under another name, and something else loads the system's.

use core::ops::ControlFlow;

use crate::known;
use crate::loaded::{each_object, Remembered};
use crate::ready;
use crate::verbs::{self, Addresses, Pd, Verbs};

/// The functions of the copy that the process loaded first.
static FIRST: Remembered<5> = Remembered::nothing();

/// Returns the functions of the copy that made `pd`; or, if `pd` does not tell, of the copy that
/// the process loaded first. Without libibverbs there are none.
///
/// If an earlier registration was for the same copy, and `pd` tells, then no lock is taken.
///
/// # Safety
///
/// `pd` is a protection domain, or NULL.
pub(crate) unsafe fn of(pd: *const Pd) -> Verbs {
    // SAFETY: the caller promises it.
    let found = match unsafe { Pd::maker(pd) } {
        0 => None,
        // SAFETY: a copy stays as long as its protection domains.
        maker => unsafe { known::recall(maker) }.or_else(|| copy_at(maker)),
    };
    match found.or_else(first_copy) {
        // SAFETY: `exported` has returned this, and a program that registers memory does not
        // close libibverbs at the same time.
        Some(found) => unsafe { Verbs::new(found) },
        None => Verbs::default(),
    }
}

/// Returns the functions of the copy that is mapped at the address `maker`.
fn copy_at(maker: usize) -> Option<Addresses> {
    let found = each_object(|object, _| {
        if !object.contains(maker as u64) {
            return ControlFlow::Continue(());
        }
        // Another thread may have remembered the copy while this one waited.
        // SAFETY: the object contains `maker`, and stays while it is shown.
        let known = unsafe { known::recall(maker) };
        let found = known.or_else(|| verbs::exported(object));
        if let (None, Some(found)) = (known, found) {
            known::remember(maker, object, found);
        }
        ControlFlow::Break(found)
    });
    found.flatten()
}

/// Returns the functions of the copy that the process loaded first. A copy that another thread is
/// still loading has not made a protection domain.
fn first_copy() -> Option<Addresses> {
    each_object(|object, generation| {
        let known = FIRST.recall(generation);
        if let Some(found) = known {
            return ControlFlow::Break(found);
        }
        // This library and others that wrap the functions give them no versions.
        let is_copy = !object.function(verbs::REG_MR, verbs::FIRST).is_null();
        if !is_copy || !ready::is_relocated(object) {
            return ControlFlow::Continue(());
        }
        let found = verbs::exported(object);
        if let Some(found) = found {
            FIRST.remember(generation, found);
        }
        found.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    })
}
