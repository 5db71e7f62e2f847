// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The scenarios that loom explores. Each file has the scenarios about one topic.

mod cast;

mod answers;
mod freed;
mod listed;
mod loading;
mod map_type;
mod memory;
mod messages;
mod orphans;
mod persistent;
mod places;
mod process;
mod reuse;
mod unload;
mod unpinning;
