// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The features of a node that `nvpm selftest --json` found. Rates differ a little between equal nodes, so a rate is
//! compared with the median of all nodes.
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::compare::features::{Features, Texts};
use crate::compare::status::word;

/// No device transfers more bytes per second. A node may print any number.
const FASTEST: f64 = 1e15;
/// A rate below this share of the median makes a node odd.
const SHARE: f64 = 0.8;

/// The rates of sustained transfers, in bytes per second, by pair and direction.
pub type Rates = IndexMap<String, f64>;

/// The rates of a GPU and an RDMA device by one way, from a test with --bandwidth, in bytes per second.
pub struct Pair {
    pub gpu: String,
    pub device: String,
    pub way: String,
    pub to_gpu: Option<f64>,
    pub from_gpu: Option<f64>,
    pub is_failed: bool,
}

fn pairs_in(said: &Map<String, Value>) -> &[Value] {
    said.get("pairs").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns whether a value is true in the sense of a test's result.
fn is_true(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is)) => *is,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
    }
}

fn name_of(pair: &Value) -> String {
    let [gpu, device, way] = ["gpu", "device", "way"].map(|key| word(pair.get(key)));
    format!("selftest, GPU {gpu} with {device} by {way}")
}

/// Returns for each pair whether its test passed.
pub fn results(said: &Map<String, Value>, texts: &mut Texts) -> Features {
    let mut found = Features::new();
    for pair in pairs_in(said) {
        let result = if is_true(pair.get("passed")) {
            "passed".to_owned()
        } else {
            format!("failed: {}", word(pair.get("failure")))
        };
        found.insert(texts.one(&name_of(pair)), texts.one(&result));
    }
    if found.is_empty() {
        let absent = said.get("absent").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let absent: Vec<String> = absent.iter().map(|one| word(one.get("what"))).collect();
        let result = if absent.is_empty() { "tested nothing".to_owned() } else { absent.join(", ") };
        found.insert(texts.one("selftest"), texts.one(&result));
    }
    found
}

/// Returns the rates of a test. A test without --bandwidth measures a single transfer, which is no basis for a
/// comparison.
pub fn rates(said: &Map<String, Value>) -> Rates {
    let mut found = Rates::new();
    for pair in pairs_in(said).iter().filter(|_| is_true(said.get("bandwidth"))) {
        for (key, direction) in [("to_gpu", "to the GPU"), ("from_gpu", "from the GPU")] {
            if let Some(rate) = rate_of(pair.get(key)) {
                found.insert(format!("{}, {direction}", name_of(pair)), rate);
            }
        }
    }
    found
}

/// Returns the pairs of a test with --bandwidth. A later result of the same pair counts.
pub fn pairs(said: &Map<String, Value>) -> Vec<Pair> {
    let mut found: IndexMap<[String; 3], Pair> = IndexMap::new();
    for pair in pairs_in(said).iter().filter(|_| is_true(said.get("bandwidth"))) {
        let names = ["gpu", "device", "way"].map(|key| word(pair.get(key)));
        let [gpu, device, way] = names.clone();
        let (to_gpu, from_gpu) = (rate_of(pair.get("to_gpu")), rate_of(pair.get("from_gpu")));
        found.insert(names, Pair { gpu, device, way, to_gpu, from_gpu, is_failed: !is_true(pair.get("passed")) });
    }
    found.into_values().collect()
}

/// Returns a rate, or None for anything that is no rate.
fn rate_of(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|rate| (0.0..=FASTEST).contains(rate))
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
    if values.len() % 2 == 0 { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) } else { at(middle) }
}

/// Returns for each node its rates as features. All usual rates of a pair have the same value, which is the median.
pub fn compared(measured: &IndexMap<&str, &Rates>, texts: &mut Texts) -> IndexMap<String, Features> {
    let mut by_name: IndexMap<&str, Vec<f64>> = IndexMap::new();
    for rates in measured.values() {
        for (name, rate) in *rates {
            by_name.entry(name).or_default().push(*rate);
        }
    }
    let usual: IndexMap<&str, f64> = by_name.into_iter().map(|(name, values)| (name, median(values))).collect();
    let mut features = |rates: &Rates| -> Features {
        let feature = |(name, rate): (&String, &f64)| {
            let text = as_feature(*rate, usual.get(name.as_str()).copied().unwrap_or(0.0));
            (texts.one(name), texts.one(&text))
        };
        rates.iter().map(feature).collect()
    };
    measured.iter().map(|(node, rates)| ((*node).to_owned(), features(rates))).collect()
}

fn as_feature(rate: f64, usual: f64) -> String {
    if rate >= SHARE * usual {
        return format!("about {} GB/s", with_three_digits(usual / 1e9));
    }
    format!("{:.0} % of the usual rate", 100.0 * rate / usual)
}

/// Returns a number with three digits that count, as %.3g does.
fn with_three_digits(number: f64) -> String {
    let exponent =
        format!("{number:.2e}").split_once('e').and_then(|(_, power)| power.parse::<i32>().ok()).unwrap_or(0);
    if number == 0.0 {
        return "0".to_owned();
    }
    if !(-4..3).contains(&exponent) {
        let text = format!("{number:.2e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        let power: i32 = power.parse().unwrap_or(0);
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", power.abs());
    }
    let places = usize::try_from(2 - exponent).unwrap_or(0);
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (24.97, "25"),
            (24.96, "25"),
            (24.44, "24.4"),
            (0.0, "0"),
            (999.6, "1e+03"),
            (1_234_567.0, "1.23e+06"),
            (0.001_234, "0.00123"),
            (0.000_012_34, "1.23e-05"),
            (100.0, "100"),
            (9.995, "9.99"),
        ] {
            assert_eq!(with_three_digits(number), text);
        }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }
}
