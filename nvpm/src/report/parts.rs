// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Makes the texts of a report, without names.
use std::io::{self, Write};
use std::time::Duration;

use crate::facts::all::{Status, status_of};
use crate::read::kernel_log::kernel_log;
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::programs;
use crate::read::regions::{TO_JUDGE, regions};
use crate::redact::redactor::Redactor;
use crate::report::configuration::files;
use crate::report::readme::readme;
use crate::report::versions::{HANGS, is_driver_silent, versions};
use crate::show::terminal::Screen;
use crate::show::{registrations, status_json, status_text};
use crate::text::clean;
use crate::used::json;

const STATUS: &str = "status.txt";
const SELFTEST: &str = "selftest.json";
/// The selftest is ended after this time, because a machine may have many devices to test.
const SELFTEST_LIMIT: Duration = Duration::from_secs(300);
/// The exit codes of a selftest that was not ended by a signal.
const SELFTEST_CODES: std::ops::RangeInclusive<i32> = 0..=3;
const TAB: usize = 8;

/// A file of the archive.
pub struct Text {
    pub name: &'static str,
    pub said: String,
}

/// The name of a file, and the function for its text.
type Part = (&'static str, fn(&Machine) -> String);

/// The files that come after the status, the most useful first.
const PARTS: [Part; 6] = [
    ("versions.txt", versions),
    ("files.txt", files),
    ("kernel.log", kernel_log),
    ("regions.json", listed),
    ("used.json", used),
    (SELFTEST, tested),
];

/// Returns the text of each file in the archive. All texts are made before any is redacted, because a name that the
/// last one gives away may stand in the first.
pub fn collected(machine: &Machine, as_it_is: bool, selftest: bool) -> Vec<Text> {
    let mut redactor = (!as_it_is).then(|| Redactor::new(machine, versions_of(machine)));
    tell(STATUS);
    let mut status = status_of(machine);
    let mut texts = Vec::new();
    for (name, make) in PARTS.into_iter().filter(|(name, _)| selftest || *name != SELFTEST) {
        tell(name);
        texts.push(Text { name, said: safe(&make(machine)) });
    }
    if let Some(redactor) = &mut redactor {
        learn(redactor, &status, &texts);
        // In the status, only the values and the advice of facts are redacted, because all other words are nvpm's own.
        status.facts = status.facts.iter().map(|fact| redactor.fact(fact)).collect();
    }
    let mut every = of_status(machine, &status);
    every.extend(texts);
    if let Some(redactor) = &mut redactor {
        for text in &mut every {
            text.said = redacted(redactor, text);
        }
    }
    every.push(Text { name: "README.txt", said: readme(redactor.as_ref()) });
    every
}

fn of_status(machine: &Machine, status: &Status) -> Vec<Text> {
    let text = |name, lines: Vec<String>| Text { name, said: safe(&(lines.join("\n") + "\n")) };
    vec![
        text(STATUS, status_text::everything(machine, status, Screen::default())),
        text("status.json", status_json::lines(machine, status)),
    ]
}

/// Lets the redactor find the names that one place of the report gives away, so that they are replaced in all others.
fn learn(redactor: &mut Redactor, status: &Status, texts: &[Text]) {
    for fact in &status.facts {
        redactor.learn_fact(fact);
    }
    for text in texts {
        redactor.learn(&text.said);
        if is_json(text.name) {
            if let Ok(value) = serde_json::from_str(&text.said) {
                redactor.learn_json(&value);
            }
        }
    }
}

fn redacted(redactor: &mut Redactor, text: &Text) -> String {
    match text.name {
        name if is_json(name) => redactor.json(&text.said),
        STATUS => redactor.patterns(&text.said),
        _ => redactor.text(&text.said),
    }
}

fn is_json(name: &str) -> bool {
    name.rsplit('.').next() == Some("json")
}

fn listed(machine: &Machine) -> String {
    match regions(machine, TO_JUDGE) {
        Ok(found) => registrations::json(machine, &found).map(|line| line + "\n").collect(),
        Err(unreadable) => format!("(not read: {})\n", unreadable.reason),
    }
}

/// Returns which processes have memory registered now, and by which way.
fn used(machine: &Machine) -> String {
    json::lines_of(machine).into_iter().map(|line| line + "\n").collect()
}

/// Returns the output of nvpm selftest. The selftest changes nothing on the machine, because it uses only memory that
/// it has allocated itself. It runs in another process, because foreign libraries do the work, and these may crash or
/// hang.
fn tested(machine: &Machine) -> String {
    if is_driver_silent(machine) {
        return format!("({HANGS})\n");
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "nvpm".into());
    output_of(&[&program.to_string_lossy(), "selftest", "--json"], SELFTEST_LIMIT)
}

/// Returns the output of a selftest, or the reason for its absence.
fn output_of(command: &[&str], limit: Duration) -> String {
    let ended = programs::run(command, limit, None);
    if !ended.why.is_empty() {
        return format!("(nvpm selftest {})\n", ended.why);
    }
    let output = String::from_utf8_lossy(&ended.output);
    // The exit code is a part of the JSON object. If a library has crashed, the output has no such object, so the exit
    // code is appended.
    let code = ended.code.unwrap_or_default();
    if SELFTEST_CODES.contains(&code) { output.into_owned() } else { format!("{output}\n# exit code {code}\n") }
}

/// Returns the versions of the devices' firmware. The report must keep these versions, although they look like network
/// addresses.
fn versions_of(machine: &Machine) -> Vec<String> {
    nics(machine).iter().map(|nic| machine.text(&format!("{}/fw_ver", nic.directory))).collect()
}

/// Makes a text safe to print. Processes choose their own names, and these names are in the list of registrations and
/// in the kernel's log. A name may have characters that would steer a terminal, so such characters are replaced.
fn safe(text: &str) -> String {
    text.split('\n').map(|line| clean(&without_tabs(line))).collect::<Vec<_>>().join("\n")
}

/// Replaces each tab by blanks up to the next column that is a multiple of `TAB`.
fn without_tabs(line: &str) -> String {
    let mut found = String::with_capacity(line.len());
    let mut column = 0;
    for letter in line.chars() {
        match letter {
            '\t' => {
                let count = TAB - column % TAB;
                found.extend(std::iter::repeat_n(' ', count));
                column += count;
            }
            '\r' => {
                found.push(letter);
                column = 0;
            }
            _ => {
                found.push(letter);
                column += 1;
            }
        }
    }
    found
}

fn tell(name: &str) {
    // The answer matters, not this line.
    let _ = writeln!(io::stderr(), "nvpm report: {name}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selftest_has_a_limit_and_an_end() {
        let said = output_of(&["sleep", "300"], Duration::from_millis(500));
        assert_eq!(said, "(nvpm selftest took longer than 0.5 s and was killed)\n");
        let ended = |code: &str| output_of(&["sh", "-c", &format!("echo said; exit {code}")], Duration::from_secs(100));
        assert_eq!([ended("0"), ended("3")], ["said\n", "said\n"]);
        assert_eq!(ended("9"), "said\n\n# exit code 9\n");
    }

    #[test]
    fn tabs_become_blanks_and_harmful_characters_marks() {
        assert_eq!(safe("a\tb\n\t\x1b[1m\tc\né\td"), "a       b\n        ?[1m    c\né       d");
        assert_eq!(without_tabs("ab\rc\td"), "ab\rc       d");
        assert_eq!(without_tabs("12345678\tx"), "12345678        x");
    }
}
