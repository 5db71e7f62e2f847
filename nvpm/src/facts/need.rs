// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether this machine needs the module.
use indexmap::IndexSet;

use crate::facts::fact::{Facts, info};
use crate::facts::never;
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::{dma_buf, ways};

const BOTH_MISSING: &str = "yes, with another RDMA core: this one has no peer memory, and there is no dma-buf";
const USELESS: &str = "no: this RDMA core cannot use it; programs that use dma-buf work without it";
const EITHER: &str = "this or nvidia_peermem, which is loaded and serves the same programs";
const NO_OTHER_WAY: &str = "yes: there is no dma-buf, so no other way but NVIDIA's nvidia_peermem";
const FOR_SOME: &str = "for programs that register with ibv_reg_mr; those that use dma-buf (ibv_reg_dmabuf_mr) work \
                        without it";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    never::facts(machine, facts);
    let lacks = dma_buf_lacks(machine);
    let has_dma_buf = lacks.is_empty();
    let yes = "yes: kernel, RDMA core and driver have it".to_owned();
    facts.add(info("need", "dma-buf", if has_dma_buf { yes } else { format!("no: {lacks}") }));
    facts.add(info("need", "nv_peer_mem", who_needs_it(machine, has_dma_buf)));
}

/// Returns why dma-buf does not work on this machine. An empty text if it works.
pub fn dma_buf_lacks(machine: &Machine) -> String {
    let lacks = dma_buf::lacking(machine);
    if !lacks.is_empty() || nics(machine).is_empty() || !dma_buf::taken_by(machine).is_empty() {
        return lacks.to_string();
    }
    let answers = dma_buf::answers(machine);
    let reasons: IndexSet<&str> = answers.values().map(|answer| answer.why.as_str()).collect();
    format!("no RDMA device takes one: {}", reasons.into_iter().collect::<Vec<_>>().join("; "))
}

fn who_needs_it(machine: &Machine, has_dma_buf: bool) -> &'static str {
    if machine.loaded("ib_core") && peer_memory_in(machine).is_empty() {
        return if has_dma_buf { USELESS } else { BOTH_MISSING };
    }
    if ways::peermem_loaded(machine) {
        return EITHER;
    }
    if has_dma_buf { FOR_SOME } else { NO_OTHER_WAY }
}
