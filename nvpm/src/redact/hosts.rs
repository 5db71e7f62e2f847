// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Replaces the names of hosts in a text.
use crate::redact::patterns::{HOST_WORD, WHAT};
use crate::redact::redactor::{Redactor, replaced_by, whole};

/// The greatest length of a host's name without its domain. It is also the greatest number of parts of a name. A name
/// has an odd number of parts, so this number must be odd.
const LONGEST_LABEL: usize = 63;

impl Redactor {
    pub(super) fn host_words(&mut self, text: &str) -> String {
        replaced_by(text, &HOST_WORD, |found| {
            let word = found.name(WHAT).map(|word| word.as_str()).unwrap_or_default();
            self.host_word(word).unwrap_or_else(|| whole(found).to_owned())
        })
    }

    /// Returns the word with a word in place of a host's name and of the domain after it. The name may also be a part
    /// of the word between hyphens or underscores.
    fn host_word(&mut self, word: &str) -> Option<String> {
        let mut start = 0;
        for label in word.split('.') {
            let parts = parts_of(label);
            if let Some((at, end)) = self.host_in(&parts) {
                let joined = |range: std::ops::Range<usize>| parts.get(range).unwrap_or_default().concat();
                let name = self.replaced("host", &joined(at..end));
                let before = word.get(..start).unwrap_or_default();
                return Some(format!("{before}{}{name}{}", joined(0..at), joined(end..parts.len())));
            }
            start += label.len() + 1;
        }
        None
    }

    /// Returns the parts that are the name of a host. Longer names are tried first: in node-12-ib0 the name is node-12,
    /// not node. A name of two characters must have only underscores or the word's ends as neighbours, or begin the
    /// word and not consist of letters only.
    fn host_in(&self, parts: &[&str]) -> Option<(usize, usize)> {
        for length in (1..=parts.len().min(LONGEST_LABEL)).rev().step_by(2) {
            for at in (0..=parts.len() - length).step_by(2) {
                let end = at + length;
                let name = parts.get(at..end).unwrap_or_default().concat();
                let before = at.checked_sub(1).and_then(|before| parts.get(before));
                let is_whole = [before, parts.get(end)].into_iter().flatten().all(|neighbour| *neighbour == "_");
                let fits = name.chars().count() > 2 || is_whole || (at == 0 && !is_letters(&name));
                if fits && self.is_host(&name) {
                    return Some((at, end));
                }
            }
        }
        None
    }

    /// Returns whether a name is that of a host. Case counts if the name has only letters, because it may then be an
    /// ordinary word.
    fn is_host(&self, name: &str) -> bool {
        self.hosts.contains(name) || (!is_letters(name) && self.hosts.contains(&name.to_lowercase()))
    }
}

fn is_letters(name: &str) -> bool {
    !name.is_empty() && name.chars().all(char::is_alphabetic)
}

/// Divides a label at its hyphens and underscores. Every second part is a hyphen or an underscore.
fn parts_of(label: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = label;
    while let Some(at) = rest.find(['-', '_']) {
        let (part, behind) = rest.split_at(at);
        let (sign, behind) = behind.split_at(1);
        found.extend([part, sign]);
        rest = behind;
    }
    found.push(rest);
    found
}
