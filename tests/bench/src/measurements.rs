// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What was measured: metrics as the guests report them, one JSON object each.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One of those that are compared: ours as it is installed, beside theirs; and ours on each of
/// its grounds, beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Module {
    #[serde(rename = "nv_peer_mem")]
    Ours,
    #[serde(rename = "nvidia-peermem")]
    Theirs,
    #[serde(rename = "nv_peer_mem-kernel")]
    OnKernel,
    #[serde(rename = "nv_peer_mem-free")]
    OnFree,
    #[serde(rename = "nv_peer_mem-ready")]
    OnReady,
}

/// Which client of a module serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Persistent,
    Revocable,
}

/// Where the GPU's memory has holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    Contiguous,
    Holes2m,
    Holes64k,
}

/// The lab's machines that are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    Stock,
    Iommu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Costs,
    Held,
    Freed,
    Threads,
    Module,
}

/// What a measurement is of. Only the members that its kind has are there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    pub machine: Machine,
    pub module: Module,
    pub mode: Mode,
    pub kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether the driver's calls took what is published of real ones: 1 or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
}

/// What was measured of a subject, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub values: BTreeMap<String, u64>,
}

impl Module {
    pub const BOTH: [Self; 2] = [Self::Ours, Self::Theirs];
    pub const GROUNDS: [Self; 3] = [Self::OnKernel, Self::OnFree, Self::OnReady];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "nv_peer_mem",
            Self::Theirs => "nvidia-peermem",
            Self::OnKernel => "nv_peer_mem on kernel",
            Self::OnFree => "nv_peer_mem on free",
            Self::OnReady => "nv_peer_mem on ready",
        }
    }
}

impl Mode {
    pub const BOTH: [Self; 2] = [Self::Persistent, Self::Revocable];

    pub fn name(self) -> &'static str {
        match self {
            Self::Persistent => "persistent",
            Self::Revocable => "revocable",
        }
    }
}

impl Layout {
    pub const ALL: [Self; 3] = [Self::Contiguous, Self::Holes2m, Self::Holes64k];
    /// The fewest pieces, and the most.
    pub const ENDS: [Self; 2] = [Self::Contiguous, Self::Holes64k];

    pub fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous memory",
            Self::Holes2m => "memory in 2 MiB chunks",
            Self::Holes64k => "memory in 64 KiB chunks, the worst case",
        }
    }

    pub fn short(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Holes2m => "2 MiB chunks",
            Self::Holes64k => "64 KiB chunks",
        }
    }
}

impl Machine {
    pub const BOTH: [Self; 2] = [Self::Stock, Self::Iommu];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "without IOMMU",
            Self::Iommu => "with IOMMU",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.module.name(), self.mode.name())?;
        if let Some(layout) = self.layout {
            write!(f, ", {}", layout.short())?;
        }
        if let Some(size) = self.size {
            write!(f, ", {}", crate::numbers::size(size))?;
        }
        if let Some(threads) = self.threads {
            write!(f, ", {threads} threads")?;
        }
        if self.published == Some(1) {
            write!(f, ", published costs")?;
        }
        write!(f, ", {}", self.machine.name())
    }
}

/// The measurement in a line, or the line and what is wrong with it.
pub fn parse(line: &str) -> Result<Measurement, String> {
    serde_json::from_str(line).map_err(|err| format!("not a measurement ({err}): {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_and_values_of_a_line() {
        let measurement = parse(
            r#"{"machine":"iommu","module":"nvidia-peermem","mode":"revocable","kind":"costs",
            "layout":"holes2m","size":65536,"published":0,"entries":1,"register_total":23347}"#,
        )
        .unwrap();
        assert_eq!(measurement.subject.module, Module::Theirs);
        assert_eq!(measurement.subject.layout, Some(Layout::Holes2m));
        assert_eq!(measurement.subject.threads, None);
        assert_eq!(measurement.values.len(), 2);
        assert_eq!(measurement.values["register_total"], 23347);
    }

    #[test]
    fn a_measurement_survives_being_written() {
        let line = r#"{"machine":"stock","module":"nv_peer_mem","mode":"persistent","kind":"module","core":57344,"file":307604}"#;
        assert_eq!(serde_json::to_string(&parse(line).unwrap()).unwrap(), line);
    }

    #[test]
    fn what_is_no_measurement_is_shown() {
        let line = r#"{"machine":"stock","bytes":}"#;
        assert!(parse(line).unwrap_err().ends_with(line));
    }
}
