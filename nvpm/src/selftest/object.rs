// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the results, and prints one JSON object at the end.
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::facts::distances::Distance;
use crate::facts::fact::Fact;
use crate::selftest::failure::Absent;
use crate::selftest::report::{Outcome, Report};
use crate::selftest::trial::{Freed, Plan, Trial};
use crate::selftest::wording::rate;
use crate::show::release::release;

const SCHEMA: u8 = 1;

pub struct Object {
    plan: Plan,
    pairs: Vec<Value>,
    not_tested: Vec<Value>,
    absent: Vec<Value>,
    /// The members that only some tests have.
    more: Map<String, Value>,
}

impl Object {
    pub fn new(plan: Plan) -> Self {
        Self { plan, pairs: Vec::new(), not_tested: Vec::new(), absent: Vec::new(), more: Map::new() }
    }
}

impl Report for Object {
    fn begin(&mut self, _gpus: usize, _devices: usize) -> io::Result<()> {
        Ok(())
    }

    fn not_tested(&mut self, device: &str, reason: &str) -> io::Result<()> {
        self.not_tested.push(json!({"device": device, "reason": reason}));
        Ok(())
    }

    fn pair(&mut self, trial: &Trial, facts: &[Fact]) -> io::Result<()> {
        let mut pair = json!({
            "gpu": trial.gpu,
            "pci": trial.pci,
            "device": trial.device,
            "port": trial.port,
            "way": if trial.by_dma_buf { "dma-buf" } else { "pointer" },
            "passed": trial.failure.is_none(),
            "failure": trial.failure,
            "status": facts.iter().map(of_fact).collect::<Vec<_>>(),
        });
        let figures = if self.plan.bandwidth.is_some() { measured(trial) } else { moved(trial) };
        if let (Some(pair), Value::Object(figures)) = (pair.as_object_mut(), figures) {
            pair.extend(figures);
        }
        self.pairs.push(pair);
        Ok(())
    }

    fn absent(&mut self, missing: &[Absent]) -> io::Result<()> {
        self.absent = missing.iter().map(|one| json!({"what": one.what, "advice": one.advice})).collect();
        Ok(())
    }

    fn judged(&mut self, trials: &[Trial], is_software: bool) -> io::Result<()> {
        for (pair, trial) in self.pairs.iter_mut().filter_map(Value::as_object_mut).zip(trials) {
            pair.insert("slow".to_owned(), json!(trial.remarks));
        }
        self.more.insert("software_only".to_owned(), json!(is_software));
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> io::Result<()> {
        let mut said = json!({
            "schema": SCHEMA,
            "nvpm": release(),
            "host": rustix::system::uname().nodename().to_string_lossy(),
            "size": self.plan.size,
            "seed": self.plan.seed,
            "pairs": self.pairs,
            "not_tested": self.not_tested,
            "absent": self.absent,
            "exit_code": outcome.code,
            "passed": outcome.passed,
            "failed": outcome.failed,
        });
        if self.plan.bandwidth.is_some() {
            self.more.insert("bandwidth".to_owned(), json!(true));
        }
        if let Some(members) = said.as_object_mut() {
            members.extend(std::mem::take(&mut self.more));
        }
        said.sort_all_objects();
        writeln!(io::stdout(), "{}", in_ascii(&format!("{said:#}")))
    }
}

/// Returns a rate as a whole number of bytes per second.
#[allow(clippy::cast_sign_loss)]
fn whole(rate: f64) -> u64 {
    rate as u64
}

fn moved(trial: &Trial) -> Value {
    let of_seconds = |seconds: Option<f64>| seconds.map(|seconds| whole(rate(trial.size, seconds)));
    let freed = trial.freed.map(|freed| if freed == Freed::Revoked { "revoked" } else { "pinned" });
    json!({"to_gpu": of_seconds(trial.to_gpu), "from_gpu": of_seconds(trial.from_gpu), "freed": freed})
}

fn measured(trial: &Trial) -> Value {
    let limit = trial.limit();
    json!({
        "to_gpu": trial.to_gpu.map(whole),
        "from_gpu": trial.from_gpu.map(whole),
        "links_allow": limit.as_ref().map(|limit| whole(limit.rate)),
        "limit": limit.as_ref().map(|limit| &limit.what),
        "distance": trial.distance.map(Distance::name),
    })
}

fn of_fact(fact: &Fact) -> Value {
    json!({
        "section": fact.section,
        "name": fact.name,
        "verdict": fact.verdict.word(),
        "value": fact.value,
        "advice": fact.advice,
    })
}

/// Returns JSON in which each character is ASCII, for programs that read it in another encoding. Only texts of JSON
/// have other characters.
fn in_ascii(json: &str) -> String {
    let mut found = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() && letter != '\x7f' {
            found.push(letter);
        } else {
            let units: Vec<String> =
                letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
            found.push_str(&units.concat());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_only_ascii() {
        assert_eq!(in_ascii("[\n  \"aé\u{7f}😀\"\n]"), "[\n  \"a\\u00e9\\u007f\\ud83d\\ude00\"\n]");
    }
}
