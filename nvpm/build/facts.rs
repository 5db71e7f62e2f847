// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads data/facts.table and data/kinds.table.
use crate::blocks::{File, word_of};
use crate::check::Mistakes;
use crate::needed;

pub struct Test {
    pub pattern: String,
    pub but: String,
    pub needed: Vec<String>,
}

pub struct Fact {
    pub name: String,
    pub words: String,
    pub is_version: bool,
    pub tests: Vec<Test>,
    /// Each choice has the facts that must hold, and the facts that must not.
    pub derived: Vec<(Vec<usize>, Vec<usize>)>,
}

pub struct Kind {
    /// The name in `placeholder::NAMED` to which the kind belongs.
    pub of: String,
    pub name: String,
    pub globs: Vec<String>,
}

pub fn place_of(facts: &[Fact], name: &str) -> Option<usize> {
    facts.iter().position(|fact| fact.name == name)
}

pub fn of_file(file: &File, mistakes: &mut Mistakes) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for block in &file.blocks {
        let (kind, rest) = word_of(&block.head);
        let (name, words) = rest.split_once(": ").unwrap_or((rest, ""));
        if !["fact", "version"].contains(&kind) || words.is_empty() {
            mistakes.add(&block.place, "a block begins with `fact NAME: WORDS` or `version NAME: WORDS`");
        }
        if place_of(&facts, name).is_some() {
            mistakes.add(&block.place, format!("{name} stands twice"));
        }
        let mut fact = Fact {
            name: name.to_owned(),
            words: words.to_owned(),
            is_version: kind == "version",
            tests: Vec::new(),
            derived: Vec::new(),
        };
        for field in &block.fields {
            match word_of(&field.text) {
                ("=", names) => match derived(names, &facts) {
                    Ok(choice) => fact.derived.push(choice),
                    Err(name) => mistakes.add(&field.place, format!("no fact above is called {name}")),
                },
                ("but", but) => match (fact.tests.last_mut(), needed::texts(but)) {
                    (Some(test), Ok(_)) => but.clone_into(&mut test.but),
                    (None, _) => mistakes.add(&field.place, "`but` stands below an expression"),
                    (_, Err(error)) => mistakes.add(&field.place, error),
                },
                _ => match needed::texts(&field.text) {
                    Ok(needed) if needed.is_empty() => mistakes.add(&field.place, "no word is needed by this"),
                    Ok(needed) => {
                        fact.tests.push(Test { pattern: field.text.clone(), but: String::new(), needed });
                    }
                    Err(error) => mistakes.add(&field.place, error),
                },
            }
        }
        facts.push(fact);
    }
    facts
}

fn derived(names: &str, facts: &[Fact]) -> Result<(Vec<usize>, Vec<usize>), String> {
    let mut choice = (Vec::new(), Vec::new());
    for name in names.split_whitespace() {
        let bare = name.trim_start_matches('!');
        let place = place_of(facts, bare).ok_or_else(|| bare.to_owned())?;
        if name.starts_with('!') { choice.1.push(place) } else { choice.0.push(place) }
    }
    Ok(choice)
}

pub fn kinds_of_file(file: &File, mistakes: &mut Mistakes) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for block in &file.blocks {
        let (of, name) = word_of(&block.head);
        if !crate::placeholder::NAMED.contains(&of) || name.is_empty() {
            mistakes.add(
                &block.place,
                "a block begins with `module NAME`, `symbol NAME`, `library NAME` or another placeholder",
            );
        }
        let globs: Vec<String> =
            block.fields.iter().flat_map(|field| field.text.split_whitespace().map(str::to_owned)).collect();
        if globs.is_empty() {
            mistakes.add(&block.place, "a kind has names");
        }
        kinds.push(Kind { of: of.to_owned(), name: name.to_owned(), globs });
    }
    kinds
}
