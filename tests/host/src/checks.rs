// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The tests: one idea in a file.

mod errno;
mod life;
mod longest_segment;
mod merge;
mod pipeline;
mod points;
mod range;
mod segments;
mod units;
mod window;
