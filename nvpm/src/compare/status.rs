// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The output of a node: of `nvpm status --json`, of `nvpm selftest --json`, or of `nvpm used --json`.
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::compare::features::Feature;

/// Longer lines are not kept for other nodes, because they would fill memory.
const LONGEST_KEPT: usize = 2000;
const MOST_KEPT: usize = 1 << 16;
/// The lines between which nvpm prints the facts, one in a line, and the ways, some pairs in a line.
const FACTS: &str = "  \"facts\": [";
const END_OF_FACTS: &str = "  ]";
const WAYS: &str = "  \"ways\": [";
const END_OF_WAYS: &str = "  ],";

/// A fact, and the feature that it belongs to.
pub struct Fact {
    pub id: String,
    pub section: String,
    pub name: String,
    pub value: String,
    pub verdict: String,
    pub feature: Feature,
}

#[derive(Clone)]
pub enum Output {
    Status { head: Map<String, Value>, facts: Vec<Rc<Fact>> },
    Selftest(Map<String, Value>),
    Used(Map<String, Value>),
}

/// Reads outputs. Most lines of a status are the same on other nodes, so what was read of a line is kept.
#[derive(Default)]
pub struct Outputs {
    facts: HashMap<String, Rc<Fact>>,
}

impl Outputs {
    /// Returns the output in the lines of a node, if there is one.
    pub fn of_lines(&mut self, lines: &[String]) -> Option<Output> {
        self.by_lines(lines).or_else(|| of_text(&lines.concat()))
    }

    /// Returns the status in lines of nvpm's own form, which has a line for each member and for each fact. JSON in
    /// another form is read as a whole, which takes ten times longer.
    fn by_lines(&mut self, lines: &[String]) -> Option<Output> {
        let begin = lines.iter().position(|line| line == FACTS)?;
        let mut head = Map::new();
        let mut pairs: Option<Vec<Value>> = None;
        for line in lines.get(1..begin)? {
            let text = line.trim().trim_end_matches(',');
            match &mut pairs {
                _ if line == WAYS => pairs = Some(Vec::new()),
                Some(_) if line == END_OF_WAYS => {
                    head.insert("ways".to_owned(), pairs.take().unwrap_or_default().into());
                }
                Some(pairs) => pairs.append(&mut serde_json::from_str(&format!("[{text}]")).ok()?),
                None => {
                    let mut members: Map<String, Value> = serde_json::from_str(&format!("{{{text}}}")).ok()?;
                    head.append(&mut members);
                }
            }
        }
        let rest = lines.get(begin + 1..)?;
        let end = rest.iter().position(|line| line == END_OF_FACTS)?;
        let facts = rest.iter().take(end).map(|line| self.fact(line.trim().trim_end_matches(',')));
        Some(Output::Status { head, facts: facts.collect::<Option<_>>()? })
    }

    fn fact(&mut self, line: &str) -> Option<Rc<Fact>> {
        if let Some(known) = self.facts.get(line) {
            return Some(Rc::clone(known));
        }
        let fact = Rc::new(fact_of(serde_json::from_str::<Map<String, Value>>(line).ok()?));
        if line.len() <= LONGEST_KEPT && self.facts.len() < MOST_KEPT {
            self.facts.insert(line.to_owned(), Rc::clone(&fact));
        }
        Some(fact)
    }
}

/// Returns the status, the result of a selftest, or the answer of `nvpm used`. Ansible may have wrapped this into JSON
/// of its own.
fn of_text(text: &str) -> Option<Output> {
    let mut said = object_of(text)?;
    if let Some(facts) = said.get_mut("facts").and_then(objects) {
        return Some(Output::Status {
            head: said,
            facts: facts.into_iter().map(|one| Rc::new(fact_of(one))).collect(),
        });
    }
    if said.get("pairs").is_some_and(|pairs| pairs.as_array().is_some_and(|all| all.iter().all(Value::is_object))) {
        return Some(Output::Selftest(said));
    }
    if ["answer", "exit_code", "without_rdma"].iter().all(|key| said.contains_key(*key)) {
        return Some(Output::Used(said));
    }
    of_text(said.get("stdout")?.as_str()?.trim())
}

/// Takes the objects out of a list, if the value is a list of nothing else.
fn objects(list: &mut Value) -> Option<Vec<Map<String, Value>>> {
    let list = list.as_array_mut().filter(|list| list.iter().all(Value::is_object))?;
    let taken = list.drain(..).filter_map(|one| if let Value::Object(one) = one { Some(one) } else { None });
    Some(taken.collect())
}

/// Returns the JSON object at the beginning of a text.
pub fn object_of(text: &str) -> Option<Map<String, Value>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next()?.ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn fact_of(mut object: Map<String, Value>) -> Fact {
    let mut text = |key: &str| match object.remove(key) {
        Some(Value::String(text)) => text,
        other => word(other.as_ref()),
    };
    let (id, section, name, value, verdict) =
        (text("id"), text("section"), text("name"), text("value"), text("verdict"));
    let feature = Feature::of(&id, &section, &name, &value);
    Fact { id, section, name, value, verdict, feature }
}

/// Returns a value as text. A member that is missing has no text of its own.
pub fn word(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "None".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
