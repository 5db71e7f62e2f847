// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Sizes and rates, as people read them.

/// Returns a size in the largest unit of which it is a multiple.
pub fn amount(size: usize) -> String {
    match size {
        _ if size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        _ if size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        _ => format!("{size} bytes"),
    }
}

/// Returns bytes per second.
#[allow(clippy::cast_precision_loss)]
pub fn rate(size: usize, seconds: f64) -> f64 {
    size as f64 / seconds.max(1e-9)
}

pub fn speed(size: usize, seconds: f64) -> String {
    let megabytes = rate(size, seconds) / 1e6;
    if megabytes >= 1000.0 { format!("{:.1} GB/s", megabytes / 1000.0) } else { format!("{megabytes:.1} MB/s") }
}

/// Returns bytes per second in gigabytes, with more digits for a slow rate.
pub fn gigabytes(rate: f64) -> String {
    if rate >= 1e8 { format!("{:.1}", rate / 1e9) } else { format!("{:.3}", rate / 1e9) }
}

pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns a number with at most six digits, as %g of printf.
pub fn general(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| {
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.to_owned()
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or_default();
        return trimmed(&format!("{number:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_largest_unit() {
        let texts = [1, 1024, 65536, 5_000_001, 16 << 20, 1 << 30].map(amount);
        assert_eq!(texts, ["1 bytes", "1 KiB", "64 KiB", "5000001 bytes", "16 MiB", "1024 MiB"]);
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(speed(65536, 0.001), "65.5 MB/s");
        assert_eq!(speed(1_000_000_000, 1.0), "1.0 GB/s");
        assert_eq!(speed(2, 0.0), "2.0 GB/s");
        assert_eq!([1e8, 9.99e7, 0.0].map(gigabytes), ["0.1", "0.100", "0.000"]);
    }

    #[test]
    fn numbers_have_six_digits() {
        // The texts have the form of printf("%g").
        for (number, text) in [
            (2.5, "2.5"),
            (16.0, "16"),
            (128.0, "128"),
            (100_000.0, "100000"),
            (3_200_000.0, "3.2e+06"),
            (0.000_012, "1.2e-05"),
            (0.0, "0"),
            (999_999.9, "1e+06"),
        ] {
            assert_eq!(general(number), text);
        }
    }
}
