// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Sizes and rates, as people read them.
pub use crate::facts::bound::gigabytes;

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

pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
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
}
