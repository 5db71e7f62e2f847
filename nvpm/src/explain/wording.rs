// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The form of the sentences made from the texts of the tables.
use std::sync::OnceLock;

use regex::bytes::Regex;

use crate::explain::pattern::expression;

/// Names that begin with a small letter: those with a sign, a digit or a capital letter in them, as `nv_peer_mem`, and
/// some programs.
const NAME: &str = r"^(?:[a-z]+[-_.][a-z]|[a-z]+[A-Z]|[a-z]+\d|(?:amdgpu|conda|depmod|dkms|dmesg|dpkg|gdrcopy|gdrdrv|git|insmod|lib[a-z]+|modprobe|mscclpp|nouveau|nvpm|openib|openibd|pahole|perftest|pyverbs|rmmod|rpmbuild|rustc|sglang|slurmd|systemd|udev)\b)";

/// Returns a text of the tables without Markdown. Of a link to another page of this project, its text stays.
pub fn plain(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('[') {
        let link = behind.split_once("](").and_then(|(words, behind)| {
            let (target, behind) = behind.split_once(')')?;
            Some((words, target, behind))
        });
        let Some((words, target, behind)) = link else { break };
        found.push_str(before);
        found.push_str(words);
        if target.starts_with("http") {
            found.extend([" (", target, ")"]);
        }
        rest = behind;
    }
    found.push_str(rest);
    found.replace('`', "")
}

/// Returns a phrase with a capital letter at its beginning, unless it begins with a name or with code.
pub fn sentence(text: &str) -> String {
    static NAMES: OnceLock<Option<Regex>> = OnceLock::new();
    let is_name = NAMES.get_or_init(|| expression(NAME)).as_ref().is_some_and(|name| name.is_match(text.as_bytes()));
    let is_plug_in = text.starts_with("plug-");
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if is_plug_in || !is_name => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// Returns a phrase with a full stop at its end.
pub fn stopped(text: &str) -> String {
    let text = text.trim_end_matches('.');
    if text.ends_with('?') { text.to_owned() } else { format!("{text}.") }
}

pub fn counted(number: usize, word: &str) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {word}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_taken_off() {
        assert_eq!(
            plain("`nvpm` ([defects.md](defects.md)), [x](https://x.y/)"),
            "nvpm (defects.md), x (https://x.y/)"
        );
    }

    #[test]
    fn sentences_begin_with_capitals_and_names_do_not() {
        assert_eq!(sentence("the GPU"), "The GPU");
        assert_eq!(sentence("nv_peer_mem is"), "nv_peer_mem is");
        assert_eq!(sentence("plug-in of"), "Plug-in of");
        assert_eq!(stopped("is it?."), "is it?");
    }

    #[test]
    fn numbers_are_divided() {
        assert_eq!(counted(1_234_567, "line"), "1,234,567 lines");
    }
}
