# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The keeper's next step, in each state of a node."""

from __future__ import annotations

import pytest
from files import Files

from keeper import decide as decided
from keeper.decide import Step, decide
from keeper.node import DRIVER_READY, OFED_READY, Loaded

MINE, PLAIN = "nvidia_peermem", "nv_peer_mem"


def step(node: Files, name: str = MINE, asked: bool = False) -> Step:
    return decide(node, name, "2.0.0", asked)


def test_the_first_start(node: Files) -> None:
    assert step(node) == Step("waiting", decided.NO_DRIVER)
    node.load("nvidia", state="coming")
    assert step(node) == Step("waiting", decided.STARTING)
    node.load("nvidia")
    assert step(node) == Step("waiting", decided.NO_CORE)
    node.load("ib_core")
    assert step(node) == Step("waiting", decided.NO_CORE)
    node.load_core(peer_memory="")
    assert step(node) == Step("waiting", decided.NO_PEER_MEMORY)
    node.load_core("2")
    assert step(node).do == "load"


def test_the_core_gets_peer_memory(node: Files) -> None:
    """OFED replaces the kernel's own core."""
    node.load("nvidia")
    node.load_core("inbox", peer_memory="")
    assert step(node) == Step("waiting", decided.NO_PEER_MEMORY)
    node.load_core("25.10")
    assert node.peer_memory_in() == "ib_core"
    node.load_core("inbox", peer_memory="")
    assert node.peer_memory_in() == ""


@pytest.mark.parametrize("where", ["ib_core", "ib_uverbs"])
def test_either_module_of_the_core_has_peer_memory(node: Files, where: str) -> None:
    node.load("nvidia")
    node.load_core(peer_memory=where)
    assert node.peer_memory_in() == where
    assert step(node).do == "load"


def test_the_drivers_container_unloads(node: Files) -> None:
    """The driver's manager unloads nvidia_uvm before nvidia_peermem and nvidia. A module that is
    loaded between these steps would make the manager fail."""
    node.load("nvidia")
    node.load_core()
    node.contain_driver()
    assert step(node).do == "load"
    node.drop("/sys/module/nvidia_uvm")
    assert step(node) == Step("waiting", decided.NO_UVM)
    # The node's own driver loads nvidia_uvm only when a program uses CUDA.
    node.drop("/run/nvidia")
    assert step(node).do == "load"


@pytest.mark.parametrize("sign", ["nvidia-driver.pid", "driver/usr/bin/nvidia-smi"])
def test_each_sign_of_a_drivers_container(node: Files, sign: str) -> None:
    """The root directory appears after the driver is loaded, and can stay after a kill."""
    node.load("nvidia")
    node.load_core()
    node.put("/run/nvidia/driver/lib/firmware/x")
    assert step(node).do == "load"
    node.put(f"/run/nvidia/{sign}")
    assert step(node) == Step("waiting", decided.NO_UVM)


@pytest.mark.parametrize("sign", [".lock", "usr/src/x"])
def test_each_sign_of_an_ofed_container(node: Files, sign: str) -> None:
    """The older container has no lock. Its directory usr/src stays when it ends."""
    node.load("nvidia")
    node.load_core()
    node.put("/run/mellanox/drivers/other")
    assert step(node).do == "load"
    node.put(f"/run/mellanox/drivers/{sign}")
    assert step(node) == Step("waiting", decided.OFED_NOT_READY)
    node.put(OFED_READY)
    assert step(node).do == "load"


def test_the_drivers_container_has_left_half_a_driver(node: Files) -> None:
    """On RHEL, the container's script unloads nvidia_uvm, fails at nvidia, which nvidia_peermem
    holds, unloads nvidia_peermem, and ends without an error. The container's file with its process
    number and the container's root directory are gone then. The next container does not load
    nvidia_uvm."""
    node.load("nvidia")
    node.load_core()
    node.put("/run/nvidia/nvidia-driver.state", "digest\n")
    assert step(node) == Step("waiting", decided.NO_UVM)
    node.load("nvidia_uvm")
    assert step(node).do == "load"


def test_the_ofed_container_is_not_ready(node: Files) -> None:
    """The container has unloaded the module, and unloads the core after minutes."""
    node.load("nvidia")
    node.load_core()
    node.contain_ofed()
    assert step(node).do == "load"
    node.drop(OFED_READY)
    assert step(node) == Step("waiting", decided.OFED_NOT_READY)
    # Nothing but the lock is left when the container is away.
    node.drop("/run/mellanox/drivers/.lock")
    assert step(node).do == "load"


def test_nvidias_module(node: Files) -> None:
    node.load("nvidia")
    node.load_core()
    node.load("nvidia_peermem", "570.195.03")
    for name in (MINE, PLAIN):
        assert step(node, name) == Step("blocked", decided.NVIDIAS)


def test_the_marker_is_not_nvidias_module(node: Files) -> None:
    """The node's own service has loaded the module and the marker."""
    node.load("nvidia")
    node.load_core()
    node.load_own(PLAIN)
    node.load("nvidia_peermem", "2.0.0")
    assert step(node, PLAIN).state == "ready"
    there = step(node, MINE)
    assert there.state == "ready" and "under another name than nvidia_peermem" in there.reason


@pytest.mark.parametrize("name", [MINE, PLAIN])
def test_ready(node: Files, name: str) -> None:
    node.load("nvidia")
    node.load_core()
    node.load_own(name)
    assert step(node, name) == Step("ready", f"{name} 2.0.0 is registered with the RDMA core")
    assert step(node, name).ready


def test_unloaded_at_any_moment(node: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator's script unloads the module while the pod looks at the node."""
    node.load("nvidia")
    node.load_core()
    node.load_own(MINE)
    found = node.own

    def own() -> Loaded | None:
        module = found()
        if module:
            node.drop(f"/sys/module/{MINE}")
        return module

    monkeypatch.setattr(node, "own", own)
    assert not step(node).ready
    assert step(node).do == "load"


def test_not_registered(node: Files) -> None:
    """Cores with a directory in sysfs show their clients there."""
    node.load_core()
    node.load_own(MINE)
    node.put("/sys/kernel/mm/memory_peers/nv_mem/version")
    assert step(node).ready
    node.drop("/sys/kernel/mm/memory_peers/nv_mem")
    assert not step(node).ready
    node.drop("/sys/kernel/mm/memory_peers")
    node.drop("/sys/module/ib_core/holders/nvidia_peermem")
    assert not step(node).ready
    node.put("/sys/module/ib_uverbs/holders/nvidia_peermem")
    assert step(node).ready
    node.load_own(MINE)
    node.put("/sys/module/nvidia_peermem/initstate", "coming\n")
    assert not step(node).ready


@pytest.mark.parametrize("references, then", [(0, "unload"), (1, "")])
def test_another_version(node: Files, references: int, then: str) -> None:
    node.load_core()
    node.load_own(MINE, "1.9.0", references)
    there = step(node)
    assert there.do == then and "this pod has version 2.0.0" in there.reason
    assert there.ready == bool(references)


@pytest.mark.parametrize("references, then", [(0, "unload"), (2, "")])
def test_asked_to_unload(node: Files, references: int, then: str) -> None:
    node.load("nvidia")
    node.load_core()
    assert step(node, asked=True) == Step("unloaded", decided.ASKED)
    node.load_own(MINE, references=references)
    assert step(node, asked=True).do == then


@pytest.mark.parametrize(
    "name, away, goes",
    [
        (PLAIN, DRIVER_READY, True),
        (PLAIN, OFED_READY, True),
        (MINE, DRIVER_READY, True),
        # The OFED container unloads this name itself.
        (MINE, OFED_READY, False),
    ],
)
def test_a_container_ends(node: Files, name: str, away: str, goes: bool) -> None:
    node.load("nvidia")
    node.load_core()
    node.contain_driver()
    node.contain_ofed()
    node.load_own(name)
    assert step(node, name).state == "ready"
    node.drop(away)
    assert step(node, name).do == ("unload" if goes else "")
    node.load_own(name, references=1)
    held = step(node, name)
    assert held.state == ("held" if goes else "ready") and held.ready and not held.do
    node.drop(f"/sys/module/{name}")
    reason = decided.DRIVER_NOT_READY if away == DRIVER_READY else decided.OFED_NOT_READY
    assert step(node, name) == Step("waiting", reason)


def test_an_early_operator(node: Files) -> None:
    """An early version of the operator has no file that says that the driver's container is
    ready."""
    node.load("nvidia")
    node.load_core()
    node.contain_driver()
    node.drop("/run/nvidia/validations")
    assert step(node).do == "load"


def test_no_cuda(node: Files) -> None:
    """The driver's container has left nvidia_uvm out, and reports success."""
    node.load("nvidia")
    node.load_core()
    node.contain_driver()
    node.load_own(MINE)
    assert step(node).state == "ready"
    node.drop("/sys/module/nvidia_uvm")
    assert step(node) == Step("waiting", decided.NO_UVM)
