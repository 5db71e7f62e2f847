// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Dates and times in UTC.
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the present date and time to the second, as 2026-11-28T12:00:00Z.
pub fn now() -> String {
    let seconds = since_1970();
    format!("{}T{}:{:02}Z", date(seconds), clock(seconds), seconds % 60)
}

/// Returns the present date and time to the minute, as people write them.
pub fn now_for_people() -> String {
    let seconds = since_1970();
    format!("{} {} UTC", date(seconds), clock(seconds))
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn clock(seconds: u64) -> String {
    let minutes = seconds % 86_400 / 60;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

fn date(seconds: u64) -> String {
    // Counts the days from the first of March of the year 0, so that a leap day is the last day of its year. An era has
    // 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (1_735_689_599, "2024-12-31 23:59"),
            (1_795_867_200, "2026-11-28 12:00"),
        ] {
            assert_eq!(format!("{} {}", date(seconds), clock(seconds)), text);
        }
    }
}
