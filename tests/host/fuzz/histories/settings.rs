// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Changes the faults and the answers of the models of the driver and the kernel.

use crate::{
    abi,
    world::{world, Countdown, Faults},
};

/// The calls that can fail once.
pub(super) const STEPS: [&str; 6] = [
    "an allocation",
    "a step of loading",
    "a mapping for a device",
    "a revocable pin",
    "a persistent pin",
    "unpinning",
];

fn countdowns(faults: &Faults) -> [&Countdown; STEPS.len()] {
    [
        &faults.allocation,
        &faults.step,
        &faults.mapping,
        &faults.get,
        &faults.persistent,
        &faults.put,
    ]
}

/// Lets `successes` calls succeed, and the next call fail.
pub(super) fn fail(step: usize, successes: u32) {
    countdowns(&world().faults)[step % STEPS.len()].set(successes);
}

/// Tells whether a call is about to fail.
pub(super) fn something_fails() -> bool {
    countdowns(&world().faults).iter().any(|one| one.is_set())
}

/// Lets all calls succeed from now on.
pub(super) fn nothing_fails() {
    for one in countdowns(&world().faults) {
        one.clear();
    }
}

/// The answers that can change.
pub(super) const SETTINGS: [&str; 8] = [
    "the driver's answer to a request to pin",
    "the driver's answer to a request to pin persistently",
    "the driver's answer to a request to map",
    "whether memory is offline, if it is coherent",
    "the size of the driver's pages",
    "whether the driver hides a page",
    "whether page tables or mappings are of another version",
    "whether a range of addresses cannot be made visible",
];

/// Chooses an answer. The value 0 chooses the usual answer.
pub(super) fn answer(setting: usize, value: u8) {
    let faults = &world().faults;
    let one_of = |answers: &[i32]| answers[usize::from(value) % answers.len()];
    let on = value & 1 != 0;
    match setting % SETTINGS.len() {
        0 => faults.refusal.set(one_of(&[0, -12, -5, -524, -22, -16])),
        1 => faults.no_persistent.set(one_of(&[0, -524, -5, -12])),
        2 => {
            faults.refuses_to_map.set(one_of(&[0, -524, -5, -12]));
            let gpus = [None, None, Some(7), Some(8)];
            faults.refused_gpu.set(gpus[usize::from((value >> 4) & 3)]);
        }
        3 => faults.offline.set(on && faults.coherent.get()),
        // A wrong page size and a wrong number of pages together may describe the right number of
        // bytes, which would be no fault. Only one of them is therefore wrong at a time.
        4 => {
            faults.hidden_pages.set(0);
            faults.page_size.set(match value & 7 {
                5 => abi::NVIDIA_P2P_PAGE_SIZE_4KB,
                6 => abi::NVIDIA_P2P_PAGE_SIZE_128KB,
                7 => 77,
                _ => abi::NVIDIA_P2P_PAGE_SIZE_64KB,
            });
        }
        5 => {
            faults.hidden_pages.set(on.into());
            faults.page_size.set(abi::NVIDIA_P2P_PAGE_SIZE_64KB);
        }
        6 => {
            faults.unknown_table.set(value & 3 == 1);
            faults.unknown_mapping.set(value & 3 == 2);
        }
        _ => faults.sync.set(on),
    }
}
