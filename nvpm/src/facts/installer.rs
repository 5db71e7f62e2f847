// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Commands that build the module, by its installer: a package for one kernel, make, or dkms.
use crate::facts::advice::{Advice, parent};
use crate::facts::pod;
use crate::read::machine::{MODULE, Machine, modinfo};
use crate::read::place::{container, image_based};

const SOURCE: &str = "dkms install --force nvidia-peer-memory/{source} -k {kernel}";
const PACKAGE: &str = "rpmbuild --rebuild --define 'kernel_version {kernel}' nvidia_peer_memory-*.src.rpm, then rpm \
                       -U --replacepkgs the kmod package that it wrote";
const MAKE: &str = "make && make install, in the module's source";
const NOWHERE: &str = "install nv_peer_mem, whose source is not here: docs/installing.md";
const DKMS: &str = "dkms build --force nvidia-peer-memory/{version} && dkms install --force \
                    nvidia-peer-memory/{version}";
const DKMS_FORCED: &str = "dkms build --force nvidia-peer-memory/VERSION && dkms install --force \
                           nvidia-peer-memory/VERSION, with the VERSION that dkms status names";
const CUT: &str = "Its file is there, {cut_file}, and cannot be read: a full disk may have cut it short. Make room \
                   (df /var /lib), then build it again: {build}";
const ON_THE_NODE: &str = "Modules belong to the node, not to this container. Run nvpm on the node: it says which \
                           module the node has. The GPU Operator loads nvidia-peermem with driver.rdma.enabled=true.";
const IN_IMAGE: &str = "{image} is one image, so modules are built into the image: add the package to a layered image \
                        or build, and boot that (docs/kubernetes.md).";

const INSTALLED: &[&str] = &["updates/dkms", "updates", "extra"];

enum Installer {
    /// A package for one kernel.
    Kmod,
    Make,
    Dkms,
    /// dkms counts the module as installed, and a full disk has cut its file short, so dkms must be forced to build the
    /// module again.
    CutDkms,
    /// The source of the package is here, and dkms has not taken it over.
    Source,
    /// Nothing of the module, or of its package, is here.
    Nobody,
}

/// Returns the command that builds the module again.
pub fn to_rebuild(advice: &Advice) -> String {
    filled(advice, |by| match by {
        Installer::Kmod => PACKAGE,
        Installer::Make => MAKE,
        Installer::Dkms => DKMS,
        Installer::CutDkms => DKMS_FORCED,
        Installer::Source => SOURCE,
        Installer::Nobody => NOWHERE,
    })
}

/// Returns the command that builds the module for a running kernel that has no module.
pub fn to_build(advice: &Advice) -> String {
    filled(advice, |by| match by {
        Installer::Kmod => PACKAGE,
        Installer::Make => MAKE,
        Installer::Dkms => "dkms autoinstall -k {kernel}",
        Installer::CutDkms => DKMS_FORCED,
        Installer::Source => SOURCE,
        Installer::Nobody => NOWHERE,
    })
}

/// Returns the same command, and why the module is missing.
pub fn to_install(advice: &Advice) -> String {
    filled(advice, |by| match by {
        Installer::Kmod => "The kmod package is for another kernel. Build one for this: {build}",
        Installer::Make | Installer::Source => "Build it: {build}",
        Installer::Dkms => "Build it: {build}; if that skips the kernel, it says why.",
        Installer::CutDkms => CUT,
        Installer::Nobody => {
            "Install nv_peer_mem: docs/installing.md; or NVIDIA's driver again, with its nvidia_peermem."
        }
    })
}

/// Returns a command, unless the module is built elsewhere.
fn filled(advice: &Advice, template: fn(Installer) -> &'static str) -> String {
    if let Some(text) = pod::to_build(advice.machine) {
        return text.to_owned();
    }
    if !image_based(advice.machine).is_empty() {
        return advice.filled(IN_IMAGE);
    }
    if !container(advice.machine).is_empty() {
        return ON_THE_NODE.to_owned();
    }
    advice.filled(template(installer(advice)))
}

fn installer(advice: &Advice) -> Installer {
    let (machine, file) = (advice.machine, advice.installed("filename"));
    if machine.exists("/var/lib/dkms/nvidia-peer-memory") {
        return if file_of_no_module(machine).is_some() { Installer::CutDkms } else { Installer::Dkms };
    }
    if file.contains("/nvidia_peer_memory/") || rpm_has_kmod(machine) {
        return Installer::Kmod;
    }
    if file.contains("/extra/") {
        return Installer::Make;
    }
    if source(machine).is_some() { Installer::Source } else { Installer::Nobody }
}

/// Asks rpm whether a package for one kernel is installed. A rpm without a database, as on Debian, would make one, so
/// it is not asked.
fn rpm_has_kmod(machine: &Machine) -> bool {
    !machine.glob(&["/var/lib/rpm/*", "/usr/lib/sysimage/rpm/*"]).is_empty()
        && machine.run(&["rpm", "-q", "--whatprovides", "nvidia_peer_memory-kmod"]).0
}

/// Returns whether a package for one kernel has installed the module.
pub fn is_kmod(advice: &Advice) -> bool {
    matches!(installer(advice), Installer::Kmod)
}

/// Returns the version of the package's source below /usr/src, which is there before dkms has taken it over.
pub fn source(machine: &Machine) -> Option<String> {
    let found = machine.glob(&["/usr/src/nvidia-peer-memory-*/dkms.conf"]);
    Some(parent(found.last()?).rsplit('-').next().unwrap_or_default().to_owned())
}

/// Returns the module's file for this kernel, if modinfo cannot read that file.
pub fn file_of_no_module(machine: &Machine) -> Option<String> {
    if !modinfo(machine, MODULE).is_empty() {
        return None;
    }
    let files: Vec<String> =
        INSTALLED.iter().map(|place| format!("/lib/modules/{}/{place}/nv_peer_mem.ko*", machine.kernel)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    machine.glob(&files).into_iter().next()
}
