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

/// Reports each failure, and aborts the tests. A panic in a callback cannot unwind through C, so it
/// ends the process at once. Output that the test harness has captured is then lost. The report is
/// therefore written past the harness.
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
