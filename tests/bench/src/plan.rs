// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The measurements that a guest is expected to say (tests/guest/scenarios/bench*.sh).

use crate::measurements::{Kind, Layout, Machine, Mode, Module, Subject};
use crate::run::Run;

const THREADS: [u64; 3] = [1, 2, 4];

/// All sizes of a complete run: 64 KiB to 64 GiB.
pub const SIZES: [u64; 6] = [1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 32, 1 << 36];

/// The guests, by the name of their run.
pub const GUESTS: [&str; 6] = [
    "bench@stock",
    "bench@iommu",
    "bench_threads@stock",
    "bench_ground_kernel@stock",
    "bench_ground_free@stock",
    "bench_ground_ready@stock",
];

/// The largest size that is measured on each ground.
const ON_GROUNDS: u64 = 4 << 30;

/// What the guest measures; nothing if there is no such guest.
pub fn of(guest: &str, sizes: &[u64]) -> Option<Vec<Subject>> {
    match guest {
        "bench@stock" => Some([registrations(Machine::Stock, sizes), modules()].concat()),
        "bench@iommu" => Some(registrations(Machine::Iommu, sizes)),
        "bench_threads@stock" => Some(threads()),
        "bench_ground_kernel@stock" => Some(ground(Module::OnKernel, sizes)),
        "bench_ground_free@stock" => Some(ground(Module::OnFree, sizes)),
        "bench_ground_ready@stock" => Some(ground(Module::OnReady, sizes)),
        _ => None,
    }
}

/// What these guests did not say.
pub fn missing(run: &Run, guests: &[&str], sizes: &[u64]) -> Vec<Subject> {
    guests
        .iter()
        .filter_map(|guest| of(guest, sizes))
        .flatten()
        .filter(|subject| run.of(subject).is_none())
        .collect()
}

fn registrations(machine: Machine, sizes: &[u64]) -> Vec<Subject> {
    let mut plan = Vec::new();
    for (module, mode) in clients() {
        for layout in Layout::ALL {
            for &size in sizes {
                let held = Subject {
                    layout: Some(layout),
                    size: Some(size),
                    ..subject(machine, module, mode, Kind::Held)
                };
                for published in [0, 1] {
                    plan.push(Subject {
                        kind: Kind::Costs,
                        published: Some(published),
                        ..held.clone()
                    });
                }
                plan.push(Subject {
                    kind: Kind::Freed,
                    ..held.clone()
                });
                plan.push(held);
            }
        }
    }
    plan
}

fn modules() -> Vec<Subject> {
    Module::BOTH
        .map(|module| subject(Machine::Stock, module, Mode::Persistent, Kind::Module))
        .to_vec()
}

fn threads() -> Vec<Subject> {
    let mut plan = Vec::new();
    for (module, mode) in clients() {
        for threads in THREADS {
            for published in [0, 1] {
                plan.push(Subject {
                    published: Some(published),
                    threads: Some(threads),
                    ..subject(Machine::Stock, module, mode, Kind::Threads)
                });
            }
        }
    }
    plan
}

fn ground(module: Module, sizes: &[u64]) -> Vec<Subject> {
    let mut plan = Vec::new();
    for mode in Mode::BOTH {
        for layout in Layout::ENDS {
            for &size in sizes.iter().filter(|size| **size <= ON_GROUNDS) {
                let costs = Subject {
                    layout: Some(layout),
                    size: Some(size),
                    published: Some(0),
                    ..subject(Machine::Stock, module, mode, Kind::Costs)
                };
                plan.push(Subject {
                    kind: Kind::Freed,
                    published: None,
                    ..costs.clone()
                });
                plan.push(costs);
            }
        }
    }
    plan
}

fn clients() -> impl Iterator<Item = (Module, Mode)> {
    Module::BOTH
        .into_iter()
        .flat_map(|module| Mode::BOTH.map(|mode| (module, mode)))
}

fn subject(machine: Machine, module: Module, mode: Mode, kind: Kind) -> Subject {
    Subject {
        machine,
        module,
        mode,
        kind,
        layout: None,
        size: None,
        published: None,
        threads: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_once() {
        let mut all: Vec<Subject> = GUESTS
            .iter()
            .flat_map(|g| of(g, &[65536, 1 << 20]).unwrap())
            .collect();
        let expected = 2 * 2 * 3 * 16 + 2 + 24 + 3 * 2 * 2 * 4;
        assert_eq!(all.len(), expected);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), expected);
    }

    #[test]
    fn the_largest_size_is_not_measured_on_each_ground() {
        let with = |sizes: &[u64]| of("bench_ground_free@stock", sizes).unwrap().len();
        assert_eq!(with(&SIZES), with(&SIZES[..SIZES.len() - 1]));
        assert!(with(&SIZES) > with(&SIZES[..SIZES.len() - 2]));
    }

    #[test]
    fn no_plan_for_an_unknown_guest() {
        assert!(of("bench@debug", &[65536]).is_none());
    }
}
