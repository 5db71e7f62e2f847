// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Compares the nodes of a fleet by what nvpm printed on each of them.
mod collectors;
pub mod command;
mod features;
mod fleet;
mod groups;
mod inputs;
mod json;
mod kinds;
mod measured;
mod names;
mod page;
mod screen;
mod status;
mod usage;
mod wording;
