# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Decides the keeper's next step from the state of the node.

Each operator's container has a file that exists while the container is ready. When the file is
missing, the container may replace its driver, so the module is not loaded. The OFED container
unloads nvidia_peermem itself, and does not know nv_peer_mem, so nv_peer_mem is let go then. The
driver's container also knows nvidia_peermem, but RHEL's script unloads in a wrong order: nvidia_uvm
is gone by then, and the script notices nothing. So either name is let go when that container ends.

Two more waits follow from these scripts. The driver's manager unloads nvidia_uvm before
nvidia_peermem and nvidia, so without nvidia_uvm the driver may be on its way out. The script of the
older OFED container unloads nvidia_peermem before it removes its file (serve.py)."""

from __future__ import annotations

from typing import NamedTuple

from .node import Loaded, Node

NO_DRIVER = (
    "NVIDIA's driver is not loaded: the module nvidia is missing. The GPU Operator's driver pod "
    "loads it, or the node's own driver package"
)
STARTING = "NVIDIA's driver is being loaded"
NO_UVM = (
    "the module nvidia_uvm is not loaded, so CUDA does not work on this node: the driver's "
    "container is unloading or loading the driver. If this lasts, the container has left the "
    "driver half unloaded: reboot the node"
)
NO_CORE = (
    "the RDMA core is not loaded: the module ib_core or ib_uverbs is missing. The Network "
    "Operator's OFED pod loads them, or the node's own RDMA packages"
)
OFED_NOT_READY = (
    "the OFED container is not ready (/run/mellanox/drivers/.driver-ready is missing): it may "
    "replace the RDMA core now, and a module above the core would make it fail. If no OFED pod is "
    "to run on this node any more, reboot the node"
)
DRIVER_NOT_READY = (
    "the driver's container is not ready (/run/nvidia/validations/.driver-ctr-ready is missing): "
    "it may unload the driver now. The container is ready a minute after it has loaded the driver"
)
NO_PEER_MEMORY = (
    "the RDMA core that is loaded has no peer memory: it is the kernel's own. Where no OFED is to "
    "come, programs use dma-buf, and this pod is not needed"
)
NVIDIAS = (
    "NVIDIA's own nvidia_peermem is loaded, and only one module can serve GPU memory. Set "
    "driver.rdma.enabled=false in the ClusterPolicy, so that the driver's pod stops loading it, "
    "and unload it on the node: rmmod nvidia_peermem"
)
ASKED = "the module was unloaded on request (nv-peer-mem unload). Restart the pod to load it again"


class Step(NamedTuple):
    """The keeper's state, the reason in words, and what to do now: nothing, `load` or `unload`."""

    state: str
    reason: str
    do: str = ""

    @property
    def ready(self) -> bool:
        return self.state in ("ready", "held")


def decide(node: Node, name: str, version: str, asked: bool = False) -> Step:
    """Returns the next step towards a module called NAME, of VERSION. ASKED tells whether somebody
    has asked that the module stays unloaded."""
    own = node.own()
    if own:
        return keep(node, own, name, version, asked)
    if asked:
        return Step("unloaded", ASKED)
    if node.others():
        return Step("blocked", NVIDIAS)
    reason = wait(node)
    return (
        Step("waiting", reason) if reason else Step("loading", "both neighbours are here", "load")
    )


def wait(node: Node) -> str:
    """Returns why the module cannot be loaded yet; an empty string if it can."""
    driver = node.module("nvidia")
    if not driver:
        return NO_DRIVER
    if not driver.live:
        return STARTING
    if node.lacks_uvm():
        return NO_UVM
    if not all(module.live for module in node.core()) or len(node.core()) < 2:
        return NO_CORE
    if node.ofed_leaves():
        return OFED_NOT_READY
    if not node.peer_memory_in():
        return NO_PEER_MEMORY
    return DRIVER_NOT_READY if node.driver_leaves() else ""


def keep(node: Node, own: Loaded, name: str, version: str, asked: bool) -> Step:
    """Returns what happens to OWN, the loaded module of this project. Others may unload the module
    at any moment."""
    if not node.registered(own.name):
        return Step("loading", f"{own.name} is loaded, and not registered with the RDMA core yet")
    serves = f"{own.name} {own.version} is registered with the RDMA core"
    if asked:
        why = "somebody has asked to unload it"
    elif own.name != name:
        return Step(
            "ready",
            f"{serves}, under another name than {name}: the node's own service or an earlier pod "
            "has loaded it. Unload it there, and this pod loads its own",
        )
    elif own.version != version:
        why = f"this pod has version {version}"
    elif name == "nv_peer_mem" and node.ofed_leaves():
        why = "the OFED container is ending or starting"
    elif node.driver_leaves():
        why = "the driver's container is ending or starting"
    elif node.lacks_uvm():
        return Step("waiting", NO_UVM)
    else:
        return Step("ready", serves)
    if own.references:
        return Step("held", f"{serves}; {why}, but programs have GPU memory registered")
    return Step("unloading", why, "unload")
