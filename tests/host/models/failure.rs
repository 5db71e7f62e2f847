// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Reports failures.

use std::{
    io::{stderr, Write},
    panic,
    process::abort,
    sync::Once,
    thread,
};

use crate::world;

/// Reports a failure and aborts. A failure in a callback cannot unwind through C and ends the tests
/// at once, so the report bypasses the capture of output, which would be lost.
pub(crate) fn report_and_abort_on_failure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let Some(trail) = world::trail() else {
                before(info);
                return;
            };
            let test = thread::current().name().unwrap_or("?").to_owned();
            let _ = writeln!(
                stderr(),
                "\n{test} FAILED: {info}\nhow it came there:\n{trail}"
            );
            abort();
        }));
    });
}
