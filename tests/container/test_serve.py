# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The keeper's attempts, with doubles of the build and of the kernel."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from files import Files

from keeper import build, hooks, kernel, places, report, serve
from keeper.cache import Cache
from keeper.node import DRIVER_READY, OFED, OFED_READY
from keeper.places import Missing, Places
from keeper.settings import Settings

NAME = "nvidia_peermem"


class World:
    """Has the node and a clock, and records the keeper's requests to the build and to the
    kernel."""

    def __init__(self, node: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node, self.now, self.calls = node, 1000.0, list[str]()
        self.missing, self.failed, self.refused = "", "", ""
        # The hook for the OFED container cannot be written.
        self.full = False
        # A file of the node that disappears during the next build or load.
        self.leaves = ""
        # The version of a driver that is loaded during the next build.
        self.replaced = ""
        self.cache = Cache(tmp_path / "cache")
        self.told = report.Report(tmp_path / "run")
        settings = Settings(NAME, ["persistent_api_support=0"], 0, "2.0.0")
        self.keeper = serve.Keeper(node, settings, self.cache, self.told)
        monkeypatch.setattr(places, "find", self.find)
        monkeypatch.setattr(build, "build", self.build)
        monkeypatch.setattr(kernel, "load", self.load)
        monkeypatch.setattr(kernel, "unload", self.unload)
        monkeypatch.setattr(hooks, "write", self.hook)
        monkeypatch.setattr(serve, "advice", lambda name, said: "Advice.")
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def hook(self, node: Files) -> None:
        if self.full:
            raise OSError(28, "No space left on device")

    def find(self, node: Files, cache: Cache) -> Places:
        if self.missing:
            raise Missing(self.missing)
        return Places(Path("/"), Path("/headers"), "DRIVER_ROOT=/d", "CORE_ROOT=/c")

    def build(
        self, release: Path, found: Places, version: str, name: str, work: Path
    ) -> build.Built:
        self.calls.append("build")
        (work / "log").write_text("the output", encoding="utf-8")
        if self.failed:
            raise build.Failed(self.failed)
        for file in (f"{name}.ko", "nv_peer_mem_callback.ko", "nvidia.symvers", "nv-p2p.h"):
            (work / file).write_text(file, encoding="utf-8")
        if self.replaced:
            self.node.load("nvidia", self.replaced)
        return build.Built(work, work / "nv-p2p.h")

    def load(self, files: list[Path], parameters: list[str]) -> None:
        self.calls.append("load " + " ".join(parameters))
        assert [file.name for file in files] == ["nv_peer_mem_callback.ko", f"{NAME}.ko"]
        if self.refused:
            raise kernel.Refused(self.refused)
        self.node.load_own(NAME)
        self.leave()

    def leave(self) -> None:
        if self.leaves:
            self.node.drop(self.leaves)
        self.leaves = ""

    def unload(self, name: str) -> None:
        own = self.node.own()
        assert own and own.name == name
        if own.references:
            raise kernel.Refused("rmmod: ERROR: Module nvidia_peermem is in use")
        self.calls.append(f"unload {name}")
        self.node.drop(f"/sys/module/{name}")
        self.node.drop(f"/sys/module/ib_core/holders/{name}")

    def look(self) -> str:
        """Looks once, and returns the state and the reason."""
        self.keeper.look()
        status = report.read(self.told.file.parent)
        assert status
        return f"{status.state}: {status.reason}"

    def did(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def world(node: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    node.load("nvidia")
    node.load_core()
    return World(node, tmp_path, monkeypatch)


def test_builds_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.look().startswith(f"building: {NAME} 2.0.0 for kernel 6.8.0-60-generic, with DRI")
    assert world.look() == f"loading: {NAME} 2.0.0, from the cache"
    assert world.look() == f"ready: {NAME} 2.0.0 is registered with the RDMA core"
    assert world.did() == ["build", "load persistent_api_support=0"]
    world.look()
    assert capsys.readouterr().out.count("ready:") == 1
    world.unload(NAME)
    world.now += serve.TAKEN
    world.look()
    assert world.did() == [f"unload {NAME}", "load persistent_api_support=0"]


def test_another_core(world: World) -> None:
    for _ in range(3):
        world.look()
    world.unload(NAME)
    world.node.load_core("2")
    world.did()
    for _ in range(3):
        world.look()
    assert world.did() == ["build", "load persistent_api_support=0"]
    assert world.cache.driver(world.node.identity("nvidia"))


@pytest.mark.parametrize("leaves", [OFED_READY, "/sys/module/nvidia_uvm"])
def test_a_container_ends_during_the_load(world: World, leaves: str) -> None:
    """The container's script has found no module to unload. The script fails later, because the
    keeper has loaded this module."""
    world.node.contain_driver()
    world.node.contain_ofed()
    world.look()
    world.leaves = leaves
    assert world.look() == f"unloaded: {NAME} 2.0.0"
    assert world.look().startswith("waiting: ")
    assert world.did() == ["build", "load persistent_api_support=0", f"unload {NAME}"]


def test_a_neighbour_is_replaced_during_the_build(world: World) -> None:
    """The module may be built for the old driver or for the new driver, and so may the kept
    symbols."""
    old = world.node.identity("nvidia")
    world.replaced = "2"
    world.look()
    new = world.node.identity("nvidia")
    assert new != old and not world.cache.driver(old) and not world.cache.driver(new)
    world.replaced = ""
    world.look()
    assert world.did() == ["build", "build"] and world.cache.driver(new)
    world.node.load("nvidia")
    world.look()
    assert world.did() == ["build"]


def test_the_older_ofed_container_after_a_kill(world: World) -> None:
    """The script entrypoint.sh unloads the module, installs a compiler, and removes only then the
    file that a killed container has left. Minutes later, openibd fails if the module is back."""
    world.node.put(OFED_READY)
    for _ in range(3):
        world.look()
    world.did()
    world.unload(NAME)
    for _ in range(serve.TAKEN - 1):
        world.now += 1
        assert world.look() == f"waiting: {serve.WAS_TAKEN}"
    world.node.drop(OFED_READY)
    world.now += serve.TAKEN
    world.node.put(f"{OFED}/usr/src/x")
    assert world.look().startswith("waiting: the OFED container is not ready")
    assert world.did() == [f"unload {NAME}"]
    world.node.put(OFED_READY)
    world.look()
    assert world.did() == ["load persistent_api_support=0"]


@pytest.mark.parametrize("changed", ["nvidia", DRIVER_READY, OFED_READY, "nothing"])
def test_after_somebody_else_has_unloaded(world: World, changed: str) -> None:
    """The wait ends when a neighbour was replaced, or a container is ready again, or after
    minutes. The same driver can be back between two looks."""
    world.node.put(OFED_READY)
    world.node.put(DRIVER_READY)
    for _ in range(3):
        world.look()
    world.unload(NAME)
    world.look()
    world.did()
    if changed == "nvidia":
        world.node.drop("/sys/module/nvidia")
        world.look()
        world.node.load("nvidia")
    elif changed in (DRIVER_READY, OFED_READY):
        os.utime(world.node.path(changed), (5, 5))
    else:
        world.now += serve.TAKEN
    world.look()
    assert world.did() == ["load persistent_api_support=0"]


def test_a_part_is_missing(world: World) -> None:
    """The part can appear at any time, so the pauses do not grow."""
    world.missing = "no headers"
    for _ in range(5):
        assert world.look() == "waiting: no headers"
        world.now += serve.FIRST - 1
        assert world.look() == "waiting: no headers"
        world.now += 1
    world.missing = ""
    assert world.look().startswith("building")


def test_the_build_fails(world: World) -> None:
    """The pauses grow, and end when the node changes."""
    world.failed = "gcc is missing"
    pauses = []
    for _ in range(8):
        before = world.now
        while not world.did():
            text = world.look()
            world.now += 1
        pauses.append(world.now - before)
    assert text.startswith("failed: the build: gcc is missing (all of its output: ")
    assert (world.cache.directory / "build.log").read_text() == "the output"
    assert pauses[1:] == [15, 30, 60, 120, 240, 480, 600]
    world.node.load_core("2")
    world.look()
    assert world.did() == ["build"]
    world.now += serve.FIRST
    world.look()
    assert world.did() == ["build"]


def test_told_again_until_the_next_attempt(world: World) -> None:
    """The driver is unloaded and loaded again between two attempts."""
    world.failed = "gcc is missing"
    failed = world.look()
    world.node.drop("/sys/module/nvidia")
    assert world.look().startswith("waiting: NVIDIA's driver is not loaded")
    world.node.load("nvidia")
    assert world.look() == failed
    # The state is not stale after a minute.
    world.now += 14
    world.look()
    status = report.read(world.told.file.parent)
    assert status and status.at == world.now and world.did() == ["build"]


def test_the_kernel_refuses(world: World) -> None:
    """The entry of the cache may be wrong, so the next attempt builds."""
    world.look()
    world.refused = "insmod: ERROR: could not insert module: Invalid parameters"
    assert world.look() == f"failed: {world.refused}. Advice."
    assert world.did() == ["build", "load persistent_api_support=0"]
    world.look()
    assert world.did() == []
    world.now += serve.FIRST
    world.refused = ""
    for _ in range(2):
        world.look()
    assert world.did() == ["build", "load persistent_api_support=0"]
    assert world.look().startswith("ready")


def test_the_kernel_refuses_and_nothing_can_be_built(world: World) -> None:
    """The refusal may have another cause than the module, such as too little memory, and the
    driver's container has no headers after some restarts."""
    world.look()
    world.refused, world.missing = "insmod: ERROR: could not insert module: busy", "no headers"
    world.look()
    world.now += serve.FIRST
    assert world.look() == "waiting: no headers"
    world.refused = ""
    world.now += serve.FIRST
    world.look()
    assert world.look().startswith("ready")


def test_asked_to_unload(world: World) -> None:
    for _ in range(3):
        world.look()
    world.node.load_own(NAME, references=2)
    report.asked(world.told.file.parent).touch()
    assert "held: " in world.look() and "2 references to the module are held" in world.look()
    world.node.load_own(NAME)
    assert world.look() == f"unloaded: {NAME} 2.0.0"
    assert world.look().startswith("unloaded: the module was unloaded on request")


def test_the_disk_is_full(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def store(key: dict[str, str], built: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(world.cache, "store", store)
        assert "failed: a file cannot be read or written: [Errno 28] No space" in world.look()
    world.now += serve.FIRST
    for _ in range(2):
        world.look()
    assert world.look().startswith("ready")
    # The state cannot be written.
    world.told.file.unlink()
    world.told.file.parent.rmdir()
    capsys.readouterr()
    world.unload(NAME)
    world.now += serve.TAKEN
    world.keeper.look()
    assert "loading" in capsys.readouterr().out


def test_the_hook_cannot_be_written(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.keeper.settings = world.keeper.settings._replace(name="nv_peer_mem")
    world.node.load_own("nv_peer_mem")
    world.full = True
    for _ in range(2):
        assert world.look().startswith("ready")
    assert capsys.readouterr().out.count("the hook for the OFED container could not be") == 1


def test_the_owners_are_told_once_a_minute(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program registers and deregisters all the time, and the list is long."""
    report.asked(world.told.file.parent).touch()
    for second in range(120):
        world.node.load_own(NAME, references=second + 1)
        assert world.look().startswith("held: ")
        world.now += 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and ": 1 references" in said[0] and ": 61 references" in said[1]


@pytest.mark.parametrize("name, left", [(NAME, False), ("nv_peer_mem", True)])
def test_the_end(world: World, name: str, left: bool) -> None:
    """A module that this pod has not loaded stays."""
    world.node.load_own(name)
    assert world.keeper.unload()
    assert (world.node.own() is not None) == left


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serve(
    world: World, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The keeper unloads the module, and a second signal does not interrupt that."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    world.node.load_own(NAME)
    monkeypatch.setattr("time.sleep", lambda seconds: os.kill(os.getpid(), number))
    try:
        assert serve.serve(world.keeper.settings, world.node, world.cache, world.told) == 0
        os.kill(os.getpid(), number)
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert world.did() == [f"unload {NAME}"]


def test_the_end_with_registrations(world: World) -> None:
    world.node.load_own(NAME, references=1)
    assert not world.keeper.unload()
    status = report.read(world.told.file.parent)
    assert status and status.state == "held" and "is in use: 1 references" in status.reason
