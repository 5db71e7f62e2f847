// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Measures sustained transfers between a GPU and an RDMA device, in both directions, by one way.
use std::time::{Duration, Instant};

use nvpm_foreign::queue_pair::Transfer;
use nvpm_foreign::verbs::Status;

use crate::selftest::bench::{Bench, name};
use crate::selftest::failure::Failure;
use crate::selftest::wording::rate;

/// The messages that are under way at a time, which keep the device busy.
pub const DEPTH: u32 = 32;
/// The bytes of each message.
const MESSAGE: usize = 2 << 20;

/// Returns the sustained rate, in bytes per second. Writes the whole buffer once before, so that the device is warm.
/// This also moves the end of the buffer, which `sustained` leaves out if it is shorter than a message.
pub fn measured(bench: &Bench, transfer: Transfer, seconds: u64) -> Result<f64, Failure> {
    bench.write_once(transfer)?;
    sustained(bench, transfer, Duration::from_secs(seconds))
}

/// Keeps the queue full for a time. Returns the rate in bytes per second.
fn sustained(bench: &Bench, transfer: Transfer, time: Duration) -> Result<f64, Failure> {
    let length = bench.message.min(MESSAGE);
    let mut offsets = (0..=bench.plan.size - length).step_by(length).cycle();
    let limit = Duration::from_secs(bench.plan.timeout);
    let (mut posted, mut done) = (0, 0);
    let begun = Instant::now();
    let (mut now, mut silent_since) = (begun, begun);
    loop {
        let is_filling = now < begun + time || posted == 0;
        while is_filling && posted - done < DEPTH as usize {
            bench.post(transfer, length, offsets.next().unwrap_or_default())?;
            posted += 1;
        }
        let statuses = bench.completed(DEPTH as usize)?;
        now = Instant::now();
        if !statuses.is_empty() {
            done += statuses.len();
            silent_since = now;
        }
        if let Some(bad) = statuses.iter().find(|status| !status.is_success()) {
            return Err(ended_with(bench, transfer, done, *bad));
        }
        if !is_filling && done == posted {
            return Ok(rate(done * length, (now - begun).as_secs_f64()));
        }
        if now > silent_since + limit {
            return Err(bench.no_completion(name(transfer)));
        }
    }
}

fn ended_with(bench: &Bench, transfer: Transfer, done: usize, bad: Status) -> Failure {
    let (what, meaning) = (name(transfer), bench.meaning(transfer));
    Failure(format!("{what}: one of {done} messages ended with {bad}{meaning}"))
}
