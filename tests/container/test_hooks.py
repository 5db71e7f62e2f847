# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests what the hooks for the OFED container do in the container. nvpm/keeper tests when the
image's program writes the first one."""

import os
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PRE, POST = "ofed-container-pre-stop", "ofed-container-post-start"


class Container:
    """The OFED container, with doubles of rmmod and modprobe that write what they were asked."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.bin = tmp_path / "node", tmp_path / "bin"
        self.bin.mkdir()
        self.said = ""
        for name in ("rmmod", "modprobe"):
            program = self.bin / name
            program.write_text(
                f'#!/bin/sh\necho "{name} $*" >>{self.bin}/calls\n[ ! -e {self.bin}/fails ]\n',
                encoding="utf-8",
            )
            program.chmod(0o755)
        (self.root / "run/mellanox/drivers").mkdir(parents=True)

    def load(self, name: str, references: int = 0) -> None:
        module = self.root / "sys/module" / name
        module.mkdir(parents=True)
        (module / "initstate").write_text("live\n", encoding="utf-8")
        (module / "refcnt").write_text(f"{references}\n", encoding="utf-8")

    def run(self, name: str) -> list[str]:
        """Runs a hook, and returns what the doubles were asked."""
        calls = self.bin / "calls"
        calls.write_text("", encoding="utf-8")
        ended = subprocess.run(
            [TOP / "init.d" / name],
            env={"PATH": f"{self.bin}:{os.environ['PATH']}", "NVPM_SYSROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.said = ended.stderr
        return calls.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_unloads_and_loads(container: Container) -> None:
    assert container.run(PRE) == [] and container.run(POST) == []
    container.load("nv_peer_mem")
    container.load("nvidia_peermem")
    assert container.run(PRE) == ["rmmod nvidia_peermem", "rmmod nv_peer_mem"]
    assert container.run(POST) == [f"modprobe -d {container.root}/host nv_peer_mem"]
    # The module is loaded once, also if openibd starts twice.
    assert container.run(POST) == []


def test_leaves_a_module_under_nvidias_name(container: Container) -> None:
    """The hook does not load the module again, because the owner of a module with this name does
    so."""
    container.load("nvidia_peermem")
    assert container.run(PRE) == ["rmmod nvidia_peermem"]
    assert container.run(POST) == []


def test_says_that_the_module_is_in_use(container: Container) -> None:
    container.load("nv_peer_mem", references=1)
    (container.bin / "fails").touch()
    assert container.run(PRE) == ["rmmod nv_peer_mem"]
    assert "is in use: openibd will unload the drivers of the network cards" in container.said
    assert container.run(POST) == []


def test_says_that_the_module_does_not_fit(container: Container) -> None:
    container.load("nv_peer_mem")
    container.run(PRE)
    (container.bin / "fails").touch()
    container.run(POST)
    assert "if OFED has changed, build the module again" in container.said
