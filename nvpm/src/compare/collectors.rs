// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the lines that a tool prints about nodes, between the lines of the nodes themselves. Such lines name nodes
//! that printed nothing: pdsh and clush print a line for each exit code that is not 0, and srun also tells which task
//! ran on which node.
use indexmap::IndexMap;
use regex::bytes::{Captures, Regex};

use crate::compare::names::{MOST, unfolded};
use crate::explain::pattern::expression;

/// Programs that print messages of their own with their name as the label.
pub const TOOLS: &[&str] = &["srun", "pdsh", "clush", "slurmstepd"];
/// Ansible adds these words to the output of a command whose exit code is not 0.
pub const RETURN_CODE: &str = "non-zero return code";
/// Headings of Ansible, such as `node1 | CHANGED | rc=0 >>` and `node1 | FAILED! => {`.
const ANSIBLE: &str = r"^(\S+) \| [A-Z]+!?(?: \| rc=-?\d+)? (?:>>|=>) ?";
/// Lines of a tool that are about no node, or repeat another line. pdsh prints such lines when it ends a command that
/// takes too long.
const NOISE: &str = r"^(?:\[(?:ERROR|WARNING|DEPRECATION WARNING)\]: |Origin: <|\{'action': |sending (?:SIGTERM|signal) .*\b(?:to|ssh|pid)\b)";
/// Lines of a tool about nodes. dshbak takes the label of pdsh's own lines for a node.
const ABOUT: &[&str] = &[
    r"^pdsh@[^:\s]+: (?P<nodes>\S+): (?P<words>.*)",
    r"^clush: (?P<nodes>\S+)(?: \(\d+\))?: (?P<words>.*)",
    r"^srun: error: (?P<nodes>\S+): tasks? (?P<tasks>[0-9,-]+): (?P<words>.*)",
    r"^srun: error: (?P<words>Node failure) on (?P<nodes>\S+)$",
    r"^srun: error: .* failed on node (?P<nodes>\S+): (?P<words>.*)",
];
const OF_PDSH: &str = r"^pdsh@[^:\s]+$";
const BELOW_PDSH: &str = r"^(?P<nodes>\S+): (?P<words>.*)";
/// The greatest number of bytes of a line that can be a tool's.
const LONGEST: usize = 2000;

pub struct Patterns {
    ansible: Option<Regex>,
    noise: Option<Regex>,
    about: Vec<Regex>,
    of_pdsh: Option<Regex>,
    below_pdsh: Vec<Regex>,
}

impl Patterns {
    fn new() -> Self {
        Self {
            ansible: expression(ANSIBLE),
            noise: expression(NOISE),
            about: ABOUT.iter().filter_map(|pattern| expression(pattern)).collect(),
            of_pdsh: expression(OF_PDSH),
            below_pdsh: expression(BELOW_PDSH).into_iter().collect(),
        }
    }
}

fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(text.as_bytes()))
}

/// The words of a tool about nodes, by node, and the node of each task that srun numbers.
pub struct Reports {
    patterns: Patterns,
    pub by_node: IndexMap<String, String>,
    pub tasks: IndexMap<String, String>,
}

impl Reports {
    pub fn new() -> Self {
        Self { patterns: Patterns::new(), by_node: IndexMap::new(), tasks: IndexMap::new() }
    }

    /// Returns whether dshbak has made a heading of pdsh's own label.
    pub fn is_heading(&self, name: &str) -> bool {
        matches(self.patterns.of_pdsh.as_ref(), name)
    }

    /// Returns the node of a heading of Ansible, and the text behind it.
    pub fn ansible<'a>(&self, line: &'a str) -> Option<(&'a str, &'a str)> {
        let found = self.patterns.ansible.as_ref()?.captures(line.as_bytes())?;
        Some((line.get(found.get(1)?.range())?, line.get(found.get(0)?.end()..)?))
    }

    /// Returns whether a tool has printed a line, and keeps the words of such a line. The heading is the one above the
    /// line.
    pub fn add(&mut self, line: &str, heading: &str) -> bool {
        // Nearly all lines belong to a status.
        if line.len() > LONGEST || line.is_empty() || (line.starts_with(['{', '}', ' ']) && !line.starts_with("{'")) {
            return false;
        }
        if matches(self.patterns.noise.as_ref(), line) {
            return true;
        }
        let patterns = if self.is_heading(heading) { &self.patterns.below_pdsh } else { &self.patterns.about };
        let found = patterns.iter().find_map(|pattern| pattern.captures(line.as_bytes()));
        let told = found.as_ref().map(told_of);
        if let Some((nodes, tasks, words)) = told {
            self.keep(&nodes, &tasks, &words);
        }
        found.is_some() || line.starts_with("pdsh@")
    }

    fn keep(&mut self, nodes: &str, tasks: &str, words: &str) {
        let Ok(nodes) = unfolded(nodes) else { return };
        let tasks = if tasks.is_empty() { Ok(Vec::new()) } else { unfolded(&format!("[{tasks}]")) };
        let Ok(tasks) = tasks else { return };
        if self.by_node.len() + nodes.len() > MOST {
            return;
        }
        for node in &nodes {
            self.by_node.entry(node.clone()).or_insert_with(|| words.to_owned());
        }
        // The tasks of a node have consecutive numbers, and each node has as many tasks.
        let share = (tasks.len() / nodes.len().max(1)).max(1);
        for (node, tasks) in nodes.iter().zip(tasks.chunks(share)) {
            for task in tasks {
                self.tasks.insert(task.clone(), node.clone());
            }
        }
    }
}

/// Returns the nodes, the tasks and the words that a tool has named.
fn told_of(found: &Captures) -> (String, String, String) {
    let part = |name: &str| {
        found.name(name).map_or(String::new(), |part| String::from_utf8_lossy(part.as_bytes()).into_owned())
    };
    (part("nodes"), part("tasks"), part("words"))
}

/// Returns the last lines of the words in an object with which Ansible reports a failure.
pub fn message(said: Option<&serde_json::Map<String, serde_json::Value>>) -> Vec<String> {
    let words = |key: &&str| said?.get(*key)?.as_str().map(str::trim).filter(|words| !words.is_empty());
    let Some(words) = ["stderr", "stdout", "msg"].iter().find_map(words) else { return Vec::new() };
    let lines: Vec<&str> = words.split('\n').collect();
    lines.iter().skip(lines.len().saturating_sub(3)).map(|line| line.chars().take(LONGEST).collect()).collect()
}
