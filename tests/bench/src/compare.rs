// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Whether two runs agree.

use crate::run::Run;

/// What two runs of the same may differ by.
const BOUND: f64 = 0.01;

/// How many of those that differ by more are shown.
const SHOWN: usize = 5;

#[derive(Debug, Default)]
pub struct Difference {
    pub compared: usize,
    pub equal: usize,
    /// What differs, the largest first: by which part of the larger value, and what it is.
    pub differ: Vec<(f64, String)>,
}

/// Of everything that is in both.
pub fn compare(now: &Run, before: &Run) -> Difference {
    let mut difference = Difference::default();
    for measurement in &now.measurements {
        let Some(old) = before.of(&measurement.subject) else {
            continue;
        };
        for (name, &value) in &measurement.values {
            let Some(&old) = old.values.get(name) else {
                continue;
            };
            difference.compared += 1;
            if value == old {
                difference.equal += 1;
            } else {
                let what = format!("{name}: {old}, then {value}; {}", measurement.subject);
                difference.differ.push((relative(value, old), what));
            }
        }
    }
    difference.differ.sort_by(|a, b| b.0.total_cmp(&a.0));
    difference
}

fn relative(a: u64, b: u64) -> f64 {
    a.abs_diff(b) as f64 / a.max(b).max(1) as f64
}

/// What to print of it.
pub fn text(now: &Run, before: &Run) -> String {
    let difference = compare(now, before);
    let beyond = difference.differ.iter().filter(|(by, _)| *by > BOUND);
    let mut text = format!(
        "Against the run of {}: {} of {} values are equal, {} differ by more than 1 %.",
        before.fact("date"),
        difference.equal,
        difference.compared,
        beyond.clone().count(),
    );
    if let Some((by, what)) = difference.differ.first() {
        let met = if *by <= BOUND { "met" } else { "MISSED" };
        let percent = by * 100.0;
        text += &format!("\nLargest difference: {percent:.2} % (at most 1 %: {met}), {what}.");
    }
    for (by, what) in beyond.skip(1).take(SHOWN) {
        text += &format!("\n                    {:.2} %, {what}.", by * 100.0);
    }
    if now.fact("inputs") != before.fact("inputs") {
        text += "\nModules, lab or sizes have changed between the two: they need not agree.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::{self, CASE};

    #[test]
    fn the_largest_difference_of_what_is_in_both() {
        let now = samples::run(CASE, [&[("a", 100), ("b", 995), ("new", 1)], &[("a", 0)]]);
        let before = samples::run(CASE, [&[("a", 100), ("b", 1000), ("old", 1)], &[("a", 0)]]);
        let difference = compare(&now, &before);
        assert_eq!(
            (
                difference.compared,
                difference.equal,
                difference.differ.len()
            ),
            (6, 4, 2)
        );
        let (by, what) = &difference.differ[0];
        assert!((by - 0.005).abs() < 1e-9);
        assert!(what.starts_with("b: 1000, then 995; nv_peer_mem"));
    }

    #[test]
    fn from_nothing_to_something_is_all() {
        assert_eq!(relative(0, 7), 1.0);
        assert_eq!(relative(0, 0), 0.0);
    }
}
