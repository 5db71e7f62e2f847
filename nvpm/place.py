# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether this is a physical machine; a virtual one; or a container or a chroot, whose kernel belongs to another system."""

import os
import re

from .fact import first, none
from .machine import Machine, once

# The machine's first process is in this namespace; no kernel changes the number.
FIRST_NAMESPACE = "pid:[4026531836]"
CAP_SYS_MODULE = 16
HYPERVISORS = "KVM|Virtual Machine|VMware|VirtualBox|QEMU|Compute Engine"


@once
def container(machine):
    """Which kind of container this is, by the files that container engines leave; empty if it is none."""
    if machine.readable("/run/systemd/container"):
        return machine.text("/run/systemd/container")
    for mark, name in ("/run/.containerenv", "podman"), ("/.dockerenv", "docker"):
        if machine.exists(mark):
            return name
    return (
        "" if machine.link("/proc/self/ns/pid") in ("", FIRST_NAMESPACE) else "processes of its own"
    )


@once
def virtual(machine):
    """What this is, if it is no physical machine: its files then do not show how the devices are connected."""
    if container(machine):
        return f"a container ({container(machine)})"
    # Where processors have no such flag, the firmware may name the hypervisor.
    if re.search(
        "^flags.* hypervisor", machine.all_text("/proc/cpuinfo"), re.MULTILINE
    ) or re.search(HYPERVISORS, machine.text("/sys/class/dmi/id/product_name")):
        vendor = machine.text("/sys/class/dmi/id/sys_vendor")
        return "a virtual machine" + (vendor and f" ({vendor})")
    return ""


def facts(machine):
    yield from first(
        "machine",
        "virtual",
        [
            (
                container(machine),
                none,
                virtual(machine)
                + ": the devices are not all its own, so distances are not judged; module and service belong to the machine around it",
            ),
            (
                virtual(machine),
                none,
                virtual(machine)
                + ": it shows not how the devices are really connected, so distances are not judged",
            ),
        ],
    )


def kernel_of_another(machine):
    """Whether it is not for this system to unload modules."""
    try:
        chroot = not os.path.samefile("/proc/1/root/.", "/")
    except OSError:
        chroot = True  # there is no /proc: an image is being built
    capabilities = re.findall(
        "^CapEff:\t([0-9a-f]+)$", Machine().all_text("/proc/self/status"), re.MULTILINE
    ) or ["0"]
    return chroot or bool(container(machine)) or not int(capabilities[0], 16) >> CAP_SYS_MODULE & 1
