# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads what a pod sees of its node: the loaded modules, and the directories of the two operators'
containers."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

# The GPU Operator's driver container shows its root directory here. While the container runs, the
# file with its process number exists.
DRIVER, DRIVER_PID = "/run/nvidia/driver", "/run/nvidia/nvidia-driver.pid"
# The container writes this file after it has loaded the driver, and the file stays until the node
# boots.
DRIVER_STATE = "/run/nvidia/nvidia-driver.state"
# The directory and the file of the GPU Operator that say that the container is ready.
VALIDATIONS = "/run/nvidia/validations"
DRIVER_READY = f"{VALIDATIONS}/.driver-ctr-ready"
# The Network Operator's OFED container shows its sources here. The container locks the first file
# when it first starts, and the file stays. The second file exists while the OFED is ready.
OFED = "/run/mellanox/drivers"
OFED_LOCK, OFED_READY = f"{OFED}/.lock", f"{OFED}/.driver-ready"
# The node's own directories.
HOST = "/host"

OWN_NAMES = ("nvidia_peermem", "nv_peer_mem")
REGISTER = "ib_register_peer_memory_client"


class Loaded(NamedTuple):
    """A loaded module. `identity` differs between two builds of a module."""

    name: str
    identity: str
    version: str
    references: int
    live: bool


class Node:
    """The node, below the directory `root`, which is empty but in tests."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.exporter: tuple[tuple[str, ...], str] = ((), "")

    def path(self, name: str) -> Path:
        return Path(self.root + name)

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def text(self, name: str) -> str:
        """Returns the text of a file; an empty string if the file cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def data(self, name: str) -> bytes:
        try:
            return self.path(name).read_bytes()
        except OSError:
            return b""

    @property
    def kernel(self) -> str:
        return self.text("/proc/sys/kernel/osrelease")

    @property
    def kernel_build(self) -> str:
        """Returns a text that differs between two builds of a kernel's release."""
        return hashlib.sha256(self.data("/sys/kernel/notes")).hexdigest()[:16]

    # ---- modules ----

    def module(self, name: str) -> Loaded | None:
        """Returns a loaded module; None if the module is not loaded, or is built into the
        kernel."""
        state = self.text(f"/sys/module/{name}/initstate")
        if not state:
            return None
        references = self.text(f"/sys/module/{name}/refcnt")
        return Loaded(
            name,
            self.identity(name),
            self.text(f"/sys/module/{name}/version"),
            int(references) if references.isdigit() else 0,
            state == "live",
        )

    def identity(self, name: str) -> str:
        """Returns a text that differs between builds of a module. The linker's build ID differs
        always, but some modules have none. The checksum of the sources and the version are then
        known for most modules, and the size for all."""
        files = ("notes/.note.gnu.build-id", "srcversion", "version", "coresize")
        found = b"\0".join(self.data(f"/sys/module/{name}/{file}") for file in files)
        return hashlib.sha256(found).hexdigest()[:16]

    def own(self) -> Loaded | None:
        """Returns the loaded module of this project, under either name. NVIDIA's module and the
        marker, which have the first name, too, have no statistics."""
        for name in OWN_NAMES:
            if self.exists(f"/sys/module/{name}/statistics"):
                return self.module(name)
        return None

    def others(self) -> Loaded | None:
        """Returns NVIDIA's own nvidia_peermem, if that module is loaded."""
        mine = self.own()
        if mine or self.exists("/sys/module/nv_peer_mem"):
            return None
        return self.module("nvidia_peermem")

    def core(self) -> list[Loaded]:
        """Returns the modules of the RDMA core that are loaded."""
        found = (self.module(name) for name in ("ib_core", "ib_uverbs"))
        return [module for module in found if module]

    def peer_memory_in(self) -> str:
        """Returns the module of the RDMA core with which clients register; an empty string if no
        loaded module takes clients. The kernel's list of functions is long, so the list is read
        only if the core has changed."""
        core = tuple(module.identity for module in self.core())
        if self.exporter[0] != core:
            found = re.search(
                rf" {REGISTER}\s+\[(\w+)\]$", self.text("/proc/kallsyms"), re.MULTILINE
            )
            self.exporter = (core, found[1] if found else "")
        return self.exporter[1]

    def registered(self, name: str) -> bool:
        """Returns whether the module NAME is a client of the RDMA core that runs. Loading the
        module fails if the core refuses the client, and the client ends with the module."""
        module = self.module(name)
        if not (module and module.live):
            return False
        holds = any(
            self.exists(f"/sys/module/{core}/holders/{name}") for core in ("ib_core", "ib_uverbs")
        )
        peers = "/sys/kernel/mm/memory_peers"
        return holds and (not self.exists(peers) or self.exists(f"{peers}/nv_mem"))

    # ---- the operators' containers ----

    def driver_contained(self) -> bool:
        """Returns whether NVIDIA's driver is that of the GPU Operator's container. The directory
        alone says nothing, because the container toolkit also makes it."""
        return self.exists(DRIVER_PID) or self.exists(f"{DRIVER}/usr")

    def driver_leaves(self) -> bool:
        """Returns whether the driver's container is ending or starting. Its hook removes the file
        at the stop, and the file returns a minute after the start. Early operators have no such
        file, and no directory for it."""
        return (
            self.driver_contained() and self.exists(VALIDATIONS) and not self.exists(DRIVER_READY)
        )

    def lacks_uvm(self) -> bool:
        """Returns whether a container has loaded the driver, and nvidia_uvm is missing. The
        container may have ended. A node's own driver loads nvidia_uvm when a program uses CUDA."""
        contained = self.driver_contained() or self.exists(DRIVER_STATE)
        return contained and not self.exists("/sys/module/nvidia_uvm")

    def ofed_contained(self) -> bool:
        return self.exists(OFED_LOCK) or self.exists(OFED_READY) or self.exists(f"{OFED}/usr/src")

    def ofed_leaves(self) -> bool:
        """Returns whether the OFED container is ending or starting."""
        return self.ofed_contained() and not self.exists(OFED_READY)

    def became_ready(self) -> tuple[int, ...]:
        """Returns when the files of both containers were written, in nanoseconds; 0 for a file that
        is missing."""
        return tuple(map(self.written, (DRIVER_READY, OFED_READY)))

    def written(self, name: str) -> int:
        try:
            return self.path(name).stat().st_mtime_ns
        except OSError:
            return 0
