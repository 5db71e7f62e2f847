// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether the kernel gives memory for registrations away. Kernel 7.0 of NVIDIA's series lends memory to the contiguous
//! memory allocator (CMA) when it is made ready for kexec handover (KHO), and registrations then end with ENOMEM
//! although gigabytes are free. The reports are eugr/spark-vllm-docker#389 and others of September 2026.
use crate::facts::fact::{Facts, bad, info};
use crate::read::machine::Machine;

const SERIES: &str = "7.0.0-";
const NVIDIA: &str = "-nvidia";
const OFF: &str = "kho=off";
const CURE: &str = "Put kho=off on the kernel's command line, or boot kernel 6.17, and reboot.";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    let (total, free) = (kibibytes(machine, "CmaTotal:"), kibibytes(machine, "CmaFree:"));
    if let (Some(total), Some(free)) = (total, free) {
        if free > total {
            let lent = (free - total) >> 10;
            let value = format!(
                "{lent} MiB more are free in CMA than it has: memory is lent to it (KHO), and registrations may end \
                 with Cannot allocate memory, whatever the limits are"
            );
            facts.add(bad("kernel", "memory", value).advised(CURE));
            return;
        }
    }
    let kernel = &machine.kernel;
    let is_known = kernel.starts_with(SERIES) && kernel.contains(NVIDIA);
    if is_known && !machine.text("/proc/cmdline").split_whitespace().any(|word| word == OFF) {
        let value = "this kernel may lend memory for registrations to CMA (KHO); it has not done so yet";
        facts.add(info("kernel", "memory", value).advised(CURE));
    }
}

/// Returns the number in a line of /proc/meminfo.
fn kibibytes(machine: &Machine, name: &str) -> Option<u64> {
    let lines = machine.lines("/proc/meminfo");
    let line = lines.iter().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
