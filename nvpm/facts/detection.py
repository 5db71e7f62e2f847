# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says which way each program takes with the RDMA devices of this node, and which setting or sign
would change that."""

from typing import Dict, Iterator, List, Optional

from ..read import ways
from ..read.conf import configured
from ..read.machine import CONF, MODULE, PEERMEM, SERVICE, Machine, own_module
from ..read.names import pair_names
from ..read.ways import DMA_BUF, Pair
from .consumers import (
    FAILS,
    MARKED,
    OTHER_NAME,
    PROGRAMS,
    Program,
)
from .fact import Fact, Facts, good, info, warn
from .outcomes import BAD_NAME, CHOSEN, Outcome, outcomes, signs_of

RENAME = (
    "rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx)."
)
NO_MARKER = (
    f"{SERVICE} restart: it says why the module nvidia_peermem, which MARKER=yes asks for, "
    "is not there."
)
SET_MARKER = (
    f"Set MARKER=yes in {CONF}, then {SERVICE} restart: that adds a module named nvidia_peermem."
)
NO_SERVICE = (
    "modprobe nv_peer_mem_marker adds a module named nvidia_peermem; at boot: "
    "echo nv_peer_mem_marker >/etc/modules-load.d/nv_peer_mem_marker.conf"
)
REVOKES_NOTHING = (
    "persistent_api_support=0 does nothing for these, which take dma-buf before {module}: {names}"
)
MAKE_THEM = (
    "Only with these settings do they register pointers: {settings}. nvpm status --all and "
    "docs/choosing.md name the program of each."
)


def facts(machine: Machine) -> Facts:
    if not any(ways.of_pairs(machine).values()):
        yield info("detection", "programs", "nothing to detect: there is no way to GPU memory")
        return
    for program in PROGRAMS:
        yield fact(machine, program)
    yield marker(machine)
    yield bypassed(machine)


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
        value = "; ".join(f"with {pair_names(machine, pairs)}: {text}" for pairs, text in named)
    return judged(machine, program, list(pairs_by_outcome), value)


def said(machine: Machine, program: Program, found: Outcome) -> str:
    """Returns an outcome as text."""
    if found.way == DMA_BUF:
        return by_dma_buf(machine, program, found)
    if found.way in (MODULE, PEERMEM):
        return f"yes: {found.sees or 'it looks for nothing, and tries'}"
    if found.way:
        return f"yes: {found.way} registers GPU memory itself"
    if found.why in CHOSEN:
        return f"no: {found.why}{pointers_instead(machine, program)}"
    lost = f"; it then {program.without}" if program.without != FAILS else ""
    return f"no: {found.why}{lost}"


def pointers_instead(machine: Machine, program: Program) -> str:
    """Returns how a program that has chosen dma-buf would register pointers; an empty string if
    this is not possible."""
    if not program.skip_dma_buf or not ways.pointer_ways(machine):
        return ""
    return f"; {program.skip_dma_buf} makes it register pointers"


def by_dma_buf(machine: Machine, program: Program, found: Outcome) -> str:
    text = f"by dma-buf {found.setting}".rstrip()
    if not ways.peer_memory_by(machine):
        return text
    if found.setting:
        sees = f": it looks for {' '.join(signs_of(program))}" if signs_of(program) else ""
        return f"{text}; of peer memory it sees none{sees}"
    if program.skip_dma_buf:
        return f"{text}, which it tries first; {program.skip_dma_buf} makes it register pointers"
    if all(attempt.way == DMA_BUF for attempt in program.tries):
        return f"{text} alone"
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
    return any(sign in MARKED for sign in signs_of(program))


def marker(machine: Machine) -> Optional[Fact]:
    """Returns one fact that names all programs that miss the marker."""
    if own_module(machine) != MODULE or machine.exists(OTHER_NAME):
        return None
    blind = [program.name for program in PROGRAMS if misses_marker(machine, program)]
    if not blind:
        return None
    value = f"no module is called nvidia_peermem, for which these look: {'; '.join(blind)}"
    return warn("detection", "marker", value, to_get_marker(machine))


def to_get_marker(machine: Machine) -> str:
    if not machine.exists(SERVICE):
        return NO_SERVICE
    return NO_MARKER if configured(machine, "MARKER") == "yes" else SET_MARKER


def misses_marker(machine: Machine, program: Program) -> bool:
    """Returns whether the program finds no way, and would use the module if it saw the marker. A
    program that has chosen dma-buf does not look for the marker."""
    found = outcomes(machine).get(program.name, {})
    if not looks_for_marker(program) or any(one.way for one in found.values()):
        return False
    served = (pair for pair, here in ways.of_pairs(machine).items() if MODULE in here)
    without = (found[pair] for pair in served if pair in found)
    return any(not one.unfit and one.why not in CHOSEN for one in without)


def bypassed(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the module would revoke registrations, and programs register dma-bufs
    instead, which nothing revokes."""
    if not ways.revokes(machine):
        return None
    names = list(bypassing(machine))
    if not names:
        return None
    settings = " ".join(dict.fromkeys(skipped(names)))
    value = REVOKES_NOTHING.format(module=MODULE, names="; ".join(names))
    return info("detection", "revocation", value, MAKE_THEM.format(settings=settings))


def bypassing(machine: Machine) -> Iterator[str]:
    """Yields the programs that take dma-buf with a pair that the module serves."""
    for name, by_pair in outcomes(machine).items():
        for pair, found in by_pair.items():
            if found.way == DMA_BUF and MODULE in ways.of_pairs(machine)[pair]:
                yield name
                break


def skipped(names: List[str]) -> Iterator[str]:
    """Yields the settings that make the programs skip dma-buf."""
    for program in PROGRAMS:
        if program.name in names and program.skip_dma_buf:
            yield program.skip_dma_buf
