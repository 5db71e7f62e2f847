# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures the cost of registrations, in a guest whose time counts instructions:
bench.py JOB

Registrations go through a file of the RDMA core, umem, and need no device. Each open file is one
registration (../doubles/core/server/peer_consumer.c). A measurement is a line of JSON, which has
its subject and its figures by name.

TODO[HARD]: no speed was measured on real hardware.
"""

import ctypes
import fcntl
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

# The figures of a measurement, by name.
Figures = dict[str, int]

CORE = Path("/sys/kernel/debug/peer_mem_lab")
DRIVER = Path("/sys/kernel/debug/nvidia_lab")
TRACING = Path("/sys/kernel/tracing")

# The measurements differ in four respects. The first is the module, which is called by its name for
# modprobe. The second is the client that claims the memory. The third is the layout of the memory
# on the bus, which is one piece, or the smallest pieces into which GPUs divide large allocations.
# The fourth is the time that a real driver needs to pin and unpin (../doubles/driver/lab.c).
IDEAL, OURS, PEERMEM = MODULES = ("ideal", "nv_peer_mem", "nvidia-peermem")
MODES = ("persistent", "revocable")
LAYOUTS = ("contiguous", "holes2m")
DRIVERS = ("dynamic", "static")
THREADS = (1, 4)

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64 * KIB, MIB, 16 * MIB, 256 * MIB)

# The number of rounds for registrations of at most each size. Each figure is the lowest of all
# rounds, because a disturbance such as an interrupt or a new slab can only make a figure larger.
ROUNDS = {MIB: 21, 16 * MIB: 11, 256 * MIB: 5}

# The number of rounds of several threads. Rounds differ by up to a hundredth, because the threads
# wait for each other's locks at other moments. The lowest of all rounds differs less.
THREADS_ROUNDS = 9

# The core makes these calls to a client. The time of these calls counts as the client's time. The
# core's other clocks measure something else, or also count time inside the driver's callback.
CLIENT_CALLS = (
    "acquire",
    "get_pages",
    "dma_map",
    "get_page_size",
    "dma_unmap",
    "put_pages",
    "release",
)
DRIVER_CALLS = (
    "get_pages",
    "put_pages",
    "get_pages_persistent",
    "put_pages_persistent",
    "dma_map_pages",
    "dma_unmap_pages",
)
ALLOCATIONS = (
    "kmalloc",
    "kmem_cache_alloc",
    "kfree",
    "kmem_cache_free",
    "mm_page_alloc",
    "mm_page_free",
    "mm_page_free_batched",
)

# Constants of ../doubles/driver/lab_gpu.h, on x86-64.
LAB_GPU_UNBACKED, LAB_GPU_FREE = 0x80000000000, 0x40084701


# ---- what is to be measured --------------------------------------------------------------


class Subject(NamedTuple):
    """The subject of a measurement."""

    machine: str
    module: str
    mode: str
    kind: str
    layout: str | None = None
    size: int | None = None
    driver: str | None = None
    threads: int | None = None

    def as_json(self) -> dict[str, str | int]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def plan(job: str) -> Iterator[Subject]:
    """Returns the measurements of a job of lab/jobs.md, in order. The report needs all of them."""
    if job == "bench-threads":
        for module, mode, threads, driver in product(MODULES, MODES, THREADS, DRIVERS):
            yield Subject("stock", module, mode, "threads", driver=driver, threads=threads)
        return
    machine = "iommu" if job == "bench-iommu" else "stock"
    for module, mode in product(MODULES, MODES):
        for layout, size, driver in product(LAYOUTS, SIZES, DRIVERS):
            yield Subject(machine, module, mode, "costs", layout, size, driver)
        # The ideal client does not end a registration whose memory is freed, and its memory is not
        # compared.
        kinds = ("freed", "held") if module != IDEAL else ()
        for kind, layout, size in product(kinds, LAYOUTS, SIZES):
            yield Subject(machine, module, mode, kind, layout, size)


# ---- the kernel's files --------------------------------------------------------------------


def tell(path: Path, words: str | int, how: int = os.O_TRUNC) -> None:
    file = os.open(path, os.O_WRONLY | how)
    os.write(file, f"{words}\n".encode())
    os.close(file)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Umem:
    """A registration through a file of the core."""

    def __init__(self, mode: str, address: int, size: int) -> None:
        self.file = os.open(CORE / "umem", os.O_RDWR)
        # The core must not revoke fixed memory, such as queues and doorbells of the hardware. It
        # may revoke revocable memory, such as memory regions. With nvidia-peermem, this word
        # decides which client claims the memory.
        kind = "fixed" if mode == "persistent" else "revocable"
        self.words = f"{address} {size} {kind}"

    def close(self) -> None:
        os.close(self.file)

    def command(self, text: str) -> None:
        os.write(self.file, text.encode())

    def register(self) -> None:
        self.command(f"register {self.words}")

    def deregister(self) -> None:
        self.command("deregister")

    def outcome(self) -> Figures:
        lines = os.pread(self.file, 4096, 0).decode().splitlines()
        return {name: int(number) for name, number in map(str.split, lines)}


class Registration(Umem):
    """GPU memory that the simulated GPU does not really store, with a registration of all of it."""

    # The descriptor of the GPU's device file.
    gpu: int

    def __init__(self, mode: str, size: int) -> None:
        # For large allocations, a GPU uses pages of up to 2 MiB. The kernel aligns a mapping for
        # these pages only if the mapping has at least 2 MiB.
        self.memory = mmap.mmap(self.gpu, max(size, 2 * MIB), offset=LAB_GPU_UNBACKED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        super().__init__(mode, self.address, size)

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.memory.close()


def clocks() -> Counter[str]:
    """Returns the clocks of the doubles, which are the ticks that each call has needed and the
    number of calls. The difference of two results describes the time between them."""
    clock: Counter[str] = Counter()
    for line in [*read(CORE / "clocks").splitlines(), *read(DRIVER / "clocks").splitlines()]:
        name, calls, ticks = line.split()
        clock.update({name: int(ticks), f"calls_{name}": int(calls)})
    return clock


def in_driver(spent: Counter[str]) -> int:
    return sum(ticks for name, ticks in spent.items() if name.startswith("nvidia_p2p_"))


def in_module(spent: Counter[str]) -> int:
    """Returns the time that the client needed, without the time of its calls to the driver."""
    return max(0, sum(spent[name] for name in CLIENT_CALLS) - in_driver(spent))


# ---- what is measured -----------------------------------------------------------------------


def cycle(one: Umem) -> Figures:
    """Measures a registration and its end. Returns the figures."""
    before = clocks()
    one.register()
    between = clocks()
    one.deregister()
    after = clocks()
    outcome = one.outcome()
    figures = {name: outcome[name] for name in ("entries", "page_size")}
    for name, spent in (("register", between - before), ("deregister", after - between)):
        figures[f"{name}_total"] = outcome[f"{name}_ticks"]
        figures[f"{name}_module"] = in_module(spent)
        figures[f"{name}_driver"] = in_driver(spent)
    for name, calls in (after - before).items():
        if name.startswith("calls_nvidia_p2p_"):
            figures[name] = calls
    return figures


def costs(mode: str, size: int) -> Figures:
    """Returns the costs of registering memory once, and of deregistering it."""
    with Registration(mode, size) as one:
        return cycle(one)


def freed(mode: str, size: int) -> Figures:
    """Measures a registration whose memory is freed."""
    with Registration(mode, size) as one:
        one.register()
        before = clocks()
        fcntl.ioctl(one.gpu, LAB_GPU_FREE, struct.pack("Q", one.address))
        spent = clocks() - before
        revoked = one.outcome()["revoked"]
        one.deregister()
    return {"revoked": revoked, "free_total": spent["free_memory"]}


def least(measure: Callable[[str, int], Figures], mode: str, size: int) -> Figures:
    """Measures several rounds. Returns the lowest value of each figure."""
    times = next((times for most, times in ROUNDS.items() if size <= most), 1)
    rounds = [measure(mode, size) for _ in range(times)]
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def quickest(mode: str, number: int) -> Figures:
    """Measures several rounds. Returns the figures of the quickest round."""
    rounds = [together(mode, number) for _ in range(THREADS_ROUNDS)]
    return min(rounds, key=lambda figures: figures["elapsed"])


def together(mode: str, number: int, cycles: int = 300) -> Figures:
    """Measures several threads that register at the same time. Each thread registers its own MiB of
    memory. The clock starts when all threads are ready."""
    began: list[int] = []
    start = threading.Barrier(number, lambda: began.append(time.monotonic_ns()))

    def work(one: Registration) -> None:
        start.wait()
        one.command(f"repeat {one.words} {cycles}")

    with ExitStack() as stack, ThreadPoolExecutor(number) as pool:
        each = [stack.enter_context(Registration(mode, MIB)) for _ in range(number)]
        list(pool.map(work, each))
        elapsed = time.monotonic_ns() - began[0]
    return {"registrations": number * cycles, "elapsed": elapsed}


# Each entry has functions and two commands for the trace. The first command is given when one of
# the functions is called, and the second one when the function returns.
CALLS_TRACED = (
    ([f"peer_call_{name}" for name in CLIENT_CALLS], "traceon", "traceoff"),
    ([f"nvidia_p2p_{name}" for name in DRIVER_CALLS], "traceoff", "traceon"),
)


@contextmanager
def probes() -> Iterator[None]:
    """Lets the kernel's trace record the allocations during the core's calls to the client.
    Allocations of the driver are left out. The probes take time, so they exist only while memory is
    measured."""
    tell(TRACING / "tracing_on", 0)
    tell(TRACING / "buffer_size_kb", 16384)
    triggers = []
    for calls, *commands in CALLS_TRACED:
        for call, (probe, command) in product(calls, zip("pr", commands, strict=True)):
            tell(TRACING / "kprobe_events", f"{probe}:lab/{probe}_{call} {call}", os.O_APPEND)
            trigger = TRACING / f"events/lab/{probe}_{call}/trigger"
            tell(trigger, command)
            triggers.append((trigger, command))
    yield
    for trigger, command in triggers:
        tell(trigger, f"!{command}")
    tell(TRACING / "kprobe_events", "")


def trace_allocations(on: bool) -> None:
    for event in ALLOCATIONS:
        tell(TRACING / f"events/kmem/{event}/enable", int(on))


def held(mode: str, size: int) -> Figures:
    """Returns the number of bytes that a registration keeps allocated. Many small registrations are
    measured together, because several records share a page."""
    many = 100 if size <= MIB else 1
    with ExitStack() as stack:
        each = [stack.enter_context(Registration(mode, size)) for _ in range(many)]
        # The first registrations also allocate memory that the kernel never frees, such as tables
        # of an IOMMU. Such memory must not count, so the registrations are made once before the
        # measurement.
        if many > 1:
            for one in each:
                one.register()
            for one in each:
                one.deregister()
        tell(TRACING / "trace", "")
        trace_allocations(True)
        for one in each:
            one.register()
        trace_allocations(False)
        with open(TRACING / "trace", encoding="utf-8") as trace:
            total = left_of(trace)
        for one in each:
            one.deregister()
    return {"bytes": round(total / many)}


def left_of(trace: Iterable[str]) -> int:
    """Returns the number of bytes that were allocated in a trace and not freed. Objects of slabs
    and of kmalloc count by themselves, so the compound pages that contain them do not count."""
    # The key is the address of an object, in the form of the trace, or the number of a page.
    sizes: dict[str | int, int] = {}
    for line in trace:
        if "LOST" in line:
            raise ValueError("the trace has lost events: a larger buffer is needed")
        if not (event := re.search(r": (k\w+|mm_page_\w+): ", line)):
            continue
        field = dict(re.findall(r" (\w+)=(\S+)", line))
        if event[1] in ("kmalloc", "kmem_cache_alloc"):
            sizes[field["ptr"]] = int(field["bytes_alloc"])
        elif event[1] in ("kfree", "kmem_cache_free"):
            sizes.pop(field["ptr"], None)
        elif "__GFP_COMP" not in line:
            first = int(field["pfn"], 16)
            for page in range(first, first + (1 << int(field["order"]))):
                sizes[page] = 4096 if event[1] == "mm_page_alloc" else 0
    return sum(sizes.values())


# ---- the guest's work --------------------------------------------------------------------


def load(name: str, mode: str) -> None:
    """Loads a module, and makes the first registration, so that later measurements do not include
    its cost. Versions of nvidia-peermem that lack the parameter ignore it. In these versions the
    core always asks the revocable client first."""
    parameters = ["persistent_api_support=0"] if mode == "revocable" else []
    run("modprobe", name, *parameters)
    costs(mode, 64 * KIB)


def measure(subject: Subject) -> Figures:
    mode, size = subject.mode, subject.size
    tell(DRIVER / "layout", subject.layout or "contiguous")
    tell(DRIVER / "costs", subject.driver or "simulated")
    if subject.threads is not None:
        return quickest(mode, subject.threads)
    assert size is not None
    if subject.kind == "held":
        return held(mode, size)
    return least({"costs": costs, "freed": freed}[subject.kind], mode, size)


def want(subject: Subject) -> tuple[str, str, bool]:
    """Returns the module, the mode, and whether probes in the kernel are needed. Measurements of
    memory need the probes, which would make other measurements slower."""
    return subject.module, subject.mode, subject.kind == "held"


def open_gpu() -> None:
    Registration.gpu = os.open("/dev/nvidia-lab", os.O_RDWR)


def main(job: str) -> None:
    open_gpu()
    # Consecutive measurements that need the same module, mode and probes share one load of the
    # module.
    for (name, mode, traced), subjects in groupby(plan(job), want):
        load(name, mode)
        with probes() if traced else nullcontext():
            for subject in subjects:
                print(json.dumps(subject.as_json() | measure(subject)), flush=True)
        run("rmmod", name.replace("-", "_"))


if __name__ == "__main__":
    main(*sys.argv[1:])
