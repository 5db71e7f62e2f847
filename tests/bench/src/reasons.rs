// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a bound is missed, as profiling has shown.

use crate::bounds::Bound;
use crate::figures::Mode;

/// Bound, mode (nothing: both), and one or two sentences.
const REASONS: &[(Bound, Option<Mode>, &str)] = &[];

pub fn of(bound: Bound, mode: Mode) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|(of, only, _)| *of == bound && only.is_none_or(|only| only == mode))
        .map(|(_, _, reason)| *reason)
}
