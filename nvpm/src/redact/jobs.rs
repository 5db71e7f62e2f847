// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Names of processes, users and hosts that one place of a report gives away. They are replaced in all other places,
//! too.
use std::cmp::Reverse;
use std::sync::LazyLock;

use regex::Regex;

use crate::redact::names::is_number;
use crate::redact::patterns::{PATTERNS, WHAT, is_of_the_system};
use crate::redact::redactor::{Redactor, is_replaced};
use crate::text::pattern;

static JOB_WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\w[\w.+-]*\w"));
static WHOLE_WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A\w[\w.+-]*\w\z"));
/// Programs that belong to the system.
static SYSTEM_PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A(?:/(?:usr/)?s?bin/|/usr/lib(?:exec|64)?/|/lib/)"));
/// A user may give a process the name of a PCI device or of a version, which the report must keep.
static KEPT_FORM: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\A(?:(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?|v?\d+(?:[.-]\d+)+)\z"));
/// A process has at most this number of characters in its name. A longer name of a program is cut.
const LONGEST_COMM: usize = 15;
/// The greatest number of names with blanks that are searched for everywhere, because a user may have thousands of
/// them.
const MOST_SPACED: usize = 200;
/// The quotation marks that the kernel prints around a name.
const MARKS: [char; 3] = ['"', '\'', '`'];
/// A shorter name is no name that can be replaced everywhere.
const SHORTEST: usize = 3;

impl Redactor {
    /// Finds names of processes, users and hosts in a text. From then on, each of these names is replaced wherever it
    /// stands as a word.
    pub fn learn(&mut self, text: &str) {
        for rule in &PATTERNS.sure {
            for found in rule.pattern.captures_iter(text).flatten() {
                let name = found.name(WHAT).map(|name| name.as_str().trim_matches(MARKS)).unwrap_or_default();
                match rule.word {
                    "job" => self.learn_job(behind_slash(name)),
                    _ if !self.is_telling(name) => {}
                    "user" => drop(self.users.insert(name.to_owned())),
                    _ => drop(self.hosts.insert(name.to_owned())),
                }
            }
        }
    }

    pub fn learn_job(&mut self, name: &str) {
        if self.jobs.contains(name) || !self.is_telling(name) || is_of_the_system(name) {
            return;
        }
        self.jobs.insert(name.to_owned());
        if !WHOLE_WORD.is_match(name) && self.spaced.len() < MOST_SPACED {
            self.spaced.push(name.to_owned());
            self.spaced.sort_by_key(|name| Reverse(name.chars().count()));
        }
    }

    /// Returns whether a name can be replaced everywhere. A name that is an ordinary word in such a report, or the name
    /// of a module or a device, is replaced only where it is the name of a process, a user or a host: otherwise a
    /// user who chooses such a name spoils the report.
    fn is_telling(&self, name: &str) -> bool {
        let plain = name.to_lowercase();
        name.chars().count() >= SHORTEST
            && !is_number(name)
            && !plain.starts_with("0x")
            && !self.kept.contains(name)
            && !KEPT_FORM.is_match(&plain)
            && plain.split(|letter| !is_of_word(letter)).any(|part| self.is_own(part))
            && !self.ordinary.contains(&plain)
            && !is_replaced(name)
    }

    /// Returns whether a part of a name is more than a number or an ordinary word.
    fn is_own(&self, part: &str) -> bool {
        part.chars().count() >= SHORTEST && !is_number(part) && !self.ordinary.contains(part)
    }

    /// Replaces words that are names of processes, or begin with such a name that the kernel has cut.
    pub(super) fn job_words(&mut self, text: &str) -> String {
        let replace = |found: &regex::Captures| {
            let word = found.get(0).map(|word| word.as_str()).unwrap_or_default();
            let cut: String = word.chars().take(LONGEST_COMM).collect();
            for name in [word, &cut] {
                if self.jobs.contains(name) {
                    return self.replaced("job", name);
                }
            }
            word.to_owned()
        };
        JOB_WORD.replace_all(text, replace).into_owned()
    }

    /// Replaces names of processes that are not one word, such as `my job`.
    pub(super) fn spaced_jobs(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for name in self.spaced.clone() {
            if text.contains(&name) {
                text = with_whole(&text, &name, &self.replaced("job", &name));
            }
        }
        text
    }

    /// Returns the word for the name of a process. The name of a program of the system stays.
    pub(super) fn job(&mut self, name: &str) -> String {
        let bare = name.trim_matches(MARKS);
        let mark = name.strip_suffix(name.trim_start_matches(MARKS)).unwrap_or_default();
        if is_of_the_system(bare) || SYSTEM_PATH.is_match(bare) {
            return name.to_owned();
        }
        // A path to a program and the name of the program stand for the same process.
        let program = Some(behind_slash(bare)).filter(|name| !name.is_empty()).unwrap_or(bare);
        format!("{mark}{}{mark}", self.replaced("job", program))
    }
}

fn behind_slash(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Replaces a name wherever no part of a word stands before or behind it.
fn with_whole(text: &str, name: &str, word: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(name) {
        found.push_str(before);
        let is_whole = !found.ends_with(is_of_word) && !behind.starts_with(is_of_word);
        if is_whole {
            found.push_str(word);
            rest = behind;
        } else {
            // The name may also begin within this place.
            let first = name.chars().next().map_or(0, char::len_utf8);
            let (letter, after) = rest.split_at(before.len() + first);
            found.push_str(letter.get(before.len()..).unwrap_or_default());
            rest = after;
        }
    }
    found + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_blank_is_replaced_as_a_whole() {
        assert_eq!(with_whole("my job, my jobs, xmy job. my job", "my job", "job-1"), "job-1, my jobs, xmy job. job-1");
        assert_eq!(with_whole("a a a a", "a a", "job-1"), "job-1 job-1");
        assert_eq!(with_whole("xa a a", "a a", "job-1"), "xa job-1");
    }
}
