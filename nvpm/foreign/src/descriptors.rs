// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The file descriptors that a process has inherited.
use std::fs;

/// Closes all descriptors but the three standard ones. A process calls this at its start, before it opens a file. The
/// directory of /proc lists the descriptors that are open; closing each possible number would take long, because the
/// limit can be a milliard. Without /proc, all stay open.
pub fn close_inherited() {
    let names = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let numbers: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).filter(|number| *number > 2).collect();
    for number in numbers {
        // SAFETY: close takes any number, and answers one that is not open with an error. No object of this process
        // owns one of these descriptors: the process has just started, and the directory that was read is
        // closed already.
        unsafe { libc::close(number) };
    }
}
