# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether this system is a physical machine, and which of the node's devices a container
has."""

from typing import Optional

from ..read import ways
from ..read.machine import MODULE, Machine
from ..read.pci import gpus
from ..read.place import DRIVER_CONTAINER, container, virtual
from .fact import Fact, Facts, bad, info, warn

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

TAKES_UVM = (
    "NVIDIA's driver is that of the GPU Operator's container, and nv_peer_mem is loaded: the next "
    "update of the driver removes nvidia_uvm and then fails, because nv_peer_mem uses nvidia"
)
STOP_IT = (
    "systemctl disable --now nv_peer_mem before the driver is updated. To end a loop of restarts, "
    "the same; the driver pod's next attempt succeeds. docs/kubernetes.md has the details."
)
# Where the Network Operator's container shows the files of its OFED.
OFED_CONTAINER = "/run/mellanox/drivers"
TAKES_NICS = (
    "OFED is that of the Network Operator's container, and nv_peer_mem is loaded: a restart of "
    "that container removes mlx5_core and ib_uverbs, fails at ib_core, and this node has lost its "
    "NICs"
)
LET_IT_GO = (
    "Before the pod of OFED is restarted or updated: systemctl stop nv_peer_mem. For restarts "
    "without a hand, give the container the hooks OPENIBD_PRE_STOP and OPENIBD_POST_START, and "
    'SKIP_PREFLIGHT_CHECKS="false": docs/kubernetes.md. If the NICs are gone: rmmod nv_peer_mem at '
    "the console; the container's next attempt loads OFED."
)
OFED_OF_CONTAINER = "OFED is that of the Network Operator's container (" + OFED_CONTAINER + ")"
BUILD_FOR_IT = (
    "The build of nv_peer_mem needs OFA_KERNEL= in /etc/nv_peer_mem-build.conf, and each restart "
    "of the container needs a hook: docs/kubernetes.md."
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
    yield ofed_container(machine)


def seen(machine: Machine) -> Fact:
    """Returns which devices and libraries of the node are in a container, and which are not."""
    there = {what: len(machine.glob(*patterns)) for what, patterns in SEEN.items()}
    value = ", ".join(f"{what}: {count}" for what, count in there.items() if count) or "nothing"
    lacks = ", ".join(what for what, count in there.items() if not count)
    if lacks:
        value = f"{value}; not there: {lacks}"
    judge = bad if gpus(machine) and ways.given_no_gpu(machine) else info
    return judge("machine", "container sees", value, GIVE_THEM if lacks else "")


def driver_container(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the driver is in the GPU Operator's container, because the host then has no
    driver of its own. The directory usr must not be empty, because the toolkit makes the
    container's directory even without a driver."""
    if not machine.glob(DRIVER_CONTAINER + "/usr/*"):
        return None
    if machine.loaded(MODULE):
        return warn("machine", "driver container", TAKES_UVM, STOP_IT)
    return info("machine", "driver container", OF_CONTAINER, USE_ITS_OWN)


def ofed_container(machine: Machine) -> Optional[Fact]:
    """Returns a fact if OFED is in the Network Operator's container. The container removes its mark
    when it stops, but its directory stays, and OFED stays loaded."""
    if not machine.glob(f"{OFED_CONTAINER}/usr/*", f"{OFED_CONTAINER}/.driver-ready"):
        return None
    if machine.loaded(MODULE):
        return warn("machine", "OFED container", TAKES_NICS, LET_IT_GO)
    return info("machine", "OFED container", OFED_OF_CONTAINER, BUILD_FOR_IT)
