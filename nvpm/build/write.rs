// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Writes the tables as constants of Rust, in the types of src/explain/table.rs.
use std::collections::HashMap;
use std::fmt::Write;

use crate::causes::Cause;
use crate::facts::{Fact, Kind};
use crate::messages::{Case, Condition, Message, Tables, keys_of};

pub fn tables(causes: &[Cause], facts: &[Fact], kinds: &[Kind], tables: &Tables) -> String {
    let place = |key: &str| causes.iter().position(|cause| cause.key == key).unwrap_or(0);
    let causes: Vec<String> = causes.iter().map(|one| cause(one, &place)).collect();
    let messages: Vec<String> = tables.messages.iter().map(message).collect();
    let mut keys: Vec<(String, String)> = Vec::new();
    for (number, one) in tables.messages.iter().enumerate() {
        keys.extend(keys_of(one, kinds).into_iter().map(|key| (key, format!("Key::Message({number})"))));
    }
    let mut tests: Vec<String> = Vec::new();
    for (number, fact) in facts.iter().enumerate() {
        for test in &fact.tests {
            keys.extend(test.needed.iter().map(|key| (key.clone(), format!("Key::Test({})", tests.len()))));
            tests.push(format!("Test {{ fact: {number}, pattern: {:?}, but: {:?} }}", test.pattern, test.but));
        }
    }
    let words = windows(&keys);
    let formats: Vec<String> = tables
        .messages
        .iter()
        .enumerate()
        .flat_map(|(number, one)| one.formats.iter().map(move |format| format!("({number}, {format:?})")))
        .collect();
    let kinds_written: Vec<String> = kinds
        .iter()
        .map(|kind| format!("Kind {{ of: {:?}, name: {:?}, globs: &{:?} }}", kind.of, kind.name, kind.globs))
        .collect();
    let facts: Vec<String> = facts.iter().map(fact).collect();
    let sections: Vec<String> = tables.sections.iter().map(|section| format!("{section:?}")).collect();
    let mut out = String::new();
    list(&mut out, "CAUSES", "Cause", &causes);
    list(&mut out, "MESSAGES", "Message", &messages);
    list(&mut out, "KEYS", "(&str, Key)", &words);
    list(&mut out, "TESTS", "Test", &tests);
    list(&mut out, "FACTS", "Fact", &facts);
    list(&mut out, "KINDS", "Kind", &kinds_written);
    list(&mut out, "SECTIONS", "(&str, &str)", &sections);
    out.push_str("#[cfg(test)]\n");
    list(&mut out, "FORMATS", "(usize, &str)", &formats);
    out
}

fn list(out: &mut String, name: &str, kind: &str, items: &[String]) {
    let _ = writeln!(out, "pub static {name}: &[{kind}] = &[\n{},\n];", items.join(",\n"));
}

fn cause(one: &Cause, place: &dyn Fn(&str) -> usize) -> String {
    let is = |word: &str| one.is.iter().any(|property| property == word);
    let instead: Vec<(usize, usize)> = one.instead.iter().map(|(fact, name)| (*fact, place(name))).collect();
    let because: Vec<usize> = one.because.iter().map(|name| place(name)).collect();
    format!(
        "Cause {{ key: {:?}, name: {:?}, says: {:?}, todo: {:?}, first: {:?}, pod: {:?}, status: {:?}, tell: {:?}, \
         ours: {}, subject: {}, of_node: {}, late: {}, never: &{:?}, instead: &{instead:?}, because: &{because:?}, \
         here: {:?} }}",
        one.key,
        one.name,
        one.says,
        one.todo,
        one.first,
        one.pod,
        one.status,
        one.tell,
        is("ours"),
        is("subject"),
        is("of_node"),
        is("late"),
        one.never,
        one.here,
    )
}

fn fact(one: &Fact) -> String {
    let derived: Vec<String> = one.derived.iter().map(|(with, without)| format!("(&{with:?}, &{without:?})")).collect();
    format!(
        "Fact {{ name: {:?}, words: {:?}, is_version: {}, derived: &[{}] }}",
        one.name,
        one.words,
        one.is_version,
        derived.join(", ")
    )
}

fn message(one: &Message) -> String {
    let cases: Vec<String> = one.cases.iter().map(case).collect();
    format!(
        "Message {{ text: {:?}, section: {}, general: {}, kind: Meaning::{}, from: {:?}, note: {:?}, todo: {:?}, \
         never: {}, cases: &[{}] }}",
        one.text,
        one.section,
        one.general,
        one.kind,
        one.from,
        one.note,
        one.todo,
        conditions(&one.never),
        cases.join(", ")
    )
}

fn case(one: &Case) -> String {
    format!(
        "Case {{ cause: {}, sure: Sure::{}, when: {}, unless: {}, says: {:?}, todo: {:?}, here: {:?}, first: {:?} }}",
        one.cause,
        one.sure,
        conditions(&one.when),
        conditions(&one.unless),
        one.says,
        one.todo,
        one.here,
        one.first
    )
}

fn conditions(all: &[Condition]) -> String {
    let texts: Vec<String> = all
        .iter()
        .map(|one| match one {
            Condition::Errors(errors) => format!("Condition::Errors({errors})"),
            Condition::Line(text) => format!("Condition::Line({text:?})"),
            Condition::Fact(place) => format!("Condition::Fact({place})"),
            Condition::Version(place, sign, version) => {
                format!("Condition::Version({place}, Sign::{sign}, {version:?})")
            }
            Condition::Variable(name, value) => format!("Condition::Variable({name:?}, {value:?})"),
            Condition::Named(of, name) => format!("Condition::Named({of:?}, {name:?})"),
        })
        .collect();
    format!("&[{}]", texts.join(", "))
}

/// The automaton of the words is made at each start, so a word is only this long.
const LONGEST_WORD: usize = 10;

/// Shortens the keys, in small letters, to the part that the fewest keys have.
fn windows(keys: &[(String, String)]) -> Vec<String> {
    let mut count: HashMap<Vec<u8>, usize> = HashMap::new();
    let lower: Vec<(String, &String)> = keys.iter().map(|(key, of)| (key.to_ascii_lowercase(), of)).collect();
    for (key, _) in &lower {
        for part in key.as_bytes().windows(LONGEST_WORD) {
            *count.entry(part.to_vec()).or_default() += 1;
        }
    }
    let rarest = |key: &str| {
        let parts = key.as_bytes().windows(LONGEST_WORD).filter_map(|part| std::str::from_utf8(part).ok());
        parts.min_by_key(|part| count.get(part.as_bytes()).copied().unwrap_or(0)).unwrap_or(key).to_owned()
    };
    lower.iter().map(|(key, of)| format!("({:?}, {of})", rarest(key))).collect()
}
