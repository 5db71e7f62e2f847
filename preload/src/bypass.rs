// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Looks for copies of libibverbs that pass this library by, when the process ends. A program that
//! opens a library with `RTLD_DEEPBIND` binds the calls of that library to the C library.

use core::ops::ControlFlow;

use crate::elf::Object;
use crate::initialized::is_child;
use crate::loaded::each_object;
use crate::log;

/// Writes a line to the log for each copy of libibverbs whose `ioctl()` is that of the C library. A
/// child after `fork()` writes nothing, because its walk through the list may never end (gate.rs).
pub(crate) fn report() {
    if !log::on() || is_child() {
        return;
    }
    each_object(|object, _| {
        let is_verbs = !object.function(c"ibv_reg_mr").is_null();
        if let (true, Some(name), true) = (is_verbs, object.soname(), passes_by(object)) {
            log::passed_by(name);
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Returns whether the object's `ioctl()` is that of the C library. A symbol that is not bound yet
/// has an address in the object itself.
fn passes_by(object: &Object<'_>) -> bool {
    object.bound(c"ioctl").is_some_and(|at| {
        let found = each_object(|other, _| {
            if other.contains(at) {
                ControlFlow::Break(other.soname() == Some(c"libc.so.6"))
            } else {
                ControlFlow::Continue(())
            }
        });
        found.unwrap_or(false)
    })
}
