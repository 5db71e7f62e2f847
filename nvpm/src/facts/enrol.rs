// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says how to make this machine trust a module that was built here.
use crate::facts::advice::Advice;
use crate::facts::expression::Expression;
use crate::facts::installer::{is_kmod, to_rebuild};
use crate::read::machine::{MODULE, Machine};
use crate::read::place::cloud;

static CERTIFICATE: Expression = Expression::new(r#"(?m)^\s*mok_certificate=["']?([^"'\n]*)"#);
/// The module, the callback module and the marker are three files, and each file needs its own signature.
const SIGN: &str = "{headers}Sign the modules with a key that this machine trusts: for file in \
                    {directory}/nv_peer_mem*.ko; do /lib/modules/{kernel}/build/scripts/sign-file sha256 KEY \
                    CERTIFICATE $file; done";
const GET_HEADERS: &str = "Install the kernel's headers, which have the program sign-file. ";
const NO_KEY: &str = "There is no key {key} yet. dkms makes it when it builds a module: {build_again}. Then: mokutil \
                      --import {key}, reboot and confirm.";
const OTHER_KEY: &str = "The key of this machine, {key}, is enrolled already, so {module} was not signed with it \
                         (modinfo -F signer {module}). Build it again: {build_again}";
const KEY_WAITS: &str = "The key {key} waits to be confirmed: reboot, and choose Enroll MOK when the machine starts.";
const ENROL: &str = "Enrol the key that modules are signed with here, reboot and confirm: mokutil --import {key}";
const NO_CONSOLE: &str = "On {cloud} no console may show the question of MokManager. Then turn Secure Boot off in the \
                          settings of the virtual machine, or boot an image whose firmware database has the key, or \
                          use modules that the provider has signed. Where there is a console: ";

/// Returns how to make this machine trust a module that was built here. If the firmware has the key of dkms already,
/// the module was signed with another key, and the advice is different.
pub fn to_enrol(advice: &Advice) -> String {
    let text = advice.filled(at_console(advice));
    if cloud(advice.machine).is_empty() { text } else { advice.filled(NO_CONSOLE) + &text }
}

fn at_console(advice: &Advice) -> &'static str {
    let machine = advice.machine;
    if advice.module == MODULE && is_kmod(advice) {
        return SIGN;
    }
    if !machine.exists(&key(machine)) {
        return NO_KEY;
    }
    if is_enrolled(machine) {
        return OTHER_KEY;
    }
    if known_key(machine).contains("enrollment request") { KEY_WAITS } else { ENROL }
}

/// Returns how to get the program that signs modules, if it is not here.
pub fn headers(machine: &Machine) -> &'static str {
    let program = format!("/lib/modules/{}/build/scripts/sign-file", machine.kernel);
    if machine.exists(&program) { "" } else { GET_HEADERS }
}

/// Returns whether the firmware or the kernel has the key of this machine.
pub fn is_enrolled(machine: &Machine) -> bool {
    let known = known_key(machine);
    known.contains("already enrolled") || known.contains("built-in trusted keyring")
}

fn known_key(machine: &Machine) -> String {
    machine.run(&["mokutil", "--test-key", &key(machine)]).1
}

/// Returns the file of the key with which dkms signs modules on this machine. If no key is configured, dkms uses its
/// own key. On Ubuntu it uses the key of the machine's owner.
pub fn key(machine: &Machine) -> String {
    let files = machine.glob(&["/etc/dkms/framework.conf.d/*.conf"]);
    let mut names = vec!["/etc/dkms/framework.conf"];
    names.extend(files.iter().map(String::as_str));
    let framework = machine.all_text(&names);
    if let Some(file) = CERTIFICATE.every(&framework).last().filter(|file| !file.is_empty()) {
        return file.to_owned();
    }
    let system = machine.all_text(&["/etc/os-release"]);
    let mut kinds = system.split('\n').filter_map(|line| line.strip_prefix("ID="));
    let is_ubuntu = kinds.any(|kind| kind.strip_prefix(['"', '\'']).unwrap_or(kind).starts_with("ubuntu"));
    if is_ubuntu { "/var/lib/shim-signed/mok/MOK.der" } else { "/var/lib/dkms/mok.pub" }.to_owned()
}

/// Returns how to build and sign the module again.
pub fn build_again(advice: &Advice) -> String {
    match advice.module {
        MODULE => to_rebuild(advice),
        "nvidia" => "install the NVIDIA driver's package again".to_owned(),
        module => format!("install the package again that {module} is from"),
    }
}
