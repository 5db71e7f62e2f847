// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The nodes of a fleet: their kinds, and the groups of each kind.
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::compare::features::{Features, Key, Seen, Texts, Verdicts};
use crate::compare::groups::{Group, MISSING, Nodes, groups_of, modes_of, nearest, norm_of, value};
use crate::compare::inputs::Node;
use crate::compare::kinds::kinds_of;
use crate::compare::measured::{Pair, Rates, compared, pairs, rates, results};
use crate::compare::names::{MOST, without_domain};
use crate::compare::status::Output;
use crate::compare::usage;
use crate::compare::wording::is_real;
use crate::text::clean;
use crate::used::usage::Usage;

/// The versions of the JSON objects that are read: of nvpm status, of nvpm selftest, and of nvpm used.
const STATUS: i64 = 2;
const SELFTEST: i64 = 1;
const USED: i64 = 1;
const OTHER_FORM: &str = "a status in another form";

/// Nodes of one kind.
pub struct Kind {
    pub key: Key,
    pub nodes: Vec<String>,
    /// The features that are usual among them.
    pub norm: Features,
    /// The nodes that are alike, the smallest group first.
    pub groups: Vec<Group>,
}

impl Kind {
    pub fn odd(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.differences.is_empty())
    }

    pub fn alike(&self) -> usize {
        let same = self.groups.iter().filter(|group| group.differences.is_empty());
        same.map(|group| group.nodes.len()).sum()
    }
}

/// The nodes that should be there: their names, or only their number.
#[derive(Clone)]
pub struct Expected {
    pub names: Vec<String>,
    pub number: usize,
}

/// A node that gave no status, and its last words.
pub struct Silent {
    pub name: String,
    pub words: String,
}

#[derive(Default)]
pub struct Fleet {
    pub seen: IndexMap<String, Seen>,
    pub silent: Vec<Silent>,
    pub measured: HashMap<String, Vec<Pair>>,
    tested: IndexMap<String, Features>,
    rates: HashMap<String, Rates>,
    /// How the nodes use RDMA now. A later answer of a node counts.
    pub usage: IndexMap<String, Usage>,
    /// The last number that was appended to each name, of statuses and of selftests.
    numbers: HashMap<String, usize>,
    numbers_of_tests: HashMap<String, usize>,
    texts: Texts,
    pub is_cut: bool,
    pub kinds: Vec<Kind>,
    /// The nodes with each version of nvpm, the most frequent version first.
    pub versions: Vec<(String, Vec<String>)>,
    pub expected: Option<Expected>,
    pub missing: Vec<String>,
    pub missing_count: usize,
    pub unexpected: Vec<String>,
}

impl Fleet {
    /// Adds a node. Returns whether there is room for more.
    pub fn add(&mut self, node: Node) -> bool {
        if self.seen.len() + self.tested.len() + self.usage.len() + self.silent.len() >= MOST {
            self.is_cut = true;
            return false;
        }
        let name = clean(&node.name);
        let said = match node.output {
            Err(words) => Err(words),
            Ok(Output::Status { head, facts }) => check_schema(&head, STATUS, "status").and_then(|()| {
                let seen = Seen::of(&head, &facts, &mut self.texts).ok_or_else(|| OTHER_FORM.to_owned())?;
                let name = free_name(&name, |name| self.seen.contains_key(name), &mut self.numbers);
                self.seen.insert(name, seen);
                Ok(())
            }),
            Ok(Output::Selftest(said)) => check_schema(&said, SELFTEST, "selftest").map(|()| {
                let name = free_name(&name, |name| self.tested.contains_key(name), &mut self.numbers_of_tests);
                self.tested.insert(name.clone(), results(&said, &mut self.texts));
                self.rates.insert(name.clone(), rates(&said));
                self.measured.insert(name, pairs(&said));
            }),
            Ok(Output::Used(said)) => check_schema(&said, USED, "used").map(|()| {
                self.usage.insert(name.clone(), usage::usage_in(&said));
            }),
        };
        if let Err(words) = said {
            self.silent.push(Silent { name, words: clean(&words) });
        }
        true
    }

    /// Compares the nodes, after the last one was added.
    pub fn compare(&mut self, expected: Option<Expected>) {
        for name in self.tested.keys().chain(self.usage.keys()) {
            self.seen.entry(name.clone()).or_default();
        }
        self.versions = versions(&self.seen);
        self.kinds = self.of_kinds();
        if let Some(expected) = &expected {
            (self.missing, self.unexpected) = self.compared_with(expected);
            self.missing_count = if expected.names.is_empty() {
                expected.number.saturating_sub(self.total())
            } else {
                self.missing.len()
            };
        }
        self.expected = expected;
    }

    pub fn total(&self) -> usize {
        self.seen.len() + self.silent.len()
    }

    pub fn alike(&self) -> usize {
        self.kinds.iter().map(Kind::alike).sum()
    }

    /// Returns the groups that differ, the smallest first.
    pub fn odd(&self) -> Vec<&Group> {
        let mut found: Vec<&Group> = self.kinds.iter().flat_map(Kind::odd).collect();
        found.sort_by(|one, other| {
            one.nodes.len().cmp(&other.nodes.len()).then_with(|| one.nodes.first().cmp(&other.nodes.first()))
        });
        found
    }

    /// Returns the kinds. A node of no kind is compared with the nearest kind.
    fn of_kinds(&mut self) -> Vec<Kind> {
        let keys = self.seen.iter().map(|(name, seen)| (name.clone(), seen.key.clone())).collect();
        let (mut kinds, others) = kinds_of(&keys);
        let norms: Vec<Features> = if others.is_empty() {
            Vec::new()
        } else {
            kinds.iter().map(|nodes| norm_of(&self.features_of(nodes.iter().map(String::as_str)))).collect()
        };
        let own: Vec<HashSet<String>> = kinds.iter().map(|nodes| nodes.iter().cloned().collect()).collect();
        for name in &others {
            let Some(seen) = self.seen.get(name) else { continue };
            let nearest = norms.iter().enumerate().min_by_key(|(_, norm)| distance(&seen.features, norm));
            if let Some(nodes) = nearest.and_then(|(place, _)| kinds.get_mut(place)) {
                nodes.push(name.clone());
            }
        }
        let all = kinds.into_iter().zip(own).enumerate();
        all.map(|(place, (nodes, own))| self.kind(place, nodes, &own)).collect()
    }

    fn features_of<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> Nodes<'a> {
        names.filter_map(|name| Some((name, &self.seen.get(name)?.features))).collect()
    }

    /// Returns a kind with its groups. OWN are the nodes that decide what is usual.
    fn kind(&mut self, place: usize, nodes: Vec<String>, own: &HashSet<String>) -> Kind {
        let key = nodes.first().and_then(|name| self.seen.get(name)).map(|seen| seen.key.clone()).unwrap_or_default();
        let version_of = |name: &String| self.seen.get(name).map_or("", |seen| seen.nvpm.as_str());
        let version = most_frequent(nodes.iter().filter(|name| own.contains(*name)).map(version_of)).to_owned();
        let is_usual = |name: &&String| own.contains(*name) && version_of(name) == version;
        let usual = self.features_of(nodes.iter().filter(is_usual).map(String::as_str));
        let mut norm = norm_of(&usual);
        let fits = |features: &Features| norm.iter().all(|(name, its)| value(features, name) == &**its);
        let model = usual.iter().find(|(_, features)| fits(features)).and_then(|(name, _)| self.seen.get(*name));
        let theirs: Rc<Verdicts> = model.map(|seen| Rc::clone(&seen.verdicts)).unwrap_or_default();
        // Features that only other nodes have are differences, too.
        let mut wider = Features::new();
        for name in nodes.iter().filter(|name| !usual.contains_key(name.as_str())) {
            let Some(seen) = self.seen.get(name) else { continue };
            wider.extend(seen.features.keys().map(|name| (name.clone(), MISSING.into())));
        }
        wider.append(&mut norm);
        let mut norm = wider;
        let tested = self.add_selftests(&nodes);
        let of_own = tested.iter().filter(|(name, _)| own.contains(*name));
        norm.extend(modes_of(&of_own.map(|(name, features)| (name.as_str(), features)).collect()));
        let usages = self.add_usages(&nodes);
        let of_own = usages.iter().filter(|(name, _)| own.contains(*name));
        norm.extend(modes_of(&of_own.map(|(name, features)| (name.as_str(), features)).collect()));
        let counts = |node: &str, name: &str, value: &str, usual: &str| {
            if name.starts_with("selftest") {
                // Administrators may test only a part of the nodes, so a missing test is no difference.
                return tested.contains_key(node);
            }
            if name == usage::NAME {
                return usages.contains_key(node);
            }
            let Some(seen) = self.seen.get(node) else { return true };
            seen.nvpm == version || is_real(name, value, usual, &seen.verdicts, &theirs)
        };
        let groups = groups_of(&self.features_of(nodes.iter().map(String::as_str)), &norm, &counts);
        let mut groups = nearest(&groups, &norm);
        for group in &mut groups {
            group.kind = place;
        }
        Kind { key, nodes, norm, groups }
    }

    /// Adds the results of selftests to the nodes of a kind. Returns the results.
    fn add_selftests(&mut self, nodes: &[String]) -> IndexMap<String, Features> {
        let measured = nodes.iter().filter_map(|name| Some((name.as_str(), self.rates.get(name)?))).collect();
        let mut rated = compared(&measured, &mut self.texts);
        let mut tested = IndexMap::new();
        for name in nodes {
            let Some(mut features) = self.tested.get(name).cloned() else { continue };
            features.extend(rated.swap_remove(name).unwrap_or_default());
            if let Some(seen) = self.seen.get_mut(name) {
                seen.features.extend(features.clone());
            }
            tested.insert(name.clone(), features);
        }
        tested
    }

    /// Adds the use of RDMA to the nodes of a kind that move data now. Returns what was added.
    fn add_usages(&mut self, nodes: &[String]) -> IndexMap<String, Features> {
        let mut found = IndexMap::new();
        for name in nodes {
            let Some(state) = self.usage.get(name).filter(|state| usage::is_compared(**state)) else { continue };
            let features = Features::from([(self.texts.one(usage::NAME), self.texts.one(usage::text(*state)))]);
            if let Some(seen) = self.seen.get_mut(name) {
                seen.features.extend(features.clone());
            }
            found.insert(name.clone(), features);
        }
        found
    }

    /// Returns the expected names that are not there, and the names that were not expected.
    fn compared_with(&self, expected: &Expected) -> (Vec<String>, Vec<String>) {
        if expected.names.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let named = self.seen.keys().map(|name| name.split('#').next().unwrap_or_default());
        let there: BTreeSet<&str> = named.chain(self.silent.iter().map(|node| node.name.as_str())).collect();
        let short: HashSet<&str> = there.iter().map(|name| without_domain(name)).collect();
        let wanted: HashSet<&str> =
            expected.names.iter().flat_map(|name| [name.as_str(), without_domain(name)]).collect();
        let is_there = |name: &str| there.contains(name) || short.contains(without_domain(name));
        let missing: indexmap::IndexSet<&String> = expected.names.iter().filter(|name| !is_there(name)).collect();
        let is_wanted = |name: &str| wanted.contains(name) || wanted.contains(without_domain(name));
        let unexpected = there.iter().filter(|name| !is_wanted(name)).map(|name| (*name).to_owned());
        (missing.into_iter().cloned().collect(), unexpected.collect())
    }
}

/// Returns the number of features in which a node differs from a norm.
fn distance(features: &Features, norm: &Features) -> usize {
    let others = norm.iter().filter(|(name, its)| value(features, name) != &***its).count();
    others + features.keys().filter(|name| !norm.contains_key(*name)).count()
}

/// Returns the most frequent text, the first one of several.
fn most_frequent<'a>(texts: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts.iter().rev().max_by_key(|(_, count)| **count).map_or("", |(text, _)| text)
}

/// Returns the nodes with each version of nvpm. A node without a status has no version.
fn versions(nodes: &IndexMap<String, Seen>) -> Vec<(String, Vec<String>)> {
    let mut found: IndexMap<String, Vec<String>> = IndexMap::new();
    for (name, seen) in nodes.iter().filter(|(_, seen)| !seen.features.is_empty()) {
        found.entry(clean(&seen.nvpm)).or_default().push(name.clone());
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, names)| Reverse(names.len()));
    found
}

fn check_schema(said: &Map<String, Value>, known: i64, command: &str) -> Result<(), String> {
    let Some(schema) = said.get("schema").and_then(Value::as_i64).filter(|schema| *schema > known) else {
        return Ok(());
    };
    let version = said.get("nvpm").and_then(Value::as_str).filter(|version| !version.is_empty());
    let version = version.map_or("a newer nvpm".to_owned(), |version| format!("nvpm {version}"));
    Err(format!(
        "{version} prints schema {schema} of nvpm {command} --json, and this nvpm reads up to schema {known}: run nvpm \
         compare of that version"
    ))
}

/// Returns a name. If it is taken already, appends a number. NUMBERS has the last number of each name, because one node
/// may print thousands of statuses.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool, numbers: &mut HashMap<String, usize>) -> String {
    let mut free = name.to_owned();
    while is_taken(&free) {
        let number = numbers.entry(name.to_owned()).or_insert(1);
        *number += 1;
        free = format!("{name}#{number}");
    }
    free
}
