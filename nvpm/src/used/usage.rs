// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! How a node moves the data of its GPUs at this moment, as one word.

/// The states, the best one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// GPU memory is registered.
    Direct,
    /// Some processes have GPU memory registered, and others with GPUs have host memory only.
    Partly,
    /// The processes with GPUs have host memory registered only.
    Host,
    /// Processes use GPUs, and none of them has an RDMA device open.
    WithoutRdma,
    /// No process with GPUs is known to use RDMA, or to do without.
    Idle,
    Unknown,
}

impl Usage {
    pub const ALL: [Self; 6] = [Self::Direct, Self::Partly, Self::Host, Self::WithoutRdma, Self::Idle, Self::Unknown];

    /// Returns the word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Partly => "partly",
            Self::Host => "host",
            Self::WithoutRdma => "without_rdma",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the state with this word. A word of a later version is not known.
    pub fn of_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|usage| usage.word() == word).unwrap_or(Self::Unknown)
    }

    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Direct | Self::Partly => 0,
            Self::Host => 1,
            Self::WithoutRdma | Self::Idle => 3,
            Self::Unknown => 4,
        }
    }
}
