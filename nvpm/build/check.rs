// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the mistakes in the files of data.

/// A line in a data file.
#[derive(Clone, Default)]
pub struct Place {
    pub file: String,
    pub line: usize,
}

#[derive(Default)]
pub struct Mistakes(Vec<String>);

impl Mistakes {
    pub fn add(&mut self, place: &Place, what: impl std::fmt::Display) {
        self.0.push(format!("nvpm/{}:{}: {what}", place.file, place.line));
    }

    /// Prints the mistakes, by which cargo ends the build. Returns whether there is a mistake.
    pub fn print(&self) -> bool {
        for mistake in &self.0 {
            println!("cargo::error={mistake}");
        }
        !self.0.is_empty()
    }
}
