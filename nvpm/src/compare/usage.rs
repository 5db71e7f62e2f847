// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The answers of `nvpm used --json`: which nodes use GPUDirect RDMA now, and which move their data otherwise.
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::used::usage::Usage;

/// The name of the feature.
pub const NAME: &str = "used now";

/// Returns the state in the output of a node.
pub fn usage_in(said: &Map<String, Value>) -> Usage {
    Usage::of_word(said.get("state").and_then(Value::as_str).unwrap_or_default())
}

pub fn text(usage: Usage) -> &'static str {
    match usage {
        Usage::Direct => "GPUDirect RDMA",
        Usage::Partly => "GPUDirect RDMA by some processes only",
        Usage::Host => "host memory only",
        Usage::WithoutRdma => "GPUs without RDMA",
        Usage::Idle => "nothing by RDMA",
        Usage::Unknown => "not known",
    }
}

/// Returns whether this state can differ from that of other nodes. An idle node does nothing wrong, and neither does a
/// node whose programs use GPUs alone, because a job of one node needs no RDMA device.
pub fn is_compared(usage: Usage) -> bool {
    matches!(usage, Usage::Direct | Usage::Partly | Usage::Host)
}

/// Returns the nodes in each state that some node is in, the best state first.
pub fn by_state(usages: &IndexMap<String, Usage>) -> Vec<(Usage, Vec<&str>)> {
    let in_state = |state: Usage| {
        let nodes = usages.iter().filter(|(_, one)| **one == state).map(|(name, _)| name.as_str());
        (state, nodes.collect::<Vec<&str>>())
    };
    Usage::ALL.into_iter().map(in_state).filter(|(_, nodes)| !nodes.is_empty()).collect()
}
