// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The processes to which threads belong. The RDMA core names the thread that has made an object, and programs register
//! memory in threads of their own.
use std::collections::HashMap;

use crate::read::machine::{Machine, decoded};

/// The greatest number of threads that are looked up. A user may have many.
const MOST: usize = 8192;
/// /proc/PID/status is shorter.
const STATUS: u64 = 1 << 16;

#[derive(Default)]
pub struct Tasks {
    known: HashMap<u32, Option<u32>>,
    /// Whether some thread was not found, for example because this user must not see it (the option hidepid of /proc).
    pub has_unseen: bool,
}

impl Tasks {
    /// Returns the process of a thread; None for no thread, and for a thread that has ended or cannot be seen.
    pub fn process_of(&mut self, machine: &Machine, task: Option<u32>) -> Option<u32> {
        let task = task?;
        if let Some(process) = self.known.get(&task) {
            return *process;
        }
        if self.known.len() >= MOST {
            self.has_unseen = true;
            return None;
        }
        let process = field(&status(machine, task), "Tgid").and_then(|text| text.parse().ok());
        self.has_unseen |= process.is_none();
        self.known.insert(task, process);
        process
    }
}

/// Returns the text of /proc/PID/status; an empty text if there is no such process or thread.
pub fn status(machine: &Machine, task: u32) -> String {
    decoded(&machine.read_at_most(&format!("/proc/{task}/status"), STATUS))
}

/// Returns the value of a field of a status.
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
