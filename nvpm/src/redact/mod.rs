// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Removes names and numbers that identify people, hosts, jobs and cards from a text.
mod hosts;
mod jobs;
mod json;
mod names;
mod patterns;
pub mod redactor;
#[cfg(test)]
mod tests;
