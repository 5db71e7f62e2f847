// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Counts a coverage that the coverage of code does not contain. Each counter stands for an act of
//! one kind that has begun while an act of another kind had stopped at a certain point. This file
//! also counts how often each kind of act has begun.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering::Relaxed};

use super::act::KINDS_OF_ACTS;

/// Counters for libFuzzer, which finds them by the name of their section, and resets them before
/// each run.
const COUNTERS: usize = 1 << 14;
#[used]
#[link_section = "__libfuzzer_extra_counters"]
static BETWEEN: [AtomicU8; COUNTERS] = [const { AtomicU8::new(0) }; COUNTERS];

/// If this is set, only the coverage of code counts. `run renew` sets it, so that it keeps few
/// inputs.
static CODE_ONLY: AtomicBool = AtomicBool::new(false);

/// The number of acts of each kind, in all runs.
static BEGUN: [AtomicU64; KINDS_OF_ACTS] = [const { AtomicU64::new(0) }; KINDS_OF_ACTS];
static HISTORIES: AtomicU64 = AtomicU64::new(0);

/// Reads the settings that `run` passes in the environment.
pub(super) fn begin() {
    let only = std::env::var_os("NVPM_FUZZ_CODE_ONLY").is_some();
    CODE_ONLY.store(only, Relaxed);
}

/// Records that an act of kind `new` began while an act of kind `old` had stopped at `point`.
pub(super) fn between(old: usize, point: u32, new: usize) {
    if CODE_ONLY.load(Relaxed) {
        return;
    }
    let at = (old * 64 + point.min(63) as usize) * 16 + new;
    BETWEEN[at % COUNTERS].store(1, Relaxed);
}

/// Counts an act that begins.
pub(super) fn begins(kind: usize) {
    if let Some(count) = BEGUN.get(kind) {
        count.fetch_add(1, Relaxed);
    }
}

/// Counts a history that has ended without a failure.
pub(super) fn ended() {
    HISTORIES.fetch_add(1, Relaxed);
}

/// Prints the counts; `run` reads them.
pub(super) fn report(name: impl Fn(usize) -> &'static str) {
    eprintln!("histories: {}", HISTORIES.load(Relaxed));
    for (kind, count) in BEGUN.iter().enumerate() {
        eprintln!("acts: {} {}", count.load(Relaxed), name(kind));
    }
}
