# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Advice about the image of nv_peer_mem, whose pod loads the module under the name nvidia_peermem.
The module then belongs to the pod, and the node's service and packages have no part in it."""

from ..read.machine import PEERMEM, Machine, own_module
from ..read.place import loads_modules

DAEMON_SET = "the DaemonSet nv-peer-mem"
IMAGE = "the image of nv_peer_mem (docs/kubernetes.md)"
USE_IMAGE = (
    f"Use {IMAGE}, whose pod builds and loads the module for this driver; or the container's own "
    "nvidia-peermem (driver.rdma.enabled=true), or dma-buf; or have the driver on the host "
    "(driver.enabled=false), and nv_peer_mem with it."
)
IN_ITS_PLACE = (
    "To have nv_peer_mem in its place: driver.rdma.enabled=false, with which the operator installs "
    f"the driver of each node again, and {IMAGE}."
)
FIND = "kubectl -n nv-peer-mem get pods -o wide"
# The pod unloads the module when it ends.
RESTART = (
    f"delete the pod of {DAEMON_SET} on this node ({FIND} names it): it unloads the module, and "
    "the next pod loads the module again"
)
SERVES = (
    f"The module {PEERMEM} is nv_peer_mem itself, which the pod of {DAEMON_SET} has loaded and "
    "keeps: nothing else has to be loaded."
)
STOP = f"keep {DAEMON_SET} from this node, whose pod loads {PEERMEM} again, "
LOG = (
    f"The pod of {DAEMON_SET} builds and loads the module. {FIND} names the pod of this node, and "
    "kubectl logs shows what it did."
)
# The same inside this pod.
TRIES_AGAIN = (
    "This pod builds and loads the module, and tries again by itself: its log says what it waits "
    "for. If the kernel refuses the module, dmesg on the node says why. A kernel that demands "
    "signatures needs an image with signed modules (docs/kubernetes.md)."
)
PARAMETERS = (
    "Set {setting} in the variable NVPM_PARAMETERS of "
    f"{DAEMON_SET}, whose new pods load the module with it."
)


def keeps_module(machine: Machine) -> bool:
    """Returns whether nv_peer_mem is loaded under the name that a pod gives it."""
    return own_module(machine) == PEERMEM


def to_build(machine: Machine) -> str:
    """Returns what to do if the module is missing, or has to be built again, and a pod builds it;
    an empty string if no pod does."""
    if loads_modules(machine):
        return TRIES_AGAIN
    return LOG if keeps_module(machine) else ""
