# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the answer, which fits one screen. The answer says whether GPU memory can be registered on
this machine, which ways there are, and which programs find a way. If there is an obstacle, the
answer says what to do first."""

import textwrap
from typing import Iterable, Iterator, List, Optional

from ..facts import no_device, topology
from ..facts.driver import flavour, version
from ..facts.fact import BAD, Fact, to_do
from ..facts.status import Status
from ..read import dma_buf, ways
from ..read.doubts import uncertain
from ..read.machine import Machine, clean
from ..read.names import folded, gpu_numbers
from ..read.pci import gpus, nics
from ..read.reader import NVIDIA_DRIVER
from ..read.ways import DMA_BUF
from .programs import program_lines

# The answer has at most HEIGHT lines and WIDTH columns on every node. On a screen with fewer
# columns than NARROW, it may have more lines.
HEIGHT, WIDTH, NARROW = 12, 100, 60
# The column at which values start, after the names.
NAME = 14

NOBODY_KNOWS = "Nobody knows whether GPU memory can be registered here: /sys is not mounted."

# The foundations of a registration, the lowest first. Each text is the beginning of the identifiers
# of facts.
FOUNDATIONS = (
    "kernel/",
    "gpu",
    "driver/nvidia/",
    "driver/flavour/",
    "rdma_device",
    "rdma_core/",
    "driver/",
    "machine/",
    "security/",
    "module/",
)


def headline(machine: Machine) -> str:
    """Returns a sentence that says how GPU memory can be registered, or why it cannot be
    registered."""
    obstacle = ways.in_the_way(machine)
    # Files are read while the ways are found, so only then the silence shows.
    silence = machine.reader.silences.get(NVIDIA_DRIVER)
    if silence:
        return f"No GPU memory can be registered now: the NVIDIA driver {silence.value()}."
    if obstacle == ways.NO_DEVICE and no_device.headline(machine):
        obstacle = f"{obstacle}: {no_device.headline(machine)}"
    if obstacle:
        return f"GPU memory cannot be registered for RDMA here: {obstacle}."
    peer, by_dma_buf = " and ".join(ways.pointer_ways(machine)), ways.there_are(machine, DMA_BUF)
    if peer and by_dma_buf:
        how = f"by pointer (ibv_reg_mr, {peer}) and as dma-buf"
    elif peer:
        how = f"by pointer (ibv_reg_mr, {peer}); there is no dma-buf"
    else:
        how = "as dma-buf; of a pointer (ibv_reg_mr) by nvpm run PROGRAM"
    can = "may work" if uncertain(machine) else "can be registered"
    caveats = caveat(machine)
    return f"GPU memory {can} for RDMA here, {how}{caveats and '; ' + caveats}."


def caveat(machine: Machine) -> str:
    """Returns what the files do not show about the ways; an empty string if there is no doubt."""
    if uncertain(machine):
        return f"not certain, because {uncertain(machine)}"
    unproven = topology.unproven(machine)
    if unproven:
        return f"whether data gets from device to device {unproven}, nvpm selftest shows"
    return ""


def gpu_text(machine: Machine) -> str:
    found = gpus(machine)
    if not found:
        return "none"
    models = [gpu.model() or "GPU of no known model" for gpu in found]
    counted = [f"{models.count(model)} x {model}" for model in dict.fromkeys(models)]
    driver = f"driver {version(machine)}, {flavour(machine)}" if machine.loaded("nvidia") else ""
    return ", ".join([*counted, *filter(None, [driver])])


def device_text(machine: Machine) -> str:
    names = [nic.name for nic in nics(machine)]
    return f"{len(names)}: {', '.join(folded(names))}" if names else "none"


def way_lines(machine: Machine) -> Iterator[str]:
    """Yields a line for each group of GPUs and devices that have the same ways."""
    numbers, groups = gpu_numbers(machine), ways.grouped(machine)
    every_gpu = len(ways.usable_gpus(machine))
    every_nic = len(nics(machine))
    for group in groups:
        if len(group.gpus) == every_gpu:
            gpu_names = "all GPUs" if every_gpu > 1 else f"GPU {numbers[group.gpus[0]]}"
        else:
            gpu_names = "GPU " + ", ".join(folded([str(numbers[name]) for name in group.gpus]))
        if len(group.devices) == every_nic and every_nic > 1:
            devices = "all RDMA devices"
        else:
            devices = ", ".join(folded(group.devices))
        how = ", ".join(group.ways) or why_none(machine, group.devices)
        yield f"{gpu_names} with {devices}: {how}"
    # A program that takes such a GPU fails late, and CUDA may give it the number 0.
    for gpu in ways.driven_gpus(machine):
        if gpu not in ways.usable_gpus(machine):
            yield f"GPU {numbers[gpu.name]}: no way ({ways.why_unusable(gpu)})"


def why_none(machine: Machine, devices: List[str]) -> str:
    """Returns the reason why the first of these devices has no way."""
    lacks = dma_buf.lacking(machine)
    if lacks:
        return f"no way ({lacks})"
    return f"no way (dma-buf: {dma_buf.answers(machine)[devices[0]].why})"


def first_to_do(facts: Iterable[Fact]) -> Optional[Fact]:
    """Returns the fact to mend first, or None if no fact has advice. A defect comes before a
    weakness. A foundation comes before the things that depend on it."""
    wanted = [fact for fact in to_do(facts) if fact.advice]
    return min(wanted, key=lambda fact: (fact.verdict != BAD, depth(fact)), default=None)


def cause_and_advice(machine: Machine, fact: Fact) -> str:
    """Returns a text with the fact to mend, its value and its advice. The value is left out if the
    first line of the answer has it already."""
    text = f"{fact.section}, {fact.name}"
    if fact.value.partition(": ")[2] in headline(machine) and ": " in fact.value:
        return f"{text}: {fact.advice}"
    return f"{text}: {fact.value}. {fact.advice}"


def depth(fact: Fact) -> int:
    """Returns the index of the fact in FOUNDATIONS, or their number if the fact is not in them."""
    matching = (at for at, begin in enumerate(FOUNDATIONS) if f"{fact.id}/".startswith(begin))
    return next(matching, len(FOUNDATIONS))


def fitted(name: str, text: str, width: int, most: int) -> List[str]:
    """Returns NAME and TEXT in at most MOST lines. A longer text is cut."""
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=name.ljust(NAME),
        subsequent_indent=" " * NAME,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines if len(lines) <= most else [*lines[: most - 1], cut(lines[most - 1], width)]


def cut(line: str, width: int) -> str:
    """Appends the mark of omitted words to LINE, and removes last words so that both fit in
    WIDTH."""
    while line and len(line) > width - 4:
        line = line.rpartition(" ")[0]
    return f"{line} ..."


def listed(name: str, texts: List[str], width: int, most: int) -> List[str]:
    """Returns NAME and TEXTS in at most MOST lines. Each text has one line, and lines that are left
    over are given to the first long texts. If there are too many texts, the last line says how many
    are left out."""
    shown = texts if len(texts) <= most else texts[: most - 1]
    left = most - len(shown) - (len(shown) < len(texts))
    said: List[str] = []
    for text in shown:
        lines = fitted("" if said else name, text, width, 1 + left)
        left -= len(lines) - 1
        said += lines
    if len(shown) < len(texts):
        said += fitted("", f"and {len(texts) - len(shown)} more: nvpm status --all", width, 1)
    return said


def lines(status: Status, width: int = WIDTH) -> List[str]:
    """Returns the lines of the answer. On a narrow screen, no text is cut, and the number of lines
    has no limit."""
    height, most = (HEIGHT, 3) if width >= NARROW else (99, 99)
    if status.state == "unknown":
        return [NOBODY_KNOWS]
    machine, wanted = status.machine, first_to_do(status.facts)
    said = textwrap.wrap(headline(machine), width, break_on_hyphens=False)
    said += fitted("GPUs", gpu_text(machine), width, most // 3)
    said += fitted("RDMA devices", device_text(machine), width, most // 3)
    # Without a way, the answer has no lines about ways and programs, so the advice may fill these
    # lines.
    room = most + 1 if not ways.in_the_way(machine) else max(most, height - len(said))
    last = fitted("first to do", cause_and_advice(machine, wanted), width, room) if wanted else []
    if not ways.in_the_way(machine):
        said += listed("ways", list(way_lines(machine)), width, most)
        left = height - len(said) - len(last)
        said += listed("programs", list(program_lines(machine)), width, left)
    return [clean(line) for line in said + last]
