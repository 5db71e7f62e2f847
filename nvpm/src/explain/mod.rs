// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the cause of failures in the logs of programs and of the kernel.
mod answer;
mod budget;
pub mod command;
mod crash;
mod encoding;
mod errno_names;
mod errors;
mod failure;
pub mod for_module;
mod inputs;
mod json;
mod judge;
mod kinds;
mod known;
mod line_reader;
mod list;
mod log_facts;
mod no_message;
mod node;
mod overcome;
pub mod pattern;
mod placeholder;
mod prefixes;
mod redact;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod rules;
mod scan;
mod screen;
mod streams;
mod success;
pub mod table;
mod unpack;
mod values;
mod wording;
