# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Advice for a node whose RDMA core has no peer memory. The advice depends on the cause. It first
says what it would stop, because a restart of the RDMA stack stops the networks of the stack's
cards."""

import re

from ..read.kernel_symbols import dma_buf_in
from ..read.machine import Machine, modinfo, once
from ..read.network import holders, stopped
from ..read.pci import gpus, nics
from ..read.peers import asks
from ..read.place import container, driver_in_container, image_based
from ..read.products import NO, OWN_PEER_MEMORY, TURING
from . import efa

RESTART = "/etc/init.d/openibd restart"
TAKES_AWAY = (
    "reboot. Do not run {restart} on this node from afar: it takes away {stopped} until the "
    "new drivers are up"
)
HELD = "reboot: {restart} cannot unload the stack while {holders} use it"

# Matches the path of a module that an OFED has installed. An OFED uses these directories below the
# directory of the kernel's modules.
OF_OFED = re.compile("/(updates|extra|weak-updates|mlnx-ofa_kernel)/")

INSTALL = (
    "Install MLNX_OFED or DOCA-OFED, then {restart}; or boot a kernel whose own RDMA core has peer "
    "memory (Ubuntu's linux-nvidia); the kernel's own RDMA core is not enough."
)
IN_CONTAINER = "Do it on the node: the RDMA core belongs to the node, not to this container."
IN_IMAGE = (
    "{image} is one image: put OFED into the image (docs/kubernetes.md: the Network Operator's "
    "container, or a layered image), or use programs with dma-buf."
)
NO_OFED = (
    "No OFED helps: {why}. Only dma-buf serves this RDMA device: a kernel with dma-buf for its "
    "driver and NVIDIA's open driver (docs/choosing.md)."
)
OTHER_LOADED = (
    "{ofed} is installed, but another RDMA core is loaded, from the kernel's own files: {restart}. "
    "If the same one is loaded again: make the initramfs anew (update-initramfs -u, or dracut -f), "
    "and keep udev from loading the kernel's own modules first (echo 'blacklist mlx5_core' and "
    "'blacklist mlx5_ib' >/etc/modprobe.d/inbox-rdma.conf; openibd loads OFED's)."
)
NOT_FOR_THIS_KERNEL = (
    "{ofed} is installed, but not for kernel {kernel}: modinfo finds {file}. {build} with "
    "--add-kernel-support; then {restart}."
)
BY_DKMS = "Build it for this kernel (dkms autoinstall -k {kernel}), or install it again"


OPEN_DRIVER = (
    " Or install NVIDIA's open kernel modules: this RDMA core takes dma-buf, which serves NCCL, "
    "UCX and others without peer memory."
)
OPERATOR = (
    " The Network Operator's OFED container restarts the stack by itself: give the node another "
    "network first, or install OFED before the node joins."
)


@once
def restart(machine: Machine) -> str:
    """Returns how to load another RDMA stack on this machine, and what such a restart would
    stop."""
    gone = stopped(machine)
    if gone:
        return TAKES_AWAY.format(restart=RESTART, stopped=gone)
    if holders(machine):
        return HELD.format(restart=RESTART, holders=", ".join(holders(machine)))
    return f"restart it ({RESTART})"


@once
def ofed(machine: Machine) -> str:
    """Returns the version of the installed OFED, as ofed_info prints it."""
    return machine.run("ofed_info", "-s")[1].rstrip(":").strip()


def get_core(machine: Machine) -> str:
    """Returns how this node can get an RDMA core with peer memory."""
    if container(machine):
        return IN_CONTAINER
    asking = [asks(machine, nic) for nic in nics(machine)]
    if asking and all(one.can == NO for one in asking):
        if nics(machine)[0].driver() in OWN_PEER_MEMORY:
            return efa.lacks(machine)[1]
        return NO_OFED.format(why=asking[0].why)
    again = restart(machine)
    if ofed(machine):
        file = modinfo(machine, "ib_core").get("filename", "")
        text = OTHER_LOADED
        if file and not OF_OFED.search(file):
            text = NOT_FOR_THIS_KERNEL
        # OFED's packages for dkms are mlnx-ofed-kernel and others with this beginning.
        by_dkms = machine.glob("/var/lib/dkms/mlnx-*", "/var/lib/dkms/doca-*")
        build = BY_DKMS.format(kernel=machine.kernel) if by_dkms else "Install it again"
        return text.format(
            ofed=ofed(machine), restart=again, kernel=machine.kernel, file=file, build=build
        )
    if image_based(machine):
        return IN_IMAGE.format(image=image_based(machine))
    return INSTALL.format(restart=again) + others(machine)


def others(machine: Machine) -> str:
    """Returns advice to use the open driver if that helps on this node. Adds a warning if a restart
    would stop networks or storage, and the GPU Operator runs here."""
    proprietary = "P" in machine.text("/sys/module/nvidia/taint")
    new = all(gpu.product >= TURING for gpu in gpus(machine))
    text = OPEN_DRIVER if proprietary and new and dma_buf_in(machine) else ""
    operator = stopped(machine) and driver_in_container(machine)
    return text + (OPERATOR if operator else "")
