// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Numbers as they are read.

/// Bytes in binary units, as memory is allocated: "64 KiB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024 && value % 1024 == 0 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// The same, short: "64K".
pub fn short_size(bytes: u64) -> String {
    size(bytes)
        .replace(" ", "")
        .replace("iB", "")
        .replace('B', "")
}

/// Two digits that matter, or three: "7.5k", "313k". What is below a thousand stays exact.
pub fn count(value: u64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    if value < 1000 {
        return value.to_string();
    }
    let mut scaled = value as f64;
    let mut unit = 0;
    // What rounds to a thousand is one of the next unit.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{}{}", digits(scaled), UNITS[unit])
}

/// Nanoseconds as microseconds.
pub fn microseconds(ns: u64) -> String {
    let us = ns as f64 / 1000.0;
    if us < 999.5 {
        digits(us)
    } else {
        count(us as u64)
    }
}

fn digits(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Two digits that matter, or that there are none.
pub fn ratio(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.000_95 => "<0.001".to_owned(),
        value if value < 0.009_95 => format!("{value:.4}"),
        value if value < 0.099_5 => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(4 << 30), "4 GiB");
        assert_eq!(size(1536), "1536 B");
        assert_eq!(
            (short_size(65536), short_size(512)),
            ("64K".into(), "512".into())
        );
    }

    #[test]
    fn counts_round_into_the_next_unit() {
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1.0k");
        assert_eq!(count(65536), "66k");
        assert_eq!(count(999_499), "999k");
        assert_eq!(count(999_500), "1.0M");
        assert_eq!(count(1_234_567_890), "1.2G");
    }

    #[test]
    fn times() {
        assert_eq!(microseconds(143_118), "143");
        assert_eq!(microseconds(2_699), "2.7");
        assert_eq!(microseconds(1_434_567), "1.4k");
    }

    #[test]
    fn ratios_keep_what_matters() {
        assert_eq!(ratio(0.5), "0.50");
        assert_eq!(ratio(0.0004321), "<0.001");
        assert_eq!(ratio(0.0), "0");
        assert_eq!(ratio(0.00432), "0.0043");
        assert_eq!(ratio(12.34), "12.3");
        assert_eq!(ratio(0.5493), "0.55");
    }
}
