# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Builds the module and the client in the run's own directory. Nothing is installed."""

import os
from pathlib import Path
from typing import Optional, Sequence

import machine

# A build compiles the Rust as well, if there is no assembly of a release.
MODULE_LIMIT = 900
CLIENT_LIMIT = 120
# The files of the client that need libibverbs.
OF_VERBS = ("verbs", "transfers")
FILES = ("nv_peer_mem_callback.ko", "nv_peer_mem.ko")
CLIENT = "hardware-client"


def module(source: Path, log: Path) -> str:
    """Builds the module, and returns what went wrong."""
    done = machine.run(
        ["make", "KVER=" + machine.text("/proc/sys/kernel/osrelease")], MODULE_LIMIT, source
    )
    log.write_text(done.output + "\n", encoding="utf-8")
    missing = [name for name in FILES if not (source / name).exists()]
    if done.code or missing:
        last = done.output.splitlines()[-1:] or ["make said nothing"]
        return f"the module cannot be built ({log.name}): {last[0]}"
    return ""


def client(source: Path, to: Path, log: Path, has_verbs: bool = True) -> str:
    """Compiles the client, and returns what went wrong. Without verbs it has the commands of GPUs
    only, and needs no libibverbs."""
    program = compiler()
    if not program:
        return "there is no C compiler"
    files = sorted((source / "tests/hardware/client").glob("*.c"))
    options = ["-libverbs"]
    if not has_verbs:
        files = [file for file in files if file.stem not in OF_VERBS]
        options = ["-DWITHOUT_VERBS"]
    command = [program, "-O2", "-Wall", "-o", str(to), *(str(file) for file in files)]
    done = machine.run([*command, *options, "-ldl", "-lpthread"], CLIENT_LIMIT)
    log.write_text(done.output + "\n", encoding="utf-8")
    if done.code:
        last = done.output.splitlines()[-1:] or ["the compiler said nothing"]
        return f"the client cannot be compiled ({log.name}): {last[0]}"
    return ""


def taken(directory: str, names: Sequence[str], to: Path) -> None:
    """Takes the files that the user has built."""
    for name in names:
        (to / name).write_bytes((Path(directory) / name).read_bytes())
        (to / name).chmod(0o700)


def compiler() -> Optional[str]:
    for directory in os.environ["PATH"].split(":"):
        for name in ("cc", "gcc", "gcc-14", "clang"):
            if os.access(os.path.join(directory, name), os.X_OK):
                return os.path.join(directory, name)
    return None
