// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The texts of messages. A text is literal, except for its placeholders:
//!
//! - `<*>` any characters, `<n>` a number, `<w>` a word, such as the name of a device or a host
//! - `<a|b|>` one of these texts, and after the last bar the empty text
//! - `<module>`, `<symbol>`, `<function>`, `<library>`, `<component>`, `<verb>` a name whose kind data/kinds.table says
//!
//! The build includes this file, too.

/// The placeholders that stand for a name of some kind.
pub const NAMED: &[&str] = &["module", "symbol", "function", "library", "component", "verb"];

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Any,
    Number,
    Word,
    Named(&'static str),
    Choice(Vec<String>),
}

/// Returns the pieces of a text. A run of blanks is one blank.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let held = rest.strip_prefix('<').and_then(|inner| inner.split_once('>'));
        if let Some((piece, behind)) = held.and_then(|(inner, behind)| Some((placeholder(inner)?, behind))) {
            push_text(&mut found, &mut literal);
            found.push(piece);
            rest = behind;
        } else {
            if first != ' ' || !literal.ends_with(' ') {
                literal.push(first);
            }
            rest = rest.strip_prefix(first).unwrap_or_default();
        }
    }
    push_text(&mut found, &mut literal);
    found
}

fn push_text(found: &mut Vec<Piece>, literal: &mut String) {
    if !literal.is_empty() {
        found.push(Piece::Text(std::mem::take(literal)));
    }
}

fn placeholder(inner: &str) -> Option<Piece> {
    match inner {
        "*" => Some(Piece::Any),
        "n" => Some(Piece::Number),
        "w" => Some(Piece::Word),
        _ if inner.contains('<') => None,
        _ if inner.contains('|') => Some(Piece::Choice(inner.split('|').map(str::to_owned).collect())),
        _ => NAMED.iter().find(|name| **name == inner).map(|name| Piece::Named(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_divided_at_its_placeholders() {
        let expected = [
            Piece::Text("port ".into()),
            Piece::Number,
            Piece::Text(" of ".into()),
            Piece::Choice(vec!["mlx5".into(), String::new()]),
            Piece::Text("<x>".into()),
        ];
        assert_eq!(pieces("port  <n> of <mlx5|><x>"), expected);
    }
}
