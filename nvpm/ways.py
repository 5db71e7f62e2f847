# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""By which ways GPU memory is registered with which RDMA device on this node.

There are two verbs, and two modules for the first: ibv_reg_mr() of a pointer, which the RDMA core
hands to nv_peer_mem or nvidia_peermem (peer memory), and ibv_reg_dmabuf_mr() of a descriptor.
"""

from typing import Dict, List, NamedTuple, Tuple

from . import dma_buf
from .kernel_symbols import peer_memory_in
from .machine import MODULE, PARAMETERS, STATISTICS, Machine, once
from .pci import Gpu, gpus, nics

PEERMEM = "nvidia_peermem"
DMA_BUF = "dma-buf"

# The marker, which is ours, has this module's name too.
MARKER = "/sys/module/nv_peer_mem/holders/nvidia_peermem"

Pair = Tuple[str, str]


def peermem_loaded(machine: Machine) -> bool:
    """Whether NVIDIA's own module is loaded."""
    return machine.loaded(PEERMEM) and not machine.exists(MARKER)


@once
def peer_memory_by(machine: Machine) -> str:
    """The module that serves ibv_reg_mr() of GPU memory; empty if none does."""
    if machine.loaded(MODULE):
        return MODULE
    # It is loaded on cores without peer memory, too, and does nothing there.
    return PEERMEM if peermem_loaded(machine) and peer_memory_in(machine) else ""


@once
def driven_gpus(machine: Machine) -> List[Gpu]:
    """Those that the NVIDIA driver has, in the order in which nvidia-smi numbers them."""
    return [gpu for gpu in gpus(machine) if gpu.driver == "nvidia"]


@once
def usable_gpus(machine: Machine) -> List[Gpu]:
    return [gpu for gpu in driven_gpus(machine) if not gpu.integrated()]


def peer_memory_of(machine: Machine, gpu: Gpu) -> str:
    """The module that serves this GPU's memory. Ours maps only what can be revoked by itself; the
    driver maps the memory of coherent GPUs, pinned."""
    peer = peer_memory_by(machine)
    revocable = machine.text(PARAMETERS + "persistent_api_support") == "0"
    return "" if peer == MODULE and gpu.coherent and revocable else peer


@once
def refused(machine: Machine) -> List[Pair]:
    """Pairs that the NVIDIA driver does not let reach each other, as far as they have met."""
    rows = [line.split()[:3] for line in machine.lines(STATISTICS + "pairs")]
    return [(gpu, device) for gpu, device, said in rows if said == "refused"]


@once
def of_pairs(machine: Machine) -> Dict[Pair, List[str]]:
    """Of each GPU that has a driver and each RDMA device: their ways, the one for ibv_reg_mr()
    first; none if there is no way."""
    by_dma_buf, found = dma_buf.taken_by(machine), {}
    for gpu in usable_gpus(machine):
        peer = peer_memory_of(machine, gpu)
        for nic in nics(machine):
            pair = (gpu.name, nic.name)
            ways = [peer] if peer and nic.pci and pair not in refused(machine) else []
            if nic.name in by_dma_buf:
                ways.append(DMA_BUF)
            found[pair] = ways
    return found


@once
def in_the_way(machine: Machine) -> str:
    """Why no GPU memory can be registered at all; empty if some can."""
    if not gpus(machine):
        return "there is no NVIDIA GPU"
    if not machine.loaded("nvidia"):
        return "the NVIDIA driver is not loaded"
    if not driven_gpus(machine):
        return "the NVIDIA driver has none of the GPUs"
    if not usable_gpus(machine):
        return "the GPU has no memory of its own"
    if not nics(machine):
        return "there is no RDMA device"
    if any(of_pairs(machine).values()):
        return ""
    if not any(nic.pci for nic in nics(machine)):
        return "no RDMA device is a PCI device"
    if peer_memory_by(machine):
        return "no RDMA device reaches the memory of a GPU"
    if peer_memory_in(machine):
        return f"{MODULE} is not loaded, and there is no dma-buf"
    return "the RDMA core has no peer memory, and there is no dma-buf"


def there_are(machine: Machine, way: str) -> bool:
    return any(way in ways for ways in of_pairs(machine).values())


def dma_buf_serves(machine: Machine) -> bool:
    """Whether each GPU reaches some RDMA device by dma-buf: programs that use it need no more."""
    pairs = of_pairs(machine)
    reached = {gpu for (gpu, _), ways in pairs.items() if DMA_BUF in ways}
    return bool(pairs) and reached == {gpu for gpu, _ in pairs}


class Group(NamedTuple):
    """Pairs that have the same ways: each of the GPUs with each of the devices."""

    gpus: List[str]
    devices: List[str]
    ways: List[str]


def grouped(machine: Machine) -> List[Group]:
    """The pairs, those that agree folded: first devices that have the same with all GPUs, then GPUs
    that have the same with these devices."""
    pairs = of_pairs(machine)
    rows: Dict[str, Dict[str, List[str]]] = {}
    for (gpu, device), ways in pairs.items():
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
