# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Keeps built modules, so that a restart does not build again, and so that a node whose driver
container has no headers any more still has its module.

Layout: KERNEL-KEY/{NAME.ko, nv_peer_mem_callback.ko, about.json} for each built module, and
drivers/IDENTITY/{Module.symvers, nv-p2p.h} for each driver that a module was built for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from .node import Node

CALLBACK = "nv_peer_mem_callback.ko"
# A node has few kernels and drivers at a time, and each entry has half a megabyte.
MOST = 16


class Unsafe(Exception):
    """Others than root could have written what root would load."""


class Cache:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = directory.stat()
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Unsafe(
                f"others than root can write to {directory}, and root would load modules from "
                f"there: chown root:root {directory} && chmod 700 {directory}, after a look at "
                "what is inside"
            )

    # ---- built modules ----

    def key(self, node: Node, name: str, version: str) -> dict[str, str]:
        """Returns what a built module depends on."""
        neighbours = [module for module in (node.module("nvidia"), *node.core()) if module]
        return {
            "kernel": node.kernel,
            "build": node.kernel_build,
            "name": name,
            "version": version,
            **{module.name: module.identity for module in neighbours},
        }

    def place(self, key: dict[str, str]) -> Path:
        text = json.dumps(key, sort_keys=True).encode()
        return self.directory / f"{key['kernel']}-{hashlib.sha256(text).hexdigest()[:16]}"

    def modules(self, key: dict[str, str]) -> list[Path]:
        """Returns the files of a built module, the callback module first; none if the cache has
        no such module. An entry whose files were cut, as by a full disk, is removed."""
        place = self.place(key)
        try:
            about = json.loads((place / "about.json").read_text(encoding="utf-8"))
            for file, checksum in about["files"].items():
                if checksum != sum_of(place / file):
                    raise ValueError(file)
            with contextlib.suppress(OSError):
                # The directory may be read-only by now, and its modules are still good.
                os.utime(place)
            return [place / file for file in about["files"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.drop(key)
            return []

    def store(self, key: dict[str, str], built: Path) -> None:
        """Stores the modules of the directory BUILT. An entry appears at once and complete."""
        names = (CALLBACK, f"{key['name']}.ko")
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".new-") as new:
            entry = Path(new) / "entry"
            entry.mkdir()
            for name in names:
                shutil.copyfile(built / name, entry / name)
            about = {"files": {name: sum_of(entry / name) for name in names}, "key": key}
            write(entry / "about.json", json.dumps(about, indent=1) + "\n")
            self.drop(key)
            for file in entry.iterdir():
                flush(file)
            entry.rename(self.place(key))
        self.prune()

    def drop(self, key: dict[str, str]) -> None:
        shutil.rmtree(self.place(key), ignore_errors=True)

    def prune(self) -> None:
        """Removes the entries that were not used for the longest time."""
        for directory in (self.directory, self.directory / "drivers"):
            entries = [
                entry
                for entry in (directory.iterdir() if directory.is_dir() else ())
                if entry.is_dir() and entry.name != "drivers" and not entry.name.startswith(".")
            ]
            entries.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
            for entry in entries[MOST:]:
                shutil.rmtree(entry, ignore_errors=True)

    # ---- drivers ----

    def driver(self, identity: str) -> str:
        """Returns the directory with the symbols and the header of a driver; an empty string if no
        module was built for that driver here."""
        place = self.directory / "drivers" / identity
        complete = all((place / name).exists() for name in ("Module.symvers", "nv-p2p.h"))
        return str(place) if complete else ""

    def store_driver(self, identity: str, symbols: Path, header: Path) -> None:
        place = self.directory / "drivers" / identity
        place.mkdir(parents=True, exist_ok=True)
        write(place / "nv-p2p.h", header.read_text(encoding="utf-8", errors="replace"))
        write(place / "Module.symvers", symbols.read_text(encoding="utf-8"))


def sum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write(file: Path, text: str) -> None:
    """Writes a file that has the whole text, or does not exist."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    flush(new)
    new.rename(file)


def flush(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
