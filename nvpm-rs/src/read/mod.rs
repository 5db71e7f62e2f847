// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads this machine: its files, and the output of its programs.
pub mod areas;
pub mod reading_child;
