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

/// The first that fits is reported.
const REASONS: &[Reason] = &[
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
