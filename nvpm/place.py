# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The place of this system: a physical machine, a virtual machine, or a container or a chroot,
whose kernel belongs to another system."""

import os
import re
from typing import Optional

from .fact import Fact, Facts, info
from .machine import Machine, once

# The namespace of the machine's first process has this number in all kernels.
FIRST_NAMESPACE = "pid:[4026531836]"
CAP_SYS_MODULE = 16
HYPERVISORS = "KVM|Virtual Machine|VMware|VirtualBox|QEMU|Compute Engine"

NOT_ALL_ITS_OWN = (
    "the devices are not all its own, so distances are not judged; "
    "module and service belong to the machine around it"
)
# Devices and libraries of the node that programs in a container need.
SEEN = {
    "RDMA devices": ("/sys/class/infiniband/*",),
    "/dev/infiniband/uverbs*": ("/dev/infiniband/uverbs*",),
    "/dev/nvidia*": ("/dev/nvidia[0-9]*",),
    "libcuda": ("/usr/lib*/libcuda.so.1", "/usr/lib/*/libcuda.so.1"),
}
GIVE_THEM = (
    "The container's runtime gives RDMA devices and their files (--device /dev/infiniband, or an "
    "RDMA device plugin), NVIDIA's container toolkit the GPUs and libcuda."
)

# The root directory of the GPU Operator's driver container.
DRIVER_CONTAINER = "/run/nvidia/driver"
OF_CONTAINER = (
    "NVIDIA's driver is that of the GPU Operator's container (" + DRIVER_CONTAINER + "): "
    "a module that is built on this host is not for it"
)
USE_ITS_OWN = (
    "Use the container's own nvidia-peermem (driver.rdma.enabled=true), or dma-buf; or have the "
    "driver on the host (driver.enabled=false), and nv_peer_mem with it: docs/kubernetes.md."
)

NOT_AS_CONNECTED = "it shows not how the devices are really connected, so distances are not judged"


@once
def container(machine: Machine) -> str:
    """Returns the kind of container, by the files that container engines leave; an empty string
    outside of containers."""
    if machine.readable("/run/systemd/container"):
        return machine.text("/run/systemd/container")
    if machine.exists("/run/.containerenv"):
        return "podman"
    if machine.exists("/.dockerenv"):
        return "docker"
    namespace = machine.link("/proc/self/ns/pid")
    return "" if namespace in ("", FIRST_NAMESPACE) else "processes of its own"


@once
def virtual(machine: Machine) -> str:
    """Returns the kind of a machine that is not physical: its files do not show the real
    connections of devices."""
    if container(machine):
        return f"a container ({container(machine)})"
    # On processors without such a flag the firmware may name the hypervisor.
    flagged = re.search("^flags.* hypervisor", machine.all_text("/proc/cpuinfo"), re.MULTILINE)
    if flagged or re.search(HYPERVISORS, machine.text("/sys/class/dmi/id/product_name")):
        vendor = machine.text("/sys/class/dmi/id/sys_vendor")
        return "a virtual machine" + (vendor and f" ({vendor})")
    return ""


def facts(machine: Machine) -> Facts:
    what = virtual(machine)
    if container(machine):
        yield info("machine", "virtual", f"{what}: {NOT_ALL_ITS_OWN}")
        yield seen(machine)
    elif what:
        yield info("machine", "virtual", f"{what}: {NOT_AS_CONNECTED}")
    yield driver_container(machine)


def seen(machine: Machine) -> Fact:
    """Returns the devices and libraries of the node that a container has, and those that it
    lacks."""
    there = {what: len(machine.glob(*patterns)) for what, patterns in SEEN.items()}
    value = ", ".join(f"{what}: {count}" for what, count in there.items() if count) or "nothing"
    lacks = ", ".join(what for what, count in there.items() if not count)
    if lacks:
        value = f"{value}; not there: {lacks}"
    return info("machine", "container sees", value, GIVE_THEM if lacks else "")


def driver_container(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the GPU Operator's container has the driver: the host has none then. The
    toolkit makes an empty directory of this name, without a driver."""
    if not machine.glob(DRIVER_CONTAINER + "/usr/*"):
        return None
    return info("machine", "driver container", OF_CONTAINER, USE_ITS_OWN)


def kernel_of_another(machine: Machine) -> bool:
    """Whether the kernel belongs to another system, which decides about modules."""
    try:
        chroot = not os.path.samefile("/proc/1/root/.", "/")
    except OSError:
        chroot = True  # there is no /proc: an image is being built
    if chroot or container(machine):
        return True
    status = Machine().all_text("/proc/self/status")
    capabilities = re.search("^CapEff:\t([0-9a-f]+)$", status, re.MULTILINE)
    return not (capabilities and int(capabilities[1], 16) >> CAP_SYS_MODULE & 1)
