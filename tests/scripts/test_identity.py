# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""build/identity: each change of a source gives another identity, and a build gives none."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from system import TOP

# Files of these directories become part of the module, or decide how it is compiled.
PARTS = ("src", "build/has", "build/rust")
FILES = ("Kbuild", "build/in-kernel.mk", "build/prebuilt.S")
# Only these files say nothing about the module.
OTHERS = {"build/has/ask"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("build", "src"):
        shutil.copytree(TOP / name, tmp_path / name, ignore=shutil.ignore_patterns("*.o", ".*"))
    for name in ("Kbuild", "dkms.conf"):
        shutil.copy(TOP / name, tmp_path)
    return tmp_path


def identity(tree: Path) -> str:
    done = subprocess.run(
        ["dash", tree / "build/identity"], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_form(tree: Path) -> None:
    plain = identity(tree)
    assert plain.startswith("2.0.0+") and len(plain) == len("2.0.0+") + 12
    (tree / "build/commit").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert identity(tree) == plain.replace("+", "+g0123456789ab.")
    conf = (tree / "dkms.conf").read_text()
    (tree / "dkms.conf").write_text(conf.replace('VERSION="2.0.0"', 'VERSION="2.0.1"'))
    assert identity(tree).startswith("2.0.1+g0123456789ab.")


def test_each_source_counts(tree: Path) -> None:
    before = identity(tree)
    sources = [tree / name for name in FILES]
    sources += [file for part in PARTS for file in (tree / part).rglob("*") if file.is_file()]
    assert len(sources) > 60
    for file in sources:
        if str(file.relative_to(tree)) in OTHERS:
            continue
        text = file.read_bytes()
        file.write_bytes(text + b"\n")
        assert identity(tree) != before, file
        file.write_bytes(text)
    (tree / "src/c/dma.c").rename(tree / "src/c/dna.c")
    assert identity(tree) != before


def test_a_build_does_not_count(tree: Path) -> None:
    before = identity(tree)
    for name in (
        "src/c/module.o",
        "src/c/.module.o.cmd",
        "src/marker/nvidia_peermem.mod.c",
        "nv_peer_mem.mod.c",
        "src/bindings_generated.rs",
        "build/prebuilt/x86_64.S",
        "src/kernel/rust.build/kernel.rs",
        "build/has/answers.h",
        "build/has/.tmp_1/tmp.c",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("made")
        assert identity(tree) == before, name


def test_a_relative_name_in_a_linked_directory(tree: Path, tmp_path: Path) -> None:
    # The make rules of Linux 5.10 call it so, from the link /lib/modules/KVER/build. The shell has
    # the name of the link in PWD.
    (tmp_path / "usr/src/headers").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "usr/src/headers")
    name = os.path.relpath(tree / "build/identity", tmp_path / "usr/src/headers")
    said = subprocess.run(
        ["dash", name],
        cwd=link,
        env={**os.environ, "PWD": str(link)},
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stdout.strip()) == (0, identity(tree)), said.stderr
