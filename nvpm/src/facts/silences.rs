// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about parts of the kernel that do not answer. Programs that use these parts hang too.
use crate::facts::fact::{Fact, bad};
use crate::read::areas::NVIDIA_DRIVER;
use crate::read::machine::Machine;
use crate::read::reader::Silence;

/// The beginning of the name of a part, and advice.
const ADVICE: &[(&str, &str)] = &[
    (
        NVIDIA_DRIVER,
        "Programs that use a GPU hang at the same lock, and kill -9 does not end them. dmesg | nvpm explain - names \
         the cause if the kernel has said it (Xid, blocked for more than). Save nvpm report first: only resetting the \
         GPU or a reboot helps if it stays.",
    ),
    (
        "suspend",
        "The driver is suspending or resuming and has not finished: dmesg | grep NVRM. Only a reboot helps if it \
         stays.",
    ),
    (
        "RDMA device",
        "The device's driver waits for its firmware: dmesg | grep -E 'mlx5|bnxt|irdma|ib_'. Programs that use the \
         device hang too. If it stays, reset the device or reboot.",
    ),
    (
        "process",
        "The process hangs while it maps or unmaps memory, mostly in a driver: /proc/PID/stack of the process named \
         here says in which.",
    ),
];
const OTHERS: &str = "Something in the kernel holds a lock: dmesg says what. If it stays, reboot.";

pub fn facts(machine: &Machine) -> Vec<Fact> {
    let fact = |silence: Silence| {
        let advice = ADVICE.iter().find(|(begin, _)| silence.area.starts_with(begin)).map_or(OTHERS, |(_, text)| text);
        bad("kernel", &silence.area, silence.value()).advised(advice)
    };
    machine.reader.silences().into_iter().map(fact).collect()
}
