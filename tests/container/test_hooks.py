# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests when the hook for the OFED container is written, and what the hook does in the
container."""

import os
import subprocess
from pathlib import Path

import pytest
from files import Files

from keeper import hooks

TOP = Path(__file__).resolve().parents[2]
PRE, POST = "ofed-container-pre-stop", "ofed-container-post-start"
HOOK = TOP / "init.d" / PRE


def test_written_once(node: Files) -> None:
    assert not hooks.write(node, HOOK)
    node.contain_ofed()
    assert hooks.write(node, HOOK)
    place = node.path(hooks.PLACE)
    assert place.read_bytes() == HOOK.read_bytes() and place.stat().st_mode & 0o777 == 0o755
    before = place.stat().st_ino
    assert hooks.write(node, HOOK) and place.stat().st_ino == before
    # A hook of an earlier version is replaced.
    place.write_text("#!/bin/sh\n", encoding="utf-8")
    assert hooks.write(node, HOOK) and place.read_bytes() == HOOK.read_bytes()


class Container:
    """The OFED container, with doubles of rmmod and modprobe that write what they were asked."""

    def __init__(self, node: Files, tmp_path: Path) -> None:
        self.node, self.bin = node, tmp_path / "bin"
        self.bin.mkdir()
        self.said = ""
        for name in ("rmmod", "modprobe"):
            program = self.bin / name
            program.write_text(
                f'#!/bin/sh\necho "{name} $*" >>{self.bin}/calls\n[ ! -e {self.bin}/fails ]\n',
                encoding="utf-8",
            )
            program.chmod(0o755)
        node.contain_ofed()

    def run(self, name: str) -> list[str]:
        """Runs a hook, and returns what the doubles were asked."""
        calls = self.bin / "calls"
        calls.write_text("", encoding="utf-8")
        ended = subprocess.run(
            [TOP / "init.d" / name],
            env={"PATH": f"{self.bin}:{os.environ['PATH']}", "NVPM_SYSROOT": self.node.root},
            capture_output=True,
            text=True,
            check=False,
        )
        self.said = ended.stderr
        return calls.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def container(node: Files, tmp_path: Path) -> Container:
    return Container(node, tmp_path)


def test_unloads_and_loads(container: Container) -> None:
    node = container.node
    assert container.run(PRE) == [] and container.run(POST) == []
    node.load("nv_peer_mem")
    node.load("nvidia_peermem")
    assert container.run(PRE) == ["rmmod nvidia_peermem", "rmmod nv_peer_mem"]
    assert container.run(POST) == [f"modprobe -d {node.root}/host nv_peer_mem"]
    # The module is loaded once, also if openibd starts twice.
    assert container.run(POST) == []


def test_leaves_a_module_under_nvidias_name(container: Container) -> None:
    """The hook does not load the module again, because the owner of a module with this name does
    so."""
    container.node.load("nvidia_peermem")
    assert container.run(PRE) == ["rmmod nvidia_peermem"]
    assert container.run(POST) == []


def test_says_that_the_module_is_in_use(container: Container) -> None:
    container.node.load("nv_peer_mem", references=1)
    (container.bin / "fails").touch()
    assert container.run(PRE) == ["rmmod nv_peer_mem"]
    assert "is in use: openibd will unload the drivers of the network cards" in container.said
    assert container.run(POST) == []


def test_says_that_the_module_does_not_fit(container: Container) -> None:
    container.node.load("nv_peer_mem")
    container.run(PRE)
    (container.bin / "fails").touch()
    container.run(POST)
    assert "if OFED has changed, build the module again" in container.said
