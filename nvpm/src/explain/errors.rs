// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the errors of Linux in a line: as a name (ENOMEM), in the C library's words (Cannot allocate memory), or as a
//! number (errno 12, -12). Results of CUDA's driver are found by name and number.
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::Regex;

use crate::explain::errno_names::{ERRORS, Errors};
use crate::explain::pattern::expression;

/// A number is an error only behind a word that says so, in parentheses with a minus, or at the end of the line: in
/// brackets, as glog prints it, or behind a colon with a minus, as the kernel does. "failed 12 of 16" has no error.
const NUMBERS: &str = r"(?:\berrno|\berr(?:or)?|\bret(?:urned|val)?|\brc|\bRC|\bfailed:|\bfailed with)[ =:(\[]*(?:code[ =:]*)?-?(\d{1,3})\b(\.\d| (?:of|times|MB|GB)\b)?|\(-(\d{1,3})\)|: .*\[(\d{1,3})\]\s*$|: -(\d{2,3})\s*$";
/// Linux has the smaller numbers.
const FIRST_OF_CUDA: u32 = 200;

/// Returns the errors in a line. Words and names come before numbers: if the line has both, the number may be one of
/// the program's own.
pub fn errors(line: &str) -> Errors {
    let named = in_words(line);
    if named == 0 { in_numbers(line) } else { named }
}

fn in_words(line: &str) -> Errors {
    static WORDS: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        let words = ERRORS.iter().map(|error| if error.2.is_empty() { error.0 } else { error.2 });
        let names = ERRORS.iter().map(|error| error.0);
        AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words.chain(names)).ok()
    });
    let Some(words) = words else { return 0 };
    let mut found = 0;
    for one in words.find_iter(line) {
        let place = one.pattern().as_usize();
        let is_name = place >= ERRORS.len();
        if !is_name || is_whole(line.as_bytes(), one.start(), one.end()) {
            found |= 1 << (place % ERRORS.len());
        }
    }
    found
}

/// Returns whether no letter, digit or underscore stands beside a part of a line.
fn is_whole(line: &[u8], start: usize, end: usize) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    !is_word(start.checked_sub(1).and_then(|before| line.get(before))) && !is_word(line.get(end))
}

fn in_numbers(line: &str) -> Errors {
    static EXPRESSION: OnceLock<Option<Regex>> = OnceLock::new();
    let Some(expression) = EXPRESSION.get_or_init(|| expression(NUMBERS)) else { return 0 };
    let mut found = 0;
    for one in expression.captures_iter(line.as_bytes()).filter(|one| one.get(2).is_none()) {
        let digits = [1, 3, 4, 5].iter().find_map(|group| one.get(*group));
        let number = digits.and_then(|digits| std::str::from_utf8(digits.as_bytes()).ok()?.parse::<u32>().ok());
        let place = ERRORS
            .iter()
            .position(|error| Some(error.1) == number && (!error.0.starts_with("CUDA") || error.1 > FIRST_OF_CUDA));
        found |= place.map_or(0, |place| 1 << place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(name: &str) -> Errors {
        ERRORS.iter().position(|error| error.0 == name).map_or(0, |place| 1 << place)
    }

    #[test]
    fn an_error_is_found_in_each_form() {
        for (line, name) in [
            ("ibv_reg_mr failed: Cannot allocate memory", Some("ENOMEM")),
            ("ibv_reg_mr failed with errno 14", Some("EFAULT")),
            ("Couldn't map (-22)", Some("EINVAL")),
            ("register: failed [12]", Some("ENOMEM")),
            ("c0: Failed to pin GPU buffer: -14", Some("EFAULT")),
            ("ibv_query_gid: -1", None),
            ("Too many open files in system", Some("ENFILE")),
            ("failed 12 of 16", None),
            ("XENOMEM", None),
            ("error 12 of 16", None),
        ] {
            assert_eq!(errors(line), name.map_or(0, set_of), "{line}");
        }
    }
}
