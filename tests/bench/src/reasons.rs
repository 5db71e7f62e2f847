// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a bound is missed, as profiling has shown. What is said here holds whatever the
//! values of a run are: those are in its tables.

use crate::bounds::{Bound, Whose};
use crate::measurements::{Machine, Mode};
use crate::metrics;

/// Why a bound is missed in this mode, on this machine or on all.
struct Reason {
    bound: Bound,
    machine: Option<Machine>,
    mode: Mode,
    /// Which of several metrics it is the reason for; none where the bound is for one.
    metrics: &'static [&'static str],
    text: &'static str,
}

const ENTRIES: &str =
    "The length of an entry has 32 bits, one too few for 4 GiB, and RDMA devices (mlx5) take 2 GiB in one piece: two \
     entries are the minimum for 4 GiB.";

/// The first that fits is reported.
const REASONS: &[Reason] = &[
    Reason {
        bound: Bound::Published,
        machine: Some(Machine::Stock),
        mode: Mode::Persistent,
        metrics: &[],
        text: "The memory is pinned once instead of twice. The rest of the total is the same for both: what the core \
               does itself, and the driver's mapping of each page, for which nothing is published and which takes \
               here what the simulation takes.",
    },
    Reason {
        bound: Bound::Published,
        machine: Some(Machine::Iommu),
        mode: Mode::Persistent,
        metrics: &[],
        text: "The memory is pinned once instead of twice. But the driver maps each page for the IOMMU itself, once \
               for either module, and in large registrations that takes longer than pinning.",
    },
    Reason {
        bound: Bound::Module1M,
        machine: None,
        mode: Mode::Persistent,
        metrics: &[],
        text: "What a registration costs whatever its size: the region and its list are allocated and freed, and the \
               rest is what nvidia-peermem does without: a lock and states for each region, counters, checks of what \
               the driver reports.",
    },
    Reason {
        bound: Bound::Module1M,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[],
        text: "As in persistent mode, what a registration costs whatever its size. Besides, the module maps the pages \
               itself, which nvidia-peermem leaves to the driver (where a revocation may meet it), and enters the \
               region into a table of ids.",
    },
    Reason {
        bound: Bound::Module4G,
        machine: Some(Machine::Iommu),
        mode: Mode::Persistent,
        metrics: &[],
        text: "The driver maps each page by itself, and the addresses that the IOMMU gives to neighbouring pages are \
               not contiguous: there is an entry for each page.",
    },
    Reason {
        bound: Bound::Entries,
        machine: Some(Machine::Iommu),
        mode: Mode::Persistent,
        metrics: &[],
        text: "The driver maps each page by itself, and the addresses that the IOMMU gives to neighbouring pages are \
               not contiguous.",
    },
    Reason {
        bound: Bound::Entries,
        machine: Some(Machine::Stock),
        mode: Mode::Persistent,
        metrics: &[],
        text: ENTRIES,
    },
    Reason {
        bound: Bound::Entries,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[],
        text: ENTRIES,
    },
    Reason {
        bound: Bound::Held,
        machine: Some(Machine::Iommu),
        mode: Mode::Persistent,
        metrics: &[],
        text: "An entry for each page, as the driver maps them: see the entries.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Mode::Persistent,
        metrics: &[metrics::REGISTER_MODULE.label, metrics::DEREGISTER_MODULE.label],
        text: "Module alone: for small registrations what they cost whatever their size, as at 1 MiB; for large ones \
               the lists, which come from the slab allocator in pieces of 4 KiB and are cleared once more.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[metrics::REGISTER_MODULE.label, metrics::DEREGISTER_MODULE.label],
        text: "Module alone: the module maps and unmaps each page itself, which nvidia-peermem leaves to the driver; \
               with an IOMMU each of these costs far more. The totals compare the same work.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Mode::Persistent,
        metrics: &[metrics::HELD.label],
        text: "Memory held: a region is larger than what nvidia-peermem allocates for a registration, which decides \
               where little is registered.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[metrics::HELD.label],
        text: "Memory held: a region is larger than what nvidia-peermem allocates for a registration; and what was \
               mapped is kept for each page, to unmap it.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[metrics::REVOKE_MODULE.label, metrics::REVOKE_TOTAL.label],
        text: "Freed to revoked: the module unmaps each page before a revocation ends; for nvidia-peermem the driver \
               does it after the callback, which is not in this metric.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Mode::Persistent,
        metrics: &[],
        text: "Registrations do not wait for each other: the lock is the region's own. But where a spin lock is \
               released the kernel may switch to another thread that it has woken meanwhile, and that counts as the \
               module's; nvidia-peermem has no lock.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Mode::Revocable,
        metrics: &[],
        text: "While one registration unpins no other pins or unpins: the driver knows pins by an address that it \
               may have given away again, and unpinning somebody else's memory must not happen. That waiting counts \
               as the module's; the driver has one lock for all of them anyway.",
    },
];

/// The reason for this bound, or for this one of its metrics.
pub fn of(bound: Bound, whose: Whose, metric: Option<&str>) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|reason| {
            reason.bound == bound
                && reason.mode == whose.mode
                && reason
                    .machine
                    .is_none_or(|machine| machine == whose.machine)
                && metric.is_none_or(|metric| reason.metrics.contains(&metric))
        })
        .map(|reason| reason.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVOCABLE: Whose = Whose {
        machine: Machine::Stock,
        mode: Mode::Revocable,
    };

    #[test]
    fn a_reason_is_for_its_mode_and_its_metrics() {
        assert_eq!(of(Bound::Published, REVOCABLE, None), None);
        let of_metric = |metric| of(Bound::Fragmented, REVOCABLE, Some(metric));
        assert!(of_metric(metrics::HELD.label).is_some());
        assert_eq!(of_metric(metrics::ENTRIES.label), None);
    }

    /// Sizes that interfaces are made of are the only numbers in a reason.
    #[test]
    fn reasons_have_no_values_of_a_run() {
        let constants = ["1 MiB", "2 GiB", "4 GiB", "4 KiB", "32 bits", "mlx5"];
        for reason in REASONS {
            let text = constants
                .iter()
                .fold(reason.text.to_owned(), |text, constant| {
                    text.replace(constant, "")
                });
            assert!(!text.contains(|c: char| c.is_ascii_digit()), "{text}");
        }
    }
}
