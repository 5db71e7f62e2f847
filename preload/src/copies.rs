// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Finds the copy of libibverbs to which a protection domain belongs. A process may have several
//! copies. For example, a Python wheel contains libibverbs under another name, while another part
//! of the process loads the system's libibverbs.

use core::ops::ControlFlow;

use crate::known;
use crate::loaded::{each_object, Remembered};
use crate::ready;
use crate::verbs::{self, Addresses, Pd, Verbs};

/// The functions of the copy that the process loaded first.
static FIRST: Remembered<5> = Remembered::nothing();

/// Returns the functions of the copy that made `pd`. If `pd` does not show which copy made it,
/// returns the functions of the copy that the process loaded first. If the process has no
/// libibverbs, the result has no functions.
///
/// The function takes no lock if two conditions hold: `pd` shows its copy, and an earlier
/// registration has used the same copy.
///
/// # Safety
///
/// `pd` is a protection domain, or NULL.
pub(crate) unsafe fn of(pd: *const Pd) -> Verbs {
    // SAFETY: the caller promises it.
    let found = match unsafe { Pd::maker(pd) } {
        0 => None,
        // SAFETY: a copy stays mapped as long as it has protection domains.
        maker => unsafe { known::recall(maker) }.or_else(|| copy_at(maker)),
    };
    match found.or_else(first_copy) {
        // SAFETY: `found` was returned by `exported`, and a program that registers memory does not
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
        // While this thread waited for its turn to walk through the objects, another thread may
        // have stored the copy in known.rs.
        // SAFETY: the object contains `maker`, and stays mapped during the walk.
        let known = unsafe { known::recall(maker) };
        let found = known.or_else(|| verbs::exported(object));
        if let (None, Some(found)) = (known, found) {
            known::remember(maker, object, found);
        }
        ControlFlow::Break(found)
    });
    found.flatten()
}

/// Returns the functions of the copy that the process loaded first. Another thread may still be
/// loading a copy. Such a copy cannot have made a protection domain yet, so it is skipped.
fn first_copy() -> Option<Addresses> {
    each_object(|object, generation| {
        let known = FIRST.recall(generation);
        if let Some(found) = known {
            return ControlFlow::Break(found);
        }
        // Libraries that only wrap the functions, such as this one, define the functions without
        // versions. This search requires a version, so such a library is not taken for a copy.
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
