# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether this system is a physical machine, which of the node's devices a container has, and
which of the node's drivers belong to the containers of NVIDIA's operators."""

from typing import Optional

from ..read import ways
from ..read.machine import SERVICE, Machine, own_module
from ..read.pci import gpus
from ..read.place import (
    DRIVER_CONTAINER,
    OFED_CONTAINER,
    container,
    driver_in_container,
    loads_modules,
    ofed_in_container,
    virtual,
)
from . import pod
from .fact import Fact, Facts, bad, good, info, warn

NOT_ALL_ITS_OWN = (
    "the devices are not all its own, so distances are not judged; "
    "module and service belong to the machine around it"
)
LOADS_MODULES = "it sees the node's drivers, and loads modules for the node"
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

# A node whose driver is in the GPU Operator's container, by the module that is loaded.
OF_CONTAINER = (
    f"NVIDIA's driver is that of the GPU Operator's container ({DRIVER_CONTAINER}): "
    "a module that is built on the host is not for it"
)
TAKES_UVM = (
    "NVIDIA's driver is that of the GPU Operator's container, and nv_peer_mem is loaded: the next "
    "update of the driver removes nvidia_uvm and then fails, because nv_peer_mem uses nvidia"
)
STOP_IT = (
    "Before the driver is updated: {stop}. To end a loop of restarts, the same; the driver pod's "
    f"next attempt succeeds. With {pod.IMAGE} no hand is needed."
)
LETS_DRIVER_GO = (
    "NVIDIA's driver is that of the GPU Operator's container, which unloads nv_peer_mem by its "
    "name nvidia_peermem before it replaces the driver; while GPU memory is registered, the driver "
    "stays, and the driver pod tries again"
)
HAS_ITS_OWN = (
    "NVIDIA's driver is that of the GPU Operator's container, and so is nvidia_peermem, which is "
    "loaded and serves"
)

# A node whose OFED is in the Network Operator's container, by the module that is loaded.
OFED_OF_CONTAINER = f"OFED is that of the Network Operator's container ({OFED_CONTAINER})"
BUILD_FOR_IT = (
    f"Use {pod.IMAGE}, which builds and loads the module for this OFED. On the host, the build "
    "needs OFA_KERNEL= in /etc/nv_peer_mem-build.conf, and each restart of the container needs a "
    "hook."
)
TAKES_NICS = (
    "OFED is that of the Network Operator's container, and nv_peer_mem is loaded: a restart of "
    "that container (OFED up to 25.10) removes mlx5_core, then fails at ib_uverbs or ib_core, "
    "which nv_peer_mem uses, and this node has lost its NICs"
)
LET_IT_GO = (
    f"Before the pod of OFED is restarted or updated: {{stop}}. For restarts without a hand, use "
    f"{pod.IMAGE}, or give the container the hooks OPENIBD_PRE_STOP and OPENIBD_POST_START, and "
    'SKIP_PREFLIGHT_CHECKS="false". If the NICs are gone: rmmod nv_peer_mem at the console; the '
    "container's next attempt loads OFED."
)
LETS_OFED_GO = (
    "OFED is that of the Network Operator's container, which unloads nv_peer_mem by its name "
    "nvidia_peermem at each start, before anything else; while GPU memory is registered, it ends "
    "before it unloads anything, and tries again"
)
TAKES_PEERMEM = f"{OFED_OF_CONTAINER}, which unloads nvidia_peermem at each start"
LOAD_PEERMEM_AGAIN = (
    "The GPU Operator's driver pod loads nvidia_peermem again (driver.rdma.enabled=true). If the "
    "driver is the node's own, nobody does: modprobe nvidia-peermem on the node after each start, "
    f"or use {pod.IMAGE}."
)

LOADS_AGAIN = (
    f"Afterwards the pod of {pod.DAEMON_SET} loads the module again. If a restart waits, end the "
    "programs that nvpm regions names on the node."
)
# How to unload nv_peer_mem, in a pod and on the node.
ON_THE_NODE = "on the node, stop and disable the service nv_peer_mem"

NOT_AS_CONNECTED = "it shows not how the devices are really connected, so distances are not judged"


def facts(machine: Machine) -> Facts:
    what = virtual(machine)
    if container(machine):
        kind = LOADS_MODULES if loads_modules(machine) else NOT_ALL_ITS_OWN
        yield info("machine", "virtual", f"{what}: {kind}")
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
    """Returns a fact if the GPU Operator's container owns the driver: which module is loaded, and
    whether the operator can replace the driver under it."""
    if not driver_in_container(machine):
        return None
    if pod.keeps_module(machine):
        return good("machine", "driver container", LETS_DRIVER_GO, LOADS_AGAIN)
    if own_module(machine):
        stop = to_stop(machine, "disable --now")
        return warn("machine", "driver container", TAKES_UVM, STOP_IT.format(stop=stop))
    if ways.peermem_loaded(machine):
        return info("machine", "driver container", HAS_ITS_OWN, pod.IN_ITS_PLACE)
    return info("machine", "driver container", OF_CONTAINER, pod.USE_IMAGE)


def ofed_container(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the Network Operator's container owns OFED: which module is loaded, and
    whether the container can replace OFED under it."""
    if not ofed_in_container(machine):
        return None
    if pod.keeps_module(machine):
        return good("machine", "OFED container", LETS_OFED_GO, LOADS_AGAIN)
    if own_module(machine):
        stop = to_stop(machine, "stop")
        return warn("machine", "OFED container", TAKES_NICS, LET_IT_GO.format(stop=stop))
    if ways.peermem_loaded(machine):
        return info("machine", "OFED container", TAKES_PEERMEM, LOAD_PEERMEM_AGAIN)
    return info("machine", "OFED container", OFED_OF_CONTAINER, BUILD_FOR_IT)


def to_stop(machine: Machine, verb: str) -> str:
    """Returns the command that unloads nv_peer_mem with VERB of systemctl. A pod does not have the
    node's service, and a module that `make install` has installed has none."""
    if container(machine):
        return ON_THE_NODE
    return f"systemctl {verb} nv_peer_mem" if machine.exists(SERVICE) else "rmmod nv_peer_mem"
