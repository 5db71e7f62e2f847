// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Whether two runs agree.

use crate::run::Run;

/// What two runs of the same may differ by.
pub const BOUND: f64 = 0.01;

#[derive(Debug, Default, PartialEq)]
pub struct Difference {
    pub compared: usize,
    pub equal: usize,
    pub beyond: usize,
    /// The largest, of the larger value, and where it is.
    pub largest: f64,
    pub of: String,
}

/// Of everything that is in both.
pub fn compare(now: &Run, before: &Run) -> Difference {
    let mut difference = Difference::default();
    for figure in &now.figures {
        let Some(old) = before.of(&figure.subject) else {
            continue;
        };
        for (name, &value) in &figure.values {
            let Some(&old) = old.values.get(name) else {
                continue;
            };
            difference.count(relative(value, old), || {
                format!("{name}: {old}, then {value}; {}", figure.subject)
            });
        }
    }
    difference
}

impl Difference {
    fn count(&mut self, relative: f64, place: impl Fn() -> String) {
        self.compared += 1;
        self.equal += usize::from(relative == 0.0);
        self.beyond += usize::from(relative > BOUND);
        if relative > self.largest {
            self.largest = relative;
            self.of = place();
        }
    }
}

fn relative(a: u64, b: u64) -> f64 {
    a.abs_diff(b) as f64 / a.max(b).max(1) as f64
}

/// What to print of it.
pub fn text(now: &Run, before: &Run) -> String {
    let difference = compare(now, before);
    let mut text = format!(
        "Against the run of {}: {} of {} figures are equal, {} differ by more than 1 %.",
        before.fact("date"),
        difference.equal,
        difference.compared,
        difference.beyond,
    );
    if difference.largest > 0.0 {
        let met = if difference.largest <= BOUND {
            "met"
        } else {
            "MISSED"
        };
        text += &format!(
            "\nLargest difference: {:.2} % (at most 1 %: {met}), {}.",
            difference.largest * 100.0,
            difference.of
        );
    }
    if now.fact("inputs") != before.fact("inputs") {
        text += "\nModules or lab have changed between the two: they need not agree.";
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
            (difference.compared, difference.equal, difference.beyond),
            (6, 4, 0)
        );
        assert!((difference.largest - 0.005).abs() < 1e-9);
        assert!(difference.of.starts_with("b: 1000, then 995; nv_peer_mem"));
    }

    #[test]
    fn from_nothing_to_something_is_all() {
        assert_eq!(relative(0, 7), 1.0);
        assert_eq!(relative(0, 0), 0.0);
    }
}
