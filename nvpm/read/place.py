# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The place of this system: a physical machine, a virtual machine, or a container or a chroot,
whose kernel belongs to another system."""

import os
import re

from .machine import Machine, once

# In all kernels, the process namespace of the machine's first process has this number.
FIRST_NAMESPACE = "pid:[4026531836]"
CAP_SYS_MODULE = 16
# The root directory of the GPU Operator's driver container.
DRIVER_CONTAINER = "/run/nvidia/driver"
# The directory in which the Network Operator's container shows the files of its OFED.
OFED_CONTAINER = "/run/mellanox/drivers"
HYPERVISORS = "KVM|Virtual Machine|VMware|VirtualBox|QEMU|Compute Engine"


@once
def container(machine: Machine) -> str:
    """Returns the kind of the container in which nvpm runs, according to files of container
    engines. Returns an empty string outside of containers."""
    if machine.readable("/run/systemd/container"):
        return machine.text("/run/systemd/container")
    if machine.exists("/run/.containerenv"):
        return "podman"
    if machine.exists("/.dockerenv"):
        return "docker"
    # Apptainer leaves the processes in the namespace of the node.
    if machine.exists("/.singularity.d"):
        return "apptainer"
    namespace = machine.link("/proc/self/ns/pid")
    return "" if namespace in ("", FIRST_NAMESPACE) else "processes of its own"


@once
def driver_in_container(machine: Machine) -> bool:
    """Returns whether NVIDIA's driver is in the GPU Operator's container. The host then has no
    driver of its own. The directory usr must not be empty, because the toolkit makes the
    container's directory even without a driver."""
    return bool(machine.glob(DRIVER_CONTAINER + "/usr/*"))


@once
def ofed_in_container(machine: Machine) -> bool:
    """Returns whether OFED is in the Network Operator's container. The container removes its mark
    when it stops, but its directory stays, and OFED stays loaded."""
    return bool(machine.glob(f"{OFED_CONTAINER}/usr/*", f"{OFED_CONTAINER}/.driver-ready"))


def loads_modules(machine: Machine) -> bool:
    """Returns whether this is a pod that loads modules for the node. Only such a pod sees the
    directories of the operators' containers, and such a pod has no GPU of its own."""
    # TODO[SEES]: on the node, nvpm cannot tell that a pod keeps a module with the name nv_peer_mem.
    return bool(container(machine)) and (driver_in_container(machine) or ofed_in_container(machine))


# Systems whose files come as one image. If a module is built on a node with such a system, the next
# image does not have it. Most of these systems have neither packages nor headers.
IMAGES = {
    "flatcar": "Flatcar",
    "cos": "Container-Optimized OS",
    "talos": "Talos",
    "bottlerocket": "Bottlerocket",
    "sl-micro": "SUSE Linux Micro",
    "sle-micro": "SUSE Linux Enterprise Micro",
}
# Names that the firmware gives a virtual machine in a cloud, and the cloud.
CLOUDS = {
    "Google Compute Engine": "Google Cloud",
    "Amazon EC2": "Amazon EC2",
    "Alibaba Cloud": "Alibaba Cloud",
    "OracleCloud": "Oracle Cloud",
    "OpenStack": "OpenStack",
}
AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
CONFIDENTIAL = {
    "TDX": ("/dev/tdx_guest", "/sys/devices/virtual/misc/tdx_guest"),
    "SEV-SNP": ("/dev/sev-guest", "/sys/devices/virtual/misc/sev-guest"),
}


@once
def image_based(machine: Machine) -> str:
    """Returns the name of a system that is one image; an empty string for any other system."""
    system = machine.all_text("/etc/os-release")
    name = re.search("^PRETTY_NAME=[\"']?([^\"'\n]+)", system, re.MULTILINE)
    if machine.exists("/run/ostree-booted"):
        return name[1] if name else "a system of OSTree"
    kind = re.search("^ID=[\"']?([a-z0-9_-]+)", system, re.MULTILINE)
    return IMAGES.get(kind[1], "") if kind else ""


@once
def cloud(machine: Machine) -> str:
    """Returns the cloud in which this virtual machine runs, according to names in the firmware."""
    directory = "/sys/class/dmi/id/"
    names = ("product_name", "sys_vendor", "bios_vendor", "chassis_asset_tag")
    texts = " ".join(machine.text(directory + name) for name in names)
    if AZURE_TAG in texts:
        return "Azure"
    return next((cloud for word, cloud in CLOUDS.items() if word in texts), "")


# EC2's instance types with GPUs that give no other device access to GPU memory. The sources are
# aws/aws-ofi-nccl#547 ("the P-series starting with p4d") and AWS's announcement of G7e, which gives
# this access. An instance type that is not listed counts as a type that gives this access.
WITHOUT_GPUDIRECT = re.compile(r"(?:p[23]\w*|g[2-6]\w*|gr6\w*)\.")


@once
def without_gpudirect(machine: Machine) -> str:
    """Returns why no RDMA device reaches GPU memory on this instance type of EC2; an empty string
    for any other machine."""
    kind = machine.text("/sys/class/dmi/id/product_name")
    if cloud(machine) == "Amazon EC2" and WITHOUT_GPUDIRECT.match(kind):
        return f"the instance type {kind} of EC2 has no GPUDirect RDMA"
    return ""


@once
def confidential(machine: Machine) -> str:
    """Returns the kind of a confidential virtual machine; an empty string for any other machine."""
    for kind, files in CONFIDENTIAL.items():
        if any(map(machine.exists, files)):
            return f"a confidential virtual machine ({kind})"
    return ""


@once
def virtual(machine: Machine) -> str:
    """Returns the kind of this machine if it is a container or a virtual machine; otherwise an
    empty string. The files of such a machine do not show the real connections of devices."""
    if container(machine):
        return f"a container ({container(machine)})"
    # Some processors have no flag for virtual machines, so the firmware's name of the hypervisor
    # counts, too.
    flagged = re.search("^flags.* hypervisor", machine.all_text("/proc/cpuinfo"), re.MULTILINE)
    if flagged or re.search(HYPERVISORS, machine.text("/sys/class/dmi/id/product_name")):
        vendor = machine.text("/sys/class/dmi/id/sys_vendor")
        return "a virtual machine" + (vendor and f" ({vendor})")
    # arm64 has no flag for virtual machines. The names of whole machines in EC2 end in "metal".
    product = machine.text("/sys/class/dmi/id/product_name")
    if machine.processor == "aarch64" and cloud(machine) and "metal" not in product:
        return f"a virtual machine ({cloud(machine)})"
    return ""


def kernel_of_another(machine: Machine) -> bool:
    """Returns whether the kernel belongs to another system. That system then decides which modules
    are loaded."""
    try:
        chroot = not os.path.samefile("/proc/1/root/.", "/")
    except OSError:
        chroot = True  # there is no /proc: an image is being built
    if chroot or container(machine):
        return True
    status = Machine().all_text("/proc/self/status")
    capabilities = re.search("^CapEff:\t([0-9a-f]+)$", status, re.MULTILINE)
    return not (capabilities and int(capabilities[1], 16) >> CAP_SYS_MODULE & 1)
