# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where the headers, the driver and the core of a node are found."""

import os
import re
from pathlib import Path

import pytest
from files import DRIVER, HOST, KERNEL, OFED, Files

from keeper import places
from keeper.cache import Cache

TREE = f"ofa_kernel/{os.uname().machine}/{KERNEL}/include/rdma/peer_mem.h"


@pytest.fixture(autouse=True)
def modules_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's file has lines FIELD=VALUE, which this double of modinfo reads."""

    def field(file: Path, name: str) -> str:
        found = re.search(f"^{name}=(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else ""

    monkeypatch.setattr(places, "field", field)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def module(name: str, build: str, *left_out: str) -> str:
    fields = {"name": name, "version": build, "srcversion": f"S{build}"}
    return "".join(f"{key}={value}\n" for key, value in fields.items() if key not in left_out)


def lib(root: str, file: str) -> str:
    return f"{root}/lib/modules/{KERNEL}/{file}"


def test_headers(node: Files) -> None:
    """The driver's container comes first, because the node may have none."""
    with pytest.raises(places.Missing, match=f"no headers of kernel {KERNEL}"):
        places.find_headers(node)
    node.put(f"{HOST}/usr/src/kernels/{KERNEL}/.config")
    root = node.path(HOST)
    assert places.find_headers(node) == (root, root / f"usr/src/kernels/{KERNEL}")
    # The link of another kernel is not followed.
    node.put(f"{DRIVER}/usr/src/linux-headers-{KERNEL}-other/.config")
    assert places.find_headers(node)[0] == root
    node.put(f"{DRIVER}/usr/src/linux-headers-{KERNEL}/.config")
    root = node.path(DRIVER)
    assert places.find_headers(node) == (root, root / f"usr/src/linux-headers-{KERNEL}")


@pytest.mark.parametrize("target", ["/usr/src/any", "../../../usr/src/any"])
def test_headers_behind_a_link(node: Files, target: str) -> None:
    """An absolute link begins at the root directory of the node."""
    node.put(f"{HOST}/usr/src/any/.config")
    link = node.put(lib(HOST, "build"))
    link.unlink()
    link.symlink_to(target)
    root, headers = places.find_headers(node)
    assert root == node.path(HOST) and headers == node.path(f"{HOST}/usr/src/any")


def test_the_loaded_driver(node: Files, cache: Cache) -> None:
    """If the container has a driver and the node another driver, the loaded driver counts."""
    node.load("nvidia", "550.1")
    node.put(lib(DRIVER, "kernel/drivers/video/nvidia.ko"), module("nvidia", "570.1"))
    node.put(lib(DRIVER, "kernel/drivers/video/nvidia-uvm.ko"), module("nvidia_uvm", "550.1"))
    with pytest.raises(places.Missing, match="the loaded driver 550.1 .*has version 570.1"):
        places.find_driver(node, cache)
    node.put(lib(HOST, "updates/dkms/nvidia-current.ko"), module("nvidia", "550.1"))
    assert places.find_driver(node, cache) == f"DRIVER_ROOT={node.path(HOST)}"
    node.load("nvidia", "570.1")
    assert places.find_driver(node, cache) == f"DRIVER_ROOT={node.path(DRIVER)}"


def test_the_driver_is_unloaded_meanwhile(node: Files, cache: Cache) -> None:
    with pytest.raises(places.Missing, match="a moment ago"):
        places.find_driver(node, cache)


def test_a_driver_without_a_checksum(node: Files, cache: Cache) -> None:
    node.load("nvidia", "550.1")
    node.put(lib(DRIVER, "nvidia.ko"), module("nvidia", "570.1", "srcversion"))
    with pytest.raises(places.Missing):
        places.find_driver(node, cache)
    node.put(lib(DRIVER, "nvidia.ko"), module("nvidia", "550.1", "srcversion"))
    assert places.find_driver(node, cache).startswith("DRIVER_ROOT=")


def test_after_the_fast_path(node: Files, cache: Cache, tmp_path: Path) -> None:
    """The driver's module is nowhere, and an earlier build has kept its symbols."""
    node.load("nvidia", "550.1")
    with pytest.raises(places.Missing, match="FORCE_REINSTALL"):
        places.find_driver(node, cache)
    files = [tmp_path / "symbols", tmp_path / "header"]
    for file in files:
        file.write_text("x", encoding="utf-8")
    cache.store_driver(node.identity("nvidia"), *files)
    assert places.find_driver(node, cache) == f"NV_SRC={cache.driver(node.identity('nvidia'))}"
    node.load("nvidia", "570.1")
    with pytest.raises(places.Missing):
        places.find_driver(node, cache)


def test_the_core_of_the_node(node: Files) -> None:
    node.load_core("25.10", "ib_uverbs")
    node.put(lib(HOST, "kernel/ib_uverbs.ko"), module("ib_uverbs", "inbox"))
    with pytest.raises(places.Missing, match="another one"):
        places.find_core(node)
    node.put(lib(HOST, "updates/ib_uverbs.ko.xz"), module("ib_uverbs", "25.10"))
    assert places.find_core(node) == f"CORE_ROOT={node.path(HOST)}"


def test_a_core_without_a_checksum(node: Files) -> None:
    """Debian's kernels give their modules neither a checksum nor a version."""
    node.load_core()
    for file in ("srcversion", "version"):
        node.drop(f"/sys/module/ib_core/{file}")
    node.put(lib(HOST, "kernel/ib_core.ko"), "name=ib_core\n")
    assert places.find_core(node) == f"CORE_ROOT={node.path(HOST)}"
    # The core is the container's, which does not show its files yet.
    node.contain_ofed()
    with pytest.raises(places.Missing, match="wait for its pod"):
        places.find_core(node)


def test_the_core_of_the_container(node: Files) -> None:
    """On AKS, the driver is the node's, and OFED is the container's."""
    node.load_core("25.10")
    node.contain_ofed()
    node.put(lib(HOST, "kernel/ib_core.ko"), module("ib_core", "inbox"))
    with pytest.raises(places.Missing, match="wait for its pod"):
        places.find_core(node)
    node.put(f"{OFED}/usr/src/{TREE}")
    assert places.find_core(node) == f"CORE_ROOT={node.path(OFED)}"
