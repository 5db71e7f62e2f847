// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Estimates the rate of data that passes the processor. No file says what a root complex or the link between two
//! processors carries, so these figures are no bound: each is what others have measured, or what NCCL assumes.
use crate::facts::distances::{Distance, nearest_devices};
use crate::facts::fact::{Fact, info};
use crate::read::machine::Machine;
use crate::read::pci::Gpu;
use crate::read::place::virtual_kind;

/// NVIDIA/nccl#412: 24 GB/s of a device with 200 Gb/s at the switch of the GPU, and 16 GB/s at the processor.
const WITHIN: &str = "others measured 16 of 25 GB/s through one processor (NVIDIA/nccl#412)";
/// linux-rdma/perftest#241: 23 GB/s of host memory, and 11 GB/s of a GPU's.
const BETWEEN: &str = "others measured 11 of 25 GB/s between processors (linux-rdma/perftest#241)";
const NO_BOUND: &str = "an estimate, and no bound: nvpm selftest --bandwidth measures it";

/// The gigabytes per second that NCCL assumes for the link between two Intel processors, by the least model of family 6
/// (src/graph/topo.h and topo.cc).
const INTEL: [(u32, &str, u32); 4] =
    [(0xCF, "Emerald Rapids", 40), (0x8F, "Sapphire Rapids", 22), (0x55, "Skylake", 10), (0, "Broadwell", 6)];
const AMD: u32 = 16;
const ARM: u32 = 6;

/// Returns the estimate for a GPU whose nearest RDMA device is behind a processor.
pub fn fact(machine: &Machine, gpu: &Gpu) -> Option<Fact> {
    if !virtual_kind(machine).is_empty() || gpu.coherent {
        return None;
    }
    let value = match nearest_devices(machine, gpu)?.0 {
        Distance::Pix | Distance::Pxb => return None,
        Distance::Phb | Distance::Node => WITHIN.to_owned(),
        Distance::Sys => match between(machine) {
            Some(assumed) => format!("{assumed}, and {BETWEEN}"),
            None => BETWEEN.to_owned(),
        },
    };
    Some(info(&format!("GPU {}", gpu.name), "estimated rate", format!("{value}; {NO_BOUND}")))
}

/// Returns what NCCL assumes for the link between the processors of this machine.
fn between(machine: &Machine) -> Option<String> {
    if machine.processor == "aarch64" {
        return Some(format!("NCCL assumes {ARM} GB/s between Arm processors"));
    }
    let text = machine.all_text(&["/proc/cpuinfo"]);
    let value = |name: &str| {
        let mut values =
            text.split('\n').filter_map(|line| line.split_once(':')).filter(|(key, _)| key.trim_end() == name);
        values.next().map(|(_, value)| value.trim())
    };
    match value("vendor_id")? {
        "AuthenticAMD" => Some(format!("NCCL assumes {AMD} GB/s between AMD processors")),
        "GenuineIntel" => {
            let model: u32 = value("model")?.parse().ok()?;
            let (_, name, rate) = INTEL.iter().find(|(least, ..)| model >= *least)?;
            Some(format!("NCCL assumes {rate} GB/s between Intel processors of this kind ({name})"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    #[test]
    fn a_processor_has_the_figure_of_nccl() {
        let made = Made::new();
        for (vendor, model, figure) in [
            ("GenuineIntel", 79, Some("6 GB/s")),
            ("GenuineIntel", 85, Some("10 GB/s")),
            ("GenuineIntel", 106, Some("10 GB/s")),
            ("GenuineIntel", 143, Some("22 GB/s")),
            ("GenuineIntel", 207, Some("40 GB/s")),
            ("AuthenticAMD", 1, Some("16 GB/s")),
            ("CentaurHauls", 1, None),
        ] {
            made.change([format!("/proc/cpuinfo = vendor_id\\t: {vendor}\\ncpu family\\t: 6\\nmodel\\t\\t: {model}")]);
            let found = between(&made.read());
            assert_eq!(found.is_some(), figure.is_some(), "{vendor} {model}");
            assert!(found.unwrap_or_default().contains(figure.unwrap_or_default()), "{vendor} {model}");
        }
    }
}
