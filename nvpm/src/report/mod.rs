// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the parts of a bug report in one archive. nvpm never sends the archive.
mod archive;
pub mod command;
mod configuration;
mod parts;
mod readme;
mod versions;
