// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the tables of nvpm/tests/machines. tests/README.md explains their language.
use std::path::Path;

use super::machine::ALIASES;

/// A line of a table, with the line number.
#[derive(Clone)]
pub struct Line {
    pub number: usize,
    pub text: String,
}

/// The machine of a title, which the lines describe: each is a change, a command or an expectation.
pub struct Case {
    pub title: String,
    pub lines: Vec<Line>,
}

/// Divides a text at its first blank.
pub fn word_of(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Returns the bytes of a text with the escapes of C: `\n`, `\t`, `\033`, `\x1b` and others.
pub fn unescaped(text: &str) -> Vec<u8> {
    let mut found = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            found.push(*first);
            continue;
        }
        let [kind, behind @ ..] = rest else { break };
        let octal = rest.iter().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
        let (digits, base) = if *kind == b'x' { (&behind[..2], 16) } else { (&rest[..octal], 8) };
        let plain = match kind {
            b'n' => Some(b'\n'),
            b't' => Some(b'\t'),
            b'r' => Some(b'\r'),
            b'a' => Some(7),
            b'b' => Some(8),
            b'f' => Some(12),
            b'v' => Some(11),
            b'\\' | b'"' | b'\'' => Some(*kind),
            _ => None,
        };
        if let Some(plain) = plain {
            found.push(plain);
            rest = behind;
        } else if *kind == b'x' || octal > 0 {
            let digits = std::str::from_utf8(digits).unwrap();
            found.push(u16::from_str_radix(digits, base).unwrap() as u8);
            rest = if *kind == b'x' { &behind[2..] } else { &rest[octal..] };
        } else {
            found.push(b'\\');
        }
    }
    found
}

/// Returns the cases of a table. A case with lines `each` becomes one for every value in these lines, which takes the
/// place of %.
pub fn cases(table: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(table).unwrap_or_else(|error| panic!("{}: {error}", table.display()));
    let mut found: Vec<Case> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = ALIASES.iter().fold(line.to_owned(), |line, (alias, meant)| line.replace(alias, meant));
        if line.starts_with('[') {
            found.push(Case { title: line.trim_matches(['[', ']']).to_owned(), lines: Vec::new() });
        } else if !line.is_empty() && !line.starts_with('#') {
            let case = found.last_mut().unwrap_or_else(|| panic!("line {} is before the first title", at + 1));
            let (change, expected) = line.split_once(" => ").unwrap_or((&line, ""));
            let says = if change.starts_with("said ") { "says " } else { "" };
            case.lines.push(Line { number: at + 1, text: change.to_owned() });
            if !expected.is_empty() {
                case.lines.push(Line { number: at + 1, text: format!("{says}{expected}") });
            }
        }
    }
    found.into_iter().flat_map(expanded).collect()
}

fn expanded(case: Case) -> Vec<Case> {
    let (each, own): (Vec<Line>, Vec<Line>) = case.lines.into_iter().partition(|line| line.text.starts_with("each "));
    if each.is_empty() {
        return vec![Case { title: case.title, lines: own }];
    }
    let values = each.iter().flat_map(|line| line.text["each ".len()..].split(" | "));
    let of_value = |value: &str| Case {
        title: format!("{} ({value})", case.title),
        lines: own.iter().map(|line| Line { number: line.number, text: line.text.replace('%', value) }).collect(),
    };
    values.map(of_value).collect()
}
