// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Redacts the values in a JSON. Keys, and words of nvpm, stay.
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};

use crate::redact::redactor::Redactor;

/// Keys whose values are nvpm's own words, or names of devices.
const WORDS: &[&str] = &["id", "section", "name", "verdict", "gpu", "device", "pci", "way", "ways", "client"];
/// The keys of the name of a process, of the identifier of a container, and of the name of a host.
const COMMAND: &str = "command";
const CONTAINER: &str = "container";
const HOST: &str = "host";

impl Redactor {
    /// Finds names of processes in the members of a JSON.
    pub fn learn_json(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(name)) = members.get(COMMAND) {
                    self.learn_job(name);
                }
                members.values().for_each(|inner| self.learn_json(inner));
            }
            Value::Array(values) => values.iter().for_each(|inner| self.learn_json(inner)),
            _ => {}
        }
    }

    /// Redacts a JSON. A text that is no JSON is redacted as a text.
    pub fn json(&mut self, text: &str) -> String {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return self.text(text) };
        let value = self.value("", value);
        let mut out = Vec::new();
        let written = value.serialize(&mut Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" ")));
        if written.is_ok() { String::from_utf8_lossy(&out).into_owned() + "\n" } else { self.text(text) }
    }

    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, inner)| {
                    let inner = self.value(&name, inner);
                    (name, inner)
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            Value::Array(values) => Value::Array(values.into_iter().map(|inner| self.value(key, inner)).collect()),
            Value::String(text) => Value::String(self.string(key, &text)),
            other => other,
        }
    }

    fn string(&mut self, key: &str, text: &str) -> String {
        match key {
            COMMAND => self.job(text),
            CONTAINER => self.replaced("container", text),
            HOST => self.replaced("host", text),
            _ if WORDS.contains(&key) => self.patterns(text),
            _ => self.text(text),
        }
    }
}
