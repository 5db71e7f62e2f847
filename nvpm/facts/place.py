# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether this system is a physical machine, and which of the node's devices a container
has."""

from typing import Optional

from ..read.machine import Machine
from ..read.place import DRIVER_CONTAINER, container, virtual
from .fact import Fact, Facts, info

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

OF_CONTAINER = (
    "NVIDIA's driver is that of the GPU Operator's container (" + DRIVER_CONTAINER + "): "
    "a module that is built on this host is not for it"
)
USE_ITS_OWN = (
    "Use the container's own nvidia-peermem (driver.rdma.enabled=true), or dma-buf; or have the "
    "driver on the host (driver.enabled=false), and nv_peer_mem with it: docs/kubernetes.md."
)

NOT_AS_CONNECTED = "it shows not how the devices are really connected, so distances are not judged"


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
    """Returns a fact if the driver is in the GPU Operator's container, because the host then has no
    driver of its own. The directory usr must not be empty, because the toolkit makes the
    container's directory even without a driver."""
    if not machine.glob(DRIVER_CONTAINER + "/usr/*"):
        return None
    return info("machine", "driver container", OF_CONTAINER, USE_ITS_OWN)
