// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Shows results to people, and to other programs.
pub mod distance_matrix;
pub mod figures;
pub mod first_answer;
pub mod folded_facts;
pub mod json_line;
pub mod metrics;
pub mod out;
pub mod page;
pub mod plugin;
pub mod program_lines;
pub mod registrations;
pub mod release;
pub mod status_json;
pub mod status_text;
pub mod terminal;
pub mod utc;
