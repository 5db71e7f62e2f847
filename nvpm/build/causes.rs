// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads data/causes.table.
use crate::blocks::{File, word_of};
use crate::check::{Mistakes, Place};
use crate::facts::{Fact, place_of};

#[derive(Default)]
pub struct Cause {
    pub key: String,
    pub place: Place,
    pub name: String,
    pub says: String,
    pub todo: String,
    pub first: String,
    pub pod: String,
    pub status: String,
    pub tell: String,
    pub here: String,
    pub is: Vec<String>,
    pub never: Vec<usize>,
    pub instead: Vec<(usize, String)>,
    pub because: Vec<String>,
}

const PROPERTIES: &[&str] = &["ours", "subject", "of_node", "late"];

pub fn of_file(file: &File, facts: &[Fact], mistakes: &mut Mistakes) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for block in &file.blocks {
        let mut cause = Cause { key: block.head.clone(), place: block.place.clone(), ..Cause::default() };
        for field in &block.fields {
            let (word, rest) = word_of(&field.text);
            let mut fact_of = |name: &str| {
                place_of(facts, name).unwrap_or_else(|| {
                    mistakes.add(&field.place, format!("there is no fact {name}"));
                    0
                })
            };
            match word {
                "name" => rest.clone_into(&mut cause.name),
                "says" => rest.clone_into(&mut cause.says),
                "do" => rest.clone_into(&mut cause.todo),
                // The program prints the first command whose values stand in the log.
                "first" if cause.first.is_empty() => rest.clone_into(&mut cause.first),
                "first" => cause.first = format!("{}\n{rest}", cause.first),
                "pod" => rest.clone_into(&mut cause.pod),
                "status" => rest.clone_into(&mut cause.status),
                "tell" => rest.clone_into(&mut cause.tell),
                "here" => rest.clone_into(&mut cause.here),
                "is" => cause.is = rest.split_whitespace().map(str::to_owned).collect(),
                "never" => cause.never = rest.split_whitespace().map(fact_of).collect(),
                "because" => cause.because = rest.split_whitespace().map(str::to_owned).collect(),
                "instead" => {
                    let (name, other) = word_of(rest);
                    cause.instead.push((fact_of(name), other.to_owned()));
                }
                _ => mistakes.add(&field.place, format!("a cause has no field {word}")),
            }
        }
        if let Some(other) = cause.is.iter().find(|word| !PROPERTIES.contains(&word.as_str())) {
            mistakes.add(&block.place, format!("a cause is not {other}"));
        }
        if cause.says.is_empty() || cause.todo.is_empty() || cause.first.is_empty() {
            mistakes.add(&block.place, "a cause has the fields says, do and first");
        }
        if causes.iter().any(|one| one.key == cause.key) {
            mistakes.add(&block.place, format!("{} stands twice", cause.key));
        }
        causes.push(cause);
    }
    causes
}

/// Checks that the causes that a cause names exist.
pub fn resolve(causes: &mut [Cause], mistakes: &mut Mistakes) {
    for cause in causes.iter() {
        for name in cause.because.iter().chain(cause.instead.iter().map(|(_, name)| name)) {
            if !causes.iter().any(|one| one.key == *name) {
                mistakes.add(&cause.place, format!("there is no cause {name}"));
            }
        }
    }
}
