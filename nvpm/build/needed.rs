// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the texts that a regular expression needs: a line that has none of these texts cannot match. Such a text is
//! found much faster than an expression, and most lines have none.
use regex_syntax::hir::{Class, Hir, HirKind};

/// A shorter text occurs in too many lines.
const SHORTEST: usize = 2;

/// Returns the needed texts of an expression in small letters. Returns an error if the expression is wrong.
pub fn texts(pattern: &str) -> Result<Vec<String>, String> {
    let parsed = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern);
    parsed.map(|hir| needed(&hir).unwrap_or_default()).map_err(|error| error.to_string().replace('\n', " "))
}

/// Returns how good a list is for finding lines that have one of its texts. Long texts are rare, so the list whose
/// shortest text is the longest is the best, and of two such lists the one with fewer texts.
fn worth(texts: &[String]) -> (usize, usize) {
    (texts.iter().map(String::len).min().unwrap_or(0), usize::MAX - texts.len())
}

fn needed(hir: &Hir) -> Option<Vec<String>> {
    match hir.kind() {
        HirKind::Capture(inner) => needed(&inner.sub),
        HirKind::Repetition(inner) if inner.min > 0 => needed(&inner.sub),
        HirKind::Alternation(branches) => {
            let texts: Option<Vec<Vec<String>>> = branches.iter().map(needed).collect();
            texts.map(|found| found.concat())
        }
        HirKind::Concat(parts) => needed_by_sequence(parts),
        HirKind::Literal(_) => needed_by_sequence(std::slice::from_ref(hir)),
        _ => None,
    }
}

fn needed_by_sequence(parts: &[Hir]) -> Option<Vec<String>> {
    let mut choices: Vec<Vec<String>> = Vec::new();
    let mut run = String::new();
    for part in parts {
        if let Some(letters) = letters_of(part) {
            run.push_str(&letters);
            continue;
        }
        choices.push(vec![std::mem::take(&mut run)]);
        if matches!(part.kind(), HirKind::Capture(_) | HirKind::Repetition(_) | HirKind::Alternation(_)) {
            choices.extend(needed(part));
        }
    }
    choices.push(vec![run]);
    choices.retain(|texts| texts.iter().all(|text| text.len() >= SHORTEST));
    choices.into_iter().max_by_key(|texts| worth(texts))
}

/// Returns the only text in small letters that a part matches.
fn letters_of(part: &Hir) -> Option<String> {
    match part.kind() {
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok().map(|text| text.to_lowercase()),
        HirKind::Class(Class::Bytes(class)) => {
            let mut letters: Vec<u8> = class
                .iter()
                .flat_map(|range| range.start()..=range.end())
                .map(|byte| byte.to_ascii_lowercase())
                .collect();
            letters.sort_unstable();
            letters.dedup();
            if let [letter] = letters[..] { Some(char::from(letter).to_string()) } else { None }
        }
        _ => None,
    }
}
