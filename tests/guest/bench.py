# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What registrations cost, in a guest whose time counts instructions: bench.py JOB SIZE...

They go through the RDMA core's use of memory without a device: one registration for each time that
its file umem is open (../lab/ofed/core/peer_consumer.c). A measurement is a line of JSON: what it is
of, and figures by their names.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import groupby, product
from pathlib import Path

CORE = Path("/sys/kernel/debug/peer_mem_lab")
DRIVER = Path("/sys/kernel/debug/nvidia_lab")
TRACING = Path("/sys/kernel/tracing")

# What is compared, by its name for modprobe; which client of it serves; how the memory lies on the
# bus, in one piece or in the smallest that GPUs make of large allocations; and how long the driver
# takes to pin and unpin: as long as its simulation, or as a real one (../lab/nvidia/lab.c).
MODULES = ("nv_peer_mem", "nvidia-peermem")
MODES = ("persistent", "revocable")
LAYOUTS = ("contiguous", "holes2m")
DRIVERS = ("simulated", "dynamic", "static")
THREADS = (1, 2, 4)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Registrations of which each figure is the least, by the largest size that this is for: what the
# kernel does beside, an interrupt or a new slab, only adds.
ROUNDS = {MIB: 21, 16 * MIB: 11, 256 * MIB: 5, 4 * GIB: 3}

# The core's calls into a client. Others on its clock are not, or are inside of the driver's callback.
CLIENT_CALLS = ("acquire", "get_pages", "dma_map", "get_page_size", "dma_unmap", "put_pages", "release")
DRIVER_CALLS = ("get_pages", "put_pages", "get_pages_persistent", "put_pages_persistent", "dma_map_pages", "dma_unmap_pages")
ALLOCATIONS = ("kmalloc", "kmem_cache_alloc", "kfree", "kmem_cache_free", "mm_page_alloc", "mm_page_free", "mm_page_free_batched")

# Of ../lab/nvidia/lab_gpu.h, and of x86-64.
LAB_GPU_UNBACKED, LAB_GPU_FREE = 0x80000000000, 0x40084701
FINIT_MODULE = 313


def plan(job, sizes):
    """What a job of ../jobs.md measures, in order; the report wants all of it."""
    of = {"machine": "iommu" if job == "bench-iommu" else "stock"}
    costs = [{"kind": "costs", "driver": driver} for driver in DRIVERS]
    freed, held = {"kind": "freed"}, {"kind": "held"}
    if job == "bench-threads":
        for module, mode, threads, driver in product(MODULES, MODES, THREADS, DRIVERS):
            yield of | {"module": module, "mode": mode, "kind": "threads", "threads": threads,
                        "driver": driver}
    elif job in ("bench", "bench-iommu"):
        for module, mode, kinds in product(MODULES, MODES, ([*costs, freed], [held])):
            for layout, size, kind in product(LAYOUTS, sizes, kinds):
                yield of | {"module": module, "mode": mode, "layout": layout, "size": size} | kind
        for module in MODULES if job == "bench" else ():
            yield of | {"module": module, "mode": "persistent", "kind": "module"}
    else:
        # Each way has the guest for itself: where the kernel finds memory for the driver depends
        # on all that was before, and can make more of a difference than the bounds allow.
        for mode, layout, size, kind in product(MODES, LAYOUTS, sizes, (costs[0], freed)):
            if size <= 4 * GIB:
                yield of | {"module": job.replace("bench-", "nv_peer_mem-"), "mode": mode, "layout": layout, "size": size} | kind


def tell(path, words, how=os.O_TRUNC):
    file = os.open(path, os.O_WRONLY | how)
    os.write(file, f"{words}\n".encode())
    os.close(file)


def read(path):
    return Path(path).read_text(encoding="utf-8").strip()


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Registration:
    """GPU memory without bytes behind it, and a file of the core's to register it with."""

    gpu = None

    def __init__(self, mode, size):
        self.file = os.open(CORE / "umem", os.O_RDWR)
        # At an address that suits pages of up to 2 MiB, as those of a GPU's large allocations do.
        self.memory = mmap.mmap(self.gpu, max(size, 2 * MIB), offset=LAB_GPU_UNBACKED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        # As for what the hardware owns, queues and doorbells; or as for memory regions, which it
        # could give up. Of nvidia-peermem that chooses the client.
        self.words = f"{self.address} {size} {'fixed' if mode == 'persistent' else 'revocable'}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.file)
        self.memory.close()

    def command(self, text):
        os.write(self.file, text.encode())

    def outcome(self):
        lines = os.pread(self.file, 4096, 0).decode().splitlines()
        return {name: int(number) for name, number in map(str.split, lines)}


def clocks():
    """What is on the doubles' clocks: the ticks of each call, and how often it was made. What was
    spent between two moments is their difference."""
    clock = Counter()
    for line in [*read(CORE / "clocks").splitlines(), *read(DRIVER / "clocks").splitlines()]:
        name, calls, ticks = line.split()
        clock.update({name: int(ticks), f"calls_{name}": int(calls)})
    return clock


def in_driver(spent):
    return sum(ticks for name, ticks in spent.items() if name.startswith("nvidia_p2p_"))


def in_module(spent):
    """In the client alone: without the driver's calls that it made."""
    return max(0, sum(spent[name] for name in CLIENT_CALLS) - in_driver(spent))


# ---- what is measured: of a subject, figures by their names ---------------------------


def costs(mode, size):
    """Of one registration and its end."""
    with Registration(mode, size) as one:
        before = clocks()
        one.command(f"register {one.words}")
        between = clocks()
        one.command("deregister")
        after = clocks()
        outcome = one.outcome()
    figures = {name: outcome[name] for name in ("entries", "page_size")}
    for name, spent in (("register", between - before), ("deregister", after - between)):
        figures |= {f"{name}_total": outcome[f"{name}_ticks"], f"{name}_module": in_module(spent), f"{name}_driver": in_driver(spent)}
    return figures | {name: calls for name, calls in (after - before).items() if name.startswith("calls_nvidia_p2p_")}


def freed(mode, size):
    """Of a registration whose memory is freed."""
    with Registration(mode, size) as one:
        one.command(f"register {one.words}")
        before = clocks()
        fcntl.ioctl(one.gpu, LAB_GPU_FREE, struct.pack("Q", one.address))
        spent = clocks() - before
        revoked = one.outcome()["revoked"]
        one.command("deregister")
    return {"revoked": revoked, "free_total": spent["free_memory"]}


def least(measure, mode, size):
    """Each figure's least of several rounds."""
    times = next((times for most, times in ROUNDS.items() if size <= most), 1)
    rounds = [measure(mode, size) for _ in range(times)]
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def together(mode, number, cycles=1500):
    """Threads that register 1 MiB at once, each its own memory. All are ready before the clock starts."""
    began = []
    start = threading.Barrier(number, lambda: began.append(time.monotonic_ns()))

    def work(one):
        start.wait()
        one.command(f"repeat {one.words} {cycles}")

    with ExitStack() as stack, ThreadPoolExecutor(number) as pool:
        each = [stack.enter_context(Registration(mode, MIB)) for _ in range(number)]
        list(pool.map(work, each))
        elapsed = time.monotonic_ns() - began[0]
    return {"registrations": number * cycles, "elapsed": elapsed}


@contextmanager
def probes():
    """The trace sees what is allocated in the core's calls into the client, without the driver's
    calls that are made inside of them. Probes cost what is measured elsewhere, and are there only
    while memory is."""
    tell(TRACING / "tracing_on", 0)
    tell(TRACING / "buffer_size_kb", 16384)
    triggers = []
    for calls, commands in (([f"peer_call_{name}" for name in CLIENT_CALLS], ("traceon", "traceoff")),
                            ([f"nvidia_p2p_{name}" for name in DRIVER_CALLS], ("traceoff", "traceon"))):
        for call, (probe, command) in product(calls, zip("pr", commands, strict=True)):
            tell(TRACING / "kprobe_events", f"{probe}:lab/{probe}_{call} {call}", os.O_APPEND)
            triggers.append((TRACING / f"events/lab/{probe}_{call}/trigger", command))
            tell(*triggers[-1])
    yield
    for trigger, command in triggers:
        tell(trigger, f"!{command}")
    tell(TRACING / "kprobe_events", "")


def held(mode, size):
    """Bytes that a registration holds. Of small ones, many at once: what several share, such as a
    page of records, is in it."""
    many = 100 if size <= MIB else 1
    with ExitStack() as stack:
        each = [stack.enter_context(Registration(mode, size)) for _ in range(many)]
        # What the kernel keeps from then on is not a registration's, such as an IOMMU's tables.
        for one in each if many > 1 else ():
            one.command(f"register {one.words}")
        for one in each if many > 1 else ():
            one.command("deregister")
        tell(TRACING / "trace", "")
        for event in ALLOCATIONS:
            tell(TRACING / f"events/kmem/{event}/enable", 1)
        for one in each:
            one.command(f"register {one.words}")
        for event in ALLOCATIONS:
            tell(TRACING / f"events/kmem/{event}/enable", 0)
        with open(TRACING / "trace", encoding="utf-8") as trace:
            total = left_of(trace)
        for one in each:
            one.command("deregister")
    return {"bytes": round(total / many)}


def left_of(trace):
    """The bytes in a trace of allocations that are not freed again. Memory for slabs and for large
    objects of kmalloc comes in compound pages: it is counted as the objects in it, not as pages."""
    sizes = {}
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


def of_module(name):
    """The module's file, the memory that its code and data take, how long the kernel takes to load
    it, and what the first registration costs, in which ours asks the driver for its verdict on GPU
    and device. Of either the file without debug information, which the one has and the other has
    not."""
    path = Path(f"/tmp/{name}.ko")
    # What ours needs is loaded once, and stays.
    run("modprobe", "nv_peer_mem_callback")
    run("strip", "--strip-debug", "-o", path, run("modinfo", "-n", name))
    with open(path, "rb") as file:
        began = time.monotonic_ns()
        failed = ctypes.CDLL(None).syscall(ctypes.c_long(FINIT_MODULE), file.fileno(), b"", 0)
        took = time.monotonic_ns() - began
    if failed:
        raise OSError(f"{path} could not be loaded")
    return {"file": path.stat().st_size, "core": int(read(f"/sys/module/{name.replace('-', '_')}/coresize")),
            "load": took, "first": costs("persistent", 64 * KIB)["register_total"]}


# ---- the guest's work --------------------------------------------------------------------


def load(name, mode):
    """Versions of nvidia-peermem without the parameter say so and ignore it: their clients are in
    the order of the revocable. The first registration is of_module's."""
    ground = name.removeprefix("nv_peer_mem-")
    run("modprobe", "nv_peer_mem_callback")
    command = ["modprobe", name] if name in MODULES else ["insmod", f"/lib/nv_peer_mem/ground-{ground}/nv_peer_mem.ko"]
    run(*command, *(["persistent_api_support=0"] if mode == "revocable" else []))
    if name not in MODULES and read("/sys/module/nv_peer_mem/statistics/ground") != ground:
        raise ValueError(f"the module is not compiled {ground}")
    costs(mode, 64 * KIB)


def measure(subject):
    kind, mode, size = subject["kind"], subject["mode"], subject.get("size")
    tell(DRIVER / "layout", subject.get("layout", "contiguous"))
    tell(DRIVER / "costs", subject.get("driver", "simulated"))
    if kind == "module":
        return of_module(subject["module"])
    if kind == "threads":
        return together(mode, subject["threads"])
    return held(mode, size) if kind == "held" else least({"costs": costs, "freed": freed}[kind], mode, size)


def main(job, *sizes):
    Registration.gpu = os.open("/dev/nvidia-lab", os.O_RDWR)
    subjects = plan(job, list(map(int, sizes)))
    # The module is loaded once for all that does not want it otherwise.
    for (name, mode, apart), those in groupby(subjects, lambda of: (of["module"], of["mode"], {of["kind"]} & {"held", "module"})):
        if apart != {"module"}:
            load(name, mode)
        with probes() if apart == {"held"} else nullcontext():
            for subject in those:
                print(json.dumps(subject | measure(subject)), flush=True)
        run("rmmod", name.replace("-", "_") if name in MODULES else "nv_peer_mem")


if __name__ == "__main__":
    main(*sys.argv[1:])
