# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says which way each program takes to the memory of each GPU, with each RDMA device of this node.
Each program has its own order and its own tests, and does not ask the module. This file applies the
rows of consumers.py to the pairs of this node."""

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..read import ways
from ..read.conf import configured
from ..read.dma_buf import exported
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import MODULE, PARAMETERS, Machine, once
from ..read.pci import nics
from ..read.ways import DMA_BUF, PEERMEM, Pair
from .consumers import (
    BY_ANOTHER_ROW,
    EFA,
    EITHER_LOADED,
    FAILS,
    GIVES_UP,
    LOADED,
    MARKED,
    NO_MARKER,
    OTHER_NAME,
    POINTER,
    PROGRAMS,
    SET_MARKER,
    SYMBOL,
    Program,
    Try,
)
from .fact import Fact, Facts, good, info, warn

DRIVER_PARAMETERS = "/proc/driver/nvidia/params"

# libfabric uses a pointer only with devices whose names show their vendor.
RENAME = (
    "rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx)."
)
BAD_NAME = "the RDMA device does not have mlx, bnxt_re or roce in its name"

FIND_NONE = "find no way"
UNFIT = "cannot use this RDMA device"
GPU_ALONE = "it asks the GPU's driver alone, chooses dma-buf, and this device takes none"
REVOKES_NOTHING = (
    "persistent_api_support=0 does nothing for these, which take dma-buf before {module}: {names}"
)
MAKE_THEM = "Only with these settings do they register pointers: {settings}."


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


def facts(machine: Machine) -> Facts:
    if not any(ways.of_pairs(machine).values()):
        yield info("detection", "programs", "nothing to detect: there is no way to GPU memory")
        return
    for program in PROGRAMS:
        yield fact(machine, program)
    yield marker(machine)
    yield bypassed(machine)


# ---- the way of a program with a pair ----


class Device(NamedTuple):
    """An RDMA device, as programs tell devices apart."""

    name: str
    driver: str
    # The number of the product on PCI.
    number: str


@once
def devices(machine: Machine) -> Dict[str, Device]:
    return {
        nic.name: Device(nic.name, nic.driver(), nic.pci.text("device") if nic.pci else "")
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
        if attempt.way == DMA_BUF and attempt.gpu_alone and exported(machine):
            if attempt.refused == GIVES_UP:
                return Outcome("", why=GPU_ALONE)
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
    return device.number not in attempt.not_on and bool(re.search(attempt.names, device.name))


def why_none(program: Program, device: Device, served: str) -> str:
    """Returns why the program finds no way. SERVED is the module or driver that serves pointers of
    the pair; empty if none does."""
    named = [attempt for attempt in program.tries if attempt.names]
    if served and named and not any(takes(attempt, device) for attempt in named):
        return BAD_NAME
    looks_for = [sign for attempt in program.tries for sign in attempt.looks_for]
    if not served and any(attempt.way == DMA_BUF for attempt in program.tries):
        return "neither of its ways is there"
    if not served:
        kind = "peer memory" if program.tries[0].way == POINTER else "dma-buf"
        return f"it uses {kind} alone"
    return f"it looks for {' '.join(looks_for)}" if looks_for else "it uses dma-buf alone"


@once
def signs(machine: Machine) -> Dict[str, bool]:
    """Returns for each sign of peer memory whether it is there."""
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
        programs = {
            name: by_pair[pair] for name, by_pair in outcomes(machine).items() if pair in by_pair
        }
        if here:
            group = found.setdefault(tuple(programs.values()), Group([], programs))
            group.pairs.append(pair)
    return list(found.values())


def by_way(machine: Machine, group: Group) -> Dict[str, List[str]]:
    """Returns the names of the programs by what they do with the pairs of the group. Only common
    programs are named, and the others are counted."""
    named: Dict[str, List[str]] = {}
    others: Dict[str, int] = {}
    for program in PROGRAMS:
        found = group.programs.get(program.name)
        if not found or (found.unfit and program.why_never in BY_ANOTHER_ROW):
            continue
        text = what_it_does(machine, group, found)
        if program.common:
            wanted = program.instead if found.unfit and not program.only else found.setting
            named.setdefault(text, []).append(
                f"{program.name} ({wanted})" if wanted else program.name
            )
        else:
            others[text] = others.get(text, 0) + 1
    for text, names in named.items():
        if text in others:
            names.append(f"{others[text]} more")
    # The programs that find a way come first.
    return {text: named[text] for text in sorted(named, key=[UNFIT, FIND_NONE].count)}


def what_it_does(machine: Machine, group: Group, found: Outcome) -> str:
    if found.unfit:
        return UNFIT
    if not found.way:
        return FIND_NONE
    revocable = persistent(machine) == "0" and any(
        MODULE in ways.of_pairs(machine)[pair] for pair in group.pairs
    )
    if found.way == DMA_BUF and revocable:
        return f"use {DMA_BUF}, which nothing revokes"
    return f"use {found.way}"


def ways_found(machine: Machine) -> Dict[str, str]:
    """Returns the ways that each program takes on this node, the way of the first pair first. The
    text is empty if the program finds no way with any pair."""
    found = {program.name: "" for program in PROGRAMS if program.only != EFA}
    for name, by_pair in outcomes(machine).items():
        found[name] = ", ".join(dict.fromkeys(one.way for one in by_pair.values() if one.way))
    return found


def persistent(machine: Machine) -> str:
    return machine.text(PARAMETERS + "persistent_api_support")


# ---- facts ----


def fact(machine: Machine, program: Program) -> Optional[Fact]:
    """Returns a fact about a program; None if the program was made for devices that this node does
    not have."""
    by_pair = outcomes(machine).get(program.name, {})
    pairs_by_outcome: Dict[Outcome, List[Pair]] = {}
    for pair, found in by_pair.items():
        if ways.of_pairs(machine)[pair]:
            pairs_by_outcome.setdefault(found, []).append(pair)
    if not pairs_by_outcome:
        return None
    texts = [said(machine, program, found) for found in pairs_by_outcome]
    value = texts[0]
    if len(texts) > 1:
        named = zip(pairs_by_outcome.values(), texts)
        value = "; ".join(f"with {devices_of(pairs)}: {text}" for pairs, text in named)
    return judged(machine, program, list(pairs_by_outcome), value)


def devices_of(pairs: List[Pair]) -> str:
    return ", ".join(dict.fromkeys(device for _, device in pairs))


def said(machine: Machine, program: Program, found: Outcome) -> str:
    """Returns the text of one outcome."""
    if found.way == DMA_BUF:
        return by_dma_buf(machine, program, found)
    if found.way in (MODULE, PEERMEM):
        return f"yes: {found.sees or 'it looks for nothing, and tries'}"
    if found.way:
        return f"yes: {found.way} registers GPU memory itself"
    lost = f"; it then {program.without}" if program.without != FAILS else ""
    return f"no: {found.why}{lost}"


def by_dma_buf(machine: Machine, program: Program, found: Outcome) -> str:
    text = f"by dma-buf {found.setting}".rstrip()
    if not ways.peer_memory_by(machine):
        return text
    if found.setting:
        looks_for = [sign for attempt in program.tries for sign in attempt.looks_for]
        sees = f": it looks for {' '.join(looks_for)}" if looks_for else ""
        return f"{text}; of peer memory it sees none{sees}"
    if program.skip_dma_buf:
        return f"{text}, which it tries first; {program.skip_dma_buf} makes it register pointers"
    return f"{text}, which it tries first"


def judged(machine: Machine, program: Program, found: List[Outcome], value: str) -> Fact:
    """Returns the fact with its verdict. The fact `marker` has the advice for all programs that
    look for the marker, so their own facts have no advice."""
    if any(one.way and one.way != DMA_BUF for one in found):
        return good("detection", program.name, value)
    if any(one.way for one in found) or all(one.unfit for one in found):
        return info("detection", program.name, value)
    if not ways.pointer_ways(machine):
        return info("detection", program.name, value)
    if any(one.why == BAD_NAME for one in found):
        return warn("detection", program.name, value, RENAME)
    advice = "" if looks_for_marker(program) else program.advice
    return info("detection", program.name, value, advice)


def looks_for_marker(program: Program) -> bool:
    return any(sign in MARKED for attempt in program.tries for sign in attempt.looks_for)


def marker(machine: Machine) -> Optional[Fact]:
    """Returns one fact that names all programs that miss the marker."""
    if not machine.loaded(MODULE) or machine.exists(OTHER_NAME):
        return None
    blind = [program.name for program in PROGRAMS if misses_marker(machine, program)]
    if not blind:
        return None
    value = f"no module is called nvidia_peermem, for which these look: {'; '.join(blind)}"
    asked = configured(machine, "MARKER") == "yes"
    return warn("detection", "marker", value, NO_MARKER if asked else SET_MARKER)


def misses_marker(machine: Machine, program: Program) -> bool:
    """Returns whether the program finds no way, and would use the module if it saw the marker. A
    program that has chosen dma-buf does not look for the marker."""
    found = outcomes(machine).get(program.name, {})
    if not looks_for_marker(program) or any(one.way for one in found.values()):
        return False
    served = (pair for pair, here in ways.of_pairs(machine).items() if MODULE in here)
    without = (found[pair] for pair in served if pair in found)
    return any(not one.unfit and one.why != GPU_ALONE for one in without)


def bypassed(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the module would revoke registrations, and programs register dma-bufs
    instead, which nothing revokes."""
    if persistent(machine) != "0":
        return None
    names = list(bypassing(machine))
    if not names:
        return None
    settings = "; ".join(f"{setting} ({', '.join(of)})" for setting, of in skipped(names).items())
    value = REVOKES_NOTHING.format(module=MODULE, names="; ".join(names))
    return info("detection", "revocation", value, MAKE_THEM.format(settings=settings))


def bypassing(machine: Machine) -> Iterator[str]:
    """Yields the programs that take dma-buf with a pair that the module serves."""
    for name, by_pair in outcomes(machine).items():
        for pair, found in by_pair.items():
            if found.way == DMA_BUF and MODULE in ways.of_pairs(machine)[pair]:
                yield name
                break


def skipped(names: List[str]) -> Dict[str, List[str]]:
    """Returns the settings that make the programs skip dma-buf, with the names of the programs."""
    found: Dict[str, List[str]] = {}
    for program in PROGRAMS:
        if program.name in names and program.skip_dma_buf:
            found.setdefault(program.skip_dma_buf, []).append(program.name)
    return found
