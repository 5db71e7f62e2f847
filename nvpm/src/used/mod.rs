// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm used`: whether GPUDirect RDMA is used now, by which processes, by which way, and how fast.
mod causes;
pub mod command;
pub mod json;
mod links;
pub mod look;
mod objects;
mod peer_share;
mod processes;
mod refutation;
mod screen;
pub mod sums;
mod tasks;
mod traffic;
pub mod usage;
pub mod verdict;
mod ways;
#[cfg(test)]
mod ways_tests;
mod witnesses;
