// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Changes the environment of this process.

/// Sets a variable that a foreign library will read. Returns false, and sets nothing, if this process has several
/// threads.
pub fn set_alone(name: &str, value: &str) -> bool {
    let is_alone = std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1);
    if is_alone {
        // SAFETY: No other thread reads or writes the environment meanwhile, because this thread is the only one.
        unsafe { std::env::set_var(name, value) };
    }
    is_alone
}
