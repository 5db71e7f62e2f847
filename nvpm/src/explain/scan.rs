// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads a log once, with constant memory. Most lines of a log have the form of an earlier line, so each line is
//! reduced to its shape, and only lines of new shapes, and of shapes that matter, are looked at closely.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::Rc;

use regex::bytes::Regex;

use crate::explain::crash::Crash;
use crate::explain::errors::errors;
use crate::explain::failure::{is_bad, is_failure, is_topic};
use crate::explain::known::{Candidates, Known, Variant};
use crate::explain::line_reader::{LineReader, parts};
use crate::explain::log_facts::LogFacts;
use crate::explain::no_message::{Diff, is_no_message};
use crate::explain::overcome::{Done, Overcome, is_success};
use crate::explain::pattern::expression;
use crate::explain::prefixes::{MOST_SOURCES, Prefixes, Source};
use crate::explain::success::Success;

const MOST_SHAPES: usize = 20_000;
const MOST_HITS: usize = 512;
const MOST_UNKNOWN: usize = 64;
/// Equal lines are looked up instead of being read again.
const MOST_EQUAL: usize = 4096;
/// A value has at most this length.
const LONGEST_VALUE: usize = 200;
/// Facts are read from this number of lines with the same shape.
const FACTS_OF_A_SHAPE: u8 = 16;
/// After a line of this form, the next line has the value of a fact. Such lines are the output of a command, and the
/// limits of a container in the words of docker compose and docker inspect.
const ASKED: &str = r#"(?:\bulimit -l['"]*|\buname -(?:r|a)['"]*|\bmemlock:|"Name": "memlock",)$"#;
/// Ray prints equal lines of several processes once.
/// A line below a failure that ends with a colon: `Hostname: n1`. The error stands at the end of such a block.
const FIELD: &str = r"^\s*[A-Z][\w ()#]{0,40}: *\S";
const MOST_FIELDS: usize = 8;
const REPEATED: &str = r"\[repeated (\d{1,9})x across cluster\]";

/// The lines that contain the same variant of a message, or the same unknown form of a failure.
#[derive(Clone)]
pub struct Hit {
    pub file: usize,
    pub line: usize,
    /// The number of the line among all lines of the case.
    pub order: usize,
    /// The number of the last such line.
    pub last: usize,
    pub text: String,
    pub count: usize,
    pub sources: BTreeSet<Rc<Source>>,
    pub is_topic: bool,
}

impl Hit {
    fn add(&mut self, source: &Rc<Source>, times: usize, order: usize) {
        self.count += times;
        self.last = self.last.max(order);
        if self.sources.len() < MOST_SOURCES {
            self.sources.insert(Rc::clone(source));
        }
    }
}

/// A failure whose error is on a later line.
struct Heading {
    text: String,
    source: Rc<Source>,
    line: usize,
    order: usize,
    fields: usize,
}

#[allow(clippy::struct_excessive_bools)]
/// The result for the first line of a shape.
struct Shape {
    candidates: Candidates,
    facts: u8,
    has_rank: bool,
    is_channel: bool,
    is_success: bool,
    is_crash: bool,
    unknown: Option<u64>,
}

pub struct Scan {
    pub known: Known,
    pub facts: LogFacts,
    pub hits: BTreeMap<Variant, Hit>,
    pub files: Vec<String>,
    pub lines: usize,
    pub success: Success,
    pub overcome: Overcome,
    pub crash: Crash,
    unknown: HashMap<u64, Hit>,
    prefixes: Prefixes,
    hasher: RandomState,
    /// The place in `shapes` of each hash of a whole line, whose prefixes need not be taken off, and of a message.
    /// None stands for a line that does not matter.
    whole: HashMap<u64, Option<usize>>,
    messages: HashMap<u64, Option<usize>>,
    shapes: Vec<Shape>,
    equal: HashMap<String, Vec<Variant>>,
    diff: Diff,
    asked: Option<Regex>,
    repeated: Option<Regex>,
    field: Option<Regex>,
    heading: Option<Heading>,
    /// The last line, if the next line has the value of its fact.
    question: Option<String>,
}

impl Scan {
    pub fn new() -> Self {
        Self {
            known: Known::new(),
            facts: LogFacts::new(),
            hits: BTreeMap::new(),
            files: Vec::new(),
            lines: 0,
            success: Success::default(),
            overcome: Overcome::default(),
            crash: Crash::default(),
            unknown: HashMap::new(),
            prefixes: Prefixes::new(),
            hasher: RandomState::new(),
            whole: HashMap::new(),
            messages: HashMap::new(),
            shapes: Vec::new(),
            equal: HashMap::new(),
            diff: Diff::default(),
            asked: expression(ASKED),
            repeated: expression(REPEATED),
            field: expression(FIELD),
            heading: None,
            question: None,
        }
    }

    /// Reads all lines of a text. What was read before an error counts.
    pub fn read(&mut self, name: &str, text: impl io::BufRead) -> io::Result<()> {
        let file = self.files.len();
        self.files.push(name.to_owned());
        self.heading = None;
        let mut reader = LineReader::new(text);
        let mut number = 0;
        while let Some(line) = reader.next_part()? {
            if line.begins {
                number += 1;
                self.lines += 1;
            }
            for part in parts(line.bytes) {
                if !self.diff.has(part) {
                    self.part(part, file, number);
                }
            }
        }
        Ok(())
    }

    /// Returns the programs that have printed the lines.
    pub fn sources(&self) -> &BTreeSet<Rc<Source>> {
        &self.prefixes.sources
    }

    /// Returns the lines that look like failures, in their order. Lines that a message explains are left out, as are
    /// failures that a later line shows to be overcome (overcome.rs).
    pub fn unknown(&self) -> Vec<&Hit> {
        let mut hits: Vec<&Hit> =
            self.unknown.values().filter(|hit| hit.count > 0 && self.overcome.of(hit, &hit.text).is_none()).collect();
        hits.sort_by_key(|hit| hit.order);
        hits
    }

    /// Returns the first failure that no message explains and that a later line shows to be overcome, and this line.
    pub fn unknown_and_overcome(&self) -> Option<(&Hit, &Done)> {
        let found = self.unknown.values().filter_map(|hit| Some((hit, self.overcome.of(hit, &hit.text)?)));
        found.min_by_key(|(hit, _)| hit.order)
    }

    fn part(&mut self, part: &[u8], file: usize, number: usize) {
        if let Some(question) = self.question.take() {
            let value = part.get(..LONGEST_VALUE).unwrap_or(part);
            let line = as_text(&[question.as_bytes(), b" ", value].concat());
            let tests = self.known.candidates(&line).tests;
            self.facts.read(&line, &tests, &self.known);
        }
        if let Some(heading) = self.heading.take() {
            self.below(heading, part, file);
        }
        let key = self.shape_key(part);
        if self.whole.get(&key) == Some(&None) {
            return;
        }
        let (source, message) = self.prefixes.split(part);
        let text = as_text(&message);
        let place = if let Some(place) = self.whole.get(&key) {
            *place
        } else {
            let place = self.shape_of(&message, &text);
            if self.whole.len().max(self.messages.len()) < MOST_SHAPES {
                self.whole.insert(key, place);
            }
            place
        };
        if let Some(place) = place {
            let hit = (number, self.lines);
            self.count(place, &source, &text, file, hit);
            if text.ends_with(':') && text.len() <= LONGEST_VALUE && is_failure(&text) {
                self.heading = Some(Heading { text, source, line: number, order: self.lines, fields: 0 });
            }
        }
    }

    /// Reads a failure together with the error of the block below it.
    fn below(&mut self, heading: Heading, part: &[u8], file: usize) {
        let (source, message) = self.prefixes.split(part);
        let field = as_text(&message);
        let is_field = self.field.as_ref().is_some_and(|regex| regex.is_match(field.as_bytes()));
        if source != heading.source || !(is_field || field.is_empty()) || heading.fields >= MOST_FIELDS {
            return;
        }
        if errors(&field) == 0 || field.len() > LONGEST_VALUE {
            self.heading = Some(Heading { fields: heading.fields + 1, ..heading });
            return;
        }
        let text = format!("{} {field}", heading.text);
        if let Some(place) = self.shape_of(text.as_bytes(), &text) {
            self.count(place, &source, &text, file, (heading.line, heading.order));
        }
    }

    /// Returns the hash of a line without the characters of numbers and addresses.
    fn shape_key(&self, line: &[u8]) -> u64 {
        let shape: Vec<u8> = line.iter().copied().filter(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')).collect();
        self.hasher.hash_one(shape)
    }

    /// Returns the shape of a message without prefixes. The names of hosts do not change the shape.
    fn shape_of(&mut self, message: &[u8], text: &str) -> Option<usize> {
        let key = self.shape_key(message);
        if let Some(place) = self.messages.get(&key) {
            return *place;
        }
        let shape = self.look(text, key);
        let matters = !shape.candidates.messages.is_empty()
            || shape.facts > 0
            || shape.has_rank
            || shape.is_channel
            || shape.is_success
            || shape.is_crash
            || shape.unknown.is_some();
        // If the table is full, the last place is that of any further shape, which no key names.
        self.shapes.truncate(MOST_SHAPES);
        let place = matters.then_some(self.shapes.len());
        if self.messages.len() < MOST_SHAPES {
            self.messages.insert(key, place);
        }
        if matters {
            self.shapes.push(shape);
        }
        place
    }

    fn look(&mut self, text: &str, key: u64) -> Shape {
        let mut candidates = self.known.candidates(text);
        let mut is_unknown = is_bad(text) && (self.unknown.len() < MOST_UNKNOWN || is_topic(text));
        if (is_unknown || !candidates.messages.is_empty()) && is_no_message(text) {
            is_unknown = false;
            candidates.messages.clear();
        }
        let has_facts = !candidates.tests.is_empty() || LogFacts::may_have(text) || self.is_question(text);
        Shape {
            candidates,
            facts: if has_facts { FACTS_OF_A_SHAPE } else { 0 },
            has_rank: text.contains(" nranks "),
            is_channel: Success::is_about(text),
            is_success: is_success(text),
            is_crash: Crash::is_about(text),
            unknown: is_unknown.then_some(key),
        }
    }

    fn is_question(&self, text: &str) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.is_match(text.as_bytes()))
    }

    /// Counts a line whose shape matters. AT is its number in the file and among all lines.
    fn count(&mut self, place: usize, source: &Rc<Source>, text: &str, file: usize, at: (usize, usize)) {
        let (number, order) = at;
        let Some(shape) = self.shapes.get_mut(place) else { return };
        if shape.facts > 0 {
            shape.facts -= 1;
            self.facts.read(text, &shape.candidates.tests, &self.known);
            if self.asked.as_ref().is_some_and(|asked| asked.is_match(text.as_bytes())) {
                self.question = Some(text.to_owned());
            }
        }
        if shape.has_rank {
            self.facts.read_rank(&source.host, &source.process, text);
        }
        if shape.is_channel {
            self.success.read(&source.host, text);
        }
        if shape.is_crash {
            self.crash.read(text);
        }
        if shape.is_success {
            let (host, text) = (source.host.clone(), text.to_owned());
            self.overcome.add(Done { order, file, line: number, host, text });
        }
        let unknown = shape.unknown;
        let candidates = std::mem::take(&mut shape.candidates.messages);
        let variants = if candidates.is_empty() { Vec::new() } else { self.variants(&candidates, text) };
        if let Some(shape) = self.shapes.get_mut(place) {
            shape.candidates.messages = candidates;
        }
        let times = self.times(text);
        let hit = || Hit {
            file,
            line: number,
            order,
            last: order,
            text: text.to_owned(),
            count: 0,
            sources: BTreeSet::new(),
            is_topic: false,
        };
        if variants.is_empty() {
            if let Some(key) = unknown {
                // A line that a message explains is not unknown.
                let room = self.unknown.len() < MOST_UNKNOWN * 2 || self.unknown.contains_key(&key);
                if room {
                    self.unknown
                        .entry(key)
                        .or_insert_with(|| Hit { is_topic: is_topic(text), ..hit() })
                        .add(source, 1, order);
                }
            }
        }
        for variant in variants {
            if self.hits.len() < MOST_HITS || self.hits.contains_key(&variant) {
                self.hits.entry(variant).or_insert_with(hit).add(source, times, order);
            }
        }
    }

    fn times(&self, text: &str) -> usize {
        let found = self.repeated.as_ref().and_then(|repeated| repeated.captures(text.as_bytes()));
        let digits = found.and_then(|found| String::from_utf8(found.get(1)?.as_bytes().to_vec()).ok());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(1)
    }

    /// Returns the messages that a line contains, and keeps them for equal lines.
    fn variants(&mut self, candidates: &[usize], text: &str) -> Vec<Variant> {
        if let Some(known) = self.equal.get(text) {
            return known.clone();
        }
        let variants = self.known.variants(candidates, text);
        if self.equal.len() < MOST_EQUAL {
            self.equal.insert(text.to_owned(), variants.clone());
        }
        variants
    }
}

/// Returns a message as text. A run of blanks becomes one blank, because people who copy a line often change its
/// blanks.
fn as_text(message: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(message);
    let mut text = String::with_capacity(lossy.len());
    for word in lossy.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    if text.contains("\\\"") { text.replace("\\\"", "\"") } else { text }
}
