// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says what the process that asks lacks to register GPU memory on a node that can. A program that the same user starts
//! in the same place lacks the same.
use rustix::process::geteuid;

use crate::facts::limits::{locked_memory, number_of};
use crate::read::engine::engine;
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::regions::size;

pub const UVERBS: &str = "/dev/infiniband/uverbs*";
const SESSION: &str = "/proc/self";
/// Programs register buffers of some megabytes, so a process with a smaller limit fails early. A larger limit gets a
/// warning only.
const LITTLE: u128 = 64 << 20;
const CAP_IPC_LOCK: u64 = 1 << 14;

/// Returns why this process can register no memory at all, with the cure in brackets; an empty text if it can.
pub fn lacks_devices(machine: &Machine) -> String {
    if nics(machine).is_empty() {
        return String::new();
    }
    let files = machine.glob(&[UVERBS]);
    if files.is_empty() {
        return match engine(machine) {
            Some(engine) => format!("this container has no {UVERBS} ({})", engine.to_give_devices()),
            None => format!("there is no {UVERBS} (modprobe ib_uverbs)"),
        };
    }
    if files.iter().any(|file| machine.writable(file)) {
        return String::new();
    }
    format!("user {} may not open {UVERBS}", machine.user(&geteuid().as_raw().to_string()))
}

/// Returns how little memory this process may lock, with the cure in brackets; an empty text if it is enough. Memory
/// that is registered by pointer counts as locked, and so do the queues of a program that registers dma-bufs.
pub fn locks_little(machine: &Machine) -> String {
    let limit = locked_memory(machine, SESSION);
    let Some(limit) = number_of(&limit).filter(|limit| *limit < LITTLE && !may_lock_all(machine)) else {
        return String::new();
    };
    let cure = engine(machine).map_or("ulimit -l", |engine| engine.to_lock_memory());
    format!("this process may lock only {} ({cure})", size(limit))
}

/// Returns whether the limit does not hold for this process, because it has the capability `IPC_LOCK`.
fn may_lock_all(machine: &Machine) -> bool {
    let status = machine.all_text(&[format!("{SESSION}/status")]);
    let mask = status.split('\n').find_map(|line| line.strip_prefix("CapEff:\t"));
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default() & CAP_IPC_LOCK != 0
}
