// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether this node supports dma-buf, and which RDMA devices take a dma-buf.
//!
//! Each device is asked in the same way as programs ask (ask.rs). If asking is impossible, the kernel's list of
//! functions shows whether the device's driver has the verb for dma-buf. The kernel's version would be wrong for
//! drivers that a distribution or an OFED has changed; the list is right for them, too.
//!
//! One answer misleads: a driver of mlx5 with the patch "RDMA/mlx5: Create ODP EQ for non-pinned dmabuf MRs" looks at
//! the descriptor first, and then refuses each dma-buf with EOPNOTSUPP if the device cannot page on demand (ODP). Only
//! the versions of kernel.org show whether a driver has the patch.
use std::rc::Rc;

use indexmap::IndexMap;

use crate::read::ask;
use crate::read::kernel_symbols::{dma_buf_drivers, dma_buf_in};
use crate::read::machine::Machine;
use crate::read::pci::{Nic, nics};
use crate::read::place::without_gpudirect;

const LIBVERBS: [&str; 3] = ["/usr/lib64/libibverbs.so.1", "/usr/lib/libibverbs.so.1", "/usr/lib/*/libibverbs.so.1"];

/// Drivers of PCI devices whose verbs are in a module with another name.
const VERBS_OF: [(&str, &str); 6] = [
    ("mlx5_core", "mlx5_ib"),
    ("ice", "irdma"),
    ("i40e", "irdma"),
    ("idpf", "irdma"),
    ("bnxt_en", "bnxt_re"),
    ("mana", "mana_ib"),
];

/// Returns the module with the verbs of a PCI device's driver.
pub fn verbs_of(driver: &str) -> &str {
    VERBS_OF.iter().find(|(name, _)| *name == driver).map_or(driver, |(_, module)| module)
}

/// The driver that needs a device with ODP, and the versions of kernel.org from which on the driver needs such a
/// device. Each long-term kernel has its own version.
const NEEDS_ODP: &str = "mlx5_core";
const SINCE: [u64; 2] = [7, 2];
const SINCE_IN: [([u64; 2], u64); 2] = [([6, 12], 111), ([6, 18], 53)];
const NO_ODP: &str = "it answers EBADF, but cannot page on demand (ODP), ";
const REFUSED: &str = "without which mlx5 takes none since kernel 7.2, 6.18.53 and 6.12.111";
const PERHAPS_REFUSED: &str = "without which a newer mlx5 takes none";

/// Whether an RDMA device takes a dma-buf, and the source of this answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub yes: bool,
    pub why: String,
    /// Whether the answer is certain.
    pub sure: bool,
    /// Whether the device says yes to a program that asks, and then refuses each dma-buf.
    pub misleads: bool,
}

impl Answer {
    fn certain(yes: bool, why: String) -> Self {
        Self { yes, why, sure: true, misleads: false }
    }
}

/// Returns whether the NVIDIA driver exports dma-bufs. Only the open driver does.
pub fn exported(machine: &Machine) -> bool {
    machine.loaded("nvidia") && !machine.text("/sys/module/nvidia/taint").contains('P')
}

/// Returns the first numbers in a version.
pub fn version_numbers(version: &str, count: usize) -> Vec<u64> {
    let digits = version.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    digits.take(count).map(|digits| digits.parse().unwrap_or(u64::MAX)).collect()
}

/// Returns the first requirement of dma-buf that the node lacks; an empty string if all are met.
pub fn lacking(machine: &Machine) -> Rc<String> {
    machine.once(first_lacking)
}

fn first_lacking(machine: &Machine) -> String {
    if !machine.loaded("nvidia") {
        return "the NVIDIA driver is not loaded".to_owned();
    }
    if !exported(machine) {
        return "the NVIDIA driver is the proprietary one; only the open one has it".to_owned();
    }
    // A device that has looked at a descriptor proves dma-buf, whatever the list of functions says.
    if asked(machine).values().any(|said| [ask::YES, ask::WITHOUT_ODP].contains(&said.as_str())) {
        return String::new();
    }
    if dma_buf_in(machine).is_empty() {
        // Distributions and OFEDs bring dma-buf to older kernels, so the kernel's version counts only after the list of
        // functions.
        if version_numbers(&machine.kernel, 2) < vec![5, 12] {
            return format!("kernel {} is older than 5.12", machine.kernel);
        }
        if machine.loaded("ib_uverbs") {
            return "the RDMA core that is loaded does not have it".to_owned();
        }
        return "the RDMA core is not loaded".to_owned();
    }
    let library = machine.glob(&LIBVERBS).into_iter().next();
    let is_old = |library: &String| memchr::memmem::find(&machine.read(library), b"ibv_reg_dmabuf_mr").is_none();
    library.filter(is_old).map_or(String::new(), |library| format!("{library} is older than rdma-core 34"))
}

/// Returns the answers of the devices.
pub fn asked(machine: &Machine) -> Rc<IndexMap<String, String>> {
    fn compute(machine: &Machine) -> IndexMap<String, String> {
        // The files of another machine must not be mixed with the devices of this machine, so such files have the
        // answers, too.
        let found = if nics(machine).is_empty() {
            IndexMap::new()
        } else if machine.root.is_empty() {
            ask::devices()
        } else {
            ask::pairs(&machine.all_text(&["/asked"]))
        };
        let text = if found.is_empty() { "nobody was asked".to_owned() } else { format!("{found:?}") };
        machine.tell("ibv_reg_dmabuf_mr() of no descriptor", &text);
        found
    }
    machine.once(compute)
}

/// Returns for each RDMA device whether the device takes a dma-buf, and how this is known.
pub fn answers(machine: &Machine) -> Rc<IndexMap<String, Answer>> {
    fn compute(machine: &Machine) -> IndexMap<String, Answer> {
        nics(machine).iter().map(|nic| (nic.name.clone(), answer(machine, nic))).collect()
    }
    machine.once(compute)
}

fn answer(machine: &Machine, nic: &Nic) -> Answer {
    if !nic.software.is_empty() {
        return Answer::certain(false, format!("software over {}", nic.software));
    }
    let driver = nic.driver(machine);
    if driver == "efa" && !without_gpudirect(machine).is_empty() {
        return Answer::certain(false, without_gpudirect(machine).to_string());
    }
    let asked = asked(machine);
    let said = asked.get(&nic.name).map_or("", String::as_str);
    if said == ask::WITHOUT_ODP && driver == NEEDS_ODP {
        return without_odp(machine);
    }
    if let Some(error) = said.split_whitespace().next() {
        return Answer::certain(error == ask::YES, format!("it answers {error}"));
    }
    let driver = if driver.is_empty() { "unknown" } else { verbs_of(&driver) };
    if dma_buf_drivers(machine).contains(driver) {
        return Answer::certain(true, format!("its driver {driver} has the verb"));
    }
    Answer::certain(false, format!("its driver {driver} does not have the verb"))
}

/// Returns the answer of an mlx5 device that cannot page on demand. Most drivers take dma-bufs for such a device, so a
/// program may try.
fn without_odp(machine: &Machine) -> Answer {
    // The kernel marks a module with O if the module does not belong to the kernel.
    let is_foreign = machine.text(&format!("/sys/module/{}/taint", verbs_of(NEEDS_ODP))).contains('O');
    if refuses_without_odp(&version_numbers(&machine.kernel, 3)) && !is_foreign {
        return Answer { misleads: true, ..Answer::certain(false, format!("{NO_ODP}{REFUSED}")) };
    }
    Answer { sure: false, ..Answer::certain(true, format!("{NO_ODP}{PERHAPS_REFUSED}")) }
}

fn refuses_without_odp(version: &[u64]) -> bool {
    let is_long_term = |(series, least): &([u64; 2], u64)| {
        version.strip_prefix(series).is_some_and(|rest| rest.first().is_some_and(|patch| patch >= least))
    };
    version >= SINCE.as_slice() || SINCE_IN.iter().any(is_long_term)
}

/// Returns the RDMA devices that take a dma-buf of GPU memory.
pub fn taken_by(machine: &Machine) -> Rc<Vec<String>> {
    fn compute(machine: &Machine) -> Vec<String> {
        if !lacking(machine).is_empty() {
            return Vec::new();
        }
        answers(machine).iter().filter(|(_, answer)| answer.yes).map(|(name, _)| name.clone()).collect()
    }
    machine.once(compute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patched_kernels_refuse() {
        for (version, refuses) in [
            ("7.2.0-rc1", true),
            ("7.1.9", false),
            ("6.12.111", true),
            ("6.12.110+deb13", false),
            ("6.18.53", true),
            ("6.18", false),
            ("6.19.99", false),
            ("10.0", true),
        ] {
            assert_eq!(refuses_without_odp(&version_numbers(version, 3)), refuses, "{version}");
        }
    }
}
