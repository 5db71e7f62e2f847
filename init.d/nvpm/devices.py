# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""GPUs and RDMA devices: how they are connected, what is to be said of each, and who may use them."""
import os

from . import access, place, topology
from .driver import flavour
from .fact import bad, good, none, unread, warn
from .machine import PARAMETERS
from .module import kernel_facts
from .pci import gpus, nics
from .place import virtual

# NVIDIA numbers its products by generation. The open driver serves no GPU before Turing, the proprietary one none from Blackwell on.
TURING, BLACKWELL = 0x1e00, 0x2900

PCI_EXPRESS, RELAXED_ORDERING = 16, 1 << 4


def facts(machine):
    yield from place.facts(machine)
    yield from kernel_facts(machine)
    yield from topology.facts(machine)
    if not gpus(machine):
        yield bad("GPUs", "number", 0, "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware.")
    for gpu in gpus(machine):
        yield from _gpu(machine, gpu, "GPU " + gpu.name)
    if not nics(machine):
        yield bad("RDMA devices", "number", 0, "Load the driver of the RDMA device (/etc/init.d/openibd start); ibv_devices lists what is there.")
    for nic in nics(machine):
        yield from _nic(machine, nic, "RDMA device " + nic.name)
    yield from _ports(machine)
    yield from access.facts(machine)


def _node(machine, section, pci):
    """On a machine with several nodes, programs choose processors and devices by the node."""
    if pci.node >= 0:
        yield none(section, "NUMA node", pci.node)
    elif topology.several_nodes(machine) and not virtual(machine):
        yield warn(section, "NUMA node", "unknown: the firmware does not say",
                   "Programs cannot choose the near processors: look for newer firmware (BIOS), or bind them by hand.")


def _gpu(machine, gpu, section):
    yield _driver(machine, gpu, section)
    yield from _node(machine, section, gpu.pci)
    if gpu.coherent:
        yield _memory(machine, section)
    elif gpu.bar1() is not None:
        yield _bar1(section, gpu.bar1(), gpu.largest_bar1())
    if gpu.instances():
        yield none(section, "MIG", "GPU instances: %d" % gpu.instances())


def _driver(machine, gpu, section):
    name, newer = gpu.driver, gpu.product >= BLACKWELL
    if name == "nvidia":
        return good(section, "driver", name)
    if name.startswith("vfio"):
        served = any(other.driver == "nvidia" for other in gpus(machine))
        return (none if served else warn)(
            section, "driver", name + ": it is given to a virtual machine", "nv_peer_mem belongs into that machine. To have the GPU here, take it from %s "
            "(driverctl unset-override %s, or vfio-pci.ids= on the kernel's command line) and reboot." % (name, gpu.name))
    if name:
        return bad(section, "driver", name + ": the NVIDIA driver does not have this GPU",
                   "echo 'blacklist {0}' >/etc/modprobe.d/nvidia-blacklist-{0}.conf, make the initramfs anew (update-initramfs -u, or dracut -f), and "
                   "reboot.".format(name))
    if flavour(machine) == "open" and 0 < gpu.product < TURING:
        return bad(section, "driver", "none: Volta and older are not served by the open driver",
                   "Install the proprietary kernel modules, of version 580 or older: later ones do not know this GPU.")
    if flavour(machine) == "proprietary" and (gpu.coherent or newer):
        return bad(section, "driver", "none: %s served by the open driver only" % ("Blackwell and newer are" if newer else "Grace Hopper is"),
                   "Install NVIDIA's open kernel modules.")
    return bad(section, "driver", "none", "modprobe nvidia; if it does not take the GPU, the kernel's log says why.")


def _mib(size):
    return "%.6g GiB" % (size / 1024) if size >= 1024 else "%d MiB" % size


def _bar1(section, size, largest):
    """No file says how much memory a GPU has, but the largest BAR that it can have holds all of it."""
    if largest > size:
        return warn(section, "BAR1", "%s of %s that it can have: no more can be registered at once" % (_mib(size), _mib(largest)),
                    "Turn on above 4G decoding and resizable BAR in the firmware.")
    if largest or size > 256:
        return good(section, "BAR1", _mib(size))
    return none(section, "BAR1", _mib(size) + ", not resizable here: no more can be registered at once")


def _memory(machine, section):
    """Nothing of such a GPU's memory is in BAR1. Our module maps only what can be revoked; the driver maps it, pinned."""
    if machine.text(PARAMETERS + "/persistent_api_support") != "0":
        return good(section, "memory", "coherent: the driver maps it, behind NVLink-C2C")
    return bad(section, "memory", "coherent: the driver maps it, and nothing that can be revoked (persistent_api_support=0)",
               "Load the module with persistent_api_support=1, its default: grep -r persistent_api_support /etc/modprobe.d finds who changed it.")


def _nic(machine, nic, section):
    if not nic.pci:
        yield bad(section, "place", "not a PCI device: it cannot reach GPU memory", "Use an RDMA device on PCI.")
        return
    yield none(section, "place", nic.pci.address + (nic.software and ", software over " + nic.software))
    yield from _node(machine, section, nic.pci)
    yield _iommu(machine, section, nic.pci.iommu())
    if not nic.software:
        yield from _settings(machine, section, nic.pci)


def _iommu(machine, section, kind):
    if kind in ("none", "identity"):
        return good(section, "IOMMU", {"none": "none", "identity": "identity: addresses are not translated"}[kind])
    # The data of coherent GPUs goes through the CPU anyway.
    slow = "which takes time" if gpus(machine) and all(gpu.coherent for gpu in gpus(machine)) else "so data is routed through the CPU"
    option = "iommu.passthrough=1" if machine.processor == "aarch64" else "iommu=pt"
    return warn(section, "IOMMU", "%s: addresses are translated, %s" % (kind, slow), "Put %s on the kernel's command line and reboot." % option)


def _settings(machine, section, pci):
    """Of the RDMA device, because it reads and the GPU answers."""
    config = pci.config(256)
    control = _device_control(config)
    if 0 < len(config) <= 16:
        yield unread(section, "MaxReadReq", "PCI settings of RDMA devices")
    elif control is not None:
        request = 128 << (control >> 12 & 7)
        if request < 512 and not virtual(machine):
            yield warn(section, "MaxReadReq", request, "Reads are cut small. Until the next reboot: setpci -s %s CAP_EXP+8.w=5000:7000 allows 4096 bytes; "
                       "for good, see the firmware's settings." % pci.address)
        else:
            yield none(section, "MaxReadReq", request)
        yield none(section, "relaxed ordering", "on" if control & RELAXED_ORDERING else
                   "off: writes wait for each other; the firmware, or the kernel for some processors, turns it off")


def _device_control(config):
    """The control register of PCI Express, from the list of capabilities; None if it cannot be read."""
    at = config[13] & 0xff if len(config) > 16 else 0
    for _ in range(48):
        if not 64 <= at < 4 * len(config) - 8:
            break
        if config[at // 4] & 0xff == PCI_EXPRESS:
            return config[at // 4 + 2]
        at = config[at // 4] >> 8 & 0xff
    return None


def _ports(machine):
    """A port without a link is no defect if the machine has another one; without any, nothing leaves the machine."""
    active = any(machine.text(port + "/state").endswith("ACTIVE") for port in machine.glob("/sys/class/infiniband/*/ports/*"))
    for nic in nics(machine):
        for port in machine.glob(nic.directory + "/ports/*"):
            if machine.text(port + "/state"):
                yield _port(machine, "RDMA device " + nic.name, port, warn if active else bad)
        version, board = machine.text(nic.directory + "/fw_ver"), machine.text(nic.directory + "/board_id")
        if version:
            yield none("RDMA device " + nic.name, "firmware", version + (board and ", board " + board))


def _port(machine, section, port, down):
    state, physical, rate, layer = (machine.text(port + "/" + file) for file in ("state", "phys_state", "rate", "link_layer"))
    # As in "4: ACTIVE".
    state, physical = state.split(": ", 1)[-1], physical.split(": ", 1)[-1]
    name, value = "port " + os.path.basename(port), ", ".join((state, physical, rate, layer))
    if state == "ACTIVE":
        return good(section, name, value)
    if state in ("INIT", "ARMED") and layer == "InfiniBand":
        return down(section, name, value, "No subnet manager has set this port up: start one (opensm) on a machine or a switch of this network.")
    return down(section, name, value, "Look at cable and switch, then at the interface: rdma link names it, ip link set up turns it on."
                if layer == "Ethernet" else "Look at cable and switch; ibstat and iblinkinfo say more.")
