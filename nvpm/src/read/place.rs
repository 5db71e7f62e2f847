// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The place of this system: a physical machine, a virtual machine, or a container or a chroot, whose kernel belongs to
//! another system.
use std::rc::Rc;

use crate::read::machine::Machine;

/// In all kernels, the process namespace of the machine's first process has this number.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const CAP_SYS_MODULE: u64 = 1 << 16;
/// The root directory of the GPU Operator's driver container.
pub const DRIVER_CONTAINER: &str = "/run/nvidia/driver";
/// The directory in which the Network Operator's container shows the files of its OFED.
pub const OFED_CONTAINER: &str = "/run/mellanox/drivers";
const HYPERVISORS: [&str; 6] = ["KVM", "Virtual Machine", "VMware", "VirtualBox", "QEMU", "Compute Engine"];
const PRODUCT: &str = "/sys/class/dmi/id/product_name";

/// Returns the kind of the container in which nvpm runs, according to files of container engines. Returns an empty
/// string outside of containers.
pub fn container(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        if machine.readable("/run/systemd/container") {
            return machine.text("/run/systemd/container");
        }
        // Apptainer leaves the processes in the namespace of the node.
        for (file, kind) in
            [("/run/.containerenv", "podman"), ("/.dockerenv", "docker"), ("/.singularity.d", "apptainer")]
        {
            if machine.exists(file) {
                return kind.to_owned();
            }
        }
        match machine.link("/proc/self/ns/pid").as_str() {
            "" | FIRST_NAMESPACE => String::new(),
            _ => "processes of its own".to_owned(),
        }
    }
    machine.once(compute)
}

/// Returns whether processes have the numbers that the machine's first process sees. A pod can have these numbers, too
/// (hostPID).
pub fn has_numbers_of_node(machine: &Machine) -> bool {
    ["", FIRST_NAMESPACE].contains(&machine.link("/proc/self/ns/pid").as_str())
}

/// Returns whether NVIDIA's driver is in the GPU Operator's container. The host then has no driver of its own. The
/// directory usr must not be empty, because the toolkit makes the container's directory even without a driver.
pub fn driver_in_container(machine: &Machine) -> bool {
    fn compute(machine: &Machine) -> bool {
        !machine.glob(&[&format!("{DRIVER_CONTAINER}/usr/*")]).is_empty()
    }
    *machine.once(compute)
}

/// Returns whether OFED is in the Network Operator's container. The container removes its mark when it stops, but its
/// directory stays, and OFED stays loaded.
pub fn ofed_in_container(machine: &Machine) -> bool {
    fn compute(machine: &Machine) -> bool {
        let files = [format!("{OFED_CONTAINER}/usr/*"), format!("{OFED_CONTAINER}/.driver-ready")];
        !machine.glob(&files.each_ref().map(String::as_str)).is_empty()
    }
    *machine.once(compute)
}

/// Returns whether this is a pod that loads modules for the node. Only such a pod sees the directories of the
/// operators' containers, and such a pod has no GPU of its own.
pub fn loads_modules(machine: &Machine) -> bool {
    !container(machine).is_empty() && (driver_in_container(machine) || ofed_in_container(machine))
}

/// Systems whose files come as one image. If a module is built on a node with such a system, the next image does not
/// have it. Most of these systems have neither packages nor headers.
const IMAGES: [(&str, &str); 6] = [
    ("flatcar", "Flatcar"),
    ("cos", "Container-Optimized OS"),
    ("talos", "Talos"),
    ("bottlerocket", "Bottlerocket"),
    ("sl-micro", "SUSE Linux Micro"),
    ("sle-micro", "SUSE Linux Enterprise Micro"),
];

/// Names that the firmware gives a virtual machine in a cloud, and the cloud.
const CLOUDS: [(&str, &str); 6] = [
    ("7783-7084-3265-9085-8269-3286-77", "Azure"),
    ("Google Compute Engine", "Google Cloud"),
    ("Amazon EC2", "Amazon EC2"),
    ("Alibaba Cloud", "Alibaba Cloud"),
    ("OracleCloud", "Oracle Cloud"),
    ("OpenStack", "OpenStack"),
];

const CONFIDENTIAL: [(&str, [&str; 2]); 2] = [
    ("TDX", ["/dev/tdx_guest", "/sys/devices/virtual/misc/tdx_guest"]),
    ("SEV-SNP", ["/dev/sev-guest", "/sys/devices/virtual/misc/sev-guest"]),
];

/// Returns the value of a variable of /etc/os-release that one of its lines sets.
fn of_system(text: &str, name: &str, is_part: impl Fn(char) -> bool) -> Option<String> {
    let line = text.split('\n').find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    let line = line.strip_prefix(['"', '\'']).unwrap_or(line);
    let value: String = line.chars().take_while(|letter| is_part(*letter)).collect();
    Some(value).filter(|value| !value.is_empty())
}

/// Returns the name of a system that is one image; an empty string for any other system.
pub fn image_based(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let system = machine.all_text(&["/etc/os-release"]);
        if machine.exists("/run/ostree-booted") {
            let name = of_system(&system, "PRETTY_NAME", |letter| !matches!(letter, '"' | '\''));
            return name.unwrap_or_else(|| "a system of OSTree".to_owned());
        }
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        let kind = of_system(&system, "ID", is_part).unwrap_or_default();
        IMAGES.iter().find(|(id, _)| *id == kind).map_or(String::new(), |(_, name)| (*name).to_owned())
    }
    machine.once(compute)
}

/// Returns the cloud in which this virtual machine runs, according to names in the firmware.
pub fn cloud(machine: &Machine) -> &'static str {
    fn compute(machine: &Machine) -> &'static str {
        let names = ["product_name", "sys_vendor", "bios_vendor", "chassis_asset_tag"];
        let texts = names.map(|name| machine.text(&format!("/sys/class/dmi/id/{name}"))).join(" ");
        CLOUDS.iter().find(|(word, _)| texts.contains(word)).map_or("", |(_, cloud)| *cloud)
    }
    *machine.once(compute)
}

/// Returns whether an instance type of EC2 has GPUs and gives no other device access to their memory. The sources are
/// aws/aws-ofi-nccl#547 ("the P-series starting with p4d") and AWS's announcement of G7e, which gives this access. An
/// instance type that is not listed counts as a type that gives this access.
fn is_without_gpudirect(kind: &str) -> bool {
    let Some((family, _)) = kind.split_once('.') else { return false };
    let is_word = family.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    is_word && matches!(family.as_bytes(), [b'p', b'2' | b'3', ..] | [b'g', b'2'..=b'6', ..] | [b'g', b'r', b'6', ..])
}

/// Returns why no RDMA device reaches GPU memory on this instance type of EC2; an empty string for any other machine.
pub fn without_gpudirect(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let kind = machine.text(PRODUCT);
        if cloud(machine) == "Amazon EC2" && is_without_gpudirect(&kind) {
            return format!("the instance type {kind} of EC2 has no GPUDirect RDMA");
        }
        String::new()
    }
    machine.once(compute)
}

/// Returns the kind of a confidential virtual machine; an empty string for any other machine.
pub fn confidential(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let kind = CONFIDENTIAL.iter().find(|(_, files)| files.iter().any(|file| machine.exists(file)));
        kind.map_or(String::new(), |(kind, _)| format!("a confidential virtual machine ({kind})"))
    }
    machine.once(compute)
}

/// Returns the kind of this machine if it is a container or a virtual machine; otherwise an empty string. The files of
/// such a machine do not show the real connections of devices.
pub fn virtual_kind(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        match container(machine).as_str() {
            "" => guest_kind(machine).to_string(),
            kind => format!("a container ({kind})"),
        }
    }
    machine.once(compute)
}

/// Returns the kind of the virtual machine that has this kernel; an empty string for a physical machine. The bridges of
/// a virtual machine are made of software.
pub fn guest_kind(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        // Some processors have no flag for virtual machines, so the firmware's name of the hypervisor counts, too.
        let processors = machine.all_text(&["/proc/cpuinfo"]);
        let is_flagged = processors.split('\n').any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
        let product = machine.text(PRODUCT);
        if is_flagged || HYPERVISORS.iter().any(|name| product.contains(name)) {
            let vendor = machine.text("/sys/class/dmi/id/sys_vendor");
            let vendor = if vendor.is_empty() { vendor } else { format!(" ({vendor})") };
            return format!("a virtual machine{vendor}");
        }
        // arm64 has no flag for virtual machines. The names of whole machines in EC2 end in "metal".
        if machine.processor == "aarch64" && !cloud(machine).is_empty() && !product.contains("metal") {
            return format!("a virtual machine ({})", cloud(machine));
        }
        String::new()
    }
    machine.once(compute)
}

/// Returns whether the kernel belongs to another system. That system then decides which modules are loaded.
pub fn kernel_of_another(machine: &Machine) -> bool {
    // The place of this process counts, also where the files are those of another machine.
    let own = Machine::new("");
    // Without /proc, an image is being built.
    let init = own.identity("/proc/1/root/.");
    let is_chroot = init.is_none() || init != own.identity("/");
    if is_chroot || !container(machine).is_empty() {
        return true;
    }
    let status = own.all_text(&["/proc/self/status"]);
    let mask = status.split('\n').find_map(|line| line.strip_prefix("CapEff:\t"));
    let capabilities = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
    capabilities & CAP_SYS_MODULE == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_types_without_gpudirect_are_known() {
        for (kind, is) in [
            ("p3dn.24xlarge", true),
            ("p4d.24xlarge", false),
            ("g5.xlarge", true),
            ("g6e.12xlarge", true),
            ("g7e.48xlarge", false),
            ("gr6.4xlarge", true),
            ("p3", false),
            ("xp3.large", false),
        ] {
            assert_eq!(is_without_gpudirect(kind), is, "{kind}");
        }
    }
}
