// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The copy of libibverbs that a protection domain belongs to. A process may have several copies: a
//! Python wheel brings libibverbs under another name, and something else loads the system's.

use core::ops::ControlFlow;

use crate::loaded::{each_object, Remembered};
use crate::ready;
use crate::verbs::{self, Addresses, Pd, Verbs};

/// The functions of the copy that was used last; the key is an address inside the copy, or 0.
static LAST: Remembered<5> = Remembered::nothing();

/// Returns the functions of the copy that made `pd`; or, if `pd` does not tell, of the copy that
/// the process loaded first. Without libibverbs there are none.
///
/// # Safety
///
/// `pd` is a protection domain, or NULL.
pub(crate) unsafe fn of(pd: *const Pd) -> Verbs {
    // SAFETY: the caller promises it.
    let maker = unsafe { Pd::maker(pd) };
    let found = if maker == 0 { None } else { copy(maker) };
    match found.or_else(|| copy(0)) {
        // SAFETY: `exported` has returned this, and a program that registers memory does not
        // close libibverbs at the same time.
        Some(found) => unsafe { Verbs::new(found) },
        None => Verbs::default(),
    }
}

/// Returns the functions of the copy that is mapped at the address `maker`; if that is 0, of the
/// first one. A copy that another thread is still loading has not made a protection domain.
fn copy(maker: usize) -> Option<Addresses> {
    each_object(|object, generation| {
        let known = LAST.recall(maker, generation);
        if let Some(found) = known {
            return ControlFlow::Break(found);
        }
        let wanted = match maker {
            0 => {
                !object.function(verbs::REG_MR, verbs::FIRST).is_null()
                    && ready::is_relocated(object)
            }
            _ => object.contains(maker as u64),
        };
        let found = if wanted { verbs::exported(object) } else { None };
        match found {
            Some(found) => {
                LAST.remember(maker, generation, found);
                ControlFlow::Break(found)
            }
            None => ControlFlow::Continue(()),
        }
    })
}
