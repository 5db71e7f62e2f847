// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Executes the lines of a case: changes a machine that is made of files, runs commands on it, and compares their
//! output with the expectations.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::machine::Machine;
use crate::status::{Fact, Status};
use crate::table::{Line, unescaped, word_of};
use crate::{json, useful};

const TOOLS: [&str; 5] = ["modinfo", "mokutil", "ofed_info", "rpm", "systemctl"];
const VERDICTS: [&str; 4] = ["good", "warn", "bad", "none"];
const OTHERS: [&str; 8] = ["no", "metric", "exit", "prints", "line", "says", "lines", "json"];
const FORMS: [&str; 3] = ["status --all", "status --json", "status --prometheus"];
/// The most bytes of an output that a failure quotes.
const QUOTED: usize = 4000;

/// The directories that all cases use.
pub struct Places {
    /// nvpm/tests/machines.
    pub tables: PathBuf,
    /// tests/doubles.
    pub doubles: PathBuf,
    /// The installed files.
    pub service: PathBuf,
    /// The doubles of libraries for the selftest.
    pub libraries: PathBuf,
}

/// A command and its expectations.
struct Look {
    output: Vec<u8>,
    code: i32,
    status: Option<Status>,
    is_advice: bool,
    expected: Vec<Line>,
}

pub struct Player<'a> {
    machine: Machine,
    environment: BTreeMap<OsString, OsString>,
    places: &'a Places,
    /// The facts that may be `warn` or `bad` although no expectation names them.
    passed_over: BTreeSet<String>,
    pub looks: usize,
    wrong: Vec<String>,
}

/// Returns whether a text has the parts, with any text between them.
pub fn has(text: &str, parts: &str) -> bool {
    let mut rest = text;
    parts.split(" ... ").all(|part| {
        let found = rest.find(part);
        rest = found.map_or("", |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

impl<'a> Player<'a> {
    pub fn new(scratch: &Path, places: &'a Places, is_selftest: bool) -> Self {
        let (bin, root) = (scratch.join("bin"), scratch.join("machine"));
        fs::create_dir(&bin).unwrap();
        for name in TOOLS {
            symlink(places.doubles.join("tool"), bin.join(name)).unwrap();
        }
        let program = places.service.join("nvpm-bin");
        let double = places.doubles.join("verbs/nvpm");
        symlink(if is_selftest { &double } else { &program }, bin.join("nvpm")).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", bin.display(), places.service.display());
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let set: [(&str, OsString); 3] =
            [("NVPM_SYSROOT", root.clone().into()), ("SERVICE", places.service.clone().into()), ("PATH", path.into())];
        environment.extend(set.map(|(name, value)| (name.into(), value)));
        if is_selftest {
            for name in ["LIBRARIES", "LD_LIBRARY_PATH"] {
                environment.insert(name.into(), places.libraries.clone().into());
            }
        }
        Self {
            machine: Machine::new(&root),
            environment,
            places,
            passed_over: BTreeSet::new(),
            looks: 0,
            wrong: Vec::new(),
        }
    }

    /// Executes the lines. Returns the failures.
    pub fn play(mut self, lines: &[Line]) -> (usize, Vec<String>) {
        let mut look: Option<Look> = None;
        for line in lines {
            let (word, rest) = word_of(&line.text);
            if VERDICTS.contains(&word) || OTHERS.contains(&word) {
                look.get_or_insert_with(|| self.look_at_status(line)).expected.push(line.clone());
                continue;
            }
            self.judge(look.take());
            look = match word {
                "$" => Some(self.run(&["dash", "-c", rest])),
                "nvpm" => Some(self.nvpm(&words(rest))),
                "said" => {
                    let (module, text) = word_of(rest);
                    let text = unescaped(&format!("modprobe: ERROR: could not insert '{module}': {text}"));
                    let text = String::from_utf8(text).unwrap();
                    let look = self.nvpm(&["advise".to_owned(), module.to_owned(), text]);
                    Some(Look { is_advice: true, ..look })
                }
                "env" => {
                    let (name, value) = rest.split_once('=').expect("NAME=VALUE");
                    self.environment.insert(name.into(), value.into());
                    None
                }
                "not" => {
                    self.passed_over.extend(rest.split_whitespace().skip(1).map(str::to_owned));
                    None
                }
                _ => {
                    self.machine.change(&line.text);
                    None
                }
            };
        }
        self.judge(look);
        (self.looks, self.wrong)
    }

    fn run(&self, command: &[&str]) -> Look {
        let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let mut program = Command::new(command[0]);
        program.args(&command[1..]).env_clear().envs(&self.environment).current_dir(&self.places.service);
        program.stdin(Stdio::null()).stdout(writing.try_clone().unwrap()).stderr(writing);
        let mut child = program.spawn().unwrap_or_else(|error| panic!("{}: {error}", command[0]));
        // The command must have the only end of the pipe for writing.
        drop(program);
        let mut output = Vec::new();
        fs::File::from(reading).read_to_end(&mut output).unwrap();
        let status = child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status.code().unwrap_or_else(|| -signal.unwrap_or(0));
        Look { output, code, status: None, is_advice: false, expected: Vec::new() }
    }

    fn nvpm(&self, words: &[String]) -> Look {
        let program = self.places.service.join("nvpm-bin");
        let command: Vec<&str> =
            [program.to_str().unwrap()].into_iter().chain(words.iter().map(String::as_str)).collect();
        let is_advice = words.first().is_some_and(|word| word == "advise");
        Look { is_advice, ..self.run(&command) }
    }

    /// Runs all forms of status, and checks that they agree.
    fn look_at_status(&mut self, line: &Line) -> Look {
        let looks = FORMS.map(|form| self.nvpm(&words(form)));
        let outputs = looks.each_ref().map(|look| String::from_utf8_lossy(&look.output).into_owned());
        let codes = looks.each_ref().map(|look| look.code);
        let modules = self.machine.root.join("sys/module");
        let (status, wrong) = Status::read(&modules, codes, &outputs);
        self.wrong.extend(wrong.into_iter().map(|what| format!("line {}: {what}", line.number)));
        let [look, ..] = looks;
        Look { status: Some(status), ..look }
    }

    /// Compares a look with its expectations.
    fn judge(&mut self, look: Option<Look>) {
        let Some(look) = look else { return };
        self.looks += 1;
        let mut wrong: Vec<String> = Vec::new();
        for line in look.expected.iter().filter(|line| !look.holds(&line.text)) {
            wrong.push(format!("line {}: {}", line.number, line.text));
        }
        let is_exit_expected = look.expected.iter().any(|line| line.text.starts_with("exit "));
        if look.status.is_none() && !is_exit_expected && look.code != 0 {
            let number = look.expected.first().map_or(0, |line| line.number);
            wrong.push(format!("line {number}: exit {}", look.code));
        }
        for id in look.marked() {
            if !self.passed_over.contains(id) {
                wrong.push(format!("{id}: is warn or bad without an expectation"));
            }
        }
        for part in look.advices().iter().flat_map(|advice| useful::useless(&self.machine.root, advice)) {
            wrong.push(format!("does nothing on this machine: {part}"));
        }
        if !wrong.is_empty() {
            let end = look.output.len().saturating_sub(QUOTED);
            wrong.push(String::from_utf8_lossy(&look.output[end..]).into_owned());
        }
        self.wrong.extend(wrong);
    }
}

impl Look {
    /// Returns the facts that are `warn` or `bad` without an expectation.
    fn marked(&self) -> Vec<&str> {
        let facts = self.status.iter().flat_map(|status| &status.facts);
        let is_marked = |fact: &&Fact| fact.verdict == "warn" || fact.verdict == "bad";
        let named = self.expected.iter().filter_map(|line| FactLine::new(&line.text));
        let named: BTreeSet<&str> = named.flat_map(|line| line.ids.split(',')).collect();
        facts.filter(is_marked).map(|fact| fact.id.as_str()).filter(|id| !named.contains(id)).collect()
    }

    fn advices(&self) -> Vec<String> {
        let facts = self.status.iter().flat_map(|status| &status.facts);
        let mut found: Vec<String> = facts.map(|fact| fact.advice.clone()).collect();
        if self.is_advice {
            found.push(self.text());
        }
        found
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    fn holds(&self, line: &str) -> bool {
        if let Some(line) = FactLine::new(line) {
            return line.holds(self.status.as_ref());
        }
        let text = self.text();
        let (word, rest) = word_of(line);
        let (number, part) = word_of(rest);
        match word {
            "no" => self.status.as_ref().is_none_or(|status| status.fact(rest).is_none()),
            "metric" => self.status.as_ref().is_some_and(|status| status.samples.iter().any(|one| one == rest)),
            "exit" => number.parse() == Ok(self.code) && has(&text, part),
            "prints" => trimmed(&self.output) == unescaped(rest),
            "line" => text.lines().any(|line| line.split_whitespace().eq(rest.split_whitespace())),
            "says" => has(&text, rest),
            "lines" => number.parse() == Ok(text.lines().filter(|line| line.contains(part)).count()),
            "json" => serde_json::from_str::<Value>(&text).is_ok_and(|object| json::holds(&object, rest)),
            _ => panic!("no expectation: {line}"),
        }
    }
}

/// Returns an output without the line breaks at its end.
fn trimmed(output: &[u8]) -> &[u8] {
    let end = output.iter().rposition(|letter| *letter != b'\n').map_or(0, |at| at + 1);
    &output[..end]
}

/// An expectation about facts: `VERDICT ID,ID...[: VALUE][ -> ADVICE]`.
struct FactLine<'a> {
    verdict: &'a str,
    ids: &'a str,
    value: &'a str,
    advice: &'a str,
}

impl<'a> FactLine<'a> {
    fn new(line: &'a str) -> Option<Self> {
        let (verdict, rest) = line.split_once(' ').filter(|(word, _)| VERDICTS.contains(word))?;
        let end = rest.find(' ').unwrap_or(rest.len());
        let (ids, rest) = rest.split_at(end);
        let (value, advice) = rest.split_once(" -> ").unwrap_or((rest, ""));
        Some(Self { verdict, ids: ids.strip_suffix(':').unwrap_or(ids), value: value.trim_start(), advice })
    }

    fn holds(&self, status: Option<&Status>) -> bool {
        let is_so = |fact: &Fact| {
            fact.verdict == self.verdict && has(&fact.value, self.value) && has(&fact.advice, self.advice)
        };
        self.ids.split(',').all(|id| status.and_then(|status| status.fact(id)).is_some_and(is_so))
    }
}

/// Divides a text into words as a shell does. Quotation marks and backslashes keep blanks.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), _) if letter == mark => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, ' ') => found.extend(word.take()),
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    found.extend(word);
    found
}
