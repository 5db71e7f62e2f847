// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tells differences between nodes from differences between two versions of nvpm. The values of facts are text for
//! people, and their wording changes from version to version.
use std::collections::BTreeSet;

use crate::compare::features::Verdicts;
use crate::compare::groups::MISSING;

/// The beginnings of features that are data in each version.
const DATA: &[&str] = &["kernel", "ways", "program ", "selftest"];
/// Features that every version prints for each machine that has the part. A machine without such a feature has no such
/// part.
const ALWAYS: &[&str] = &["driver, nvidia", "GPU, link", "GPU, BAR1", "RDMA device, link", "ways", "module, state"];

/// Returns whether a difference between nodes with two versions of nvpm is a difference of the nodes themselves. This
/// is so if the verdicts differ, or if the same words have other numbers.
pub fn is_real(name: &str, value: &str, usual: &str, mine: &Verdicts, theirs: &Verdicts) -> bool {
    if verdicts_of(name, mine) != verdicts_of(name, theirs) {
        return true;
    }
    if value == MISSING || usual == MISSING {
        return ALWAYS.contains(&name);
    }
    DATA.iter().any(|begin| name.starts_with(begin)) || words(value) == words(usual)
}

fn verdicts_of<'a>(name: &str, verdicts: &'a Verdicts) -> Vec<&'a str> {
    verdicts.iter().filter(|(feature, _)| &**feature == name).map(|(_, verdict)| &**verdict).collect()
}

/// Returns the words of a value without its numbers.
fn words(value: &str) -> BTreeSet<String> {
    value.split("; ").map(|part| without_numbers(without_names(without_count(part)))).collect()
}

/// Returns a value without the number of devices before it, as in "3 x 128 GiB".
fn without_count(part: &str) -> &str {
    let counted = part.split_once(" x ");
    let is_number = |count: &str| !count.is_empty() && count.bytes().all(|one| one.is_ascii_digit());
    counted.filter(|(count, _)| is_number(count)).map_or(part, |(_, value)| value)
}

/// Returns a value without the names of devices behind it.
fn without_names(part: &str) -> &str {
    let named = part.strip_suffix(')').and_then(|part| part.rsplit_once(" ("));
    named.filter(|(_, names)| !names.contains(['(', ')'])).map_or(part, |(value, _)| value)
}

fn without_numbers(text: &str) -> String {
    let mut found = String::new();
    let mut is_number = false;
    for letter in text.chars() {
        is_number = letter.is_ascii_digit() || (is_number && letter == '.');
        match (is_number, found.ends_with('#')) {
            (true, true) => {}
            (true, false) => found.push('#'),
            (false, _) => found.push(letter),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_no_words() {
        assert_eq!(words("3 x 32.0 GT/s x16 (mlx5_0, mlx5_1); 1 x none"), words("2 x 16 GT/s x8; 4 x none (a)"));
        assert_ne!(words("16 GT/s"), words("16 GB/s"));
    }
}
