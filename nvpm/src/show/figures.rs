// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The facts that have a number and become metrics.
use crate::facts::fact::Fact;

/// A metric. The unit is that of Nagios: c stands for a counter, B for bytes.
pub struct Figure {
    pub metric: &'static str,
    pub kind: &'static str,
    pub meaning: &'static str,
    pub unit: &'static str,
}

const fn gauge(metric: &'static str, meaning: &'static str, unit: &'static str) -> Figure {
    Figure { metric, kind: "gauge", meaning, unit }
}

const fn counter(metric: &'static str, meaning: &'static str) -> Figure {
    Figure { metric, kind: "counter", meaning, unit: "c" }
}

/// The metric of each fact with a number.
pub const FIGURES: [(&str, Figure); 5] = [
    ("use/reachable_regions", gauge("reachable_regions", "Regions of GPU memory that devices can reach now.", "")),
    ("use/bytes", gauge("registered_bytes", "Bytes of these regions.", "B")),
    ("use/orphans", gauge("orphans", "Registrations that have ended and whose memory is still pinned.", "")),
    ("use/registrations", counter("registrations_total", "Registrations that have succeeded.")),
    ("use/revocations", counter("revocations_total", "Registrations that have ended because their memory was freed.")),
];
pub const GPU_MEMORY: Figure = gauge(
    "gpu_memory_registered_bytes",
    "Bytes of GPU memory that programs have registered with RDMA devices, by way.",
    "",
);
pub const HOST_MEMORY: Figure =
    gauge("host_memory_registered_bytes", "Bytes of host memory that programs have registered with RDMA devices.", "");
pub const INFO: Figure =
    gauge("info", "The versions of the running kernel, the loaded module, the driver, OFED and nvpm; always 1.", "");
pub const LOADED: Figure = gauge("loaded", "Whether the module nv_peer_mem is loaded.", "");
pub const POSSIBLE: Figure = gauge("registration_possible", "Whether GPU memory can be registered, in any way.", "");
pub const ATTENTION: Figure =
    gauge("attention", "Facts that need attention, by verdict: warn works but could do better, bad does not work.", "");
pub const JUDGED: Figure = gauge(
    "fact",
    "What status says of each fact that it judges: 0 good, 1 works but could do better, 2 does not work.",
    "",
);

/// The beginning of the identifiers of facts about failures. The rest is the cause.
const FAILED: &str = "use/failed_";
pub const FAILURES: Figure = counter("failed_registrations_total", "Registrations that have failed, by cause.");

/// Returns the cause of failures that a fact counts.
pub fn cause(fact: &Fact) -> Option<&str> {
    fact.id.strip_prefix(FAILED)
}

/// Returns the facts that become metrics.
pub fn figures(facts: &[Fact]) -> impl Iterator<Item = &Fact> {
    let is_figure = |fact: &&Fact| cause(fact).is_some() || FIGURES.iter().any(|(id, _)| fact.id.starts_with(id));
    let is_number = |fact: &&Fact| !fact.value.is_empty() && fact.value.bytes().all(|one| one.is_ascii_digit());
    facts.iter().filter(move |fact| is_figure(fact) && is_number(fact))
}
