// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A machine that is made of files, for the tests of single functions.
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::read::machine::Machine;

#[path = "../tests/tables/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "../tests/tables/rdma.rs"]
mod rdma;
#[path = "../tests/tables/table.rs"]
#[allow(dead_code)]
mod table;

pub struct Made {
    directory: PathBuf,
    files: machine::Machine,
}

impl Made {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("nvpm-made.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).unwrap();
        let files = machine::Machine::new(&directory.join("machine"));
        Self { directory, files }
    }

    /// Changes files by lines of a table (tests/README.md).
    pub fn change<T: AsRef<str>>(&self, lines: impl IntoIterator<Item = T>) {
        lines.into_iter().for_each(|line| self.files.change(line.as_ref()));
    }

    /// Returns the machine as nvpm finds it now.
    pub fn read(&self) -> Machine {
        Machine::new(self.files.root.to_str().unwrap())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The directory that stays is one for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
