// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Regular expressions, which are compiled at their first use.
use std::sync::OnceLock;

use regex::Regex;

pub struct Expression {
    text: &'static str,
    /// An expression that cannot be compiled matches nothing.
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    pub const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }

    pub fn matches(&self, text: &str) -> bool {
        self.compiled().is_some_and(|expression| expression.is_match(text))
    }

    /// Returns the first group of the first match.
    pub fn first<'a>(&self, text: &'a str) -> Option<&'a str> {
        Some(self.compiled()?.captures(text)?.get(1)?.as_str())
    }

    /// Returns the first group of each match.
    pub fn every<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.compiled().into_iter().flat_map(|expression| expression.captures_iter(text));
        found.map(|found| found.get(1).map(|group| group.as_str()).unwrap_or_default())
    }
}
