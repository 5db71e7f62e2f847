// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the facts of a log that no message is about, but on which the cause of a message can depend.
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use regex::bytes::{Captures, Regex};

use crate::explain::known::Known;
use crate::explain::pattern::expression;
use crate::explain::table::{Condition, FACTS, Sign, TESTS, fact_named};

/// A variable that a program reports, or that stands on a command line or in an environment.
const VARIABLE: &str = r#"\b((?:NCCL|UCX|NVSHMEM|FI|MC|OMPI_MCA|PYTORCH|CUDA|GLOO|RCCL|HSA)_[A-Z][A-Z0-9_]*)(?: set by environment to | set to |=|: )["']?([^\s"',;]*)"#;
const NODES: &str = r"(?i)\bn_?nodes[ =:]+(\d{1,5})\b";
const RANKS: &str = r"\bnranks[ =:]+(\d{1,9})|world[_ ]size[ =:]+(\d{1,9})";
/// NCCL says this once in each process.
const RANK: &str = r"\brank (\d{1,9}) nranks (\d{1,9})";
const MOST_VARIABLES: usize = 512;
const MOST_PROCESSES: usize = 4096;
/// A variable keeps this number of values at most, and a program keeps this number of versions.
const MOST_VALUES: usize = 8;

pub struct LogFacts {
    names: BTreeSet<usize>,
    pub versions: BTreeMap<usize, Vec<String>>,
    pub variables: BTreeMap<String, BTreeSet<String>>,
    pub nodes: usize,
    pub ranks: usize,
    /// The rank of each process of NCCL in the largest communicator, and the communicator's size, by host and process.
    pub rank_of: HashMap<(String, String), (String, usize)>,
    expressions: [Option<Regex>; 4],
}

impl LogFacts {
    pub fn new() -> Self {
        Self {
            names: BTreeSet::new(),
            versions: BTreeMap::new(),
            variables: BTreeMap::new(),
            nodes: 0,
            ranks: 0,
            rank_of: HashMap::new(),
            expressions: [VARIABLE, NODES, RANKS, RANK].map(expression),
        }
    }

    fn captures<'a>(&self, which: usize, line: &'a str) -> Option<Captures<'a>> {
        self.expressions.get(which)?.as_ref()?.captures(line.as_bytes())
    }

    /// Returns whether the line may have a variable, or a number of nodes or ranks.
    pub fn may_have(line: &str) -> bool {
        line.contains('_') || line.contains("nodes") || line.contains("Nodes") || line.contains("ranks")
    }

    /// Collects the facts of a line, whose tests have their fixed words in it.
    pub fn read(&mut self, line: &str, tests: &[usize], known: &Known) {
        for number in tests {
            let Some(test) = TESTS.get(*number) else { continue };
            let is_version = FACTS.get(test.fact).is_some_and(|fact| fact.is_version);
            if !is_version && self.names.contains(&test.fact) {
                continue;
            }
            let Some(shown) = known.shown(*number, line) else { continue };
            if !is_version {
                self.names.insert(test.fact);
                continue;
            }
            let version = shown.trim_end_matches(['.', '-']).to_owned();
            let versions = self.versions.entry(test.fact).or_default();
            if !versions.contains(&version) && versions.len() < MOST_VALUES {
                versions.push(version);
            }
        }
        self.read_variables(line);
        let number = |found: Option<Captures>| {
            let found = found?;
            let digits = found.get(1).or_else(|| found.get(2))?.as_bytes();
            std::str::from_utf8(digits).ok()?.parse::<usize>().ok()
        };
        self.nodes = self.nodes.max(number(self.captures(1, line)).unwrap_or(0));
        self.ranks = self.ranks.max(number(self.captures(2, line)).unwrap_or(0));
    }

    fn read_variables(&mut self, line: &str) {
        let Some(Some(variable)) = self.expressions.first() else { return };
        for found in variable.captures_iter(line.as_bytes()) {
            let text =
                |group| String::from_utf8_lossy(found.get(group).map_or(&b""[..], |text| text.as_bytes())).into_owned();
            let (name, value) = (text(1), text(2));
            if self.variables.len() >= MOST_VARIABLES && !self.variables.contains_key(&name) {
                continue;
            }
            let values = self.variables.entry(name).or_default();
            if values.len() < MOST_VALUES {
                values.insert(value.trim_end_matches('.').to_owned());
            }
        }
    }

    /// Stores the rank that NCCL prints when a process starts.
    pub fn read_rank(&mut self, host: &str, process: &str, line: &str) {
        let Some(found) = self.captures(3, line).filter(|_| !host.is_empty()) else { return };
        let text = |group| found.get(group).and_then(|text| std::str::from_utf8(text.as_bytes()).ok());
        let (Some(rank), Some(size)) = (text(1), text(2).and_then(|size| size.parse::<usize>().ok())) else { return };
        let key = (host.to_owned(), process.to_owned());
        let is_larger = self.rank_of.get(&key).map_or(self.rank_of.len() < MOST_PROCESSES, |(_, known)| size > *known);
        if is_larger {
            self.rank_of.insert(key, (rank.to_owned(), size));
        }
    }

    /// Returns whether the log has a fact: one that a line shows, or one that follows from others.
    pub fn has(&self, fact: usize) -> bool {
        let Some(known) = FACTS.get(fact) else { return false };
        // A job of several nodes also has communicators within one node.
        if known.name == "one_node" && self.has(fact_named("many_nodes")) {
            return false;
        }
        self.names.contains(&fact)
            || known.derived.iter().any(|(with, without)| {
                with.iter().all(|one| self.has(*one)) && !without.iter().any(|one| self.has(*one))
            })
    }

    pub fn has_named(&self, name: &str) -> bool {
        self.has(fact_named(name))
    }

    /// Returns the names of the facts that the log has.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> =
            FACTS.iter().enumerate().filter(|(place, _)| self.has(*place)).map(|(_, fact)| fact.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns whether a condition about the whole log holds. A condition about a line was decided before. If the log
    /// does not contain a version, each comparison with it is false.
    pub fn holds(&self, condition: &Condition) -> Option<bool> {
        match condition {
            Condition::Fact(fact) => Some(self.has(*fact)),
            Condition::Version(program, sign, wanted) => {
                let versions = self.versions.get(program);
                Some(versions.is_some_and(|versions| versions.iter().any(|known| compares(known, *sign, wanted))))
            }
            Condition::Variable(name, value) => {
                let values = self.variables.get(*name);
                Some(values.is_some_and(|values| value.is_empty() || values.contains(*value)))
            }
            Condition::Errors(_) | Condition::Line(_) | Condition::Named(..) => None,
        }
    }
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// Returns whether a version compares with another one in as many numbers as the other one has.
fn compares(known: &str, sign: Sign, wanted: &str) -> bool {
    let wanted = numbers(wanted);
    let mut known = numbers(known);
    known.truncate(wanted.len());
    let order = known.cmp(&wanted);
    match sign {
        Sign::Before => order == Ordering::Less,
        Sign::UpTo => order != Ordering::Greater,
        Sign::After => order == Ordering::Greater,
        Sign::From => order != Ordering::Less,
        Sign::Same => order == Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(compares("2.9.1", Sign::Before, "2.23"));
        assert!(compares("2.23.4", Sign::From, "2.23"));
        assert!(compares("7.0.0", Sign::Same, "7.0"));
        assert!(!compares("2.23.4", Sign::After, "2.23"));
    }

    #[test]
    fn a_line_shows_facts_versions_and_variables() {
        let known = Known::new();
        let mut facts = LogFacts::new();
        for line in
            ["NCCL version 2.19.3+cuda12.3", "NCCL_IB_DISABLE set by environment to 1", "NVIDIA GeForce RTX 3090"]
        {
            facts.read(line, &known.candidates(line).tests, &known);
        }
        assert!(facts.has_named("geforce"));
        assert_eq!(facts.versions[&fact_named("nccl")], ["2.19.3"]);
        assert_eq!(facts.holds(&Condition::Variable("NCCL_IB_DISABLE", "1")), Some(true));
    }
}
