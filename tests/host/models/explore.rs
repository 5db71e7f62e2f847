// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Runs a scenario in every interleaving of its threads.

use std::sync::{
    atomic::{AtomicU64, Ordering::Relaxed},
    Arc,
};

use crate::{
    failure::report_and_abort_on_failure,
    rdma::{Kind, KINDS},
    world,
};

/// The limit on preemptions, which are switches away from a thread that could continue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preemptions {
    /// No limit: every interleaving is explored.
    Any,
    /// The largest number of preemptions in one interleaving.
    UpTo(usize),
}

/// Explores `scenario` with each kind of RDMA core, and prints a summary.
pub(crate) fn explore(
    preemptions: Preemptions,
    scenario: impl Fn() + Copy + Send + Sync + 'static,
) {
    for core in KINDS {
        let interleavings = count(preemptions, core, scenario);
        explored(&format!("{core:?}"), preemptions, interleavings);
    }
}

/// Explores `scenario` with one kind of RDMA core. Returns the number of interleavings.
pub(crate) fn count(
    preemptions: Preemptions,
    core: Kind,
    scenario: impl Fn() + Send + Sync + 'static,
) -> u64 {
    report_and_abort_on_failure();
    let count = Arc::new(AtomicU64::new(0));
    let counter = count.clone();
    let mut builder = loom::model::Builder::new();
    // The environment variable LOOM_MAX_PREEMPTIONS can shorten the run of any scenario. loom has
    // copied the variable into this field.
    let asked = builder.preemption_bound;
    builder.preemption_bound = match preemptions {
        Preemptions::Any => asked,
        Preemptions::UpTo(most) => Some(asked.map_or(most, |asked| asked.min(most))),
    };
    builder.max_branches = 50_000;
    builder.check(move || {
        counter.fetch_add(1, Relaxed);
        world::run(core, &scenario);
    });
    count.load(Relaxed)
}

/// Prints what was explored. `tests/run host` adds the numbers of these lines.
pub(crate) fn explored(what: &str, preemptions: Preemptions, interleavings: u64) {
    println!("{what}: explored {interleavings} interleavings, preemptions: {preemptions:?}");
}
