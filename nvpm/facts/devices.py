# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""GPUs and RDMA devices: their connections, facts about each, and the rights to use them."""

import os
from typing import List, Optional

from ..read import dma_buf, ways
from ..read.machine import Machine
from ..read.pci import Gpu, Nic, Pci, gpus, nics
from ..read.peers import asks, own_peer_memory
from ..read.place import virtual
from ..read.products import BLACKWELL, MAY, NO, OWN_PEER_MEMORY, TURING, YES
from . import access, efa, host, kernel, no_device, on_boot, place, topology, vf
from .driver import flavour
from .fact import Fact, Facts, bad, good, info, unread, warn

VGA = "0x0300"
PCI_EXPRESS, RELAXED_ORDERING = 16, 1 << 4

FIND_GPU = (
    "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware."
)
WITHOUT_GPU = (
    "If this node is to have none, systemd-modules-load fails at each boot for that reason alone."
)
NOT_ON_PCI = (
    "Register host memory (cudaHostAlloc), which the GPU reaches too; nv_peer_mem serves GPUs on "
    "PCI with the drivers of data centers: docs/choosing.md."
)
NODE_UNKNOWN = (
    "Programs cannot choose the near processors: look for newer firmware (BIOS), "
    "or bind them by hand."
)

# Some machines have switches and data-direct functions that sysfs does not show. rdma_topo, a
# program of rdma-core, shows them.
RDMA_TOPO = "rdma_topo of rdma-core knows more of this machine's switches and of data direct"

# Advice about a GPU's driver.
GIVEN_AWAY = (
    "nv_peer_mem belongs into that machine. To have the GPU here, take it from {0} "
    "(driverctl unset-override {1}, or vfio-pci.ids= on the kernel's command line) and reboot."
)
OTHER_DRIVER = (
    "echo 'blacklist {0}' >/etc/modprobe.d/nvidia-blacklist-{0}.conf, "
    "make the initramfs anew (update-initramfs -u, or dracut -f), and reboot."
)
OLD_DRIVER = (
    "Install the proprietary kernel modules, of version 580 or older: "
    "later ones do not know this GPU."
)
OPEN_DRIVER = "Install NVIDIA's open kernel modules."
FELL_OFF = (
    "dmesg | grep -E 'Xid.* 79|fallen off the bus' shows since when. Drain the node and reboot it; "
    "if the GPU gets lost again, have power, heat and the slot looked at."
)
SCREEN = "Only to use this GPU too: "
LOAD_DRIVER = "modprobe nvidia; if it does not take the GPU, the kernel's log says why."

# Advice about a GPU's memory.
PERSISTENT_AGAIN = (
    "Load the module with persistent_api_support=1, its default: "
    "grep -r persistent_api_support /etc/modprobe.d finds who changed it."
)
LARGE_BAR = "Turn on above 4G decoding and resizable BAR in the firmware."

# Advice about an RDMA device and its ports.
ONLY_DMA_BUF = (
    "nv_peer_mem and nvidia_peermem serve only devices whose drivers ask the RDMA core: mlx5, and "
    "drivers of other vendors in their own versions. Use dma-buf: docs/choosing.md."
)
TRY_DMA_BUF = "nvpm selftest registers a dma-buf with this device."
SKIP_DMA_BUF = (
    "Programs that ask the device get a yes, and fail when they register: let them register "
    "pointers (docs/choosing.md has their settings). Newer firmware may have ODP (ibv_devinfo -v: "
    "general_odp_caps)."
)
NEEDS_PEERS = (
    "Peer memory does without ODP: it needs an RDMA core of OFED, and nv_peer_mem. Newer firmware "
    "may have ODP (ibv_devinfo -v: general_odp_caps)."
)
SOFTWARE = (
    "A device made of software (rxe, siw) reaches host memory only: use an RDMA device on PCI."
)
BY_PSM = (
    "Omni-Path reaches GPU memory without verbs: by PSM2 or libfabric's psm2 and opx, with the "
    "hfi1 that Cornelis or Intel built for CUDA (HFI1_GPU, PSM2_CUDA=1). nv_peer_mem is not needed."
)
LARGE_READS = (
    "Reads are cut small. Until the next reboot: setpci -s {} CAP_EXP+8.w=5000:7000 "
    "allows 4096 bytes; for good, see the firmware's settings."
)
NO_RELAXED_ORDERING = (
    "off: writes wait for each other; the firmware, or the kernel for some processors, turns it off"
)
NO_SUBNET_MANAGER = (
    "No subnet manager has set this port up: "
    "start one (opensm) on a machine or a switch of this network."
)
NO_ETHERNET = (
    "Look at cable and switch, then at the interface: "
    "rdma link names it, ip link set up turns it on."
)
NO_ANSWER = "dmesg | grep mlx5 shows since when; only a cold start of the node may help."
NO_LINK = "Look at cable and switch; ibstat and iblinkinfo say more."


def facts(machine: Machine) -> Facts:
    yield from place.facts(machine)
    yield from host.facts(machine)
    yield from kernel.facts(machine)
    yield from topology.facts(machine)
    if any(gpu.coherent for gpu in gpus(machine)):
        yield info("machine", "topology", RDMA_TOPO)
    elsewhere = ways.gpu_elsewhere(machine)
    if not gpus(machine) and elsewhere:
        yield bad("GPUs", "number", f"0 on PCI: {elsewhere}", NOT_ON_PCI)
    elif not gpus(machine):
        yield bad("GPUs", "number", 0, of_none(machine))
    for gpu in gpus(machine):
        yield from gpu_facts(machine, gpu, f"GPU {gpu.name}")
    if not nics(machine):
        # Without a GPU, an RDMA device would have nothing to reach, so the absence of RDMA devices
        # is no defect.
        yield no_device.why(machine) if gpus(machine) else info("RDMA devices", "number", 0)
    elif gpus(machine):
        yield from no_device.missing(machine)
    for nic in nics(machine):
        yield from nic_facts(machine, nic, f"RDMA device {nic.name}")
    yield from port_facts(machine)
    yield from access.facts(machine)


def of_none(machine: Machine) -> str:
    """Returns advice for a node without a GPU. If a file names modules for GPUs, and no driver is
    installed, the image is meant for other nodes as well."""
    lines = on_boot.without_gpu(machine)
    if not lines or flavour(machine):
        return FIND_GPU
    return f"{WITHOUT_GPU} {on_boot.remove(lines)} If it is to have one: {FIND_GPU}"


def numa_node(machine: Machine, section: str, pci: Pci) -> Optional[Fact]:
    """Judges whether the NUMA node of a device is known, because programs choose processors and
    devices by the NUMA node."""
    if pci.node >= 0:
        return info(section, "NUMA node", pci.node)
    if topology.several_nodes(machine) and not virtual(machine):
        return warn(section, "NUMA node", "unknown: the firmware does not say", NODE_UNKNOWN)
    return None


# ---- GPUs ----


def gpu_facts(machine: Machine, gpu: Gpu, section: str) -> Facts:
    yield gpu_driver(machine, gpu, section)
    if gpu.model():
        yield info(section, "model", gpu.model())
    yield product(machine, gpu, section)
    yield numa_node(machine, section, gpu.pci)
    if gpu.coherent:
        yield coherent_memory(machine, section)
    else:
        yield bar1(gpu, section)
    if gpu.instances():
        yield info(section, "MIG", f"GPU instances: {gpu.instances()}")


def gpu_driver(machine: Machine, gpu: Gpu, section: str) -> Fact:
    name = gpu.driver
    if gpu.silent():
        return bad(section, "driver", "this GPU does not answer on PCI", FELL_OFF)
    if name == "nvidia":
        return good(section, "driver", name)
    if name.startswith("vfio"):
        served = ways.given_away(machine) or bool(ways.driven_gpus(machine))
        value = f"{name}: it is given to a virtual machine"
        return (info if served else warn)(
            section, "driver", value, GIVEN_AWAY.format(name, gpu.name)
        )
    if name:
        value = f"{name}: the NVIDIA driver does not have this GPU"
        # A GPU with a screen's connectors is often driven by nouveau on purpose. Without nouveau,
        # the screen would get dark.
        if gpu.pci.text("class").startswith(VGA) and ways.usable_gpus(machine):
            return info(section, "driver", value, SCREEN + OTHER_DRIVER.format(name))
        return bad(section, "driver", value, OTHER_DRIVER.format(name))
    if flavour(machine) == "open" and 0 < gpu.product < TURING:
        value = "none: Volta and older are not served by the open driver"
        return bad(section, "driver", value, OLD_DRIVER)
    if flavour(machine) == "proprietary" and gpu.product >= BLACKWELL:
        value = "none: Blackwell and newer are served by the open driver only"
        return bad(section, "driver", value, OPEN_DRIVER)
    if flavour(machine) == "proprietary" and gpu.coherent:
        value = "none: Grace Hopper is served by the open driver only"
        return bad(section, "driver", value, OPEN_DRIVER)
    return bad(section, "driver", "none", LOAD_DRIVER)


def product(machine: Machine, gpu: Gpu, section: str) -> Optional[Fact]:
    """Returns a fact about a GPU that takes no part in GPUDirect RDMA, or perhaps takes no part.
    This is no defect if another GPU takes part, because many nodes have a GPU for a screen."""
    doubt = gpu.doubt()
    if not doubt:
        return None
    if not gpu.excluded():
        return info(section, "product", f"may not take part: {doubt.why}", doubt.advice)
    others = bool(ways.usable_gpus(machine))
    return (info if others else bad)(
        section, "product", f"takes no part: {doubt.why}", doubt.advice
    )


def coherent_memory(machine: Machine, section: str) -> Fact:
    """Judges a GPU whose memory is not in BAR1. Only the driver can map this memory, and the memory
    must then be pinned persistently. With persistent_api_support=0, nv_peer_mem pins all memory
    revocably, so it cannot serve this GPU."""
    if ways.revokes(machine):
        value = (
            "coherent: the driver maps it, and nothing that can be revoked "
            "(persistent_api_support=0)"
        )
        return bad(section, "memory", value, PERSISTENT_AGAIN)
    return good(section, "memory", "coherent: the driver maps it, behind NVLink-C2C")


def bar1(gpu: Gpu, section: str) -> Optional[Fact]:
    """Judges the size of BAR1. The largest possible BAR1 holds all memory of the GPU, so a smaller
    BAR1 limits how much can be registered at once. No file has the size of the GPU's memory
    itself."""
    size, largest = gpu.bar1(), gpu.largest_bar1()
    now = mebibytes(size)
    if not size:
        return None
    if largest > size:
        best = mebibytes(largest)
        value = f"{now} of {best} that it can have: no more can be registered at once"
        return warn(section, "BAR1", value, LARGE_BAR)
    if largest or size > 256:
        return good(section, "BAR1", now)
    return info(section, "BAR1", f"{now}, not resizable here: no more can be registered at once")


def mebibytes(number: int) -> str:
    return f"{number / 1024:.6g} GiB" if number >= 1024 else f"{number} MiB"


# ---- RDMA devices ----


def nic_facts(machine: Machine, nic: Nic, section: str) -> Facts:
    if not nic.pci:
        value = "not a PCI device: it cannot reach GPU memory"
        yield bad(section, "place", value, "Use an RDMA device on PCI.")
        return
    over = f", software over {nic.software}" if nic.software else ""
    yield info(section, "place", nic.pci.address + over + vf.text(nic.pci))
    yield from vf.facts(machine, nic, section)
    yield asks_for_peers(machine, nic, section)
    yield takes_dma_buf(machine, nic, section)
    yield numa_node(machine, section, nic.pci)
    yield iommu(machine, section, nic.pci)
    if not nic.software and not vf.is_one(nic.pci):
        yield from settings_facts(machine, section, nic.pci)


def asks_for_peers(machine: Machine, nic: Nic, section: str) -> Optional[Fact]:
    """Returns a fact about a device if it is not certain that the device's driver asks the RDMA
    core for peer memory."""
    own = own_peer_memory(machine, nic)
    if own:
        return good(section, "peer memory", f"its driver {own} has its own, without the RDMA core")
    asking = asks(machine, nic)
    if asking.can == YES:
        return None
    value = f"{'perhaps' if asking.can == MAY else 'no'}: {asking.why}"
    useless = asking.can == NO and not any(found for found in ways.of_pairs(machine).values())
    driver, advice = nic.driver(), ONLY_DMA_BUF
    if driver in OWN_PEER_MEMORY and asking.can == NO:
        reason, advice = efa.lacks(machine)
        value = f"no: {reason}"
    elif driver == "hfi1":
        advice = BY_PSM
    elif nic.software:
        advice = SOFTWARE
    wanted = gpus(machine) and not ways.given_away(machine)
    return (bad if useless and wanted else info)(section, "peer memory", value, advice)


def takes_dma_buf(machine: Machine, nic: Nic, section: str) -> Optional[Fact]:
    if dma_buf.lacking(machine):
        return None
    found = dma_buf.answers(machine)[nic.name]
    said = ("yes" if found.yes else "no") if found.sure else "perhaps"
    value = f"{said}: {found.why}"
    if not found.misleads:
        return info(section, "dma-buf", value, "" if found.sure else TRY_DMA_BUF)
    wanted = gpus(machine) and not ways.given_away(machine)
    advice = SKIP_DMA_BUF if ways.pointer_ways(machine) else NEEDS_PEERS
    return (warn if wanted else info)(section, "dma-buf", value, advice)


def iommu(machine: Machine, section: str, pci: Pci) -> Fact:
    kind = pci.iommu()
    if kind == "none":
        return good(section, "IOMMU", "none")
    if kind == "identity":
        return good(section, "IOMMU", "identity: addresses are not translated")
    # The data of a coherent GPU goes through the CPU anyway, so the IOMMU does not lengthen its
    # path.
    all_coherent = gpus(machine) and all(gpu.coherent for gpu in gpus(machine))
    slow = "which takes time" if all_coherent else "so data is routed through the CPU"
    option = "iommu.passthrough=1" if machine.processor == "aarch64" else "iommu=pt"
    value = f"{kind}: addresses are translated, {slow}"
    advice = f"Put {option} on the kernel's command line and reboot."
    return warn(section, "IOMMU", value, advice)


def settings_facts(machine: Machine, section: str, pci: Pci) -> Facts:
    """Yields facts about settings of the RDMA device. The GPU's own settings do not matter, because
    the RDMA device sends the read requests, and the GPU only answers."""
    config = pci.config(256)
    control = device_control(config)
    if 0 < len(config) <= 16:
        yield unread(section, "MaxReadReq", "PCI settings of RDMA devices")
    if control is None:
        return
    request = 128 << (control >> 12 & 7)
    if request < 512 and not virtual(machine):
        yield warn(section, "MaxReadReq", request, LARGE_READS.format(pci.address))
    else:
        yield info(section, "MaxReadReq", request)
    ordering = "on" if control & RELAXED_ORDERING else NO_RELAXED_ORDERING
    yield info(section, "relaxed ordering", ordering)


def device_control(config: List[int]) -> Optional[int]:
    """Returns the device control register of PCI Express, which is in the device's list of
    capabilities; None if the register cannot be read."""
    at = config[13] & 0xFF if len(config) > 16 else 0
    for _ in range(48):
        if not 64 <= at < 4 * len(config) - 8:
            break
        if config[at // 4] & 0xFF == PCI_EXPRESS:
            return config[at // 4 + 2]
        at = config[at // 4] >> 8 & 0xFF
    return None


# ---- their ports ----


def port_facts(machine: Machine) -> Facts:
    """Judges the ports. A port without a link is no defect if another port has a link."""
    ports = machine.glob("/sys/class/infiniband/*/ports/*")
    active = any(machine.text(f"{port}/state").endswith("ACTIVE") for port in ports)
    for nic in nics(machine):
        section = f"RDMA device {nic.name}"
        for port in machine.glob(f"{nic.directory}/ports/*"):
            yield port_fact(machine, section, port, active)
        version = machine.text(f"{nic.directory}/fw_ver")
        board = machine.text(f"{nic.directory}/board_id")
        if version:
            yield info(section, "firmware", version + (board and f", board {board}"))


def port_fact(machine: Machine, section: str, port: str, other: bool) -> Optional[Fact]:
    """OTHER: the machine has an active port."""

    def said(file: str) -> str:
        # States are numbered: "4: ACTIVE".
        return machine.text(f"{port}/{file}").split(": ", 1)[-1]

    down = warn if other else bad
    name, state, layer = f"port {os.path.basename(port)}", said("state"), said("link_layer")
    value = f"{state}, {said('phys_state')}, {said('rate')}, {layer}"
    if not state and machine.exists(f"{port}/state"):
        return down(
            section, name, "its state cannot be read: the device does not answer", NO_ANSWER
        )
    if not state:
        return None
    if state == "ACTIVE":
        return good(section, name, value)
    if state in ("INIT", "ARMED") and layer == "InfiniBand":
        return down(section, name, value, NO_SUBNET_MANAGER)
    if layer == "Ethernet":
        return down(section, name, value, NO_ETHERNET)
    return down(section, name, value, NO_LINK)
