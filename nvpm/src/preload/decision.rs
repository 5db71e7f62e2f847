// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Decides whether a program gets the library.
use crate::facts::need::dma_buf_lacks;
use crate::read::machine::Machine;
use crate::read::ways::{self, DMA_BUF};

#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    Preload,
    /// The program works without the library, for this reason.
    Needless(String),
    /// The library cannot help, for this reason.
    Useless(String),
}

/// Decides whether to preload the library. The library helps if some pair of a GPU and an RDMA device has dma-buf.
/// Perhaps no module serves `ibv_reg_mr` there; a module that serves it refuses some memory, and the driver exports
/// this memory as a dma-buf. If the module serves all pairs and revokes registrations, the library is left out, because
/// nothing revokes a dma-buf.
pub fn decision(machine: &Machine) -> Decision {
    let served = ways::pointer_ways(machine).join(" and ");
    let revokes = ways::revokes(machine);
    let is_alone = ways::of_pairs(machine).values().any(|pair| *pair == [DMA_BUF]);
    if is_alone || (!revokes && ways::there_are(machine, DMA_BUF)) {
        return Decision::Preload;
    }
    if !served.is_empty() && revokes {
        return Decision::Needless(format!("{served} revokes registrations, and nothing revokes a dma-buf"));
    }
    if !served.is_empty() {
        return Decision::Needless(format!("not needed here: {served} serves ibv_reg_mr of GPU memory"));
    }
    let lacks = dma_buf_lacks(machine);
    let why =
        if lacks.is_empty() { ways::in_the_way(machine).to_string() } else { format!("there is no dma-buf: {lacks}") };
    Decision::Useless(format!("cannot help here: {why}"))
}
