// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the literal texts of a message that a line with it must have.
use crate::placeholder::{Piece, pieces};

/// A literal text of this length is rare enough to be looked for alone.
const RARE: usize = 10;

/// Returns literal texts of which each line with the message has at least one.
pub fn keys(text: &str) -> Vec<String> {
    let pieces = pieces(text);
    let longest = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(literal) => Some(literal.trim()),
        _ => None,
    });
    if let Some(key) = longest.max_by_key(|literal| literal.len()).filter(|literal| literal.len() >= RARE) {
        return vec![key.to_owned()];
    }
    let mut expanded = vec![String::new()];
    for piece in &pieces {
        let choices: Vec<&str> = match piece {
            Piece::Text(literal) => vec![literal],
            Piece::Choice(choices) => choices.iter().map(String::as_str).collect(),
            _ => vec!["\0"],
        };
        expanded = expanded.iter().flat_map(|start| choices.iter().map(move |end| format!("{start}{end}"))).collect();
    }
    let mut keys: Vec<String> = expanded
        .iter()
        .filter_map(|one| one.split('\0').map(str::trim).max_by_key(|literal| literal.len()))
        .map(str::to_owned)
        .collect();
    keys.sort();
    keys.dedup();
    keys
}
