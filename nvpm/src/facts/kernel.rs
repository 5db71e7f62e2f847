// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether this kernel can have the module.
use std::io::Read;

use flate2::read::GzDecoder;

use crate::facts::expression::Expression;
use crate::facts::fact::{Facts, Verdict, bad, info};
use crate::facts::module::{installed_version, of_absence};
use crate::read::machine::{Machine, own_module};

static WANTED: Expression = Expression::new(r"(?m)^((?:# )?CONFIG_(?:MODULES|RUST|CFI|CFI_CLANG)[ =].*)");
const PACKED: &str = "/proc/config.gz";
const MODULES_OFF: &str = "turned off until the next boot (kernel.modules_disabled)";
const WHO_DISABLES: &str = "Reboot. grep -r modules_disabled /etc/sysctl.d finds who turns it off: load nv_peer_mem \
                            before that.";
const CHECKS_CALLS: &str = "not in this kernel (CONFIG_RUST), which checks indirect calls (CONFIG_CFI): the module \
                            cannot be built";
const OTHER_KERNEL: &str = "Boot a kernel with CONFIG_RUST=y or without CONFIG_CFI, or use programs with dma-buf, \
                            which need no module.";
const WITHOUT_CRATES: &str = "not in this kernel (CONFIG_RUST): the module is built without the kernel's crates";

/// Adds facts about a kernel that accepts no modules, or for which the module cannot be built. Adds nothing if the
/// module is loaded, or if this machine can do without the module.
pub fn facts(machine: &Machine, facts: &mut Facts) {
    if !own_module(machine).is_empty() || of_absence(machine).0 == Verdict::None {
        return;
    }
    if machine.text("/proc/sys/kernel/modules_disabled") == "1" {
        facts.add(bad("machine", "modules", MODULES_OFF).advised(WHO_DISABLES));
    }
    if !installed_version(machine).is_empty() {
        return;
    }
    let config = kernel_config(machine);
    if config.is_empty() {
        return;
    }
    let has = |setting: &str| config.contains(setting);
    if !has("CONFIG_MODULES=y") {
        let value = "this kernel takes none (CONFIG_MODULES)";
        facts.add(bad("machine", "modules", value).advised("Boot a kernel of a distribution."));
    } else if !has("CONFIG_RUST=y") {
        if has("CONFIG_CFI=y") || has("CONFIG_CFI_CLANG=y") {
            facts.add(bad("machine", "Rust", CHECKS_CALLS).advised(OTHER_KERNEL));
        } else {
            facts.add(info("machine", "Rust", WITHOUT_CRATES));
        }
    }
}

/// Returns the relevant lines of the running kernel's configuration.
fn kernel_config(machine: &Machine) -> String {
    let kernel = &machine.kernel;
    let files = [PACKED, &format!("/boot/config-{kernel}"), &format!("/lib/modules/{kernel}/config")];
    for file in files {
        let data = machine.read(file);
        let data = if file == PACKED { unpacked(&data) } else { data };
        if !data.is_empty() {
            let text = String::from_utf8_lossy(&data);
            return WANTED.every(&text).collect::<Vec<_>>().join("\n");
        }
    }
    String::new()
}

/// Returns the unpacked bytes of gzip data. No bytes for any other data.
fn unpacked(data: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    if GzDecoder::new(data).read_to_end(&mut found).is_ok() { found } else { Vec::new() }
}
