// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the messages of the tables in a line, and the facts that the line shows. One automaton looks for a fixed word
//! of each of them, and the expression of a message or a fact is made only when its word is found.
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::Regex;

use crate::explain::errors::errors;
use crate::explain::failure::is_failure;
use crate::explain::pattern::{Found, Pattern, expression};
use crate::explain::table::{self, Condition, KEYS, Key, MESSAGES, Meaning, Message, TESTS, Test};

/// A message as it stands in a line: with the cases that the line allows, each of which is a bit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    pub message: usize,
    pub cases: u128,
    /// The line has a condition under which the message says nothing.
    pub excluded: bool,
}

impl Variant {
    pub fn row(&self) -> &'static Message {
        table::message(self.message)
    }

    /// Returns whether the message says something about its line, so far as the line decides.
    fn speaks(&self) -> bool {
        match self.row().kind {
            Meaning::Fine | Meaning::Notice | Meaning::Reason => true,
            Meaning::Follows => false,
            Meaning::Cause => self.cases != 0,
        }
    }
}

/// Returns whether the loader says in the line of a plug-in what is wrong with a library that it has found. A plug-in
/// without a symbol of NCCL is one for another version of NCCL, which is no failure.
fn has_reason_of_loader(line: &str) -> bool {
    let is_missing = line.contains("undefined symbol: ") && !line.contains("undefined symbol: nccl");
    line.contains("lugin") && (line.contains("version `") || is_missing)
}

/// The messages and the tests of facts whose fixed words stand in a line.
#[derive(Clone, Default)]
pub struct Candidates {
    pub messages: Vec<usize>,
    pub tests: Vec<usize>,
}

pub struct Known {
    words: Option<AhoCorasick>,
    patterns: Vec<OnceCell<Pattern>>,
    tests: Vec<OnceCell<(Option<Regex>, Option<Regex>)>>,
    /// The texts of conditions about a line.
    parts: RefCell<HashMap<&'static str, Pattern>>,
}

impl Known {
    pub fn new() -> Self {
        let words = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::NoncontiguousNFA))
            .build(KEYS.iter().map(|(word, _)| word));
        Self {
            words: words.ok(),
            patterns: MESSAGES.iter().map(|_| OnceCell::new()).collect(),
            tests: TESTS.iter().map(|_| OnceCell::new()).collect(),
            parts: RefCell::default(),
        }
    }

    pub fn candidates(&self, line: &str) -> Candidates {
        let mut messages = BTreeSet::new();
        let mut tests = BTreeSet::new();
        // The words are in small letters, because an automaton for both would take twice the time to make.
        let small = line.to_ascii_lowercase();
        for found in self.words.iter().flat_map(|words| words.find_overlapping_iter(&small)) {
            match KEYS.get(found.pattern().as_usize()) {
                Some((_, Key::Message(number))) => messages.insert(*number),
                Some((_, Key::Test(number))) => tests.insert(*number),
                None => false,
            };
        }
        Candidates { messages: messages.into_iter().collect(), tests: tests.into_iter().collect() }
    }

    fn find(&self, message: usize, line: &str) -> Option<Found> {
        let row = MESSAGES.get(message)?;
        self.patterns.get(message)?.get_or_init(|| Pattern::of(row.text)).find(line)
    }

    /// Returns the part of a line that a message is about.
    pub fn range(&self, message: usize, line: &str) -> Option<std::ops::Range<usize>> {
        self.find(message, line).map(|found| found.range)
    }

    /// Returns the names at the placeholders of a message in a line.
    pub fn names(&self, message: usize, line: &str) -> Vec<(&'static str, String)> {
        let named = self.find(message, line).map(|found| found.named).unwrap_or_default();
        named.into_iter().map(|(of, name, _)| (of, name)).collect()
    }

    /// Returns the messages in a line. A message within a longer message does not count, and a message of any program
    /// counts only if no other message explains the line.
    pub fn variants(&self, candidates: &[usize], line: &str) -> Vec<Variant> {
        let all: Vec<(usize, Found)> =
            candidates.iter().filter_map(|number| Some((*number, self.find(*number, line)?))).collect();
        let is_general = |number: usize| MESSAGES.get(number).is_some_and(|row| row.general);
        // The reason for which the loader found no plug-in stands before the notice that there is none.
        let has_reason = has_reason_of_loader(line);
        let gives_way = |number: usize| {
            is_general(number) || (has_reason && MESSAGES.get(number).is_some_and(|row| row.kind == Meaning::Notice))
        };
        let is_within = |found: &Found| {
            all.iter().any(|(number, other)| {
                other.range != found.range
                    && other.range.start <= found.range.start
                    && found.range.end <= other.range.end
                    && !gives_way(*number)
            })
        };
        let longest: Vec<&(usize, Found)> = all.iter().filter(|(_, found)| !is_within(found)).collect();
        let (general, special): (Vec<Variant>, Vec<Variant>) = longest
            .into_iter()
            .map(|(number, found)| self.variant(*number, found, line))
            .partition(|variant| is_general(variant.message));
        let explained = special.iter().any(|one| one.speaks() && !gives_way(one.message));
        // A name in a line that does not fail says nothing.
        if general.is_empty() || explained || !(is_failure(line) || errors(line) != 0) {
            return special;
        }
        special.into_iter().chain(general.into_iter().filter(Variant::speaks)).collect()
    }

    fn variant(&self, message: usize, found: &Found, line: &str) -> Variant {
        let mut line = Line { known: self, text: line, errors: None, found };
        let row = MESSAGES.get(message);
        let mut cases = 0;
        for (place, case) in row.map_or(&[][..], |row| row.cases).iter().enumerate() {
            let holds = case.when.iter().all(|one| line.holds(one) != Some(false))
                && !case.unless.iter().any(|one| line.holds(one) == Some(true));
            cases |= u128::from(holds) << place;
        }
        let excluded = row.is_some_and(|row| row.never.iter().any(|one| line.holds(one) == Some(true)));
        Variant { message, cases, excluded }
    }

    fn has_part(&self, part: &'static str, line: &str) -> bool {
        self.parts.borrow_mut().entry(part).or_insert_with(|| Pattern::of(part)).is_in(line)
    }

    /// Returns the text that a test of a fact finds in a line: of a version the version, else the whole text.
    pub fn shown(&self, number: usize, line: &str) -> Option<String> {
        let test = TESTS.get(number)?;
        let (pattern, but) = self.tests.get(number)?.get_or_init(|| expressions(test));
        let rest = match but {
            Some(but) => but.replace_all(line.as_bytes(), &b" "[..]),
            None => line.as_bytes().into(),
        };
        let found = pattern.as_ref()?.captures(&rest)?;
        let group = (1..found.len()).find_map(|group| found.get(group)).or_else(|| found.get(0))?;
        Some(String::from_utf8_lossy(group.as_bytes()).into_owned())
    }
}

fn expressions(test: &Test) -> (Option<Regex>, Option<Regex>) {
    (expression(test.pattern), Some(test.but).filter(|but| !but.is_empty()).and_then(expression))
}

/// A line with a message.
struct Line<'a> {
    known: &'a Known,
    text: &'a str,
    errors: Option<u64>,
    found: &'a Found,
}

impl Line<'_> {
    /// Returns whether a condition holds. Returns None if the line does not decide that.
    fn holds(&mut self, condition: &'static Condition) -> Option<bool> {
        match condition {
            Condition::Errors(wanted) => {
                let text = self.text;
                Some(*self.errors.get_or_insert_with(|| errors(text)) & wanted != 0)
            }
            Condition::Line(part) => Some(self.known.has_part(part, self.text)),
            Condition::Named(of, wanted) => {
                Some(self.found.named.iter().any(|(name, _, kind)| name == of && kind == wanted))
            }
            _ => None,
        }
    }
}
