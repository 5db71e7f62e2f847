// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The limits of a process, and the amounts of memory that they allow.
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::regions::size;

/// Returns a limit of a process, which is a number or `unlimited`. An empty text if the limit is unknown.
pub fn limit_of(machine: &Machine, process: &str, name: &str) -> String {
    let limits = machine.all_text(&[format!("{process}/limits")]);
    let begin = format!("Max {name}");
    let mut values = limits.split('\n').filter_map(|line| line.strip_prefix(&begin));
    let found = values.find_map(|rest| Some(value_of(rest)).filter(|value| !value.is_empty()));
    found.unwrap_or_default().to_owned()
}

/// Returns the value behind the name of a limit and blanks.
fn value_of(rest: &str) -> &str {
    let word = rest.trim_start();
    if word.len() == rest.len() {
        return "";
    }
    let digits = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    if digits == 0 && word.starts_with("unlimited") { "unlimited" } else { word.get(..digits).unwrap_or_default() }
}

pub fn locked_memory(machine: &Machine, process: &str) -> String {
    limit_of(machine, process, "locked memory")
}

/// Returns the number that a limit is. None for any other text.
pub fn number_of(limit: &str) -> Option<u128> {
    let is_number = !limit.is_empty() && limit.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| limit.parse().ok()).flatten()
}

/// Returns whether an amount is near a limit, so that the kernel may soon refuse more.
pub fn is_near(amount: u128, limit: &str) -> bool {
    number_of(limit).is_some_and(|most| amount.saturating_mul(10) > most.saturating_mul(9))
}

/// Returns a text with the amount of memory that a program can register with all devices. Each registration counts,
/// even if two registrations have the same memory, so this amount is the limit divided by the number of devices.
pub fn each_device(machine: &Machine, limit: &str) -> String {
    let count = nics(machine).len();
    match number_of(limit) {
        Some(bytes) if count >= 2 => {
            format!(", which is {} with each of {count} RDMA devices", size(bytes / count as u128))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_unlimited() {
        for (rest, value) in [
            ("         8388608              8388608              bytes", "8388608"),
            ("  unlimited unlimited bytes", "unlimited"),
            ("  none", ""),
            ("8", ""),
            ("", ""),
        ] {
            assert_eq!(value_of(rest), value, "{rest}");
        }
        assert!(is_near(91, "100") && !is_near(90, "100") && !is_near(91, "unlimited") && !is_near(1, ""));
    }
}
