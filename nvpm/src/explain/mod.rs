// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the cause of failures in the logs of programs and of the kernel.
mod errno_names;
mod placeholder;
mod table;
mod budget;
mod encoding;
mod inputs;
mod line_reader;
mod unpack;
mod errors;
mod failure;
mod kinds;
mod known;
mod pattern;
mod log_facts;
mod prefixes;
mod scan;
mod success;
mod answer;
mod judge;
mod node;
mod values;
mod wording;
