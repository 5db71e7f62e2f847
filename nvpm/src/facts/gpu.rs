// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Facts about a GPU: driver, product and memory.
use crate::facts::devices::numa_node;
use crate::facts::driver::{Flavour, flavour};
use crate::facts::fact::{Fact, Facts, bad, good, info, warn};
use crate::facts::never::never;
use crate::read::machine::Machine;
use crate::read::pci::Gpu;
use crate::read::products::{BLACKWELL, TURING};
use crate::read::ways;

const VGA: &str = "0x0300";
/// The size in MiB of a BAR1 that is not resizable on GPUs of any kind.
const SMALL_BAR1: u64 = 256;

const OLD_DRIVER: &str = "Install the proprietary kernel modules, of version 580 or older: later ones do not know this \
                          GPU.";
const OPEN_DRIVER: &str = "Install NVIDIA's open kernel modules.";
const FELL_OFF: &str = "dmesg | grep -E 'Xid.* 79|fallen off the bus' shows since when. Drain the node and reboot it; if \
                        the GPU gets lost again, have power, heat and the slot looked at.";
const SCREEN: &str = "Only to use this GPU too: ";
const LOAD_DRIVER: &str = "modprobe nvidia; if it does not take the GPU, the kernel's log says why.";

const PERSISTENT_AGAIN: &str = "Load the module with persistent_api_support=1, its default: grep -r \
                                persistent_api_support /etc/modprobe.d finds who changed it.";
const LARGE_BAR: &str = "Turn on above 4G decoding and resizable BAR in the firmware.";

pub fn facts(machine: &Machine, gpu: &Gpu, section: &str, facts: &mut Facts) {
    facts.add(driver(machine, gpu, section));
    let model = gpu.model(machine);
    if !model.is_empty() {
        facts.add(info(section, "model", model));
    }
    facts.add(product(machine, gpu, section));
    facts.add(numa_node(machine, section, &gpu.pci));
    if gpu.coherent {
        facts.add(coherent_memory(machine, section));
    } else {
        facts.add(bar1(machine, gpu, section));
    }
    let instances = gpu.instances(machine);
    if instances > 0 {
        facts.add(info(section, "MIG", format!("GPU instances: {instances}")));
    }
}

fn driver(machine: &Machine, gpu: &Gpu, section: &str) -> Fact {
    if gpu.silent(machine) {
        return bad(section, "driver", "this GPU does not answer on PCI").advised(FELL_OFF);
    }
    match gpu.driver.as_str() {
        "nvidia" => good(section, "driver", "nvidia"),
        "" => without_driver(machine, gpu, section),
        name if name.starts_with("vfio") => given_away(machine, gpu, section),
        _ => other_driver(machine, gpu, section),
    }
}

fn given_away(machine: &Machine, gpu: &Gpu, section: &str) -> Fact {
    let is_served = ways::given_away(machine) || !ways::driven_gpus(machine).is_empty();
    let (driver, name) = (&gpu.driver, &gpu.name);
    let value = format!("{driver}: it is given to a virtual machine");
    let judge = if is_served { info } else { warn };
    judge(section, "driver", value).advised(format!(
        "nv_peer_mem belongs into that machine. To have the GPU here, take it from {driver} (driverctl unset-override \
         {name}, or vfio-pci.ids= on the kernel's command line) and reboot."
    ))
}

/// Judges a GPU with another vendor's driver. A GPU with a screen's connectors is often driven by nouveau on purpose.
/// Without nouveau, the screen would get dark.
fn other_driver(machine: &Machine, gpu: &Gpu, section: &str) -> Fact {
    let name = &gpu.driver;
    let value = format!("{name}: the NVIDIA driver does not have this GPU");
    let advice = format!(
        "echo 'blacklist {name}' >/etc/modprobe.d/nvidia-blacklist-{name}.conf, make the initramfs anew (update-initramfs \
         -u, or dracut -f), and reboot."
    );
    let has_screen = gpu.pci.text(machine, "class").starts_with(VGA);
    if has_screen && !ways::usable_gpus(machine).is_empty() {
        return info(section, "driver", value).advised(format!("{SCREEN}{advice}"));
    }
    bad(section, "driver", value).advised(advice)
}

fn without_driver(machine: &Machine, gpu: &Gpu, section: &str) -> Fact {
    let (value, advice) = match flavour(machine) {
        Some(Flavour::Open) if 0 < gpu.product && gpu.product < TURING => {
            ("none: Volta and older are not served by the open driver", OLD_DRIVER)
        }
        Some(Flavour::Proprietary) if gpu.product >= BLACKWELL => {
            ("none: Blackwell and newer are served by the open driver only", OPEN_DRIVER)
        }
        Some(Flavour::Proprietary) if gpu.coherent => {
            ("none: Grace Hopper is served by the open driver only", OPEN_DRIVER)
        }
        _ => ("none", LOAD_DRIVER),
    };
    bad(section, "driver", value).advised(advice)
}

/// Returns a fact about a GPU that takes no part in GPUDirect RDMA, or perhaps takes no part. This is no defect if
/// another GPU takes part, because many nodes have a GPU for a screen, or if no GPU ever can.
fn product(machine: &Machine, gpu: &Gpu, section: &str) -> Option<Fact> {
    let doubt = gpu.doubt(machine)?;
    if !gpu.excluded(machine) {
        let value = format!("may not take part: {}", doubt.why);
        return Some(info(section, "product", value).advised(doubt.advice));
    }
    let is_defect = ways::usable_gpus(machine).is_empty() && never(machine).is_none();
    let judge = if is_defect { bad } else { info };
    Some(judge(section, "product", format!("takes no part: {}", doubt.why)).advised(doubt.advice))
}

/// Judges a GPU whose memory is not in BAR1. Only the driver can map this memory, and the memory must then be pinned
/// persistently. With `persistent_api_support=0`, `nv_peer_mem` pins all memory revocably, so it cannot serve this GPU.
fn coherent_memory(machine: &Machine, section: &str) -> Fact {
    if ways::revokes(machine) {
        let value = "coherent: the driver maps it, and nothing that can be revoked (persistent_api_support=0)";
        return bad(section, "memory", value).advised(PERSISTENT_AGAIN);
    }
    good(section, "memory", "coherent: the driver maps it, behind NVLink-C2C")
}

/// Judges the size of BAR1. The largest possible BAR1 holds all memory of the GPU, so a smaller BAR1 limits how much
/// can be registered at once. No file has the size of the GPU's memory itself.
fn bar1(machine: &Machine, gpu: &Gpu, section: &str) -> Option<Fact> {
    let (size, largest) = (gpu.bar1(machine), gpu.largest_bar1(machine));
    if size == 0 {
        return None;
    }
    let now = mebibytes(size);
    Some(if largest > size {
        let value = format!("{now} of {} that it can have: no more can be registered at once", mebibytes(largest));
        warn(section, "BAR1", value).advised(LARGE_BAR)
    } else if largest > 0 || size > SMALL_BAR1 {
        good(section, "BAR1", now)
    } else {
        info(section, "BAR1", format!("{now}, not resizable here: no more can be registered at once"))
    })
}

/// Returns a number of MiB as text. A number of GiB has at most six digits.
fn mebibytes(number: u64) -> String {
    if number < 1024 {
        return format!("{number} MiB");
    }
    #[allow(clippy::cast_precision_loss)]
    let value = number as f64 / 1024.0;
    let digits = usize::try_from((number / 1024).ilog10()).unwrap_or_default();
    let text = format!("{value:.*}", 5_usize.saturating_sub(digits));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_six_digits() {
        for (number, text) in [
            (256, "256 MiB"),
            (1024, "1 GiB"),
            (1536, "1.5 GiB"),
            (131072, "128 GiB"),
            (1025, "1.00098 GiB"),
            (1_048_577, "1024 GiB"),
        ] {
            assert_eq!(mebibytes(number), text);
        }
    }
}
