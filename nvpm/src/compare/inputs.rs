// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the outputs of many nodes, in the form in which tools collect such outputs. clush and pdsh put the name of the
//! node before each line, and srun --label puts the number of the task there. clush -b and Ansible print a heading
//! before the output of each node. Other tools write one file for each node.
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::compare::collectors::{RETURN_CODE, Reports, TOOLS, message};
use crate::compare::names::{MOST, unfolded, without_domain};
use crate::compare::status::{Output, Outputs, object_of, word};

/// No name of a host is longer (RFC 1035).
const LONGEST_NAME: usize = 253;
/// The greatest number of bytes of a line, and of the output of one node. A status of a node with many devices has less
/// than 1 MiB.
const LONGEST: usize = 8 << 20;
/// Longer words of a node are cut.
const LONGEST_WORDS: usize = 2000;
/// The number of lines that are kept if a node has printed no status.
const LAST_WORDS: usize = 3;
const TOO_LONG: &str = "the status is too long";
const NO_NAME: &str = "(no name)";

/// A node with its output. If the node printed none, the words are the last lines that it printed.
pub struct Node {
    pub name: String,
    pub output: Result<Output, String>,
}

impl Node {
    pub fn silent(name: &str, words: impl Into<String>) -> Self {
        Self { name: cut_name(name), output: Err(words.into()) }
    }
}

fn cut_name(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// The function that receives the nodes. False means that it takes no further node.
pub type Sink<'a> = &'a mut dyn FnMut(Node) -> bool;

/// The lines with one label, until they are a complete status.
struct Collected {
    names: Vec<String>,
    lines: Vec<String>,
    words: Vec<String>,
    is_found: bool,
    size: usize,
}

impl Collected {
    fn new(names: Vec<String>) -> Self {
        Self { names, lines: Vec::new(), words: Vec::new(), is_found: false, size: 0 }
    }

    /// Adds a line. Returns the output if this line completes one.
    fn add(&mut self, line: &str, outputs: &mut Outputs) -> Option<Output> {
        // Ansible adds these words to the last line of a command whose exit code is not 0.
        let line = line.strip_suffix(RETURN_CODE).unwrap_or(line);
        if self.lines.is_empty() && !line.starts_with('{') {
            if !line.trim().is_empty() {
                self.words.push(line.chars().take(LONGEST_WORDS).collect());
                let more = self.words.len().saturating_sub(LAST_WORDS);
                self.words.drain(..more);
            }
            return None;
        }
        self.size = if self.lines.is_empty() { line.len() } else { self.size + line.len() };
        if self.size > LONGEST {
            self.lines.clear();
            self.words = vec![TOO_LONG.to_owned()];
            return None;
        }
        self.lines.push(line.to_owned());
        if line != "}" && !(self.lines.len() == 1 && line.ends_with('}')) {
            return None;
        }
        // srun --label cuts a long line into several, so the lines are joined without a line end. In JSON, a line end
        // between two words means nothing.
        let lines = std::mem::take(&mut self.lines);
        let said = outputs.of_lines(&lines);
        if said.is_none() {
            let words = message(object_of(&lines.concat()).as_ref());
            self.words = if words.is_empty() { std::mem::take(&mut self.words) } else { words };
        }
        self.is_found |= said.is_some();
        said
    }

    /// Returns the words of the nodes, if their lines contained no complete status. The reason is what the tool said
    /// about the node.
    fn last_words(&self, reason: &str) -> Option<String> {
        if self.is_found || (self.words.is_empty() && self.lines.is_empty() && reason.is_empty()) {
            return None;
        }
        Some(if !self.lines.is_empty() {
            "the status is cut off".to_owned()
        } else if self.words.is_empty() {
            reason.to_owned()
        } else {
            self.words.join(" / ")
        })
    }
}

/// Returns the name of the node, which is the label. If the label only numbers the nodes, the name is the host name in
/// the status. The label comes first, because two nodes may have the same host name.
fn name_of(label: &str, output: &Output) -> String {
    let is_number = label.bytes().all(|one| one.is_ascii_digit());
    let (Output::Status { head: said, .. } | Output::Selftest(said) | Output::Used(said)) = output;
    let host = said.get("host").map(|host| word(Some(host))).filter(|host| !host.is_empty() && is_number);
    cut_name(host.as_deref().unwrap_or(label))
}

/// Sorts the lines of many nodes. Each line belongs to the label before the line or, without a label, to the heading
/// above the line.
struct Sorter {
    label: String,
    current: String,
    by_label: IndexMap<String, Collected>,
    reports: Reports,
    outputs: Outputs,
    names: HashSet<String>,
    left: usize,
    /// A heading of clush -b is complete after its second rule.
    is_ruled: bool,
    heading: String,
    /// The label of the line before, and the place of the lines with this label.
    prefix: String,
    place: Option<usize>,
}

impl Sorter {
    fn new(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            current: label.to_owned(),
            by_label: IndexMap::new(),
            reports: Reports::new(),
            outputs: Outputs::default(),
            names: HashSet::new(),
            left: MOST,
            is_ruled: false,
            heading: String::new(),
            prefix: String::new(),
            place: None,
        }
    }

    /// Returns the index in `by_label` of a label or a heading, which is added if it is new. Returns `None` if MOST
    /// others are there: a node can print any number of labels, and the memory for them must have a bound.
    fn place_of(&mut self, key: &str) -> Option<usize> {
        if let Some(place) = self.by_label.get_index_of(key) {
            return Some(place);
        }
        let mut names = self.unfolded(key);
        if names.is_empty() {
            names.push(key.to_owned());
        }
        if self.by_label.len() >= MOST {
            return None;
        }
        Some(self.by_label.insert_full(key.to_owned(), Collected::new(names)).0)
    }

    /// Returns the names of a heading, or no names for a label. All headings together have at most MOST names, because
    /// a node can print a heading, too.
    fn unfolded(&mut self, key: &str) -> Vec<String> {
        let names = if self.current == key { unfolded(key).unwrap_or_default() } else { Vec::new() };
        let enough = self.left >= names.len();
        self.left = self.left.saturating_sub(names.len());
        if enough { names } else { Vec::new() }
    }

    /// Adds a line. Gives the nodes whose output is complete after this line to the sink.
    fn add(&mut self, line: &str, sink: Sink) -> bool {
        // Most lines have the same label as the line before.
        let own =
            Some(self.prefix.as_str()).filter(|prefix| !prefix.is_empty()).and_then(|prefix| line.strip_prefix(prefix));
        let text = match own {
            Some(text) => text,
            None if self.is_foreign(line) => return true,
            None => self.sort(line),
        };
        let Some((_, collected)) = self.place.and_then(|place| self.by_label.get_index_mut(place)) else { return true };
        let Some(output) = collected.add(text, &mut self.outputs) else { return true };
        let names = collected.names.clone();
        let mut output = Some(output);
        for (number, name) in names.iter().enumerate() {
            // Nodes with one heading have the same output.
            let own = if number + 1 == names.len() { output.take() } else { output.clone() };
            let Some(own) = own else { continue };
            let name = name_of(name, &own);
            self.names.insert(name.clone());
            if !sink(Node { name, output: Ok(own) }) {
                return false;
            }
        }
        true
    }

    /// Returns whether a tool, and no node, has printed a line. Keeps the words of such a line.
    fn is_foreign(&mut self, line: &str) -> bool {
        let was_ruled = std::mem::take(&mut self.is_ruled);
        if line.len() >= 5 && line.bytes().all(|one| one == b'-') {
            self.prefix.clear();
            self.is_ruled = self.heading.is_empty();
            if !self.heading.is_empty() {
                self.current = std::mem::take(&mut self.heading);
            }
            return true;
        }
        if let Some(heading) = heading_of(line).filter(|_| was_ruled) {
            heading.clone_into(&mut self.heading);
            return true;
        }
        self.heading.clear();
        if self.reports.add(line, &self.current) {
            self.prefix.clear();
            if !self.reports.is_heading(&self.current) {
                self.current.clone_from(&self.label);
            }
            return true;
        }
        false
    }

    /// Selects the node that a line belongs to. Returns the line without its label.
    fn sort<'a>(&mut self, line: &'a str) -> &'a str {
        self.prefix.clear();
        if let Some((node, rest)) = self.reports.ansible(line) {
            self.current = node.to_owned();
            self.place = self.place_of(node);
            return rest;
        }
        // Below a heading, a line such as "bash: nvpm: command not found" has no label.
        let labelled = if self.current == self.label && !line.starts_with(['{', '}']) { labelled(line) } else { None };
        let Some((label, text)) = labelled else {
            let key = self.current.clone();
            self.place = self.place_of(&key);
            return line;
        };
        let prefix = line.strip_suffix(text).unwrap_or_default();
        if prefix.ends_with(": ") {
            prefix.clone_into(&mut self.prefix);
        }
        self.place = self.place_of(label);
        text
    }

    /// Gives the nodes that have printed no status to the sink, after the last line.
    fn rest(mut self, sink: Sink) -> bool {
        // A message of a login looks like a label and a text. A status without a label comes from a single node, so
        // such a text does not come from another node.
        if self.by_label.get(&self.label).is_some_and(|collected| collected.is_found) {
            return true;
        }
        let is_alone = self.by_label.len() <= 1 && self.reports.by_node.is_empty();
        for (key, collected) in &self.by_label {
            // A line without a label is no node if other lines have labels.
            if (key.is_empty() && self.label.is_empty() && !is_alone) || TOOLS.contains(&key.as_str()) {
                continue;
            }
            // The lines of srun itself say which node has the number of a label.
            let task = self.reports.tasks.get(key.trim());
            let name = task.unwrap_or(key);
            let reason = self.reports.by_node.get(name).map_or("", String::as_str);
            let Some(words) = collected.last_words(reason) else { continue };
            let names = if task.is_some() { std::slice::from_ref(name) } else { &collected.names[..] };
            for name in names {
                let name = if name.is_empty() { NO_NAME } else { name };
                self.names.insert(cut_name(name));
                if !sink(Node::silent(name, words.clone())) {
                    return false;
                }
            }
        }
        let there: HashSet<String> = self.names.iter().map(|name| without_domain(name).to_owned()).collect();
        for (name, words) in &self.reports.by_node {
            let is_there = |name: &str| self.names.contains(name) || there.contains(name);
            if !is_there(name) && !is_there(without_domain(name)) && !sink(Node::silent(name, words.clone())) {
                return false;
            }
        }
        true
    }
}

/// Returns the label of a line, and the text behind the label. A label is the name of a node or the number of a task. A
/// line of nvpm's JSON begins with a blank, a brace or a quote, and has no label.
fn labelled(line: &str) -> Option<(&str, &str)> {
    let trimmed = line.trim_start();
    let (label, text) = trimmed.split_once(':')?;
    let is_label = label.starts_with(|first: char| first.is_ascii_alphanumeric())
        && label.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'_' | b'.' | b'-'));
    is_label.then(|| (label, text.strip_prefix(' ').unwrap_or(text)))
}

/// Returns the names in a heading of clush -b, as "node[1-3] (3)".
fn heading_of(line: &str) -> Option<&str> {
    let name = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|one| one.is_ascii_digit()) => name,
        _ => line,
    };
    let is_name = !name.is_empty() && !name.contains(|sign: char| sign.is_whitespace() || sign == '{' || sign == '}');
    is_name.then_some(name)
}

/// Gives the nodes whose output a reader has to the sink. The label names the node of a line without a label.
pub fn from_reader(mut reader: impl BufRead, label: &str, sink: Sink) -> io::Result<()> {
    let mut sorter = Sorter::new(label);
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? {
        if !sorter.add(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']), sink) {
            return Ok(());
        }
    }
    sorter.rest(sink);
    Ok(())
}

/// Reads a line. A line that is too long is cut to its beginning, so that a file without line ends does not fill
/// memory.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if reader.by_ref().take(LONGEST as u64).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
    }
    Ok(true)
}

/// A file that cannot be read.
pub struct Unreadable {
    pub path: PathBuf,
    pub error: io::Error,
}

/// Gives the nodes of all files to the sink. Of a directory, these are the files in it.
pub fn from_paths(paths: &[PathBuf], sink: Sink) -> Result<(), Unreadable> {
    for path in paths {
        let unreadable = |error| Unreadable { path: path.clone(), error };
        if !path.is_dir() {
            from_file(path, sink)?;
            continue;
        }
        let entries = path.read_dir().and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(unreadable)?;
        let mut files: Vec<PathBuf> = entries
            .into_iter()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        for file in files {
            from_file(&file, sink)?;
        }
    }
    Ok(())
}

/// Gives the nodes in a file to the sink. If the file has no status, that is one node with the name of the file.
fn from_file(path: &Path, sink: Sink) -> Result<(), Unreadable> {
    let unreadable = |error| Unreadable { path: path.to_owned(), error };
    let mut is_found = false;
    let mut silent = Vec::new();
    let mut keep = |node: Node| {
        is_found |= node.output.is_ok();
        // The words of nodes count only if another node of this file has a status.
        if node.output.is_err() {
            silent.push(node);
            return true;
        }
        sink(node)
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    if reader.fill_buf().map_err(unreadable)?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    from_reader(reader, "", &mut keep).map_err(unreadable)?;
    if is_found {
        for node in silent {
            sink(node);
        }
        return Ok(());
    }
    // A file without a status has a message, which may look like a label and a text. So the first line of the message
    // counts as the words of one node.
    let mut begin = Vec::new();
    File::open(path).and_then(|file| file.take(1000).read_to_end(&mut begin)).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&begin).into_owned();
    let words = text.split(['\n', '\r']).next().filter(|words| !words.is_empty()).unwrap_or("an empty file");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split(".json").next().and_then(|stem| stem.split(".txt").next()).unwrap_or_default();
    sink(Node::silent(stem, words));
    Ok(())
}
