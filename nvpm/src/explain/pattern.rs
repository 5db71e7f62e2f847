// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The regular expression of a message's text. It is made when a fixed word of the message stands in a line.
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

use crate::explain::kinds;
use crate::explain::placeholder::{NAMED, Piece, pieces};

/// A word in brackets contains no bracket.
const IN_BRACKETS: &str = r#"[^\s,;'"()\[\]]+"#;
const WORD: &str = r#"[^\s,;'"()]+"#;
/// Names of no kind can stand before the one that a text is about.
const MOST_TRIES: usize = 16;
const NUMBER: &str = "-?(?:0x)?[0-9a-fA-F]+";

/// Returns an expression that knows only bytes, which is small and fast. Returns None for an expression that is wrong;
/// the build has refused such expressions.
pub fn expression(pattern: &str) -> Option<Regex> {
    let made = RegexBuilder::new(pattern).unicode(false).build();
    debug_assert!(made.is_ok(), "{pattern}: {made:?}");
    made.ok()
}

/// A text of the table, and where it stands in a line.
pub struct Found {
    pub range: Range<usize>,
    /// The names at the placeholders, each with its kind.
    pub named: Vec<(&'static str, String, &'static str)>,
}

pub struct Pattern(Option<Regex>);

impl Pattern {
    pub fn of(text: &str) -> Self {
        let mut parts = String::from("(?s)");
        let all = pieces(text);
        for (place, piece) in all.iter().enumerate() {
            match piece {
                Piece::Text(literal) => parts.push_str(&regex::escape(literal)),
                Piece::Any => parts.push_str(".{0,300}?"),
                Piece::Number if place + 1 == all.len() => parts.extend([NUMBER, r"\b"]),
                Piece::Number => parts.push_str(NUMBER),
                Piece::Word => {
                    let before = place.checked_sub(1).and_then(|before| all.get(before));
                    let bracket = matches!(before, Some(Piece::Text(literal)) if literal.ends_with('['));
                    parts.push_str(if bracket { IN_BRACKETS } else { WORD });
                }
                Piece::Named(name) => parts.extend(["(?P<", name, ">", kinds::form(name), ")"]),
                Piece::Choice(choices) => {
                    let choices: Vec<String> = choices.iter().map(|one| regex::escape(one)).collect();
                    parts.extend(["(?:", &choices.join("|"), ")"]);
                }
            }
        }
        Self(expression(&parts))
    }

    pub fn is_in(&self, line: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(line.as_bytes()))
    }

    /// Returns where the text stands. A name that is of no kind is none that the text is about.
    pub fn find(&self, line: &str) -> Option<Found> {
        let regex = self.0.as_ref()?;
        if regex.captures_len() == 1 {
            return regex.find(line.as_bytes()).map(|found| Found { range: found.range(), named: Vec::new() });
        }
        let mut start = 0;
        for _ in 0..MOST_TRIES {
            let found = regex.captures_at(line.as_bytes(), start)?;
            let mut named = Vec::new();
            let mut other = None;
            for of in NAMED {
                if let Some(name) = found.name(of) {
                    let text = String::from_utf8_lossy(name.as_bytes()).into_owned();
                    match kinds::kind_of(of, &text) {
                        Some(kind) => named.push((*of, text, kind)),
                        None => other = other.or(Some(name.end())),
                    }
                }
            }
            match other {
                None => return Some(Found { range: found.get(0)?.range(), named }),
                Some(end) => start = end,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_values() {
        let pattern = Pattern::of("port <n> of <w> is <*> for <reg|dereg>");
        let line = "x port 12 of mlx5_0 is down, for dereg";
        assert_eq!(pattern.find(line).map(|found| found.range), Some(2..line.len()));
        assert!(!pattern.is_in("port of mlx5_0 is down for reg"));
    }

    #[test]
    fn a_name_has_a_kind_or_does_not_count() {
        let pattern = Pattern::of("<module>: Unknown symbol <symbol>");
        let found = pattern.find("ib_ipoib: Unknown symbol rdma_create_id (err -22)").unwrap();
        let kinds: Vec<&str> = found.named.iter().map(|(_, _, kind)| *kind).collect();
        assert_eq!(kinds, ["nic", "rdma"]);
        assert!(pattern.find("snd_hda: Unknown symbol snd_pcm_new").is_none());
    }
}
