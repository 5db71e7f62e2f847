#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Shows by which way NCCL registers GPU memory, on a machine with two GPUs, PyTorch and no RDMA
device. Libibverbs is a double (verbs.c), which reports each registration of GPU memory and sends
nothing, so the collective operation never ends and is killed.

    mkdir DIRECTORY
    cp preload/libnvpm_preload.so DIRECTORY
    python3 tests/real/nccl.py DIRECTORY

The program compiles its doubles in DIRECTORY, by $CC, which is gcc by default. This takes the
headers of libibverbs. tests/preload/test_libcuda.py also compiles them.

The last trial runs NCCL with the preloaded library on a core without peer memory. Its libibverbs
gives commands to a double of the kernel. The exit code is 1 if NCCL takes another way than the row
of nvpm says, or if the preloaded library registers nothing."""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]

# The ways, as the row of NCCL in nvpm/data/programs.table names them.
DMA_BUF, POINTER = "dma-buf", "pointer"
HOST = "moves the data through host memory, without an error"
SETTING = "NCCL_DMABUF_ENABLE=0"
ROW = f"""
NCCL, newer
  {DMA_BUF}
  {POINTER}
    sees /sys/kernel/mm/memory_peers/nv_mem/version
    sees /sys/kernel/mm/memory_peers/nv_mem_nc/version
    sees /sys/module/nvidia_peermem/version
  without {HOST}
  skip {SETTING}
"""
# NCCL uses the network between two processes of one machine, at any distance.
SETTINGS = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NET": "IB",
    "NCCL_NET_GDR_LEVEL": "SYS",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_IB_DISABLE": "0",
    # Without this setting, NCCL 2.28.9 crashes beside a device that is not mlx5.
    "NCCL_GIN_TYPE": "2",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29555",
    "NCCL_SOCKET_IFNAME": "lo",
    "WORLD_SIZE": "2",
}
RANK = """
import os, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["RANK"]))
dist.init_process_group("nccl")
t = torch.ones(1 << 20, device="cuda")
dist.all_reduce(t)
torch.cuda.synchronize()
"""
SKIP = dict([SETTING.split("=")])
SIGN = {"PEERMEM": "1"}
NO_DMA_BUF = {"DMABUF": "0"}
# Each trial has its settings, and the way that the row promises: the first way that is there, or
# host memory.
TRIALS = (
    ("both ways", SIGN, DMA_BUF),
    ("both ways, told to skip dma-buf", {**SIGN, **SKIP}, POINTER),
    ("a device without dma-buf, with the sign", {**SIGN, **NO_DMA_BUF}, POINTER),
    ("dma-buf alone", {}, DMA_BUF),
    ("dma-buf alone, told to skip it", SKIP, HOST),
    ("neither", NO_DMA_BUF, HOST),
)
SECONDS = 25


def compile_doubles(directory):
    """Compiles the doubles. Returns the files."""
    doubles = TOP / "tests/doubles/preload"
    versions = f"-Wl,--version-script={HERE}/verbs.map"
    by_command = ["-DBY_COMMAND", doubles / "ibverbs.c", versions]
    made = []
    for name, source, options in (
        ("libibverbs.so.1", HERE / "verbs.c", [versions]),
        ("by_command/libibverbs.so.1", HERE / "verbs.c", by_command),
        ("sysfs.so", HERE / "sysfs.c", []),
        ("kernel.so", doubles / "kernel.c", []),
    ):
        file = Path(directory, name)
        file.parent.mkdir(exist_ok=True)
        words = [os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-Wall"]
        # The header events.h belongs to the lab's libcuda.
        words += [f"-I{TOP}/tests/doubles/cuda", "-o", file, source, *options, "-ldl"]
        subprocess.run(words, check=True)
        made.append(file)
        link = file.with_suffix("")
        if link.suffix == ".so" and not link.is_symlink():
            link.symlink_to(file.name)
    return made


def place():
    """Returns the place of a PCI device that is no GPU."""
    devices = sorted(Path("/sys/bus/pci/devices").glob("*"))
    others = (each for each in devices if each.joinpath("vendor").read_text().strip() != "0x10de")
    return str(next(others).resolve())


def ways(directory, settings, verbs="", preloaded=()):
    """Runs two ranks. Returns how often each way was taken, and the log of one rank. VERBS is the
    directory of libibverbs below DIRECTORY."""
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch, "events")
        events.touch()
        variables = {**os.environ, **SETTINGS, **settings, "EVENTS": str(events)}
        names = ["sysfs.so", *preloaded]
        variables["LD_PRELOAD"] = ":".join(f"{directory}/{name}" for name in names)
        variables["PLACE"] = place()
        variables["LD_LIBRARY_PATH"] = (
            f"{directory}/{verbs}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        )
        logs = [Path(scratch, f"log{rank}") for rank in range(2)]
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", RANK],
                env={**variables, "RANK": str(rank)},
                stdout=logs[rank].open("w"),
                stderr=subprocess.STDOUT,
            )
            for rank in range(2)
        ]
        time.sleep(SECONDS)
        for process in ranks:
            process.kill()
            process.wait()
        found = Counter(line.split()[0] for line in events.read_text().splitlines())
        return found, logs[0].read_text(errors="replace")


def main(directory):
    table = TOP / "nvpm/data/programs.table"
    assert ROW.split("  skip")[0] in table.read_text(encoding="utf-8")
    assert f"  skip {SETTING}\n" in ROW
    compile_doubles(directory)
    wrong = 0
    for text, settings, expected in TRIALS:
        found, log = ways(directory, settings)
        took = set(found) or ({HOST} if " via NET/IB/0\n" in log else set())
        right = took == {expected}
        wrong += not right
        print("ok" if right else "not ok", f"NCCL, {text}: {dict(found) or took}", flush=True)
        if not right:
            print(log[-6000:])
    wrong += not by_library(directory)
    return 1 if wrong else 0


def by_library(directory):
    """Lets NCCL register pointers with the preloaded library. Returns whether each registration of
    GPU memory has become one of a dma-buf."""
    settings = {**SIGN, **SKIP, "REAL_CUDA": "1", "NVPM_PRELOAD_LOG": "1"}
    preloaded = ("libnvpm_preload.so", "kernel.so")
    found, log = ways(directory, settings, "by_command", preloaded)
    lines = [line for line in log.splitlines() if line.startswith("nvpm_preload: ")]
    right = bool(lines) and not any("no dma-buf" in line for line in lines)
    print("ok" if right else "not ok", f"NCCL, pointers by nvpm run: {dict(found)}", flush=True)
    print("\n".join(lines[:3]) if right else log[-6000:])
    return right


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
