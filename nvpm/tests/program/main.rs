// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tests the program as users run it, on machines that are made of files. `NVPM_BIN` names another program.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]
mod any_file;
mod explain_here;
mod gpu_links;
mod limits;
mod monitoring;
mod name_service;
mod node;
mod preload;
mod reader;
mod registrations;
mod report;
mod signals;

#[path = "../tables/machine.rs"]
mod machine;
#[path = "../tables/rdma.rs"]
mod rdma;
#[path = "../tables/table.rs"]
#[allow(dead_code)]
mod table;
