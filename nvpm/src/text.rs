// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Texts that are safe to print, their division into lines, and patterns in texts.
use regex::Regex;

/// Returns whether a character could steer a terminal or end a line: control characters, Unicode's line ends, invisible
/// marks, marks of direction, and the sign for bytes that are not UTF-8.
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}')
}

/// Makes a text safe to print, because others choose some texts, such as names of processes. Each byte of a harmful
/// character becomes a question mark.
pub fn clean(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            // The sign stands for one byte of the input.
            '\u{fffd}' => found.push('?'),
            _ if is_harmful(letter) => found.extend(std::iter::repeat_n('?', letter.len_utf8())),
            _ => found.push(letter),
        }
    }
    found
}

/// Divides a text into lines of at most WIDTH characters at its blanks. A longer word is divided. The first line begins
/// with FIRST, and the others begin with NEXT.
pub fn wrapped(text: &str, width: usize, first: &str, next: &str) -> Vec<String> {
    divided(text, width, first, next, true)
}

/// Divides a text as `wrapped` does, but a word that is longer than a line stays whole, in a line of its own, because
/// users copy commands and paths.
pub fn wrapped_whole(text: &str, width: usize, first: &str, next: &str) -> Vec<String> {
    divided(text, width, first, next, false)
}

fn divided(text: &str, width: usize, first: &str, next: &str, divides_words: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut is_empty = true;
    let indent = |number: usize| if number == 0 { first } else { next };
    let mut room = width.saturating_sub(first.chars().count());
    for chunk in chunks(text) {
        let mut rest: Vec<char> =
            chunk.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter }).collect();
        let is_blank = rest.first() == Some(&' ');
        while !rest.is_empty() {
            let length = line.chars().count();
            let is_at_begin = is_empty && !lines.is_empty();
            if is_blank && is_at_begin {
                break;
            }
            if length + rest.len() <= room {
                line.extend(rest.drain(..));
                is_empty = false;
            } else {
                // A word that no line has room for begins in this one.
                let whole = width.saturating_sub(indent(lines.len()).chars().count());
                let part = match (divides_words, is_empty) {
                    (true, _) => room.saturating_sub(length),
                    (false, true) => rest.len(),
                    (false, false) => 0,
                };
                if rest.len() > whole && part > 0 {
                    line.extend(rest.drain(..part));
                    is_empty = false;
                }
                if !is_empty {
                    lines.push(format!("{}{}", indent(lines.len()), line.trim_end_matches(' ')));
                }
                line.clear();
                is_empty = true;
                room = width.saturating_sub(next.chars().count()).max(1);
            }
        }
    }
    if !line.trim_end_matches(' ').is_empty() {
        lines.push(format!("{}{}", indent(lines.len()), line.trim_end_matches(' ')));
    }
    lines
}

/// Divides a text into words and the blanks between them.
fn chunks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_blank = first.is_whitespace();
        let end = rest.find(|letter: char| letter.is_whitespace() != is_blank).unwrap_or(rest.len());
        let (chunk, behind) = rest.split_at(end);
        found.push(chunk);
        rest = behind;
    }
    found
}

/// Compiles a pattern that stands in the program. A mistake in it is met by each test that uses it.
#[allow(clippy::expect_used)]
pub fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of nvpm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_characters_become_question_marks() {
        assert_eq!(clean("a\x1b[31m\u{202e}b\u{fffd}é\n"), "a?[31m???b?é?");
    }

    #[test]
    fn lines_have_their_width() {
        assert_eq!(wrapped("aa bb cc", 5, "", "  "), ["aa bb", "  cc"]);
        assert_eq!(wrapped("aa  bb", 9, "x: ", "   "), ["x: aa  bb"]);
        assert_eq!(wrapped("abcdefghij k", 4, "", ""), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("a abcdefgh", 4, "", ""), ["a ab", "cdef", "gh"]);
        assert!(wrapped("", 4, "x", "").is_empty());
        assert_eq!(wrapped_whole("ab abcdefghij k", 5, "x ", "  "), ["x ab", "  abcdefghij", "  k"]);
    }
}
