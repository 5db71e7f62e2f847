# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests which entries the cache keeps, for which node, and what becomes of damaged entries."""

import os
from pathlib import Path

import pytest
from files import Files

from keeper import cache as caches
from keeper.cache import Cache, Unsafe

NAME, CALLBACK = "nvidia_peermem", "nv_peer_mem_callback.ko"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def built(tmp_path: Path) -> Path:
    directory = tmp_path / "built"
    directory.mkdir()
    for name in (f"{NAME}.ko", CALLBACK, "other"):
        (directory / name).write_text(name, encoding="utf-8")
    return directory


def ready(node: Files) -> Files:
    node.load("nvidia")
    node.load_core()
    return node


def test_stored_and_found(cache: Cache, node: Files, built: Path) -> None:
    key = cache.key(ready(node), NAME, "2.0.0")
    assert cache.modules(key) == []
    cache.store(key, built)
    files = cache.modules(key)
    assert [file.name for file in files] == [CALLBACK, f"{NAME}.ko"]
    assert [file.read_text() for file in files] == [CALLBACK, f"{NAME}.ko"]
    assert Cache(cache.directory).modules(key) == files


@pytest.mark.parametrize(
    "changed", ["nvidia", "ib_core", "ib_uverbs", "name", "version", "kernel", "build"]
)
def test_every_part_of_the_key(cache: Cache, node: Files, built: Path, changed: str) -> None:
    cache.store(cache.key(ready(node), NAME, "2.0.0"), built)
    name, version = NAME, "2.0.0"
    if changed == "name":
        name = "nv_peer_mem"
    elif changed == "version":
        version = "2.0.1"
    elif changed == "kernel":
        node.put("/proc/sys/kernel/osrelease", "6.8.0-61-generic\n")
    elif changed == "build":
        node.put("/sys/kernel/notes", "another build of the same release")
    else:
        # This is another build of the same version.
        node.put(f"/sys/module/{changed}/notes/.note.gnu.build-id", "another")
    assert cache.modules(cache.key(node, name, version)) == []


@pytest.mark.parametrize("changed", ["srcversion", "version", "coresize"])
def test_a_module_without_a_build_id(node: Files, changed: str) -> None:
    node.load("nvidia")
    node.drop("/sys/module/nvidia/notes")
    before = node.identity("nvidia")
    node.put(f"/sys/module/nvidia/{changed}", "another")
    assert node.identity("nvidia") != before


@pytest.mark.parametrize("file", [f"{NAME}.ko", CALLBACK, "about.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_entry(cache: Cache, node: Files, built: Path, file: str, damage: str) -> None:
    key = cache.key(ready(node), NAME, "2.0.0")
    cache.store(key, built)
    damaged = cache.place(key) / file
    if damage == "cut":
        damaged.write_bytes(damaged.read_bytes()[:-2])
    else:
        damaged.unlink()
    assert cache.modules(key) == []
    cache.store(key, built)
    assert len(cache.modules(key)) == 2


@pytest.mark.parametrize("text", ["[]", "{}", '{"files": null}', '{"files": {"x": 1}}'])
def test_a_strange_entry(cache: Cache, node: Files, built: Path, text: str) -> None:
    """The pod goes on, whatever the file about an entry contains."""
    key = cache.key(ready(node), NAME, "2.0.0")
    cache.store(key, built)
    (cache.place(key) / "about.json").write_text(text, encoding="utf-8")
    assert cache.modules(key) == []


def test_a_directory_that_became_read_only(
    cache: Cache, node: Files, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system becomes read-only after an error of the disk."""
    key = cache.key(ready(node), NAME, "2.0.0")
    cache.store(key, built)

    def utime(place: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.utime", utime)
    assert len(cache.modules(key)) == 2


def test_an_unfinished_entry(cache: Cache, node: Files, built: Path) -> None:
    key = cache.key(ready(node), NAME, "2.0.0")
    (built / CALLBACK).unlink()
    with pytest.raises(FileNotFoundError):
        cache.store(key, built)
    assert cache.modules(key) == [] and not list(cache.directory.iterdir())


def test_only_the_last_entries_stay(cache: Cache, node: Files, built: Path) -> None:
    ready(node)
    keys = []
    for number in range(caches.MOST + 2):
        node.load("nvidia", str(number))
        keys.append(cache.key(node, NAME, "2.0.0"))
        cache.store(keys[-1], built)
        os.utime(cache.place(keys[-1]), (number, number))
    # Entry 2 is the oldest entry, and is used here. The cache therefore removes entry 3 for the
    # next entry.
    assert cache.modules(keys[2])
    cache.store({**keys[0], "name": NAME, "version": "3"}, built)
    left = [bool(cache.modules(key)) for key in keys]
    assert left == [False, False, True, False] + [True] * (caches.MOST - 2)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_others_can_write(tmp_path: Path, mode: int) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(Unsafe, match="others than root can write"):
        Cache(tmp_path / "cache")


def test_a_driver(cache: Cache, tmp_path: Path) -> None:
    symbols, header = tmp_path / "symbols", tmp_path / "header"
    symbols.write_text("0x1\tnvidia_p2p_get_pages\tnvidia\n", encoding="utf-8")
    header.write_text("#define X\n", encoding="utf-8")
    assert cache.driver("a") == ""
    cache.store_driver("a", symbols, header)
    kept = Path(cache.driver("a"))
    assert (kept / "Module.symvers").read_text() == symbols.read_text()
    assert (kept / "nv-p2p.h").read_text() == header.read_text()
    assert cache.driver("b") == ""
