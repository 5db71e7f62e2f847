// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The keys with which this kernel checks the signatures of modules.
use std::rc::Rc;

use crate::read::machine::Machine;
use crate::text::pattern;

/// The fifth byte of this file is the value of the variable.
const VARIABLE: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// Returns the mode in brackets; an empty string without the file.
pub fn lockdown(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let text = machine.text("/sys/kernel/security/lockdown");
        let mode = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        mode.map_or(String::new(), |(mode, _)| mode.to_owned())
    }
    machine.once(compute)
}

/// Returns whether this kernel loads only signed modules.
pub fn demanded(machine: &Machine) -> bool {
    let is_enforced = machine.text("/sys/module/module/parameters/sig_enforce") == "Y";
    !matches!(lockdown(machine).as_str(), "" | "none") || is_enforced
}

/// Returns whether the firmware checks signatures, "on" or "off"; an empty string if that cannot be read.
pub fn secure_boot(machine: &Machine) -> &'static str {
    match machine.read(VARIABLE).get(4) {
        Some(0) => "off",
        Some(1) => "on",
        _ => "",
    }
}

/// Returns the names of the keys that the kernel trusts. A user other than root sees few of the keys.
pub fn trusted_names(machine: &Machine) -> Rc<Vec<String>> {
    fn compute(machine: &Machine) -> Vec<String> {
        let keys = machine.all_text(&["/proc/keys"]);
        let pattern = pattern(r"asymmetri\s+(.*?): [0-9a-f]*: X509");
        pattern.captures_iter(&keys).filter_map(|found| Some(found.get(1)?.as_str().to_owned())).collect()
    }
    machine.once(compute)
}

/// Returns whether the kernel has a key of this name; None if the keys cannot be read.
pub fn is_trusted(machine: &Machine, signer: &str) -> Option<bool> {
    let names = trusted_names(machine);
    (!names.is_empty()).then(|| names.iter().any(|name| name == signer))
}
