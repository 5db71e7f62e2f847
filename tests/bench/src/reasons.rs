// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a bound is missed, as profiling has shown.

use crate::bounds::{Bound, Whose};
use crate::figures::{Machine, Mode};

/// Why a bound is missed, on this machine and in this mode, or on all and in both.
struct Reason {
    bound: Bound,
    machine: Option<Machine>,
    mode: Option<Mode>,
    /// One or two sentences.
    text: &'static str,
}

/// The first that fits is told.
const REASONS: &[Reason] = &[
    Reason {
        bound: Bound::Published,
        machine: Some(Machine::Iommu),
        mode: Some(Mode::Persistent),
        text: "Pins are half as many. But the driver maps each page of 64 KiB for the IOMMU by itself, once for \
               either module, and from 16 MiB on that takes longer than pinning.",
    },
    Reason {
        bound: Bound::Published,
        machine: None,
        mode: None,
        text: "Pins are half as many. The rest of the total is the same for both: what the core does by itself, and \
               the driver's mapping of each page, for which nothing is published and which takes here what the \
               simulation takes (about 0.5 us for a page).",
    },
    Reason {
        bound: Bound::Module1M,
        machine: None,
        mode: Some(Mode::Persistent),
        text: "What a registration costs whatever its size. A third of it allocates and frees the region and its \
               list; the rest goes to what nvidia-peermem does without: a lock and states for each region, \
               counters, checks of what the driver says. At 16 MiB it is half of the whole, at 256 MiB 6 %.",
    },
    Reason {
        bound: Bound::Module1M,
        machine: None,
        mode: Some(Mode::Revocable),
        text: "As in the other mode; beside that the module maps the pages by itself, which nvidia-peermem leaves \
               to the driver (where a revocation may meet it), and enters the region into a table of ids.",
    },
    Reason {
        bound: Bound::Module4G,
        machine: Some(Machine::Iommu),
        mode: None,
        text: "With an IOMMU the driver's addresses of neighbouring pages are no neighbours, so there is an entry \
               for each; or the module maps by itself what nvidia-peermem leaves to the driver.",
    },
    Reason {
        bound: Bound::Entries,
        machine: Some(Machine::Iommu),
        mode: Some(Mode::Persistent),
        text: "The driver maps each page of 64 KiB by itself, and the addresses that the IOMMU gives them are no \
               neighbours.",
    },
    Reason {
        bound: Bound::Entries,
        machine: None,
        mode: None,
        text: "The length of an entry has 32 bits, one too few for 4 GiB, and RDMA devices (mlx5) take 2 GiB in one \
               piece: 4 GiB are two entries, which is the least that there can be.",
    },
    Reason {
        bound: Bound::Held,
        machine: Some(Machine::Iommu),
        mode: Some(Mode::Persistent),
        text: "An entry for each page, as the driver maps them; see the entries.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Some(Mode::Persistent),
        text: "The module waits for nobody: its lock is the region's own. But where a spin lock ends the kernel may \
               turn to another thread that it has waked meanwhile, and that counts as the module's; nvidia-peermem \
               has no lock. More registrations a second are made in total, with 1 thread and with 4.",
    },
    Reason {
        bound: Bound::Throughput,
        machine: None,
        mode: Some(Mode::Revocable),
        text: "While one registration unpins no other pins or unpins: the driver knows pins by an address that it \
               may have given away again, and unpinning somebody else's memory must not happen. That waiting counts \
               as the module's; the driver has one lock for all of them anyway, and more registrations a second are \
               made in total.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Some(Mode::Persistent),
        text: "Small registrations: the fixed part (module alone, 1 MiB), and a region of 512 bytes where \
               nvidia-peermem has 128. Large ones: lists of 4 KiB come from the slab allocator, and are cleared \
               once more. Registering and deregistering together cost less than nvidia-peermem's in every size.",
    },
    Reason {
        bound: Bound::Fragmented,
        machine: None,
        mode: Some(Mode::Revocable),
        text: "The module maps and unmaps each page by itself, some 400 instructions each and far more with an \
               IOMMU, which nvidia-peermem leaves to the driver: before a revocation ends, where the driver does it \
               behind its callback; and it keeps 16 bytes for each page, to unmap it. Registering and deregistering \
               together cost less than nvidia-peermem's in every size.",
    },
];

pub fn of(bound: Bound, whose: Whose) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|reason| {
            reason.bound == bound
                && reason
                    .machine
                    .is_none_or(|machine| machine == whose.machine)
                && reason.mode.is_none_or(|mode| mode == whose.mode)
        })
        .map(|reason| reason.text)
}
