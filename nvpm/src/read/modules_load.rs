// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the files that name modules which are loaded at each boot.
use std::collections::HashSet;
use std::rc::Rc;

use crate::read::machine::{Machine, base};

const FILES: [&str; 5] = [
    "/etc/modules-load.d/*.conf",
    "/run/modules-load.d/*.conf",
    "/usr/lib/modules-load.d/*.conf",
    "/lib/modules-load.d/*.conf",
    "/etc/modules",
];

/// A line of such a file. The name of the module has underscores in place of dashes, as in the kernel.
#[derive(Clone)]
pub struct Line {
    pub file: String,
    pub module: String,
}

/// Returns the lines that name a module. A file in /etc hides a file of the same name in the other directories, also if
/// the file in /etc is empty.
pub fn loaded_on_boot(machine: &Machine) -> Rc<Vec<Line>> {
    fn compute(machine: &Machine) -> Vec<Line> {
        let (mut found, mut names) = (Vec::new(), HashSet::new());
        for file in machine.glob(&FILES) {
            // Debian's /etc/modules-load.d has a link to /etc/modules, which is in FILES itself.
            if names.contains(base(&file)) || machine.link(&file) == "../modules" {
                continue;
            }
            names.insert(base(&file).to_owned());
            for line in machine.lines(&file) {
                if let Some(word) = line.split_whitespace().next().filter(|word| !word.starts_with(['#', ';'])) {
                    found.push(Line { file: file.clone(), module: word.replace('-', "_") });
                }
            }
        }
        found
    }
    machine.once(compute)
}

/// Returns the file that names this module; an empty string if none does.
pub fn file_that_loads(machine: &Machine, module: &str) -> String {
    let lines = loaded_on_boot(machine);
    lines.iter().find(|line| line.module == module).map_or(String::new(), |line| line.file.clone())
}
