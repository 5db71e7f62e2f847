// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads files of this machine, and the output of programs.
pub mod areas;
pub mod ask;
pub mod conf;
pub mod dma_buf;
pub mod doubts;
pub mod kernel_log;
pub mod kernel_symbols;
pub mod keys;
pub mod left_behind;
pub mod machine;
pub mod modules_load;
pub mod names;
pub mod network;
pub mod pairs;
pub mod pci;
pub mod peers;
pub mod place;
pub mod pod_state;
pub mod products;
pub mod programs;
pub mod rdma_netlink;
pub mod reader;
pub mod reading_child;
pub mod regions;
pub mod root_complex;
pub mod ways;
