// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! What `nvpm used --json` said on the nodes: which use GPUDirect RDMA now, and which move their data otherwise.
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::compare::status::word;
use crate::used::verdict::Role;

/// The name of the feature.
pub const NAME: &str = "used now";

/// How a node moves the data of its GPUs at this moment, the best state first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    Direct,
    /// Some processes have GPU memory registered, and others with GPUs have host memory only.
    Partly,
    Host,
    Tcp,
    Idle,
    Unknown,
}

const ALL: [Usage; 6] = [Usage::Direct, Usage::Partly, Usage::Host, Usage::Tcp, Usage::Idle, Usage::Unknown];

impl Usage {
    /// Returns the state in the output of a node.
    pub fn of(said: &Map<String, Value>) -> Self {
        let is_none = |key: &str| said.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty);
        let processes = said.get("processes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_staged = |process: &Value| word(process.get("verdict")) == Role::Staged.word();
        match word(said.get("exit_code")).as_str() {
            "0" if processes.iter().any(is_staged) => Self::Partly,
            "0" => Self::Direct,
            "1" => Self::Host,
            "3" if is_none("without_rdma") => Self::Idle,
            "3" => Self::Tcp,
            _ => Self::Unknown,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Direct => "GPUDirect RDMA",
            Self::Partly => "GPUDirect RDMA by some processes only",
            Self::Host => "host memory only",
            Self::Tcp => "no RDMA (TCP)",
            Self::Idle => "nothing by RDMA",
            Self::Unknown => "not known",
        }
    }

    /// Returns whether this state can differ from that of other nodes. An idle node does nothing wrong.
    pub fn is_compared(self) -> bool {
        !matches!(self, Self::Idle | Self::Unknown)
    }
}

/// Returns the nodes in each state that some node is in, the best state first.
pub fn by_state(usage: &IndexMap<String, Usage>) -> Vec<(Usage, Vec<&str>)> {
    let in_state = |state: Usage| {
        let nodes = usage.iter().filter(|(_, one)| **one == state).map(|(name, _)| name.as_str());
        (state, nodes.collect::<Vec<&str>>())
    };
    ALL.into_iter().map(in_state).filter(|(_, nodes)| !nodes.is_empty()).collect()
}
