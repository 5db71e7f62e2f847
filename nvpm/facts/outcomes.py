# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the way that each program takes to the memory of each GPU, with each RDMA device of this
node. Each program has its own order and its own tests, and does not ask the module. This file
applies the rows of consumers.py to the pairs of this node."""

import re
from typing import Dict, List, NamedTuple, Tuple

from ..read import ways
from ..read.dma_buf import answers, exported
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import MODULE, PEERMEM, Machine, once
from ..read.pci import nics
from ..read.ways import DMA_BUF, Pair
from .consumers import (
    EFA,
    EITHER_LOADED,
    GIVES_UP,
    LOADED,
    POINTER,
    PROGRAMS,
    SYMBOL,
    Program,
    Try,
)

DRIVER_PARAMETERS = "/proc/driver/nvidia/params"

BAD_NAME = "the RDMA device does not have mlx, bnxt_re or roce in its name"
GPU_ALONE = "it asks the GPU's driver alone, chooses dma-buf, and this device takes none"
MISLED = "this device says yes, the program chooses dma-buf, and the device then refuses it"
# The program has chosen dma-buf, so no sign of peer memory would change anything.
CHOSEN = (GPU_ALONE, MISLED)


class Outcome(NamedTuple):
    """The way that a program takes with a pair of a GPU and an RDMA device."""

    # The name of a module or a driver, or dma-buf; empty if the program finds no way.
    way: str
    # The setting without which the program does not take the way.
    setting: str = ""
    # The sign of peer memory that the program sees.
    sees: str = ""
    # The reason why the program finds no way.
    why: str = ""
    # Whether the program cannot use this RDMA device at all.
    unfit: bool = False


class Device(NamedTuple):
    """An RDMA device, as programs tell devices apart."""

    name: str
    driver: str
    # The number of the product on PCI.
    number: str
    # Whether the device says yes to a program that asks for dma-buf, and then refuses each dma-buf.
    misleads: bool = False


@once
def devices(machine: Machine) -> Dict[str, Device]:
    return {
        nic.name: Device(
            nic.name,
            nic.driver(),
            nic.pci.text("device") if nic.pci else "",
            answers(machine)[nic.name].misleads,
        )
        for nic in nics(machine)
    }


@once
def outcomes(machine: Machine) -> Dict[str, Dict[Pair, Outcome]]:
    """Returns the outcome of each program with each pair. A program that was made for EFA alone is
    left out with other devices."""
    found: Dict[str, Dict[Pair, Outcome]] = {}
    # Many pairs have the same device and the same ways.
    known: Dict[Tuple[str, Device, Tuple[str, ...]], Outcome] = {}
    for program in PROGRAMS:
        for pair, here in ways.of_pairs(machine).items():
            device = devices(machine)[pair[1]]
            if program.only == EFA and device.driver not in EFA:
                continue
            key = program.name, device, tuple(here)
            if key not in known:
                known[key] = outcome_of(machine, program, device, here)
            found.setdefault(program.name, {})[pair] = known[key]
    return found


def outcome_of(machine: Machine, program: Program, device: Device, here: List[str]) -> Outcome:
    """Returns the way that the program takes with a pair. HERE has the pair's ways."""
    unfit = misfit(program, device)
    if unfit:
        return Outcome("", why=unfit, unfit=True)
    if program.driver_option and not option_set(machine, program.driver_option):
        return Outcome("", why=f"it needs NVreg_RegistryDwords={program.driver_option} of nvidia")
    served = next((way for way in here if way != DMA_BUF), "")
    looks = True
    for attempt in program.tries:
        if not takes(attempt, device):
            continue
        if attempt.way == DMA_BUF and DMA_BUF in here:
            return Outcome(DMA_BUF, attempt.setting)
        chooses = attempt.gpu_alone or (device.misleads and not attempt.setting)
        if attempt.way == DMA_BUF and chooses and exported(machine):
            if attempt.refused == GIVES_UP:
                return Outcome("", why=GPU_ALONE if attempt.gpu_alone else MISLED)
            # The program has chosen dma-buf, and falls back without looking for signs.
            looks = False
        if attempt.way == POINTER and served:
            sees = seen(machine, attempt)
            if sees or not looks or not attempt.looks_for:
                return Outcome(served, attempt.setting, sees)
    return Outcome("", why=why_none(program, device, served))


def misfit(program: Program, device: Device) -> str:
    """Returns why the program cannot use the RDMA device; an empty string if the program can."""
    if program.only and device.driver not in program.only:
        return f"it was made for {' and '.join(program.only)} alone"
    if device.driver not in program.never:
        return ""
    return ": ".join(filter(None, [program.why_never, program.instead]))


def takes(attempt: Try, device: Device) -> bool:
    """Returns whether the program tries this way with the RDMA device."""
    if attempt.drivers and device.driver not in attempt.drivers:
        return False
    if device.driver in attempt.not_with or device.number in attempt.not_on:
        return False
    return bool(re.search(attempt.names, device.name))


def why_none(program: Program, device: Device, served: str) -> str:
    """Returns why the program finds no way. SERVED is the module or driver that serves pointers of
    the pair; empty if none does."""
    named = [attempt for attempt in program.tries if attempt.names]
    if served and named and not any(takes(attempt, device) for attempt in named):
        return BAD_NAME
    kinds = {attempt.way for attempt in program.tries}
    if kinds == {DMA_BUF}:
        return "it uses dma-buf alone"
    if not served:
        return "it uses peer memory alone" if kinds == {POINTER} else "neither of its ways is there"
    return f"it looks for {' '.join(signs_of(program))}"


def signs_of(program: Program) -> List[str]:
    return [sign for attempt in program.tries for sign in attempt.looks_for]


@once
def signs(machine: Machine) -> Dict[str, bool]:
    """Returns the signs of peer memory, each with its presence."""
    modules = machine.all_text("/proc/modules")
    listed = {name for name in (PEERMEM, MODULE) if re.search(f"^{name} ", modules, re.MULTILINE)}
    found = {
        LOADED: PEERMEM in listed,
        EITHER_LOADED: bool(listed),
        SYMBOL: peer_memory_in(machine) != "",
    }
    wanted = {sign for program in PROGRAMS for one in program.tries for sign in one.looks_for}
    for sign in wanted - {*found}:
        found[sign] = machine.exists(sign)
    return found


def seen(machine: Machine, attempt: Try) -> str:
    """Returns the first sign of peer memory that the program sees; an empty string if it sees
    none."""
    return next((sign for sign in attempt.looks_for if signs(machine)[sign]), "")


def option_set(machine: Machine, option: str) -> bool:
    """Returns whether the NVIDIA driver was loaded with the option. A file that cannot be read says
    nothing, so the option counts as set."""
    text = machine.text(DRIVER_PARAMETERS)
    return not text or option in text


# ---- the ways of all pairs ----


class Group(NamedTuple):
    """Pairs with which all programs take the same ways."""

    pairs: List[Pair]
    programs: Dict[str, Outcome]


@once
def grouped(machine: Machine) -> List[Group]:
    """Returns the pairs that have some way, in groups with the same outcomes."""
    found: Dict[Tuple[Outcome, ...], Group] = {}
    for pair, here in ways.of_pairs(machine).items():
        if not here:
            continue
        programs = {
            name: by_pair[pair] for name, by_pair in outcomes(machine).items() if pair in by_pair
        }
        group = found.setdefault(tuple(programs.values()), Group([], programs))
        group.pairs.append(pair)
    return list(found.values())


def ways_found(machine: Machine) -> Dict[str, str]:
    """Returns the ways that each program takes on this node, the way of the first pair first. The
    text is empty if the program finds no way with any pair."""
    found = {program.name: "" for program in PROGRAMS if program.only != EFA}
    for name, by_pair in outcomes(machine).items():
        found[name] = ", ".join(dict.fromkeys(one.way for one in by_pair.values() if one.way))
    return found
