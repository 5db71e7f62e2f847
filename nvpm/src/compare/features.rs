// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The features by which nodes are compared. A feature is a fact of the status without the parts that differ between
//! equal nodes, such as addresses, counters, and the speed of an idle link.
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::compare::status::{Fact, word};

/// The key that signs modules on Ubuntu has the name of the host.
const SIGNED: &str = "signed by";
/// The verdicts that count when nodes have different versions of nvpm.
const JUDGED: &[&str] = &["warn", "bad"];
pub const NO_GPU: &str = "no GPU";
const ABSENT: &str = "none";

pub type Text = Rc<str>;
pub type Features = IndexMap<Text, Text>;
/// The features that are warn or bad, each with its verdict.
pub type Verdicts = BTreeSet<(Text, Text)>;

/// The texts that many nodes have, each of which is kept once.
#[derive(Default)]
pub struct Texts(HashSet<Text>);

impl Texts {
    pub fn one(&mut self, text: &str) -> Text {
        if let Some(known) = self.0.get(text) {
            return Rc::clone(known);
        }
        let new = Text::from(text);
        self.0.insert(Rc::clone(&new));
        new
    }
}

/// The feature that a fact belongs to: its name, which is empty for a fact that is no feature, the device, and the
/// value.
#[derive(Clone)]
pub struct Feature {
    pub name: String,
    pub device: String,
    pub value: String,
}

impl Feature {
    pub fn of(id: &str, section: &str, name: &str, value: &str) -> Self {
        let new = |name: String, device: &str, value: String| Self { name, device: device.to_owned(), value };
        if is_passing(id) {
            return new(String::new(), "", String::new());
        }
        if section == "distance" {
            return new(section.to_owned(), name, value.to_owned());
        }
        let value = match (section, value) {
            ("use", "0") => "0",
            ("use", _) => "not 0",
            _ => value,
        };
        let device = ["GPU", "RDMA device"]
            .iter()
            .find_map(|kind| section.strip_prefix(kind)?.strip_prefix(' ').map(|device| (*kind, device)));
        let Some((kind, device)) = device else {
            return new(format!("{section}, {}", without_addresses(name)), "", without_addresses(value));
        };
        // GPUs slow their link down while they are idle.
        let is_idle = kind == "GPU" && name == "link" && (value.contains("idle") || !value.contains(':'));
        let value = if is_idle { width_of(value).unwrap_or(value) } else { value };
        new(format!("{kind}, {name}"), device, without_addresses(value))
    }
}

/// Returns whether a fact is no feature, because it is about the present moment, or repeats other facts.
fn is_passing(id: &str) -> bool {
    let of_use = id.strip_prefix("use/");
    of_use.is_some_and(|name| !name.starts_with("failed_") && !name.starts_with("orphans"))
        || (id.starts_with("distance/") && id.ends_with("_nearest"))
        || id.rsplit_once("/process_").is_some_and(|(_, number)| is_number(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit())
}

/// Returns the width in a text such as "2.5 GT/s x16, can …".
fn width_of(value: &str) -> Option<&str> {
    let (speed, rest) = value.split_once(" GT/s ")?;
    let digits = rest.strip_prefix('x')?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let is_speed = !speed.is_empty() && speed.bytes().all(|one| one.is_ascii_digit() || one == b'.');
    rest.get(..=end).filter(|_| is_speed && end > 0)
}

/// Returns a text with a star in place of each address of a PCI device, as 0000:3b:00.0.
fn without_addresses(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(colon) = rest.find(':') {
        let (before, behind) = rest.split_at(colon);
        // A domain has four or five digits. The longest one counts, as in an expression from the left.
        let domain = before.len() - before.bytes().rev().take(5).take_while(|one| is_hex(*one)).count();
        let is_address = colon - domain >= 4 && is_slot(behind);
        let end = if is_address { colon + SLOT } else { colon + 1 };
        found.push_str(rest.get(..if is_address { domain } else { end }).unwrap_or_default());
        if is_address {
            found.push('*');
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    found.push_str(rest);
    found
}

/// The length of a bus, a device and a function, as in ":3b:00.0".
const SLOT: usize = 8;

fn is_hex(letter: u8) -> bool {
    matches!(letter, b'0'..=b'9' | b'a'..=b'f')
}

fn is_slot(text: &str) -> bool {
    let form = b":xx:xx.0";
    text.len() >= SLOT
        && text.bytes().zip(form).all(|(letter, form)| match form {
            b'x' => is_hex(letter),
            b'0' => (b'0'..=b'7').contains(&letter),
            sign => letter == *sign,
        })
}

/// Four facts decide the kind of a node: the models of the GPUs, the kernel, the version of the driver, and the RDMA
/// core. A fact is empty if it is not good, because a fault makes no kind.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Key(pub [Text; 4]);

/// A node by its status.
#[derive(Clone, Default)]
pub struct Seen {
    pub features: Features,
    pub verdicts: Rc<Verdicts>,
    pub nvpm: String,
    pub key: Key,
}

impl Seen {
    /// Returns the compared facts of a node. Returns None if a part of the status has another form.
    pub fn of(head: &Map<String, Value>, facts: &[Rc<Fact>], texts: &mut Texts) -> Option<Self> {
        let mut verdicts = Verdicts::new();
        let mut models = BTreeSet::new();
        let (mut has_gpus, mut driver, mut core) = (false, ABSENT.to_owned(), ABSENT.to_owned());
        for fact in facts {
            let is_judged = JUDGED.contains(&fact.verdict.as_str());
            if is_judged {
                verdicts.insert((texts.one(&fact.feature.name), texts.one(&fact.verdict)));
            }
            if fact.section.starts_with("GPU ") {
                has_gpus = true;
                if fact.name == "model" {
                    models.insert(fact.value.as_str());
                }
            } else if fact.id == "driver/nvidia" {
                driver = if fact.verdict == "bad" { String::new() } else { version_in(&fact.value) };
            } else if fact.id == "rdma_core/built_for" {
                core = if is_judged { String::new() } else { fact.value.clone() };
            }
        }
        let models: Vec<&str> = models.into_iter().collect();
        let models = if has_gpus { models.join(" and ") } else { NO_GPU.to_owned() };
        let kernel = word(head.get("kernel"));
        let key = Key([models, kernel, driver, core].map(|text| texts.one(&text)));
        let nvpm = head.get("nvpm").filter(|nvpm| !nvpm.is_null()).map_or(String::new(), |nvpm| word(Some(nvpm)));
        Some(Self { features: features(head, facts, texts)?, verdicts: Rc::new(verdicts), nvpm, key })
    }
}

fn version_in(value: &str) -> String {
    let version = value.split_once("version ").and_then(|(_, rest)| rest.split_whitespace().next());
    version.map_or(ABSENT, |version| version.trim_end_matches([',', ';', ':'])).to_owned()
}

/// Returns the value of each feature of a node.
fn features(head: &Map<String, Value>, facts: &[Rc<Fact>], texts: &mut Texts) -> Option<Features> {
    let mut values: IndexMap<&str, Vec<(&str, std::borrow::Cow<str>)>> = IndexMap::new();
    values.insert("kernel", vec![("", word(head.get("kernel")).into())]);
    let host = head.get("host").filter(|host| !host.is_null()).map_or(String::new(), |host| word(Some(host)));
    let host = host.split('.').next().unwrap_or_default();
    for fact in facts {
        let Feature { name, device, value } = &fact.feature;
        if name.is_empty() {
            continue;
        }
        let is_own = !host.is_empty() && name.contains(SIGNED);
        let value = if is_own { value.replace(host, "*").into() } else { value.as_str().into() };
        values.entry(name).or_default().push((device, value));
    }
    let pairs = ways_of(head)?;
    for (pair, ways) in &pairs {
        values.entry("ways").or_default().push((pair, ways.as_str().into()));
    }
    let programs = programs_of(head)?;
    for (program, way) in &programs {
        values.entry(program).or_default().push(("", way.as_str().into()));
    }
    Some(values.into_iter().map(|(name, found)| (texts.one(name), texts.one(&summed(&found)))).collect())
}

/// Returns the ways of each pair of a GPU and an RDMA device.
fn ways_of(head: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    let Some(ways) = head.get("ways").filter(|ways| !ways.is_null()) else { return Some(Vec::new()) };
    let pair = |pair: &Value| {
        let ways: Option<Vec<&str>> = pair.get("ways")?.as_array()?.iter().map(Value::as_str).collect();
        let ways = ways?.join(" and ");
        let names = format!("{} {}", word(Some(pair.get("gpu")?)), word(Some(pair.get("device")?)));
        Some((names, if ways.is_empty() { "no way".to_owned() } else { ways }))
    };
    ways.as_array()?.iter().map(pair).collect()
}

fn programs_of(head: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    let Some(programs) = head.get("programs").filter(|programs| !programs.is_null()) else { return Some(Vec::new()) };
    let way = |(program, way): (&String, &Value)| {
        let way = if way.as_str() == Some("") || way.is_null() { "finds no way".to_owned() } else { word(Some(way)) };
        (format!("program {program}"), way)
    };
    Some(programs.as_object()?.iter().map(way).collect())
}

/// Returns a text with the values of a feature and the number of devices with each value, the most frequent value
/// first. The names of the devices follow each value except the most frequent.
fn summed(found: &[(&str, std::borrow::Cow<str>)]) -> String {
    if let [(_, value)] = found {
        return value.clone().into_owned();
    }
    let mut by_value: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (device, value) in found {
        by_value.entry(value).or_default().push(device);
    }
    by_value.sort_by(|value, devices, other, others| others.len().cmp(&devices.len()).then(value.cmp(other)));
    let text = |(place, (value, devices)): (usize, (&&str, &Vec<&str>))| {
        let shown: Vec<&str> = devices.iter().take(4).copied().collect();
        let names = if place == 0 { String::new() } else { format!(" ({})", shown.join(", ")) };
        format!("{} x {value}{names}", devices.len())
    };
    by_value.iter().enumerate().map(text).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_stars() {
        for (text, without) in [
            ("at 0000:3b:00.0, and 10000:01:1f.7!", "at *, and *!"),
            ("000:3b:00.0", "000:3b:00.0"),
            ("0000:3b:00.8", "0000:3b:00.8"),
            ("123456:3b:00.0", "1*"),
            ("a: b: 0000:3b:00.0", "a: b: *"),
        ] {
            assert_eq!(without_addresses(text), without);
        }
    }

    #[test]
    fn an_idle_link_has_its_width() {
        let value = |section: &str, value: &str| Feature::of("x", section, "link", value).value;
        assert_eq!(value("GPU 0", "2.5 GT/s x16, can 32 GT/s: GPUs are slower when idle"), "x16");
        assert_eq!(value("GPU 0", "32.0 GT/s x16"), "x16");
        assert_eq!(value("GPU 0", "32.0 GT/s x8: the slot has x8"), "32.0 GT/s x8: the slot has x8");
        assert_eq!(value("RDMA device a", "32.0 GT/s x16"), "32.0 GT/s x16");
    }

    #[test]
    fn facts_of_the_moment_are_no_features() {
        for id in ["use/bytes", "distance/0000:03:00.0_nearest", "access/process_7"] {
            assert!(is_passing(id), "{id}");
        }
        for id in ["use/failed_driver", "use/orphans", "distance/0000:03:00.0", "access/process_x"] {
            assert!(!is_passing(id), "{id}");
        }
    }
}
