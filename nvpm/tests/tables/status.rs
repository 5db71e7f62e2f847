// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads all forms of `nvpm status`, and checks that they agree.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};

const KEYS: [&str; 12] = [
    "exit_code",
    "facts",
    "host",
    "kernel",
    "nvpm",
    "programs",
    "programs_by_pair",
    "schema",
    "state",
    "time",
    "to_do",
    "ways",
];
/// The column at which the name of a fact starts.
const NAME: usize = 6;

pub struct Fact {
    pub id: String,
    pub section: String,
    pub name: String,
    pub verdict: String,
    pub value: String,
    pub advice: String,
}

#[derive(Default)]
pub struct Status {
    pub facts: Vec<Fact>,
    /// The samples for Prometheus, without quotation marks.
    pub samples: Vec<String>,
}

/// Collects what is wrong.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn unless(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.0.push(what());
        }
    }
}

impl Status {
    /// Reads the outputs of `status --all`, `--json` and `--prometheus`, which have ended with these codes.
    pub fn read(modules: &Path, codes: [i32; 3], outputs: &[String; 3]) -> (Self, Vec<String>) {
        let [text, json, metrics] = outputs;
        let said: Value = match serde_json::from_str(json) {
            Ok(said) => said,
            Err(error) => return (Self::default(), vec![format!("no JSON: {error}")]),
        };
        let mut wrong = Wrong::default();
        let mut status = Self { facts: facts(&said, &mut wrong), samples: Vec::new() };
        check_codes(modules, codes, &said, &status, &mut wrong);
        check_json(&said, &status, &mut wrong);
        check_text(&said, &status, text, &mut wrong);
        status.samples = check_metrics(&said, &status, metrics, &mut wrong);
        (status, wrong.0)
    }

    pub fn fact(&self, id: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.id == id)
    }
}

fn facts(said: &Value, wrong: &mut Wrong) -> Vec<Fact> {
    let none = Vec::new();
    let mut found = Vec::new();
    let id = Regex::new(r"^[a-z0-9.:_-]+/[a-z0-9.:_-]+$").unwrap();
    for fact in said["facts"].as_array().unwrap_or(&none) {
        let text = |key: &str| fact[key].as_str().map_or_else(|| fact[key].to_string(), str::to_owned);
        let keys: BTreeSet<&str> = fact.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let with = BTreeSet::from(["id", "section", "name", "verdict", "value", "advice"]);
        let is_whole = keys == with || (with.difference(&keys).eq(["advice"].iter()) && keys.is_subset(&with));
        wrong.unless(is_whole && id.is_match(&text("id")), || format!("not a fact: {fact}"));
        found.push(Fact {
            id: text("id"),
            section: text("section"),
            name: text("name"),
            verdict: text("verdict"),
            value: text("value"),
            advice: fact["advice"].as_str().unwrap_or_default().to_owned(),
        });
    }
    found
}

fn check_codes(modules: &Path, codes: [i32; 3], said: &Value, status: &Status, wrong: &mut Wrong) {
    let state = status.fact("module/state").map_or("", |fact| fact.verdict.as_str());
    let none = Vec::new();
    // If there is another way, a missing module is no defect, and status does not mark it.
    let has_way = said["ways"].as_array().unwrap_or(&none).iter().any(|pair| pair["ways"] != Value::Array(Vec::new()));
    let is_running = said["state"] == "running";
    let is_missed = !is_running && (!has_way || state == "warn" || state == "bad");
    let code = match (modules.exists(), is_missed) {
        (false, _) => 4,
        (true, true) => 3,
        (true, false) => 0,
    };
    let is_loaded = modules.join("nv_peer_mem").exists() || modules.join("nvidia_peermem/statistics").exists();
    wrong.unless(is_loaded == is_running, || format!("the state is {}", said["state"]));
    wrong.unless(codes == [code, code, 0] && said["exit_code"] == code, || {
        format!("exit codes {codes:?}, {} in place of {code}", said["exit_code"])
    });
}

fn check_json(said: &Value, status: &Status, wrong: &mut Wrong) {
    let mut keys: Vec<&str> = said.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    keys.sort_unstable();
    wrong.unless(keys == KEYS, || format!("the object has {keys:?}"));
    wrong.unless(said["schema"] == 2 && said["host"] == "machine" && said["kernel"] != "", || {
        format!("{} {} {}", said["schema"], said["host"], said["kernel"])
    });
    let time = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$").unwrap();
    wrong.unless(said["time"].as_str().is_some_and(|text| time.is_match(text)), || said["time"].to_string());
    let ids: BTreeSet<&str> = status.facts.iter().map(|fact| fact.id.as_str()).collect();
    wrong.unless(ids.len() == status.facts.len(), || "an identifier is there twice".to_owned());
    for fact in &status.facts {
        let is_right = match fact.verdict.as_str() {
            "good" | "none" => true,
            "warn" | "bad" => !fact.advice.is_empty(),
            _ => false,
        };
        wrong.unless(is_right, || format!("{}: {} without advice", fact.id, fact.verdict));
    }
    let to_do = status.facts.iter().filter(|fact| fact.verdict == "warn" || fact.verdict == "bad").count();
    wrong.unless(said["to_do"] == to_do, || format!("to_do: {} in place of {to_do}", said["to_do"]));
}

/// Checks that status prints the same facts in its text and in its JSON output.
fn check_text(said: &Value, status: &Status, text: &str, wrong: &mut Wrong) {
    let lines: Vec<&str> = text.lines().collect();
    let state = said["state"].as_str().unwrap_or_default();
    let Some(first) = lines.iter().position(|line| line.starts_with("nv_peer_mem: ")) else {
        wrong.unless(false, || "the text has no line of the module".to_owned());
        return;
    };
    let (answer, lines) = lines.split_at(first);
    let answer = &answer[..answer.len().saturating_sub(1)];
    let is_screen = (1..=12).contains(&answer.len()) && answer.iter().all(|line| line.chars().count() <= 100);
    wrong.unless(is_screen, || format!("no screen: {answer:?}"));
    wrong.unless(lines[0].starts_with(&format!("nv_peer_mem: {state}; ")), || lines[0].to_owned());
    for fact in &status.facts {
        let is_there = if fact.section == "distance" { has_distance(lines, fact) } else { has_line(lines, fact) };
        wrong.unless(is_there, || format!("the text lacks {}: {}", fact.id, fact.value));
        wrong.unless(has_section(lines, fact), || format!("the text lacks the section {}", fact.section));
        let advice = format!("        -> {}", fact.advice);
        wrong.unless(fact.advice.is_empty() || lines.contains(&advice.as_str()), || format!("the text lacks{advice}"));
    }
}

/// Returns a line from the column at which names start.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.get(NAME..).unwrap_or_default().split_whitespace()
}

fn has_line(lines: &[&str], fact: &Fact) -> bool {
    let wanted = || fact.name.split_whitespace().chain(fact.value.split_whitespace());
    let without_devices = |line: &&&str| line.get(NAME..).and_then(|rest| rest.split(" [").next()).is_some();
    lines
        .iter()
        .filter(without_devices)
        .any(|line| line[NAME..].split(" [").next().unwrap_or_default().split_whitespace().eq(wanted()))
}

fn has_distance(lines: &[&str], fact: &Fact) -> bool {
    let Some(at) = lines.iter().position(|line| *line == "distance of GPU and RDMA device") else { return false };
    let (gpu, other) = fact.name.split_once(' ').unwrap_or_default();
    let devices: Vec<&str> = lines.get(at + 1).map(|line| line.split_whitespace().collect()).unwrap_or_default();
    let row = lines[at..].iter().find(|line| line.get(NAME..).is_some_and(|rest| rest.starts_with(gpu)));
    let row: Vec<&str> = row.map(|line| cells(line).collect()).unwrap_or_default();
    let said = match devices.iter().position(|device| *device == other) {
        _ if other == "nearest" => row.get(devices.len()..).unwrap_or_default().join(" "),
        Some(column) => row.get(1 + column).copied().unwrap_or_default().to_owned(),
        None => return false,
    };
    said == fact.value
}

fn has_section(lines: &[&str], fact: &Fact) -> bool {
    let device = fact.section.strip_prefix("GPU ").map(|device| ("GPUs", device));
    let device = device.or(fact.section.strip_prefix("RDMA device ").map(|device| ("RDMA devices", device)));
    let Some((title, device)) = device else {
        return fact.section == "distance" || lines.contains(&fact.section.as_str());
    };
    let below = lines.iter().skip_while(|line| **line != title).skip(1);
    let mut named = below.take_while(|line| line.starts_with("      "));
    named.any(|line| line.split([',', ' ']).any(|name| name == device))
}

/// Checks that the samples have the text format of Prometheus and agree with the JSON output. Returns the samples.
fn check_metrics(said: &Value, status: &Status, text: &str, wrong: &mut Wrong) -> Vec<String> {
    let label = r#"[a-z]+="(?:[^"\\\n]|\\[\\"n])*""#;
    let sample = Regex::new(&format!(r"^([a-z_]+)(?:\{{({label}(?:,{label})*)\}})? (\d+)$")).unwrap();
    let labels = Regex::new(r#"([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)""#).unwrap();
    let escape = Regex::new(r"\\(.)").unwrap();
    let mut samples: BTreeMap<String, String> = BTreeMap::new();
    let (mut helped, mut typed) = (String::new(), String::new());
    wrong.unless(text.ends_with('\n'), || "the last line has no end".to_owned());
    for line in text.lines() {
        if let Some(found) = sample.captures(line) {
            let pairs = found.get(2).map_or("", |all| all.as_str());
            let pairs: Vec<String> =
                labels.captures_iter(pairs).map(|pair| format!("{}={}", &pair[1], &pair[2])).collect();
            let pairs = escape.replace_all(&pairs.join(","), "$1").into_owned();
            let name = if pairs.is_empty() { typed.clone() } else { format!("{typed}{{{pairs}}}") };
            wrong.unless(found[1] == typed, || format!("not below its type: {line}"));
            wrong.unless(samples.insert(name, found[3].to_owned()).is_none(), || format!("twice: {line}"));
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, meaning) = rest.split_once(' ').unwrap_or_default();
            let is_new = !samples.keys().any(|sample| sample.split('{').next() == Some(name));
            wrong.unless(is_new && !meaning.is_empty(), || format!("not together: {line}"));
            name.clone_into(&mut helped);
        } else {
            let kind = if helped.ends_with("_total") { "counter" } else { "gauge" };
            wrong.unless(line == format!("# TYPE {helped} {kind}"), || line.to_owned());
            typed.clone_from(&helped);
        }
    }
    let level = |verdict: &str| ["good", "warn", "bad"].iter().position(|one| *one == verdict);
    let judged = status.facts.iter().filter_map(|fact| Some((&fact.id, level(&fact.verdict)?)));
    let judged: BTreeMap<String, String> =
        judged.map(|(id, level)| (format!("nvpm_fact{{id={id}}}"), level.to_string())).collect();
    let of_facts = samples.iter().filter(|(name, _)| name.starts_with("nvpm_fact{"));
    let of_facts: BTreeMap<String, String> = of_facts.map(|(name, value)| (name.clone(), value.clone())).collect();
    wrong.unless(judged == of_facts, || format!("the metrics of facts are {of_facts:?}"));
    let info = format!("nvpm_info{{kernel={},module=", said["kernel"].as_str().unwrap_or_default());
    let info: Vec<&String> = samples.iter().filter(|(name, _)| name.starts_with(&info)).map(|(_, one)| one).collect();
    wrong.unless(info == ["1"], || format!("nvpm_info is there with {info:?}"));
    let loaded = match said["state"].as_str() {
        Some("running") => Some("1"),
        Some("not running") => Some("0"),
        _ => None,
    };
    wrong.unless(samples.get("nvpm_loaded").map(String::as_str) == loaded, || "nvpm_loaded is wrong".to_owned());
    samples.iter().map(|(name, value)| format!("{name} {value}")).collect()
}
