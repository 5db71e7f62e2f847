# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the files that a build needs: the kernel's headers, the driver that is loaded, and the RDMA
core that is loaded. Each can be the node's or a container's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from .cache import Cache
from .node import DRIVER, HOST, OFED, Node


class Missing(Exception):
    """A part is missing. The message says which one, and where it was searched."""


class Places(NamedTuple):
    """The root directory with the headers and the name of their directory there, and make's
    settings for the driver and for the core."""

    headers_root: Path
    headers: Path
    driver: str
    core: str


def find(node: Node, cache: Cache) -> Places:
    root, headers = find_headers(node)
    return Places(root, headers, find_driver(node, cache), find_core(node))


def find_headers(node: Node) -> tuple[Path, Path]:
    """Returns the root below which the kernel's headers are, and their directory. Distributions
    name this directory in two ways, and /lib/modules has a link to it, which may be absolute."""
    kernel, searched = node.kernel, []
    for root in (node.path(DRIVER), node.path(HOST)):
        for name in (f"usr/src/linux-headers-{kernel}", f"usr/src/kernels/{kernel}"):
            if (root / name / ".config").exists():
                return root, root / name
        link = root / f"lib/modules/{kernel}/build"
        if link.is_symlink():
            target = os.readlink(link)
            there = root / target.lstrip("/") if target.startswith("/") else link.parent / target
            if (there / ".config").exists():
                return root, there.resolve()
        searched.append(f"{root}/usr/src")
    raise Missing(
        f"no headers of kernel {kernel} in {' or '.join(searched)}: install the package of the "
        "headers on the node (linux-headers or kernel-devel). The driver's container has them only "
        "after it has built the driver itself"
    )


def find_driver(node: Node, cache: Cache) -> str:
    """Returns make's setting for the loaded driver. After the driver container's fast path, the
    driver's module is nowhere, but an earlier build has kept its symbols."""
    driver = node.module("nvidia")
    if not driver:
        raise Missing("NVIDIA's driver was unloaded a moment ago")
    others = []
    for root in (DRIVER, HOST):
        for file in modules_below(node.path(root) / "lib/modules" / node.kernel, "nvidia"):
            if field(file, "name") != "nvidia":
                continue
            if is_loaded(node, file, "nvidia"):
                return f"DRIVER_ROOT={node.path(root)}"
            others.append(f"{root} has version {field(file, 'version')}")
    kept = cache.driver(driver.identity)
    if kept:
        return f"NV_SRC={kept}"
    found = f" ({'; '.join(others)})" if others else ""
    raise Missing(
        f"the file of the loaded driver {driver.version} is neither below {DRIVER} nor on the "
        f"node{found}. The driver's container lacks it after a restart that kept the driver loaded "
        "(fast path): set FORCE_REINSTALL=true in driver.manager.env once, or reboot the node"
    )


def find_core(node: Node) -> str:
    """Returns make's setting for the loaded RDMA core. The OFED container shows only the sources
    of its core, in a directory for the kernel."""
    trees = (f"{os.uname().machine}/{node.kernel}", node.kernel)
    if node.ofed_contained():
        for tree in trees:
            if node.exists(f"{OFED}/usr/src/ofa_kernel/{tree}/include/rdma/peer_mem.h"):
                return f"CORE_ROOT={node.path(OFED)}"
    exporter = node.peer_memory_in()
    # The core of a container is not below the node's root, so a file there must be known to be it.
    unknown = not node.ofed_contained()
    others = []
    for file in modules_below(node.path(HOST) / "lib/modules" / node.kernel, exporter):
        if field(file, "name") == exporter and is_loaded(node, file, exporter, unknown):
            return f"CORE_ROOT={node.path(HOST)}"
        others.append(str(file))
    found = f", which has another one ({others[0]})" if others else ""
    raise Missing(
        f"the files of the loaded RDMA core are neither in {OFED}/usr/src/ofa_kernel nor on the "
        f"node{found}. The OFED container shows its files while it runs: wait for its pod"
    )


def modules_below(directory: Path, name: str) -> list[Path]:
    """Returns the files of modules whose names begin with NAME, because Debian's driver is called
    nvidia-current. A file in `updates` is more likely to be the loaded one."""
    found = [file for file in directory.rglob(f"{name}*.ko*") if file.is_file()]
    return sorted(found, key=lambda file: ("updates" not in file.parts, str(file)))


def field(file: Path, name: str) -> str:
    """Returns a field of a module's file, as modinfo prints it."""
    command = ["modinfo", "-F", name, str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stdout.strip()


def is_loaded(node: Node, file: Path, name: str, unknown: bool = True) -> bool:
    """Returns whether the loaded module NAME comes from FILE. Checksums of the sources tell it; a
    module without one counts as loaded if its version is the same. Some kernels give their modules
    neither, and UNKNOWN is returned for these."""
    for checked in ("srcversion", "version"):
        loaded, here = node.text(f"/sys/module/{name}/{checked}"), field(file, checked)
        if loaded and here:
            return loaded == here
    return unknown
