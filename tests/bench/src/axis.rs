// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! An axis of a plot, linear or logarithmic, that is labelled where it is told to be.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::Ranged;

use crate::numbers;

/// Room above the lines, for the legend: a part of the range.
const LEGEND: f64 = 0.45;

/// Room beside the first and the last place.
const BESIDE: f64 = 0.05;

pub struct Axis {
    logarithmic: bool,
    range: Range<f64>,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Axis {
    /// The axis of what is compared: places that are all labelled.
    pub fn of_places(logarithmic: bool, places: &[f64], label: fn(f64) -> String) -> Self {
        let scaled = |value: f64| scale(logarithmic, value);
        let (low, high) = ends(places);
        let beside = (scaled(high) - scaled(low)).max(1.0) * BESIDE;
        Self {
            logarithmic,
            range: unscale(logarithmic, scaled(low) - beside)
                ..unscale(logarithmic, scaled(high) + beside),
            ticks: places.to_vec(),
            label,
        }
    }

    /// The axis of values: from a power of ten, or from nothing.
    pub fn of_values(logarithmic: bool, values: &[f64]) -> Self {
        let (low, high) = ends(values);
        let (range, ticks) = if logarithmic {
            let (low, high) = (scale(true, low).floor(), scale(true, high).ceil());
            let top = high + (high - low).max(1.0) * LEGEND;
            let ticks = (low as i32..=high as i32).map(|power| 10f64.powi(power));
            (unscale(true, low)..unscale(true, top), ticks.collect())
        } else {
            let step = step(high / 6.0);
            let ticks = (0..).map(|n| f64::from(n) * step);
            (
                0.0..high * (1.0 + LEGEND),
                ticks.take_while(|tick| *tick <= high).collect(),
            )
        };
        Self {
            logarithmic,
            range,
            ticks,
            label: |value| numbers::count(value.round() as u64),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let scaled = |value| scale(self.logarithmic, value);
        let (low, high) = (scaled(self.range.start), scaled(self.range.end));
        let part = (scaled(*value) - low) / (high - low);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
}

fn scale(logarithmic: bool, value: f64) -> f64 {
    if logarithmic {
        value.max(f64::MIN_POSITIVE).log10()
    } else {
        value
    }
}

fn unscale(logarithmic: bool, value: f64) -> f64 {
    if logarithmic {
        10f64.powf(value)
    } else {
        value
    }
}

/// 1, 2 or 5 times a power of ten, not less than `rough`.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(f64::MIN_POSITIVE).log10().floor());
    [1.0, 2.0, 5.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_ten_is_as_wide() {
        let axis = Axis::of_places(true, &[1.0, 100.0], |_| String::new());
        let place = |value| axis.map(&value, (0, 1100));
        assert_eq!((place(1.0), place(10.0), place(100.0)), (50, 550, 1050));
    }

    #[test]
    fn ticks_are_even() {
        assert_eq!(
            Axis::of_values(false, &[4.0, 55.0]).ticks,
            [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
        );
        assert_eq!(
            Axis::of_values(true, &[30.0, 2000.0]).ticks,
            [10.0, 100.0, 1000.0, 10000.0]
        );
    }
}
