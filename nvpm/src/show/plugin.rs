// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the status as the line of a Nagios plug-in.
use std::fmt::Write;

use indexmap::IndexSet;

use crate::facts::all::{State, Status};
use crate::facts::fact::{Fact, Verdict};
use crate::facts::never::never;
use crate::facts::slow;
use crate::read::machine::{Machine, module_wanted, own_module};
use crate::read::names::folded;
use crate::read::pci::gpus;
use crate::read::ways;
use crate::show::figures::{FAILURES, FIGURES, figures};
use crate::show::first_answer::{caveat, headline};
use crate::show::folded_facts::lines_of;

/// The exit codes of Nagios.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl Code {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// NRPE cuts an answer after this number of bytes.
const LONGEST: usize = 1024;
/// Names of devices that take more characters are counted.
const NAMES: usize = 40;

const NO_GPU_ID: &str = "gpus/number";
const NO_GPU: &str = "this machine has no NVIDIA GPU";
const IF_NO_GPU: &str = "if that is right: nvpm check --ignore gpus/number; if not, look at slot, power and firmware";

/// Returns the line of a plug-in. A bar begins the performance data, so bars in the text become slashes.
pub fn line(code: Code, text: &str, data: &str) -> String {
    let bar = if data.is_empty() { "" } else { " |" };
    format!("NVPM {} - {}{bar}{data}", code.word(), text.replace('|', "/"))
}

fn performance(status: &Status) -> String {
    let mut data = String::new();
    for fact in figures(&status.facts) {
        let label: String = fact.name.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' }).collect();
        let figure = FIGURES.iter().find(|(id, _)| *id == fact.id).map_or(&FAILURES, |(_, figure)| figure);
        let _ = write!(data, " {label}={}{}", fact.value, figure.unit);
    }
    data
}

/// Returns whether a pattern matches an identifier. A star at the end matches any rest.
fn matches(id: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(id == pattern, |begin| id.starts_with(begin))
}

/// Returns texts about the facts with this verdict. The same fact about several devices is one text, with the
/// identifier of the first device's fact, because a monitor cuts long lines.
fn marked(facts: &[&Fact], verdict: Verdict) -> Vec<String> {
    // The advice is not printed here, and may differ between devices.
    let chosen = facts.iter().filter(|fact| fact.verdict == verdict);
    let chosen: Vec<Fact> = chosen.map(|fact| Fact { advice: String::new(), ..(*fact).clone() }).collect();
    let lines = lines_of(&chosen).into_iter();
    lines
        .map(|line| {
            let devices = match line.devices.len() {
                0 | 1 => String::new(),
                count => {
                    let names = folded(&line.devices).join(", ");
                    let is_long = names.chars().count() > NAMES;
                    format!(" [{}]", if is_long { format!("{count} devices") } else { names })
                }
            };
            format!("{}: {}{devices}", line.fact.id, line.fact.value)
        })
        .collect()
}

/// Returns the first texts that fit into ROOM bytes, with the number of the others.
fn fitting(texts: &[String], room: usize) -> String {
    let more = |left: usize| if left == 0 { String::new() } else { format!("; and {left} more: nvpm status") };
    let mut said = String::new();
    for (number, text) in texts.iter().enumerate() {
        let left = texts.len() - number - 1;
        let added = if said.is_empty() { text.clone() } else { format!("; {text}") };
        if said.len() + added.len() + more(left).len() > room && !said.is_empty() {
            return said + &more(left + 1);
        }
        said += &added;
    }
    said
}

/// Returns whether the machine has no GPU, and has loaded neither the driver nor the module, like a login node with the
/// packages of all nodes.
fn has_no_gpu(machine: &Machine) -> bool {
    gpus(machine).is_empty() && !machine.loaded("nvidia") && own_module(machine).is_empty()
}

/// Returns the line and the exit code. IGNORED are identifiers of facts that are not judged; see `matches`.
pub fn answer(machine: &Machine, status: &Status, ignored: &[&str]) -> (String, Code) {
    let patterns: IndexSet<&str> = ignored.iter().copied().filter(|pattern| !pattern.is_empty()).collect();
    let is_ignored = |id: &str| patterns.iter().any(|pattern| matches(id, pattern));
    let data = performance(status);
    let judged: Vec<&Fact> = status.facts.iter().filter(|fact| !is_ignored(&fact.id)).collect();
    let room = LONGEST.saturating_sub(line(Code::Critical, "", &data).len());
    let (code, mut text) = match (status.state, status.facts.first()) {
        (State::Unknown, Some(state)) => (Code::Unknown, format!("{}: {}", state.value, state.advice)),
        // The GPU may be missing because it has failed, so a machine without a GPU is OK only if the administrator
        // ignores this fact.
        _ if never(machine).is_some() => of_facts(machine, status, &judged, room),
        _ if has_no_gpu(machine) && is_ignored(NO_GPU_ID) => (Code::Ok, NO_GPU.to_owned()),
        _ if has_no_gpu(machine) => (Code::Unknown, format!("{NO_GPU}; {IF_NO_GPU}")),
        _ => of_facts(machine, status, &judged, room),
    };
    // An identifier that matches no fact is reported, because the fact that the administrator meant is still judged.
    for pattern in &patterns {
        if !status.facts.iter().any(|fact| matches(&fact.id, pattern)) {
            let _ = write!(text, "; --ignore {pattern} matches nothing");
        }
    }
    (line(code, &text, &data), code)
}

fn of_facts(machine: &Machine, status: &Status, judged: &[&Fact], room: usize) -> (Code, String) {
    let (bad, warn) = (marked(judged, Verdict::Bad), marked(judged, Verdict::Warn));
    let is_never = never(machine).is_some();
    if bad.is_empty() && !ways::in_the_way(machine).is_empty() && module_wanted(machine) && !is_never {
        return (Code::Critical, fitting(&[vec![headline(machine)], warn].concat(), room));
    }
    let code = match (bad.is_empty(), warn.is_empty()) {
        (false, _) => Code::Critical,
        (true, false) => Code::Warning,
        (true, true) => {
            if is_never {
                return (Code::Ok, headline(machine));
            }
            let loaded = status.facts.iter().find(|fact| fact.id == "module/state" && fact.verdict == Verdict::Good);
            let slow = slow::summary(machine);
            let slow = if slow.is_empty() { slow } else { format!("; {slow}") };
            let Some(loaded) = loaded else {
                return (Code::Ok, format!("{}{slow}", headline(machine).trim_end_matches('.')));
            };
            let caveat = caveat(machine);
            let caveat = if caveat.is_empty() { caveat } else { format!("; {caveat}") };
            return (Code::Ok, format!("{}{caveat}{slow}", loaded.value));
        }
    };
    (code, fitting(&[bad, warn].concat(), room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_rest() {
        assert!(matches("use/failed_x", "use/failed_*") && matches("a/b", "a/b") && matches("a", "*"));
        assert!(!matches("a/bc", "a/b") && !matches("use/fail", "use/failed_*"));
    }

    #[test]
    fn texts_that_do_not_fit_are_counted() {
        let texts = ["aaaa", "bbbb", "cc"].map(str::to_owned);
        assert_eq!(fitting(&texts, 35), "aaaa; bbbb; cc");
        assert_eq!(fitting(&texts, 34), "aaaa; and 2 more: nvpm status");
        assert_eq!(fitting(&texts[..1], 1), "aaaa");
    }
}
