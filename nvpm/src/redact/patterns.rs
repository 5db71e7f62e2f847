// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Patterns of names and numbers that identify people, hosts, jobs and cards, from data/redact.table. Names of hosts
//! and users have no form that a pattern can recognize, so each word of a text is compared with the names that names.rs
//! has found on this machine.
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use fancy_regex::{Regex, RegexBuilder};

use crate::text::pattern;

static TABLE: &str = include_str!("../../data/redact.table");

// Groups of a pattern.
/// The text before the part to replace.
pub const BEFORE: &str = "before";
/// The part to replace.
pub const WHAT: &str = "what";
/// A text that only looks like such a part, and stays.
pub const KEPT: &str = "kept";

/// Lines with more blanks than these at their begin continue the line before.
const CONTINUED: &str = "    ";

pub struct Rule {
    pub word: &'static str,
    pub pattern: Regex,
}

/// The rules and the parts of patterns in the table.
#[derive(Default)]
pub struct Patterns {
    /// The matches are names of processes, users and hosts, and nothing else.
    pub sure: Vec<Rule>,
    /// These rules come before the sure ones.
    pub others: Vec<Rule>,
    /// Rules that do not hold for nvpm's own words.
    pub foreign: Vec<Rule>,
    /// Names of hosts with their domains.
    pub domains: Vec<Rule>,
    defined: HashMap<&'static str, String>,
}

pub static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::of_table(TABLE));
/// A word that may have the name of a host, or a text whose parts must not be taken for one.
pub static HOST_WORD: LazyLock<Regex> = LazyLock::new(|| compiled(&PATTERNS.defined("HOST_WORD")));
/// Names of kernel threads and system programs stay.
static OF_THE_SYSTEM: LazyLock<regex::Regex> =
    LazyLock::new(|| pattern(&format!(r"\A(?:{})\z", PATTERNS.defined("OF_THE_SYSTEM"))));

impl Patterns {
    fn of_table(table: &'static str) -> Self {
        let mut found = Self::default();
        for (head, text) in lines_of(table) {
            found.add(head, &text);
        }
        found
    }

    fn add(&mut self, head: &'static str, text: &str) {
        let text = self.expanded(text);
        let mut words = head.split(' ');
        let (kind, word, case) = (words.next().unwrap_or_default(), words.next(), words.next());
        let Some(word) = word else {
            self.defined.insert(kind, text);
            return;
        };
        // Capitals and small letters are the same in some rules. In all others, ^ and $ match at the ends of each line.
        let flags = if case == Some("any") { "(?i)" } else { "(?m)" };
        let rule = Rule { word, pattern: compiled(&format!("{flags}{text}")) };
        match kind {
            "sure" => self.sure.push(rule),
            "foreign" => self.foreign.push(rule),
            "domain" => self.domains.push(rule),
            _ => self.others.push(rule),
        }
    }

    /// Replaces each {NAME} by the text that the table has defined before.
    fn expanded(&self, text: &str) -> String {
        let mut found = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            found.push_str(before);
            let name = behind.split_once('}').filter(|(name, _)| self.defined.contains_key(name));
            rest = if let Some((name, after)) = name {
                found.push_str(&self.defined(name));
                after
            } else {
                found.push('{');
                behind
            };
        }
        found + rest
    }

    fn defined(&self, name: &str) -> String {
        self.defined.get(name).cloned().unwrap_or_default()
    }
}

/// Returns the heads of the lines, and the texts behind them with their further lines. Lists of words are left out.
fn lines_of(table: &'static str) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for line in table.lines() {
        if let (Some(more), Some((_, text))) = (line.strip_prefix(CONTINUED), found.last_mut()) {
            text.push_str(more);
        } else if let Some((head, text)) = line.split_once(" = ").filter(|(head, _)| !head.contains(' ')) {
            found.push((head, text.to_owned()));
        } else if let Some((head, text)) = line.split_once(": ").filter(|(head, _)| head.split(' ').count() == 3) {
            found.push((head, text.to_owned()));
        }
    }
    found
}

/// Returns the words of the lines of the table that begin with KIND.
pub fn words(kind: &str) -> HashSet<&'static str> {
    let lines = TABLE.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(": "));
    lines.flat_map(str::split_whitespace).collect()
}

/// Compiles a pattern that stands in the table. A mistake in it is met by each test that uses it. The patterns need a
/// time in proportion to the text, so the number of steps has no limit.
#[allow(clippy::expect_used)]
fn compiled(text: &str) -> Regex {
    RegexBuilder::new(text).backtrack_limit(usize::MAX).build().expect("a pattern of nvpm")
}

/// Returns whether a kernel thread or a system program has this name.
pub fn is_of_the_system(name: &str) -> bool {
    OF_THE_SYSTEM.is_match(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_read() {
        let is_begin = |line: &&str| !line.is_empty() && !line.starts_with(['#', ' ']);
        let is_list = |line: &&str| ["common: ", "ordinary: "].iter().any(|list| line.starts_with(list));
        let begins = TABLE.lines().filter(is_begin).filter(|line| !is_list(line)).count();
        assert_eq!(lines_of(TABLE).len(), begins);
        let patterns = &PATTERNS;
        let rules = [&patterns.sure, &patterns.others, &patterns.foreign, &patterns.domains].map(Vec::len);
        assert_eq!(rules.iter().sum::<usize>() + patterns.defined.len(), begins);
        assert!(rules.iter().all(|count| *count > 0));
        assert!(patterns.defined.values().all(|text| !text.contains("{A") && !text.contains("{N")));
        assert!(words("common").contains("localhost") && words("ordinary").contains("xid"));
    }

    #[test]
    fn only_whole_names_are_of_the_system() {
        for name in ["bash", "python3.11", "irq/63-nvidia", "kworker/u8:1", "(udev-worker)", "<unknown>", "job-7"] {
            assert!(is_of_the_system(name), "{name}");
        }
        for name in ["bash2", "python_x", "aptamer", "irqfold", "rpmerger", "ib_merger", "migrationX", "job-7x"] {
            assert!(!is_of_the_system(name), "{name}");
        }
    }
}
