# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures the cost of a registration among many, in a guest whose time counts instructions:

    scale.py beside MODE DEVICES ALIVE...    among ALIVE others, on DEVICES RDMA devices
    scale.py pairs GPUS DEVICES              after one pair has a map type, and after all pairs have
    scale.py cards MODE DEVICES              of the same buffer, for one to DEVICES devices

Prints each measurement as a line of names and figures. The clocks are those of bench.py. As in
bench.py, each figure is the lowest of several rounds.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench import (
    DRIVER,
    KIB,
    MIB,
    Figures,
    Registration,
    Umem,
    clocks,
    cycle,
    freed,
    in_driver,
    in_module,
    open_gpu,
    tell,
)

LIST = Path("/proc/driver/nv_peer_mem/regions")

# PAGE is the size of each registration. All other registrations are made of PAGES pages. They are
# few, because the simulated driver searches a list of the pinned pages.
PAGE, PAGES = 64 * KIB, 1000
BUFFER = 64 * MIB
ROUNDS = 21


def on_device(device: int, umem: Umem) -> Umem:
    umem.command(f"device {device}")
    return umem


def one_more(mode: str, device: int) -> Figures:
    """Measures a registration that has its own memory, and the end of this registration. Then
    measures a second registration, whose memory is freed."""
    with Registration(mode, PAGE) as one:
        figures = cycle(on_device(device, one))
    return {
        "register": figures["register_total"],
        "deregister": figures["deregister_total"],
        "free": freed(mode, PAGE)["free_total"],
        "register_module": figures["register_module"],
        "deregister_module": figures["deregister_module"],
    }


def least(mode: str, device: int) -> Figures:
    rounds = [one_more(mode, device) for _ in range(ROUNDS)]
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def listed() -> Figures:
    """Reads the list of registrations in parts, as cat does. Returns the time and the number of
    lines."""
    began, lines = time.monotonic_ns(), 0
    with open(LIST, "rb", buffering=0) as file:
        while part := file.read(128 * KIB):
            lines += part.count(b"\n")
    return {"list": time.monotonic_ns() - began, "lines": lines - 1}


def nvpm_regions() -> Figures:
    """Runs `nvpm regions`. Returns the instructions of the program, in thousands, and the program's
    largest use of memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["nvpm", "regions"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"nvpm_k": round(seconds * 1e6), "nvpm_kib": after.ru_maxrss}


def beside(mode: str, devices: int, alive: list[int]) -> Iterator[Figures]:
    """Measures a registration while more and more other registrations exist. Then ends the others
    in the reverse order, because the simulated driver finds the last one fastest."""
    with Registration(mode, PAGES * PAGE) as all_pages:
        there: list[Umem] = []
        for number in alive:
            while len(there) < number:
                address = all_pages.address + len(there) % PAGES * PAGE
                umem = on_device(len(there) % devices, Umem(mode, address, PAGE))
                umem.register()
                there.append(umem)
            yield {
                "devices": devices,
                "alive": number,
                **least(mode, devices - 1),
                **listed(),
                **nvpm_regions(),
            }
        while there:
            there.pop().close()


def pairs(gpus: int, devices: int) -> Iterator[Figures]:
    yield {"pairs": 1, **least("persistent", 0)}
    for gpu, device in product(range(gpus), range(devices)):
        tell(DRIVER / "gpu", gpu)
        one_more("persistent", device)
    yield {"pairs": gpus * devices, **least("persistent", devices - 1)}


def cards(mode: str, devices: int) -> Iterator[Figures]:
    """Measures registrations of the same buffer for more and more devices. The simulated driver
    takes as much time as a real driver with dynamic BAR1."""
    tell(DRIVER / "costs", "dynamic")
    with Registration(mode, BUFFER) as buffer:
        umems = [on_device(device, Umem(mode, buffer.address, BUFFER)) for device in range(devices)]
        before = clocks()
        for number, umem in enumerate(umems, 1):
            umem.register()
            spent = clocks() - before
            calls = sum(n for name, n in spent.items() if name.startswith("calls_nvidia_p2p_"))
            yield {
                "cards": number,
                "calls": calls,
                "driver": in_driver(spent),
                "module": in_module(spent),
            }
        while umems:
            umems.pop().close()
    tell(DRIVER / "costs", "simulated")


def main(what: str, *words: str) -> None:
    open_gpu()
    if what == "pairs":
        measurements = pairs(*map(int, words))
    elif what == "cards":
        measurements = cards(words[0], int(words[1]))
    else:
        measurements = beside(words[0], int(words[1]), list(map(int, words[2:])))
    for figures in measurements:
        print(*(f"{name} {figure}" for name, figure in figures.items()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
