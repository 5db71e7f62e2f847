// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts from the module's statistics: how much memory is registered now, which processes have registered memory, and
//! how many registrations have failed.
use std::time::Duration;

use crate::facts::fact::{Fact, Facts, bad, good, info, unread, warn};
use crate::read::machine::{Machine, statistics};
use crate::read::pairs;
use crate::read::pci::gpus;
use crate::read::regions::{self, Region};

const SECTION: &str = "use";
const FIGURES: &[&str] = &["reachable_regions", "bytes", "registrations", "revocations"];

/// Causes of failed registrations, and advice. In the advice, {bar1} and {gdrdrv} are replaced.
const FAILURES: &[(&str, &str)] = &[
    (
        "failed_no_memory",
        "Registrations found no room in the GPU's BAR1, or the kernel no memory. nvidia-smi -q -d MEMORY shows \
         whether BAR1 is used up: then register less, or at fewer devices{bar1}. {gdrdrv}If it has room, free -h \
         shows the kernel's.",
    ),
    ("failed_not_supported", "The memory or the device does not support it: dmesg | grep nv_peer_mem says which."),
    ("failed_freed", "A program freed GPU memory while it was registering it: correct the program."),
    ("failed_driver", "The NVIDIA driver refused: dmesg | grep -E 'NVRM|nv_peer_mem'"),
    (
        "failed_orphans",
        "A user has as many orphans as allowed (16384, or 4 TiB of them): this user cannot register more until some \
         of that memory is freed. nvpm regions lists them as orphaned.",
    ),
    (
        "orphans",
        "These registrations ended in another process than the one that made them, for example in a child that \
         inherited them: their GPU memory stays pinned until the process that made them frees it, or ends. Deregister \
         where it was registered. They do not keep nv_peer_mem from being unloaded.",
    ),
];

const GDRDRV: &str = "gdrdrv is loaded, and gdrcopy uses BAR1, too. ";
const OURS: &str = "mapped by nv_peer_mem; the NVIDIA driver agrees";
const BY_DRIVER: &str = "mapped by the NVIDIA driver, page by page: it alone knows the addresses";
const REFUSED: &str = "the NVIDIA driver does not let this device reach this GPU";
const NEARER: &str = "Use a device below the same PCI switch as the GPU, or see whether the driver's option \
                      NVreg_GrdmaPciTopoCheckOverride is 2 (grep -r NVreg_Grdma /etc/modprobe.d).";

/// The time between two looks at registrations whose memory is being freed. A revocation that works takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

pub fn facts(machine: &Machine, facts: &mut Facts) {
    let count_of = |name: &str| machine.text(&format!("{}{name}", statistics(machine)));
    let figures: Vec<(&str, String)> = FIGURES.iter().map(|name| (*name, count_of(name))).collect();
    let failures: Vec<(&str, &str, String)> =
        FAILURES.iter().map(|(name, advice)| (*name, *advice, count_of(name))).collect();
    for (name, count) in figures.iter().filter(|(_, count)| !count.is_empty()) {
        facts.add(info(SECTION, name, count));
    }
    for (name, advice, count) in failures.iter().filter(|(.., count)| !count.is_empty()) {
        facts.add(failure(machine, name, advice, count));
    }
    pairs_that_met(machine, facts);
    if figures.first().is_some_and(|(_, regions)| !regions.is_empty() && regions != "0") {
        processes(machine, facts);
    }
}

fn failure(machine: &Machine, name: &str, advice: &str, count: &str) -> Fact {
    if count == "0" {
        return if name.starts_with("failed_") { good(SECTION, name, count) } else { info(SECTION, name, count) };
    }
    let gdrdrv = if machine.loaded("gdrdrv") { GDRDRV } else { "" };
    let advice = advice.replace("{bar1}", larger_bar1(machine)).replace("{gdrdrv}", gdrdrv);
    warn(SECTION, name, count).advised(advice)
}

/// Returns advice to enlarge BAR1 if the BAR1 of some GPU can be larger. Otherwise returns a text if some BAR1 has a
/// fixed size, or an empty text.
fn larger_bar1(machine: &Machine) -> &'static str {
    let gpus = gpus(machine);
    if gpus.iter().any(|gpu| gpu.largest_bar1(machine) > gpu.bar1(machine)) {
        return ", or turn on a large BAR in the firmware (above 4G decoding, resizable BAR)";
    }
    let is_any_fixed = gpus.iter().any(|gpu| gpu.largest_bar1(machine) == 0);
    if is_any_fixed { "; BAR1 is of a fixed size here" } else { "" }
}

/// Adds the NVIDIA driver's answers about pairs of a GPU and an RDMA device. The driver is asked when memory of the GPU
/// is first registered with the device.
fn pairs_that_met(machine: &Machine, facts: &mut Facts) {
    if machine.exists(pairs::FILE) && machine.read_at_most(pairs::FILE, 1).is_empty() {
        facts.add(unread(SECTION, "pairs", "which GPUs and RDMA devices have met"));
    }
    for pair in pairs::pairs(machine).iter() {
        let name = format!("{} {}", pair.gpu, pair.device);
        facts.add(match pair.said.as_str() {
            pairs::OURS => good(SECTION, &name, OURS),
            pairs::DRIVER => info(SECTION, &name, BY_DRIVER),
            _ => bad(SECTION, &name, REFUSED).advised(NEARER),
        });
    }
}

/// Adds a fact for each process that has GPU memory registered. The processes are those in the module's own list. The
/// open files of all processes would also show them, but reading these files would take seconds, and any user could
/// prolong this.
fn processes(machine: &Machine, facts: &mut Facts) {
    if !machine.exists(regions::LIST) {
        return;
    }
    let judged = regions::judged(machine);
    let Ok(judged) = judged.as_ref() else {
        facts.add(unread(SECTION, "processes", "which processes have GPU memory registered"));
        return;
    };
    let found = regions::largest(machine, judged);
    stuck(machine, judged, facts, || std::thread::sleep(PATIENCE));
    for process in &found {
        let ended = if process.running { "" } else { ", which has ended," };
        let value = format!("{}{ended} has {}", process.command, process.what);
        facts.add(info(SECTION, &format!("process {}", process.number), value));
    }
    let more = regions::count_of_processes(judged).saturating_sub(found.len());
    if more > 0 {
        let value = format!("{more} more with less memory: nvpm regions --summary");
        facts.add(info(SECTION, "processes", value));
    }
    let left_out = regions::left_out(machine, judged);
    if !left_out.is_empty() {
        facts.add(info(SECTION, "registrations read", left_out));
    }
}

/// Adds a warning for each registration that is being revoked before and after a wait.
fn stuck(machine: &Machine, judged: &[Region], facts: &mut Facts, wait: impl FnOnce()) {
    let waiting: Vec<_> = judged.iter().filter(|one| one.state == "revoking").collect();
    if waiting.is_empty() {
        return;
    }
    wait();
    let still = regions::revoking(machine);
    let names = regions::names_by_pci(machine);
    for one in waiting {
        if still.iter().any(|later| one.is_older(later)) {
            let device = names.get(&one.pci).unwrap_or(&one.pci);
            let value = format!(
                "{device} does not end its use of {} of GPU memory, which process {} ({}) frees",
                regions::size(one.length),
                one.process,
                one.command
            );
            let advice = format!(
                "The device has not answered, and the free of the memory waits for it with the NVIDIA driver's lock, so \
                 other programs that use the GPUs wait, too. See dmesg for lines about {device}. If the device's \
                 firmware fails, its driver ends the wait. Do not stop or unload that driver, which would wait, too: \
                 reboot the node."
            );
            facts.add(warn(SECTION, "revocation", value).advised(advice));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    /// Returns the values of the warnings if the list is FIRST and, after the wait, SECOND.
    fn warned(first: &[&str], second: &[&str]) -> Vec<String> {
        let made = Made::new();
        let list = |lines: &[&str]| made.change([format!("{} := {}", regions::LIST, lines.concat())]);
        list(first);
        let machine = made.read();
        let mut facts = Facts::new(&machine);
        stuck(&machine, regions::judged(&machine).as_ref().as_ref().unwrap(), &mut facts, || list(second));
        facts.into_found().into_iter().map(|fact| fact.value).collect()
    }

    fn line(age: u32, address: &str) -> String {
        format!("42 1234 {age} {address} 65536 nv_mem_revocable revoking 0000:99:00.0 a\\n")
    }

    #[test]
    fn a_revocation_that_ends_is_no_warning() {
        let (ends, stays) = (line(5, "0x7f0000000000"), line(5, "0x7f0000010000"));
        let said = "0000:99:00.0 does not end its use of 64 KiB of GPU memory, which process 42 (a) frees";
        assert_eq!(warned(&[&ends, &stays], &[&stays]), [said]);
        assert_eq!(warned(&[&ends, &stays], &[]), [""; 0]);
    }

    #[test]
    fn memory_that_is_registered_again_is_no_warning() {
        let (earlier, later) = (line(5, "0x7f0000000000"), line(0, "0x7f0000000000"));
        assert_eq!(warned(&[&earlier], &[&later]), [""; 0]);
    }
}
