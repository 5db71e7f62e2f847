// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! `nvpm selftest`: tests whether GPU memory can be registered and reached on this machine.
mod bandwidth;
mod bench;
pub mod command;
mod failure;
mod found;
mod judge;
pub mod limits;
mod lines;
mod matrix;
mod object;
mod page;
mod pattern;
mod port;
mod reasons;
mod report;
mod trial;
mod wording;
