// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads this machine: its files, and the output of its programs.
pub mod areas;
pub mod left_behind;
pub mod machine;
pub mod programs;
pub mod reader;
pub mod reading_child;
