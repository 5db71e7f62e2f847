// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Replaces each name by a word with a number, such as address-2. The same name always gets the same word, so that a
//! reader can still compare. PCI addresses stay, because all machines have the same addresses. Kernel addresses,
//! models, versions and programs of the system also stay.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};

use crate::facts::fact::Fact;
use crate::read::machine::Machine;
use crate::redact::names::{hosts, jobs, ordinary, people, unasked_services};
use crate::redact::patterns::{BEFORE, KEPT, PATTERNS, Rule, WHAT};
use crate::text::pattern;

/// A fact about a process.
static PROCESS: LazyLock<regex::Regex> =
    LazyLock::new(|| pattern(r"\A(.*?)((?:, which has ended,)? has \d+ registrations? of GPU memory.*)\z"));
static GUID_DIGITS: LazyLock<regex::Regex> =
    LazyLock::new(|| pattern(r"\A(?:(?:0x)?[0-9a-f]{9,16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3})\z"));
/// A word that has replaced a name, and must not be replaced again.
static REPLACED: LazyLock<regex::Regex> =
    LazyLock::new(|| pattern(r"\A(?:secret|target|user|uuid|serial|container|address|path|host|job)-\d+\n?\z"));
static USER_WORD: LazyLock<regex::Regex> = LazyLock::new(|| pattern(r"[\w-]+(?:\.[\w-]+)*"));

/// Stands for the rest of a text in which a pattern cannot be searched for.
const LEFT_OUT: &str = "(left out)";

/// Replaces names, and counts the replaced names.
#[derive(Clone)]
pub struct Redactor {
    known: BTreeMap<&'static str, HashMap<String, String>>,
    /// Texts that look like addresses, but stay, such as versions with four numbers.
    pub(super) kept: HashSet<String>,
    pub(super) hosts: HashSet<String>,
    pub(super) users: HashSet<String>,
    pub(super) ordinary: HashSet<String>,
    pub(super) jobs: HashSet<String>,
    /// Names of processes that are not one word. Each name is searched for by itself.
    pub(super) spaced: Vec<String>,
    /// The services that know further users, whose names may stay.
    pub unasked: Vec<String>,
}

impl Redactor {
    pub fn new(machine: &Machine, kept: impl IntoIterator<Item = String>) -> Self {
        let mut found = Self {
            known: BTreeMap::new(),
            kept: kept.into_iter().collect(),
            hosts: hosts(machine),
            users: people(machine),
            ordinary: ordinary(machine),
            jobs: HashSet::new(),
            spaced: Vec::new(),
            unasked: unasked_services(machine),
        };
        for name in jobs(machine) {
            found.learn_job(&name);
        }
        found
    }

    /// Finds the name of the process that a fact is about.
    pub fn learn_fact(&mut self, fact: &Fact) {
        if let Some((name, _)) = process_of(fact) {
            self.learn_job(name);
        }
    }

    /// Returns the fact with a redacted value and redacted advice.
    pub fn fact(&mut self, fact: &Fact) -> Fact {
        if let Some((name, rest)) = process_of(fact) {
            return Fact { value: self.job(name) + rest, ..fact.clone() };
        }
        let (value, advice) = (self.text(&fact.value), self.text(&fact.advice));
        Fact { value, advice, ..fact.clone() }
    }

    /// Redacts a text in which each word may be a name.
    pub fn text(&mut self, text: &str) -> String {
        self.learn(text);
        let mut text = self.patterns(text);
        for rule in &PATTERNS.foreign {
            text = self.by_rule(&text, rule, Self::perhaps);
        }
        text = self.spaced_jobs(&text);
        text = self.job_words(&text);
        text = self.host_words(&text);
        text = self.user_words(&text);
        for rule in &PATTERNS.domains {
            text = self.by_rule(&text, rule, Self::instead);
        }
        text
    }

    /// Redacts only names with a recognizable form. Other words stay, because they may be nvpm's own words even if a
    /// host or a user has the same name.
    pub fn patterns(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for rule in PATTERNS.others.iter().chain(&PATTERNS.sure) {
            text = self.by_rule(&text, rule, Self::instead);
        }
        text
    }

    fn by_rule(&mut self, text: &str, rule: &Rule, how: fn(&mut Self, &'static str, &Captures) -> String) -> String {
        replaced_by(text, &rule.pattern, |found| how(self, rule.word, found))
    }

    /// Replaces a name. A name that looks like that of a process stays if it is an ordinary word, such as `port` in
    /// port:4420.
    fn perhaps(&mut self, word: &'static str, found: &Captures) -> String {
        let what = group(found, WHAT);
        if word == "job" && self.ordinary.contains(&what.to_lowercase()) {
            return whole(found).to_owned();
        }
        self.instead(word, found)
    }

    fn instead(&mut self, word: &'static str, found: &Captures) -> String {
        let what = Some(group(found, WHAT)).filter(|what| !what.is_empty()).unwrap_or(whole(found));
        if !group(found, KEPT).is_empty() || self.kept.contains(what) || is_replaced(what) {
            return whole(found).to_owned();
        }
        let name = if word == "job" { self.job(what) } else { self.replaced(word, what) };
        format!("{}{name}", group(found, BEFORE))
    }

    /// Returns the word with a number that stands for a name.
    pub(super) fn replaced(&mut self, word: &'static str, name: &str) -> String {
        let known = self.known.entry(word).or_default();
        let number = known.len() + 1;
        known.entry(key_of(word, name)).or_insert_with(|| format!("{word}-{number}")).clone()
    }

    /// Replaces each word that is the name of a user. Otherwise replaces each part of the word between dots that is the
    /// name of a user. The comparison is case-sensitive.
    fn user_words(&mut self, text: &str) -> String {
        let replace = |found: &regex::Captures| {
            let word = found.get(0).map(|word| word.as_str()).unwrap_or_default();
            if self.users.contains(word) {
                return self.replaced("user", word);
            }
            let mut part = |part: &str| {
                if self.users.contains(part) { self.replaced("user", part) } else { part.to_owned() }
            };
            word.split('.').map(&mut part).collect::<Vec<_>>().join(".")
        };
        USER_WORD.replace_all(text, replace).into_owned()
    }

    /// Returns a text with the number of replaced names of each kind, or "nothing".
    pub fn counted(&self) -> String {
        let counts: Vec<String> = self.known.iter().map(|(word, known)| format!("{} x {word}", known.len())).collect();
        if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") }
    }
}

/// Returns the name of the process that a fact is about, and the rest of its value.
fn process_of(fact: &Fact) -> Option<(&str, &str)> {
    let found = PROCESS.captures(&fact.value).filter(|_| fact.section == "use")?;
    Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
}

pub(super) fn is_replaced(name: &str) -> bool {
    REPLACED.is_match(name)
}

/// Returns the same key for all spellings of a name: with or without capitals, and, for a GUID, with or without 0x,
/// colons and leading zeros.
fn key_of(word: &str, name: &str) -> String {
    let name = name.to_lowercase();
    if word != "address" || !GUID_DIGITS.is_match(&name) {
        return name;
    }
    name.replace("0x", "").replace(':', "").trim_start_matches('0').to_owned()
}

fn group<'a>(found: &Captures<'a>, name: &str) -> &'a str {
    found.name(name).map(|text| text.as_str()).unwrap_or_default()
}

pub(super) fn whole<'a>(found: &Captures<'a>) -> &'a str {
    found.get(0).map(|text| text.as_str()).unwrap_or_default()
}

/// Replaces each match of a pattern. If the search fails, the rest of the text is left out, because it may contain
/// names.
pub(super) fn replaced_by(text: &str, pattern: &Regex, mut how: impl FnMut(&Captures) -> String) -> String {
    let mut found = String::with_capacity(text.len());
    let mut end = 0;
    for captures in pattern.captures_iter(text) {
        let Some(matched) = captures.as_ref().ok().and_then(|captures| captures.get(0)) else {
            return found + LEFT_OUT;
        };
        found.push_str(text.get(end..matched.start()).unwrap_or_default());
        if let Ok(captures) = &captures {
            found.push_str(&how(captures));
        }
        end = matched.end();
    }
    found + text.get(end..).unwrap_or_default()
}
