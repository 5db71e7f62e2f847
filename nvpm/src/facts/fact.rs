// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A fact is a finding about this machine that matters for GPUDirect RDMA, together with a verdict.
use std::fmt::Display;

use indexmap::{IndexMap, IndexSet};

use crate::read::machine::Machine;
use crate::text::clean;

const READ_AS_ROOT: &str = "Only root can read that: run it as root to see it.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// Something works, but could do better.
    Warn,
    Bad,
    /// There is nothing to judge.
    None,
    /// The user may not read the thing that the value names.
    Unread,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::None => "none",
            Self::Unread => "unread",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub section: String,
    pub name: String,
    pub verdict: Verdict,
    pub value: String,
    pub advice: String,
    /// `section/name` in lower case, by which monitors know the fact. `identified` sets it.
    pub id: String,
}

impl Fact {
    pub fn new(verdict: Verdict, section: &str, name: &str, value: impl Display) -> Self {
        Self {
            section: section.to_owned(),
            name: name.to_owned(),
            verdict,
            value: value.to_string(),
            advice: String::new(),
            id: String::new(),
        }
    }

    /// Returns the fact with this advice.
    pub fn advised(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    /// Returns whether the fact needs attention.
    pub fn is_to_do(&self) -> bool {
        matches!(self.verdict, Verdict::Warn | Verdict::Bad)
    }
}

pub fn good(section: &str, name: &str, value: impl Display) -> Fact {
    Fact::new(Verdict::Good, section, name, value)
}

pub fn warn(section: &str, name: &str, value: impl Display) -> Fact {
    Fact::new(Verdict::Warn, section, name, value)
}

pub fn bad(section: &str, name: &str, value: impl Display) -> Fact {
    Fact::new(Verdict::Bad, section, name, value)
}

pub fn info(section: &str, name: &str, value: impl Display) -> Fact {
    Fact::new(Verdict::None, section, name, value)
}

pub fn unread(section: &str, name: &str, value: impl Display) -> Fact {
    Fact::new(Verdict::Unread, section, name, value)
}

/// Collects facts in the order of `status --all`. With --debug, the sources of a fact are printed before the fact.
pub struct Facts<'a> {
    machine: &'a Machine,
    found: Vec<Fact>,
}

impl<'a> Facts<'a> {
    pub fn new(machine: &'a Machine) -> Self {
        Self { machine, found: Vec::new() }
    }

    /// Adds a fact, unless the argument is empty.
    pub fn add(&mut self, fact: impl Into<Option<Fact>>) {
        if let Some(fact) = fact.into() {
            let what = format!("{}: {}: {}", fact.verdict.word(), fact.section, fact.name);
            self.machine.tell(&what, &fact.value);
            self.found.push(fact);
        }
    }

    pub fn into_found(self) -> Vec<Fact> {
        self.found
    }
}

/// Makes facts safe to print, and gives them identifiers. All unread facts become one fact at the end, which names
/// everything that the user may not read. This fact is no defect.
pub fn identified(facts: Vec<Fact>) -> Vec<Fact> {
    let (hidden, mut safe): (Vec<Fact>, Vec<Fact>) =
        facts.into_iter().map(cleaned).partition(|fact| fact.verdict == Verdict::Unread);
    if !hidden.is_empty() {
        let values: IndexSet<String> = hidden.into_iter().map(|fact| fact.value).collect();
        let values: Vec<String> = values.into_iter().collect();
        safe.push(info("status", "not read", values.join(", ")).advised(READ_AS_ROOT));
    }
    // A monitor would confuse two facts with the same name, so the second fact gets the identifier NAME_2.
    let mut used: IndexMap<String, usize> = IndexMap::new();
    for fact in &mut safe {
        let name = format!("{}/{}", slug(&fact.section), slug(&fact.name));
        let count = used.entry(name.clone()).or_default();
        *count += 1;
        fact.id = if *count == 1 { name } else { format!("{name}_{count}") };
    }
    safe
}

fn cleaned(fact: Fact) -> Fact {
    Fact {
        section: clean(&fact.section),
        name: clean(&fact.name),
        value: clean(&fact.value),
        advice: clean(&fact.advice),
        ..fact
    }
}

/// Returns a text in lower case, with one underscore in place of other characters than letters, digits and signs.
fn slug(text: &str) -> String {
    let mut found = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || ".:_-".contains(letter) {
            found.push(letter.to_ascii_lowercase());
        } else if !found.ends_with(REPLACED) {
            found.push(REPLACED);
        }
    }
    let found = found.replace(REPLACED, "_");
    let found = found.strip_prefix('_').unwrap_or(&found);
    found.strip_suffix('_').unwrap_or(found).to_owned()
}

/// Stands for the characters that `slug` replaces. A text that is safe to print does not have it.
const REPLACED: char = '\0';
