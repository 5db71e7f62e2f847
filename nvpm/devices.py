# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""GPUs and RDMA devices: how they are connected, what is to be said of each, and who may use them."""

import os

from . import access, place, topology
from .driver import flavour
from .fact import bad, first, good, none, unread, warn
from .machine import PARAMETERS
from .module import kernel_facts
from .pci import gpus, nics
from .place import virtual

# NVIDIA numbers its products by generation. The open driver serves no GPU before Turing, the proprietary one none from Blackwell on.
TURING, BLACKWELL = 0x1E00, 0x2900
PCI_EXPRESS, RELAXED_ORDERING = 16, 1 << 4

OPEN_DRIVER = "Install NVIDIA's open kernel modules."


def facts(machine):
    yield from place.facts(machine)
    yield from kernel_facts(machine)
    yield from topology.facts(machine)
    if not gpus(machine):
        yield bad(
            "GPUs",
            "number",
            0,
            "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware.",
        )
    for gpu in gpus(machine):
        yield from gpu_facts(machine, gpu, "GPU " + gpu.name)
    if not nics(machine):
        yield bad(
            "RDMA devices",
            "number",
            0,
            "Load the driver of the RDMA device (/etc/init.d/openibd start); ibv_devices lists what is there.",
        )
    for nic in nics(machine):
        yield from nic_facts(machine, nic, "RDMA device " + nic.name)
    yield from port_facts(machine)
    yield from access.facts(machine)


def node_facts(machine, section, pci):
    """On a machine with several nodes, programs choose processors and devices by the node."""
    yield from first(
        section,
        "NUMA node",
        [
            (pci.node >= 0, none, pci.node),
            (
                topology.several_nodes(machine) and not virtual(machine),
                warn,
                "unknown: the firmware does not say",
                "Programs cannot choose the near processors: look for newer firmware (BIOS), or bind them by hand.",
            ),
        ],
    )


def gpu_facts(machine, gpu, section):
    name, newer = gpu.driver, gpu.product >= BLACKWELL
    served = any(other.driver == "nvidia" for other in gpus(machine))
    yield from first(
        section,
        "driver",
        [
            (name == "nvidia", good, name),
            (
                name.startswith("vfio"),
                none if served else warn,
                name + ": it is given to a virtual machine",
                f"nv_peer_mem belongs into that machine. To have the GPU here, take it from {name} (driverctl unset-override {gpu.name}, or vfio-pci.ids= on the kernel's command line) and reboot.",
            ),
            (
                name,
                bad,
                name + ": the NVIDIA driver does not have this GPU",
                f"echo 'blacklist {name}' >/etc/modprobe.d/nvidia-blacklist-{name}.conf, make the initramfs anew (update-initramfs -u, or dracut -f), and reboot.",
            ),
            (
                flavour(machine) == "open" and 0 < gpu.product < TURING,
                bad,
                "none: Volta and older are not served by the open driver",
                "Install the proprietary kernel modules, of version 580 or older: later ones do not know this GPU.",
            ),
            (
                flavour(machine) == "proprietary" and newer,
                bad,
                "none: Blackwell and newer are served by the open driver only",
                OPEN_DRIVER,
            ),
            (
                flavour(machine) == "proprietary" and gpu.coherent,
                bad,
                "none: Grace Hopper is served by the open driver only",
                OPEN_DRIVER,
            ),
            (
                True,
                bad,
                "none",
                "modprobe nvidia; if it does not take the GPU, the kernel's log says why.",
            ),
        ],
    )
    yield from node_facts(machine, section, gpu.pci)
    # Nothing of such a GPU's memory is in BAR1. Our module maps only what can be revoked, and the driver maps this memory, pinned.
    yield from first(
        section,
        "memory",
        [
            (
                gpu.coherent and machine.text(PARAMETERS + "persistent_api_support") == "0",
                bad,
                "coherent: the driver maps it, and nothing that can be revoked (persistent_api_support=0)",
                "Load the module with persistent_api_support=1, its default: grep -r persistent_api_support /etc/modprobe.d finds who changed it.",
            ),
            (gpu.coherent, good, "coherent: the driver maps it, behind NVLink-C2C"),
        ],
    )
    # No file says how much memory a GPU has, but the largest BAR that it can have holds all of it.
    size, largest = gpu.bar1(), gpu.largest_bar1()
    now, best = (
        "%.6g GiB" % (mib / 1024) if mib >= 1024 else "%d MiB" % mib for mib in (size, largest)
    )
    if size and not gpu.coherent:
        yield from first(
            section,
            "BAR1",
            [
                (
                    largest > size,
                    warn,
                    f"{now} of {best} that it can have: no more can be registered at once",
                    "Turn on above 4G decoding and resizable BAR in the firmware.",
                ),
                (largest or size > 256, good, now),
                (True, none, now + ", not resizable here: no more can be registered at once"),
            ],
        )
    yield from first(
        section, "MIG", [(gpu.instances(), none, "GPU instances: %d" % gpu.instances())]
    )


def nic_facts(machine, nic, section):
    if not nic.pci:
        yield bad(
            section,
            "place",
            "not a PCI device: it cannot reach GPU memory",
            "Use an RDMA device on PCI.",
        )
        return
    yield none(
        section, "place", nic.pci.address + (nic.software and ", software over " + nic.software)
    )
    yield from node_facts(machine, section, nic.pci)
    kind, option = (
        nic.pci.iommu(),
        "iommu.passthrough=1" if machine.processor == "aarch64" else "iommu=pt",
    )
    # The data of coherent GPUs goes through the CPU anyway.
    slow = (
        "which takes time"
        if gpus(machine) and all(gpu.coherent for gpu in gpus(machine))
        else "so data is routed through the CPU"
    )
    yield from first(
        section,
        "IOMMU",
        [
            (kind == "none", good, "none"),
            (kind == "identity", good, "identity: addresses are not translated"),
            (
                True,
                warn,
                f"{kind}: addresses are translated, {slow}",
                f"Put {option} on the kernel's command line and reboot.",
            ),
        ],
    )
    if not nic.software:
        yield from settings_facts(machine, section, nic.pci)


def settings_facts(machine, section, pci):
    """Of the RDMA device, because it reads and the GPU answers."""
    config = pci.config(256)
    control = device_control(config)
    request = 128 << ((control or 0) >> 12 & 7)
    yield from first(
        section,
        "MaxReadReq",
        [
            (0 < len(config) <= 16, unread, "PCI settings of RDMA devices"),
            (
                control is not None and request < 512 and not virtual(machine),
                warn,
                request,
                f"Reads are cut small. Until the next reboot: setpci -s {pci.address} CAP_EXP+8.w=5000:7000 allows 4096 bytes; for good, see the firmware's settings.",
            ),
            (control is not None, none, request),
        ],
    )
    yield from first(
        section,
        "relaxed ordering",
        [
            (
                control is not None,
                none,
                "on"
                if (control or 0) & RELAXED_ORDERING
                else "off: writes wait for each other; the firmware, or the kernel for some processors, turns it off",
            )
        ],
    )


def device_control(config):
    """The control register of PCI Express, from the list of capabilities; None if it cannot be read."""
    at = config[13] & 0xFF if len(config) > 16 else 0
    for _ in range(48):
        if not 64 <= at < 4 * len(config) - 8:
            break
        if config[at // 4] & 0xFF == PCI_EXPRESS:
            return config[at // 4 + 2]
        at = config[at // 4] >> 8 & 0xFF
    return None


def port_facts(machine):
    """A port without a link is no defect if the machine has another one; without any, nothing leaves the machine."""
    active = any(
        machine.text(port + "/state").endswith("ACTIVE")
        for port in machine.glob("/sys/class/infiniband/*/ports/*")
    )
    down = warn if active else bad
    for nic in nics(machine):
        for port in machine.glob(nic.directory + "/ports/*"):
            # States are numbered: "4: ACTIVE".
            state, physical, rate, layer = (
                machine.text(port + "/" + file).split(": ", 1)[-1]
                for file in ("state", "phys_state", "rate", "link_layer")
            )
            value = ", ".join((state, physical, rate, layer))
            yield from first(
                "RDMA device " + nic.name,
                "port " + os.path.basename(port),
                [
                    (state == "ACTIVE", good, value),
                    (
                        state in ("INIT", "ARMED") and layer == "InfiniBand",
                        down,
                        value,
                        "No subnet manager has set this port up: start one (opensm) on a machine or a switch of this network.",
                    ),
                    (
                        state and layer == "Ethernet",
                        down,
                        value,
                        "Look at cable and switch, then at the interface: rdma link names it, ip link set up turns it on.",
                    ),
                    (
                        state,
                        down,
                        value,
                        "Look at cable and switch; ibstat and iblinkinfo say more.",
                    ),
                ],
            )
        version, board = (
            machine.text(nic.directory + "/fw_ver"),
            machine.text(nic.directory + "/board_id"),
        )
        yield from first(
            "RDMA device " + nic.name,
            "firmware",
            [(version, none, version + (board and ", board " + board))],
        )
