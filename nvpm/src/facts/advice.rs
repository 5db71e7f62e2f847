// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Gives the parts of advice that depend on this machine: how the module was installed, which key signs modules here,
//! and what is loaded. `nvpm advise` puts these parts into the advice for a module that cannot be loaded, and facts put
//! them into their own advice.
use crate::facts::core_advice::get_core;
use crate::facts::{enrol, installer, pod};
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::{CALLBACK, MODULE, Machine, SERVICE, modinfo, own_module};
use crate::read::place::{cloud, image_based};

pub const INSTALL_DRIVER: &str = "Install NVIDIA's kernel modules, the open or the proprietary ones \
                                  (nvidia-open-kernel-dkms or nvidia-kernel-dkms on Debian), and reboot.";
pub const UNLOAD_PEERMEM: &str = "modprobe -r nvidia_peermem && echo 'blacklist nvidia_peermem' \
                                  >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf";

const RELOAD: &str = "modprobe -r nv_peer_mem && modprobe nv_peer_mem";
const UNLINK: &str = "{filename} is weak-modules' link to the module of another kernel: rm {filename} && depmod. ";
const CHECKS_LOCKS: &str = "This kernel is built to check its locks, with functions for GPL modules only, which a \
                            module beside the proprietary NVIDIA driver must not use. Boot another kernel, or install \
                            the open driver.";
const KERNEL_CRATES: &str = "nv_peer_mem was built with the kernel's own Rust crates, which are for GPL modules only; \
                             now the NVIDIA driver is the proprietary one. Build it again, and it does without them: \
                             {rebuild}";
const OTHER_CALLBACK: &str = "The module nv_peer_mem_callback stays loaded until the next boot, and this version of \
                              nv_peer_mem needs another one: reboot. Until then only the version of nv_peer_mem that \
                              was loaded before can be loaded.";
const NO_CALLBACK: &str = "The module nv_peer_mem_callback, which nv_peer_mem needs, was not loaded with it: run \
                           depmod, then try again. If there is no such module (modinfo nv_peer_mem_callback), build \
                           both again: {rebuild}";
const NO_DRIVER: &str = "The NVIDIA driver is not loaded: modprobe nvidia, and see the kernel's log. ";
const OTHER_DRIVER: &str = "The NVIDIA driver that is loaded does not have this function. Load the one that is \
                            installed (reboot), then build the module for it: {rebuild}";
const WITHOUT_CORE: &str = "nvidia_peermem answers so if the RDMA core has no peer memory, or had none when NVIDIA's \
                            driver was built. {get_core} Then install NVIDIA's driver again.";
const EMPTY_PEERMEM: &str = "nvidia_peermem was built without an RDMA core that has peer memory, so it is empty: \
                             install NVIDIA's driver again now that OFED is there, or use nv_peer_mem.";
const SERVED_ALREADY: &str = "nv_peer_mem is loaded and serves the same memory: only one module can. For programs \
                              that look for the name nvidia_peermem: MARKER=yes in /etc/infiniband/nv_peer_mem.conf.";
const MODULES_OFF: &str = "This kernel loads no more modules until it is booted again: something has set \
                           kernel.modules_disabled (grep -r modules_disabled /etc/sysctl.conf /etc/sysctl.d). Load \
                           nv_peer_mem before that.";
const LOCKED_DOWN: &str = "The kernel is locked down and takes signed modules only. ";
const NO_RIGHT: &str = "The kernel does not let this shell load modules: in a container, do it on the host.";

/// Advice about a module.
pub struct Advice<'a> {
    pub machine: &'a Machine,
    pub module: &'a str,
    /// The text that modprobe and the kernel have printed about the module.
    pub text: &'a str,
}

impl<'a> Advice<'a> {
    pub fn new(machine: &'a Machine) -> Self {
        Self::about(machine, MODULE)
    }

    pub fn about(machine: &'a Machine, module: &'a str) -> Self {
        Self { machine, module, text: "" }
    }

    /// Replaces each {NAME} of a template by its text. Only texts that the template has are computed.
    pub fn filled(&self, template: &str) -> String {
        let mut found = String::new();
        let mut rest = template;
        while let Some((before, name, behind)) = next_name(rest) {
            found.push_str(before);
            found.push_str(&self.word(name).unwrap_or_else(|| format!("{{{name}}}")));
            rest = behind;
        }
        found + rest
    }

    /// Returns the text that replaces {NAME} in a template.
    pub fn word(&self, name: &str) -> Option<String> {
        Some(match name {
            "rebuild" => installer::to_rebuild(self),
            "build" => installer::to_build(self),
            "install" => installer::to_install(self),
            "module" => self.module.to_owned(),
            "kernel" => self.machine.kernel.clone(),
            // dkms knows the version without the commit and the checksum of the sources.
            "version" => self.installed("version").split('+').next().unwrap_or_default().to_owned(),
            "filename" => self.installed("filename"),
            "directory" => parent(&self.installed("filename")).to_owned(),
            "cut_file" => installer::file_of_no_module(self.machine).unwrap_or_default(),
            "source" => installer::source(self.machine).unwrap_or_default(),
            "restart_service" => service(self.machine, "restart"),
            "key" => enrol::key(self.machine),
            "headers" => enrol::headers(self.machine).to_owned(),
            "to_unlink" => self.to_unlink(),
            "get_core" => get_core(self.machine),
            "image" => image_based(self.machine).to_string(),
            "cloud" => cloud(self.machine).to_owned(),
            "to_enrol" => enrol::to_enrol(self),
            "build_again" => enrol::build_again(self),
            "without_gpl" => self.without_gpl(),
            "forbidden" => self.forbidden(),
            "callback_lacks" => self.callback_lacks(),
            "driver_lacks" => self.driver_lacks(),
            "empty_peermem" => self.empty_peermem(),
            "unload_peermem" => self.unload_peermem(),
            "not_permitted" => self.not_permitted(),
            _ => return None,
        })
    }

    /// Returns a field of the installed module.
    pub fn installed(&self, field: &str) -> String {
        modinfo(self.machine, MODULE).get(field).cloned().unwrap_or_default()
    }

    /// Returns how to remove the link to the module, if RHEL's weak-modules has made this link. weak-modules links to
    /// modules of other kernels without comparing the symbols of OFED and of the driver, so the linked module may not
    /// fit.
    fn to_unlink(&self) -> String {
        if self.installed("filename").contains("/weak-updates/") { self.filled(UNLINK) } else { String::new() }
    }

    fn without_gpl(&self) -> String {
        if self.installed("rust") == "prebuilt" { CHECKS_LOCKS.to_owned() } else { self.filled(KERNEL_CRATES) }
    }

    fn forbidden(&self) -> String {
        let name = named(self.text).unwrap_or(self.module);
        let line = forbidding_line(self.machine, name).unwrap_or_default();
        format!("A line in /etc/modprobe.d forbids {name}: remove it. {line}")
    }

    /// Returns advice if `nv_peer_mem` lacks symbols of the callback module. modprobe loads both modules unless its
    /// list of modules is old. So if the callback module is loaded, it is of another version.
    fn callback_lacks(&self) -> String {
        if self.machine.loaded(CALLBACK) { OTHER_CALLBACK.to_owned() } else { self.filled(NO_CALLBACK) }
    }

    fn driver_lacks(&self) -> String {
        if self.machine.loaded("nvidia") {
            return self.filled(OTHER_DRIVER);
        }
        format!("{NO_DRIVER}{}", forbidding_line(self.machine, "nvidia").unwrap_or_default())
    }

    /// Returns why `nvidia_peermem` answers EINVAL, although no parameter is wrong.
    fn empty_peermem(&self) -> String {
        if peer_memory_in(self.machine).is_empty() {
            return self.filled(WITHOUT_CORE);
        }
        if own_module(self.machine).is_empty() { EMPTY_PEERMEM } else { SERVED_ALREADY }.to_owned()
    }

    /// Returns what to do about `nvidia_peermem`, which serves already. The module of this name may be `nv_peer_mem`
    /// itself.
    fn unload_peermem(&self) -> String {
        if pod::has_its_name(self.machine) {
            return pod::SERVES.to_owned();
        }
        if own_module(self.machine).is_empty() {
            return format!("Unload it: {UNLOAD_PEERMEM}");
        }
        SERVED_ALREADY.to_owned()
    }

    /// Returns the reason for which root cannot load any module.
    fn not_permitted(&self) -> String {
        if self.machine.text("/proc/sys/kernel/modules_disabled") == "1" {
            return MODULES_OFF.to_owned();
        }
        let lockdown = self.machine.text("/sys/kernel/security/lockdown");
        if ["[integrity]", "[confidentiality]"].iter().any(|kind| lockdown.contains(kind)) {
            return format!("{LOCKED_DOWN}{}", enrol::to_enrol(self));
        }
        NO_RIGHT.to_owned()
    }
}

/// Returns the text before the next {NAME}, the name, and the text behind it.
fn next_name(template: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = template.split_once('{')?;
    let (name, behind) = rest.split_once('}')?;
    Some((before, name, behind))
}

/// Returns the module that modprobe names.
fn named(text: &str) -> Option<&str> {
    let is_other = |letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '-');
    let names = text.split("for module ").skip(1).map(|rest| rest.split(is_other).next().unwrap_or_default());
    names.into_iter().find(|name| !name.is_empty())
}

/// Returns the file and the line of modprobe's configuration that forbid a module. Such a line makes modprobe run a
/// program that does nothing in place of loading the module.
pub fn forbidding_line(machine: &Machine, module: &str) -> Option<String> {
    // modprobe takes dashes and underscores for the same.
    let is_same = |(one, wanted): (u8, u8)| one == wanted || (one == b'-' && wanted == b'_');
    let is_named = |word: &str| word.len() == module.len() && word.bytes().zip(module.bytes()).all(is_same);
    let forbids = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some("install")
            && words.next().is_some_and(is_named)
            && words.any(|word| word.contains("false") || word.contains("true"))
    };
    let directories = ["/etc", "/run", "/usr/lib", "/lib"].map(|place| format!("{place}/modprobe.d/*.conf"));
    for file in machine.glob(&directories.each_ref().map(String::as_str)) {
        if let Some(line) = machine.lines(&file).iter().find(|line| forbids(line)) {
            return Some(format!("{file}:{line}"));
        }
    }
    None
}

/// Returns the command that starts or restarts the service, or how to do the same with a pod. A module that `make
/// install` has installed has no service.
pub fn service(machine: &Machine, action: &str) -> String {
    if pod::keeps_module(machine) {
        return pod::RESTART.to_owned();
    }
    if machine.exists(SERVICE) {
        return format!("{SERVICE} {action}");
    }
    let is_loaded = action == "restart" && machine.loaded(MODULE);
    if is_loaded { RELOAD } else { "modprobe nv_peer_mem" }.to_owned()
}

/// Returns the directory of a file.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map(|(directory, _)| directory).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::Regex;

    use super::*;
    use crate::explain::table::{CAUSES, MESSAGES};
    use crate::made::Made;

    /// Returns the sources of the facts.
    fn sources() -> String {
        let files = glob::glob(concat!(env!("CARGO_MANIFEST_DIR"), "/src/facts/*.rs")).unwrap().map(Result::unwrap);
        files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
    }

    /// Returns the names in braces in the templates of the facts, and in the advice of `nvpm explain` for this machine.
    fn names() -> BTreeSet<String> {
        let sources = sources();
        let constants = Regex::new(r#"(?m)^(?:pub )?const \w+: &str =\s+"((?:[^"\\]|\\(?s:.))*)";"#).unwrap();
        let constants: Vec<&str> =
            constants.captures_iter(&sources).map(|found| found.get(1).unwrap().as_str()).collect();
        let cases = MESSAGES.iter().flat_map(|message| message.cases).map(|case| case.here);
        let here: Vec<&str> =
            CAUSES.iter().map(|cause| cause.here).chain(cases).filter(|text| !text.is_empty()).collect();
        assert!(constants.len() > 40 && here.len() > 10, "{} constants, {} texts", constants.len(), here.len());
        let name = Regex::new(r#"\{([^{}\s"]*)\}"#).unwrap();
        let texts = constants.into_iter().chain(here);
        texts.flat_map(|text| name.captures_iter(text)).map(|found| found[1].to_owned()).collect()
    }

    #[test]
    fn each_name_of_a_template_has_a_value_and_each_value_is_used() {
        let (made, names) = (Made::new(), names());
        let machine = made.read();
        for name in &names {
            assert!(Advice::new(&machine).word(name).is_some(), "{{{name}}} has no value");
        }
        let source = include_str!("advice.rs");
        let (_, word) = source.split_once("pub fn word(").unwrap();
        let (word, _) = word.split_once("_ => return None").unwrap();
        let known = Regex::new(r#"(?m)^ +"(\w+)" =>"#).unwrap();
        let known: BTreeSet<String> = known.captures_iter(word).map(|found| found[1].to_owned()).collect();
        assert_eq!(names, known);
    }
}
