// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the status as one JSON object. Each fact has one line, and no line is long.
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::json;

use crate::facts::all::Status;
use crate::facts::fact::Fact;
use crate::facts::outcomes;
use crate::read::machine::Machine;
use crate::read::ways;
use crate::show::json_line::quoted;
use crate::show::{release, utc};

/// The version of the JSON object, which docs/monitoring.md explains. A change of the object's meaning increases this
/// number.
const SCHEMA: u8 = 2;

/// The number of pairs or of programs on a line. srun --label cuts lines after 1,024 bytes, and a longer line than
/// 4,096 bytes may be torn where several programs write to one pipe.
const PAIRS: usize = 8;

pub fn lines(machine: &Machine, status: &Status) -> Vec<String> {
    let head = [
        ("schema", json!(SCHEMA)),
        ("nvpm", json!(release::release())),
        ("host", json!(machine.host)),
        ("kernel", json!(machine.kernel)),
        ("time", json!(utc::now())),
        ("state", json!(status.state.word())),
        ("exit_code", json!(status.code)),
        ("to_do", json!(status.to_do())),
    ];
    let mut out = vec!["{".to_owned()];
    out.extend(head.iter().map(|(key, value)| format!("  {}: {},", quoted(key), quoted(value))));
    out.push(format!("  \"ways\": [{}],", listed(&ways_of_pairs(machine), PAIRS)));
    let found = outcomes::ways_found(machine);
    out.push(format!("  \"programs\": {{{}}},", entries(found.iter().map(|(name, way)| (*name, way.as_str())))));
    out.push(format!("  \"programs_by_pair\": [{}],", listed(&programs_by_pair(machine), 1)));
    out.push("  \"facts\": [".to_owned());
    for (number, fact) in status.facts.iter().enumerate() {
        let comma = if number + 1 < status.facts.len() { "," } else { "" };
        out.push(format!("    {}{comma}", quoted(&Object(fact))));
    }
    out.extend(["  ]", "}"].map(str::to_owned));
    out
}

/// Returns the ways of each GPU with each RDMA device.
fn ways_of_pairs(machine: &Machine) -> Vec<String> {
    let pairs = ways::of_pairs(machine);
    let object = |((gpu, device), ways): (&ways::Pair, &Vec<String>)| {
        quoted(&json!({"gpu": gpu, "device": device, "ways": ways}))
    };
    pairs.iter().map(object).collect()
}

/// Returns an object for each group of pairs with the same ways of programs.
fn programs_by_pair(machine: &Machine) -> Vec<String> {
    let groups = outcomes::grouped(machine);
    let object = |group: &outcomes::Group| {
        let pairs: Vec<String> =
            group.pairs.iter().map(|(gpu, device)| quoted(&json!({"gpu": gpu, "device": device}))).collect();
        let programs = group.programs.iter().map(|(name, outcome)| (*name, outcome.way.as_str()));
        format!("{{\"pairs\": [{}], \"programs\": {{{}}}}}", listed(&pairs, PAIRS), entries(programs))
    };
    groups.iter().map(object).collect()
}

fn entries<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let texts: Vec<String> = texts.map(|(name, text)| format!("{}: {}", quoted(&name), quoted(&text))).collect();
    listed(&texts, PAIRS)
}

/// Returns the texts with commas, COUNT on a line.
fn listed(texts: &[String], count: usize) -> String {
    let lines: Vec<String> = texts.chunks(count).map(|some| some.join(", ")).collect();
    lines.join(",\n    ")
}

/// A fact for JSON. A value that is a number becomes a number in JSON, too.
struct Object<'a>(&'a Fact);

impl Serialize for Object<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let fact = self.0;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("id", &fact.id)?;
        map.serialize_entry("section", &fact.section)?;
        map.serialize_entry("name", &fact.name)?;
        map.serialize_entry("verdict", fact.verdict.word())?;
        match number(&fact.value) {
            Some(number) => map.serialize_entry("value", &number)?,
            None => map.serialize_entry("value", &fact.value)?,
        }
        if !fact.advice.is_empty() {
            map.serialize_entry("advice", &fact.advice)?;
        }
        map.end()
    }
}

/// Returns the number that a text spells as JSON does: without a sign, and without zeros before it.
fn number(text: &str) -> Option<u128> {
    let number: u128 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
