// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a bound is missed, as profiling has shown.

use crate::bounds::{Bound, Whose};
use crate::figures::{Machine, Mode};

/// Why a bound is missed, on this machine and in this mode, or on all and in both.
struct Reason {
    bound: Bound,
    machine: Option<Machine>,
    mode: Option<Mode>,
    /// One or two sentences.
    text: &'static str,
}

/// The first that fits is told.
const REASONS: &[Reason] = &[];

pub fn of(bound: Bound, whose: Whose) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|reason| {
            reason.bound == bound
                && reason
                    .machine
                    .is_none_or(|machine| machine == whose.machine)
                && reason.mode.is_none_or(|mode| mode == whose.mode)
        })
        .map(|reason| reason.text)
}
