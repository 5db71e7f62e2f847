# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The ways to register GPU memory with each RDMA device of this node.

The verb ibv_reg_mr() takes a pointer, which the RDMA core hands to nv_peer_mem or nvidia_peermem
(peer memory). The verb ibv_reg_dmabuf_mr() takes a descriptor."""

from typing import Dict, List, NamedTuple, Set, Tuple

from . import dma_buf
from .kernel_symbols import peer_memory_in
from .machine import MODULE, PEERMEM, Machine, once, own_module, parameters
from .pairs import REFUSED, pairs
from .pci import Gpu, Nic, gpus, nics
from .peers import asks, none_asks, own_peer_memory
from .place import container, loads_modules
from .products import NO

DMA_BUF = "dma-buf"
NO_DEVICE = "there is no RDMA device"

# Our marker module has the name nvidia_peermem also.
MARKER = "/sys/module/nv_peer_mem/holders/nvidia_peermem"

Pair = Tuple[str, str]


def peermem_loaded(machine: Machine) -> bool:
    """Whether NVIDIA's own module is loaded."""
    ours = machine.exists(MARKER) or own_module(machine) == PEERMEM
    return machine.loaded(PEERMEM) and not ours


@once
def peer_memory_by(machine: Machine) -> str:
    """Returns the module that serves ibv_reg_mr() of GPU memory; an empty string if no module does.
    MODULE stands for nv_peer_mem under either name, and PEERMEM for NVIDIA's own module."""
    if own_module(machine):
        return MODULE
    # nvidia_peermem can also be loaded with a core without peer memory, but it does nothing there.
    return PEERMEM if peermem_loaded(machine) and peer_memory_in(machine) else ""


@once
def driven_gpus(machine: Machine) -> List[Gpu]:
    """Returns the GPUs that the NVIDIA driver drives, in the order of nvidia-smi."""
    return [gpu for gpu in gpus(machine) if gpu.driver == "nvidia"]


@once
def usable_gpus(machine: Machine) -> List[Gpu]:
    """Returns the GPUs with a driver whose memory other devices can reach."""
    return [gpu for gpu in driven_gpus(machine) if not gpu.excluded() and not gpu.silent()]


def revokes(machine: Machine) -> bool:
    """Returns True if nv_peer_mem pins all memory so that a registration can be revoked."""
    return machine.text(parameters(machine) + "persistent_api_support") == "0"


def peer_memory_of(machine: Machine, gpu: Gpu) -> str:
    """Returns the module that serves this GPU's memory; an empty string if no module does. With
    persistent_api_support=0, nv_peer_mem serves only memory that can be revoked. The memory of a
    coherent GPU cannot be revoked, because the driver maps this memory, and keeps it pinned."""
    peer = peer_memory_by(machine)
    return "" if peer == MODULE and gpu.coherent and revokes(machine) else peer


@once
def refused(machine: Machine) -> Set[Pair]:
    """Returns the pairs of GPU (UUID) and device (PCI address) about which the NVIDIA driver has
    said that the device must not reach the GPU."""
    return {(met.gpu.lower(), met.device) for met in pairs(machine) if met.said == REFUSED}


def pointer_way(machine: Machine, gpu: Gpu, nic: Nic) -> str:
    """Returns the module or the driver that serves ibv_reg_mr() of this GPU's memory with this
    device; an empty string if none does."""
    own = own_peer_memory(machine, nic)
    if own or not nic.pci or asks(machine, nic).can == NO:
        return own
    uuid = gpu.information("GPU UUID").lower()
    return "" if (uuid, nic.pci.address) in refused(machine) else peer_memory_of(machine, gpu)


@once
def of_pairs(machine: Machine) -> Dict[Pair, List[str]]:
    """Returns the ways of each GPU with a driver and each RDMA device, peer memory first."""
    by_dma_buf, found = dma_buf.taken_by(machine), {}
    for gpu in usable_gpus(machine):
        for nic in nics(machine):
            pointer = pointer_way(machine, gpu, nic)
            ways = [pointer] if pointer else []
            if nic.name in by_dma_buf:
                ways.append(DMA_BUF)
            found[gpu.name, nic.name] = ways
    return found


def pointer_way_of(machine: Machine, gpu: str, device: str) -> str:
    """Returns the module or the driver that serves ibv_reg_mr() for a pair of names; an empty
    string if none does. The module that is loaded counts for a pair that no file shows."""
    if (gpu, device) not in of_pairs(machine):
        return peer_memory_by(machine)
    return next((way for way in of_pairs(machine)[gpu, device] if way != DMA_BUF), "")


def pointer_ways(machine: Machine) -> List[str]:
    """Returns the modules that serve ibv_reg_mr() of GPU memory for some pair here."""
    found = (way for ways in of_pairs(machine).values() for way in ways if way != DMA_BUF)
    return list(dict.fromkeys(found))


def own_way(machine: Machine) -> str:
    """Returns the driver of an RDMA device that serves ibv_reg_mr() itself; an empty string if none
    does."""
    return next((way for way in pointer_ways(machine) if way not in (MODULE, PEERMEM)), "")


def excluded_gpus(machine: Machine) -> bool:
    """Returns whether this machine has GPUs with a driver, but none of them takes part in GPUDirect
    RDMA."""
    return bool(driven_gpus(machine)) and not usable_gpus(machine)


def excluded(machine: Machine) -> str:
    """Returns why no GPU with a driver takes part; an empty string if some GPU takes part."""
    if not excluded_gpus(machine):
        return ""
    return why_unusable(driven_gpus(machine)[0])


def why_unusable(gpu: Gpu) -> str:
    """Returns why a GPU with a driver takes no part; an empty string if it takes part."""
    if gpu.silent():
        return f"GPU {gpu.name} does not answer on PCI"
    doubt = gpu.doubt()
    return f"{gpu.model()} is {doubt.why}" if doubt else ""


@once
def given_away(machine: Machine) -> bool:
    """Returns whether this host has given all of its GPUs to virtual machines."""
    found = gpus(machine)
    return bool(found) and all(gpu.driver.startswith("vfio") for gpu in found)


def gpu_elsewhere(machine: Machine) -> str:
    """Returns why a GPU that is not on PCI takes no part; an empty string if there is none."""
    if machine.exists("/dev/dxg"):
        return "the GPU of WSL2 is driven by Windows, and no RDMA device reaches its memory"
    if machine.loaded("nvgpu"):
        return "this GPU is integrated (Tegra), and needs NVIDIA's own sample of nvidia-p2p"
    return ""


def given_no_gpu(machine: Machine) -> bool:
    """Returns whether this is a container that needs a GPU and has none. A container sees the
    node's GPUs in sysfs, but CUDA needs their device files."""
    if not container(machine) or loads_modules(machine):
        return False
    return machine.loaded("nvidia") and not machine.glob("/dev/nvidia[0-9]*")


@once
def in_the_way(machine: Machine) -> str:
    """Returns why no GPU memory can be registered; an empty string if some GPU memory can be
    registered."""
    if given_away(machine):
        return "its GPUs are given to virtual machines, which register their memory"
    if not gpus(machine):
        return gpu_elsewhere(machine) or "there is no NVIDIA GPU"
    if given_no_gpu(machine):
        return "this container was given no GPU (--gpus, or the device plugin)"
    if not machine.loaded("nvidia"):
        return "the NVIDIA driver is not loaded"
    if not driven_gpus(machine):
        return "the NVIDIA driver has none of the GPUs"
    if excluded(machine):
        return excluded(machine)
    if not nics(machine):
        return NO_DEVICE
    if any(of_pairs(machine).values()):
        return ""
    if not any(nic.pci for nic in nics(machine)):
        return "no RDMA device is a PCI device"
    if none_asks(machine):
        return f"{none_asks(machine)} for peer memory, and there is no dma-buf"
    if peer_memory_by(machine):
        return "no RDMA device reaches the memory of a GPU"
    if peer_memory_in(machine):
        return f"neither {MODULE} nor {PEERMEM} is loaded, and there is no dma-buf"
    return "the RDMA core has no peer memory, and there is no dma-buf"


def there_are(machine: Machine, way: str) -> bool:
    return any(way in ways for ways in of_pairs(machine).values())


def dma_buf_serves(machine: Machine) -> bool:
    """Returns whether each GPU reaches some RDMA device by dma-buf. This is enough for programs
    that use dma-buf."""
    found = of_pairs(machine)
    reached = {gpu for (gpu, _), ways in found.items() if DMA_BUF in ways}
    return bool(found) and reached == {gpu for gpu, _ in found}


def served_without_core(machine: Machine) -> bool:
    """Whether each GPU reaches some RDMA device by a way that needs no peer memory of the core."""
    found = of_pairs(machine)
    reached = {gpu for (gpu, _), ways in found.items() if {*ways} - {MODULE, PEERMEM}}
    return bool(found) and reached == {gpu for gpu, _ in found}


class Group(NamedTuple):
    """Pairs that have the same ways. Each GPU of the group makes a pair with each device of the
    group."""

    gpus: List[str]
    devices: List[str]
    ways: List[str]


def grouped(machine: Machine) -> List[Group]:
    """Returns the pairs in groups with the same ways. Devices with the same ways at one GPU are put
    together first. GPUs with the same devices and ways are then put together."""
    rows: Dict[str, Dict[str, List[str]]] = {}
    for (gpu, device), ways in of_pairs(machine).items():
        rows.setdefault(gpu, {})[device] = ways
    found: Dict[Tuple[Tuple[str, ...], Tuple[str, ...]], List[str]] = {}
    for gpu, row in rows.items():
        by_ways: Dict[Tuple[str, ...], List[str]] = {}
        for device, ways in row.items():
            by_ways.setdefault(tuple(ways), []).append(device)
        for ways_of_row, devices in by_ways.items():
            found.setdefault((tuple(devices), ways_of_row), []).append(gpu)
    return [
        Group(gpu_names, list(devices), list(ways)) for (devices, ways), gpu_names in found.items()
    ]
