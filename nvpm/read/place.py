# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The place of this system: a physical machine, a virtual machine, or a container or a chroot,
whose kernel belongs to another system."""

import os
import re

from .machine import Machine, once

# The namespace of the machine's first process has this number in all kernels.
FIRST_NAMESPACE = "pid:[4026531836]"
CAP_SYS_MODULE = 16
HYPERVISORS = "KVM|Virtual Machine|VMware|VirtualBox|QEMU|Compute Engine"


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
