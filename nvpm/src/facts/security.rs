// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Secure Boot, the signatures that the kernel demands, and the signatures of our modules.
use crate::facts::advice::Advice;
use crate::facts::fact::{Fact, Facts, bad, good, info, unread};
use crate::facts::{enrol, installer};
use crate::read::keys;
use crate::read::machine::{CALLBACK, MODULE, Machine, modinfo};
use crate::read::place::container;

const SECTION: &str = "security";
const HIDDEN: &str = "unknown: containers hide /sys/firmware; ask on the node";
const UNKNOWN: &str = "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    facts.add(info(SECTION, "Secure Boot", secure_boot(machine)));
    let lockdown = keys::lockdown(machine);
    if !lockdown.is_empty() {
        facts.add(info(SECTION, "lockdown", lockdown));
    }
    let is_demanded = keys::demanded(machine);
    facts.add(info(SECTION, "signature required", if is_demanded { "yes" } else { "no" }));
    // Both modules need a signature, because neither is loaded without the other.
    facts.add(signed(machine, "module signed by", MODULE));
    facts.add(signed(machine, "callback module signed by", CALLBACK));
}

fn secure_boot(machine: &Machine) -> &'static str {
    if !machine.exists("/sys/firmware/efi") {
        return if container(machine).is_empty() { "no: not started by UEFI" } else { HIDDEN };
    }
    let found = keys::secure_boot(machine);
    if found.is_empty() { UNKNOWN } else { found }
}

/// Returns who has signed an installed module. Nobody if the signer is an empty text.
fn signer(machine: &Machine, module: &str) -> Option<String> {
    let fields = modinfo(machine, module);
    (!fields.is_empty()).then(|| fields.get("signer").cloned().unwrap_or_default())
}

/// Judges the signature of a module. A signature names a key, but the kernel need not trust this key.
fn signed(machine: &Machine, name: &str, module: &str) -> Option<Fact> {
    let signer = signer(machine, module)?;
    if signer.is_empty() {
        if !keys::demanded(machine) {
            return Some(info(SECTION, name, "nobody; this kernel does not require it"));
        }
        let value = format!("nobody: this kernel does not load it{}", because(machine));
        return Some(bad(SECTION, name, value).advised(to_sign(&Advice::new(machine))));
    }
    let trusted = keys::is_trusted(machine, &signer);
    if machine.loaded(module) || !keys::demanded(machine) || trusted == Some(true) {
        return Some(good(SECTION, name, signer));
    }
    if trusted.is_none() && enrol::is_enrolled(machine) {
        // Only root can read which keys the kernel trusts, and the firmware has the usual key.
        return Some(unread(SECTION, name, "the keys that this kernel trusts"));
    }
    let advice = enrol::to_enrol(&Advice::new(machine));
    let (why, because) = match trusted {
        None => (": nothing shows whether this kernel trusts that key", because(machine)),
        Some(_) => (", a key that this kernel does not trust", because(machine)),
    };
    Some(bad(SECTION, name, format!("{signer}{why}{because}")).advised(advice))
}

/// Returns the reason if the kernel refuses this module because of the module's signature.
pub fn refused(machine: &Machine, module: &str) -> Option<String> {
    let signer = signer(machine, module)?;
    if machine.loaded(module) || !keys::demanded(machine) {
        return None;
    }
    if signer.is_empty() {
        return Some(format!("{module} is not signed, and this kernel loads only signed modules"));
    }
    let known = match keys::is_trusted(machine, &signer) {
        Some(false) => "does not trust",
        None if signer.contains("DKMS") => "may not trust",
        _ => return None,
    };
    Some(format!("{module} is signed by {signer}, a key that this kernel {known}"))
}

pub fn because(machine: &Machine) -> &'static str {
    if keys::secure_boot(machine) == "on" { " (Secure Boot is on)" } else { "" }
}

fn to_sign(advice: &Advice) -> String {
    let todo = enrol::to_enrol(advice);
    if todo.contains("dkms build") || todo.contains("sign-file") {
        return todo;
    }
    format!("{todo}; then build it again, and dkms signs it: {}", installer::to_rebuild(advice))
}
