# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests what `nvpm run` says about programs into which no library can be preloaded."""

import ctypes
import os
import struct
from pathlib import Path

import pytest

from nvpm import loader


def elf(linker: str | None) -> bytes:
    """Returns the beginning of a program for x86-64, as elf.h describes it, with two segments."""
    name = linker.encode() + b"\0" if linker else b""
    kind = 3 if linker else 4
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    first = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
    second = struct.pack("<IIQQQQQQ", kind, 4, 176, 176, 176, len(name), len(name), 1)
    return header + first + second + name


def program(where: Path, name: str, content: bytes, mode: int = 0o755) -> str:
    path = where / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("linker", "said"),
    [
        ("/lib64/ld-linux-x86-64.so.2", ""),
        ("/lib/ld-linux-aarch64.so.1", ""),
        ("/lib/ld-musl-x86_64.so.1", "linked with musl"),
        (None, "linked statically"),
    ],
)
def test_program(tmp_path: Path, linker: str | None, said: str) -> None:
    answer = loader.unreachable(program(tmp_path, "one", elf(linker)))
    assert bool(answer) == bool(said) and said in answer


def test_real_programs() -> None:
    """Debian links ldconfig statically, and the shell dynamically."""
    assert "linked statically" in loader.unreachable("/sbin/ldconfig")
    assert loader.unreachable("sh") == ""
    assert loader.unreachable("no-such-program") == ""


@pytest.mark.parametrize(
    "line",
    ["#!{}", "#! {} -x", "#!/usr/bin/env {}", "#!/usr/bin/env -S A=1 {} -x"],
)
def test_script(tmp_path: Path, line: str) -> None:
    """A script counts as its interpreter, even if the interpreter is another script."""
    static = program(tmp_path, "static", elf(None))
    first = program(tmp_path, "first", f"{line.format(static)}\n".encode())
    second = program(tmp_path, "second", f"#!{first}\n".encode())
    assert "static is linked statically" in loader.unreachable(first)
    assert "static is linked statically" in loader.unreachable(second)
    assert loader.unreachable(program(tmp_path, "third", b"#!/bin/sh\n")) == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"#!", b"#!\n", b"#!/usr/bin/env\n", b"\x7fELF\x02\x01", elf(None)[:70], b"echo\n"],
)
def test_broken_program(tmp_path: Path, content: bytes) -> None:
    """The dynamic linker or the shell says what is wrong with such a program."""
    assert loader.unreachable(program(tmp_path, "broken", content)) == ""


def test_script_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "itself"
    assert loader.unreachable(program(tmp_path, "itself", f"#!{path}\n".encode())) == ""


def test_capabilities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RDMA programs often get CAP_IPC_LOCK in this way. Root has all capabilities already."""
    path = program(tmp_path, "one", elf("/lib64/ld-linux-x86-64.so.2"))
    monkeypatch.setattr(os, "getxattr", lambda _, name: b"\1" * (name == "security.capability"))
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert loader.unreachable(path) == ""
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert "more rights than yours" in loader.unreachable(path)


def test_dynamic_linker_as_a_program(tmp_path: Path) -> None:
    assert loader.unreachable(program(tmp_path, "ld-linux-x86-64.so.2", elf(None))) == ""


def test_rights_of_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamic linker ignores LD_PRELOAD only if the rights change."""
    path = program(tmp_path, "owned", elf("/lib64/ld-linux-x86-64.so.2"), 0o4755)
    assert loader.unreachable(path) == ""
    monkeypatch.setattr(os, "getuid", lambda: os.stat(path).st_uid + 1)
    assert "more rights than yours" in loader.unreachable(path)
    os.chmod(path, 0o755)
    assert loader.unreachable(path) == ""


@pytest.mark.parametrize(
    ("version", "takes"),
    [
        ("glibc 2.36", True),
        ("glibc 2.35", True),
        ("glibc 2.34", False),
        ("glibc 2.4", False),
        ("glibc 3.0", True),
        ("musl 2.36", False),
        ("", False),
        (None, False),
    ],
)
def test_auditor(monkeypatch: pytest.MonkeyPatch, version: str | None, takes: bool) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: version)
    assert loader.takes_auditors() == takes


def test_auditor_of_another_libc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", refuse)
    assert not loader.takes_auditors()


@pytest.mark.parametrize("there", [True, False])
def test_libibverbs(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """Programs open the library under this name, so nvpm looks for the same name."""

    def load(name: str) -> None:
        if name != "libibverbs.so.1" or not there:
            raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert loader.has_verbs() == there
