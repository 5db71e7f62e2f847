// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a bound is missed, as profiling has shown. What is said here holds whatever the
//! values of a run are: those are in its tables.

use crate::bounds::{Bound, Whose};
use crate::measurements::{Machine, Mode};

/// Why a bound is missed, on this machine and in this mode or in all.
struct Reason {
    bound: Bound,
    machine: Option<Machine>,
    mode: Option<Mode>,
    text: &'static str,
}

/// Of each bound that one more call to pin weighs on: in what is pinned once more it is one page.
const fn asked_before_unpinning(bound: Bound) -> Reason {
    Reason {
        bound,
        machine: None,
        mode: Some(Mode::Revocable),
        text: "Before the module unpins it has the driver pin one page more. The driver answers a request to unpin with \
               success where it knows the process no more, and memory would be left behind unseen, with a callback \
               into a module that may be gone. No cheaper call of the driver tells. nvidia-peermem does not ask.",
    }
}

/// The first that fits is reported.
const REASONS: &[Reason] = &[
    asked_before_unpinning(Bound::PinCalls),
    asked_before_unpinning(Bound::Total64K),
    asked_before_unpinning(Bound::Total1M),
    asked_before_unpinning(Bound::Total16M),
    asked_before_unpinning(Bound::Total256M),
    Reason {
        bound: Bound::Module,
        machine: None,
        mode: None,
        text: "The module maps the memory for the device, which nvidia-peermem leaves to the driver, where it is not \
               counted: the totals compare the same work. With an IOMMU that is nearly all of it, most of it the \
               kernel's own. The rest is what a registration costs whatever its size: a lock and states for each region, \
               counters, checks of what the driver reports, its verdict on GPU and device.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: Some(Machine::Stock),
        mode: None,
        text: "Each piece is mapped for the device and unmapped by the kernel's DMA functions, one by one, also where that \
               only looks whether the device reaches it: what was never mapped is not handed to a device. In the revocable \
               mode there is a copy of the pieces besides, and one page more that is pinned before unpinning.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: Some(Machine::Iommu),
        mode: None,
        text: "Nearly all of it is the kernel's: it enters each page of 4 KiB into the IOMMU's tables and takes it out \
               again, and all pieces share one range already. Without a copy of the pieces (persistent mode), and with \
               memory for them of the right size at once (revocable mode), it came little nearer.",
    },
    Reason {
        bound: Bound::Freed,
        machine: Some(Machine::Iommu),
        mode: Some(Mode::Revocable),
        text: "What the driver itself does to free little memory is more than the bound allows for all, and the same for \
               either module. From 1 MiB on mappings are most, and undone in one call.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Some(Mode::Persistent),
        text: "Registrations do not wait for each other: the lock is the region's own. But where a spin lock is \
               released the kernel may switch to another thread that it has woken meanwhile, and that counts as the \
               module's; nvidia-peermem has no lock.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Some(Mode::Revocable),
        text: "While one registration unpins no other pins or unpins: the driver knows pins by an address that it \
               may have given away again, and unpinning somebody else's memory must not happen. That waiting counts \
               as the module's; the driver has one lock for all of them anyway.",
    },
];

/// The reason for this bound.
pub fn of(bound: Bound, whose: Whose) -> Option<&'static str> {
    let fits = |reason: &&Reason| {
        reason.bound == bound
            && reason.mode.is_none_or(|mode| mode == whose.mode)
            && reason
                .machine
                .is_none_or(|machine| machine == whose.machine)
    };
    REASONS.iter().find(fits).map(|reason| reason.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_for_its_mode() {
        let of = |mode| {
            let machine = Machine::Stock;
            of(Bound::Throughput, Whose { machine, mode })
        };
        assert_ne!(of(Mode::Persistent), of(Mode::Revocable));
        assert!(of(Mode::Persistent).is_some());
    }

    /// Sizes that interfaces are made of are the only numbers in a reason.
    #[test]
    fn reasons_have_no_values_of_a_run() {
        let constants = [
            "1 MiB", "2 GiB", "4 GiB", "4 KiB", "64 KiB", "32 bits", "mlx5",
        ];
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
