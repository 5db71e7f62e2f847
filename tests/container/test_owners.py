# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which process and which pod hold registrations, on nodes that are made of files."""

import pytest
from files import Files

from keeper.owners import owners, who

UID = "3b0bd2a1-6f0c-4f0e-9d52-0d6f2c9e7a11"
REGIONS = "/proc/driver/nv_peer_mem/regions"
HEAD = "# process started age address length client state device name\n"


def line(process: int, started: int = 500, state: str = "mapped", name: str = "python3") -> str:
    return f"{process} {started} 7 0x7f0000000000 65536 nv_mem {state} 0000:17:00.0 {name}\n"


def run(node: Files, process: int, group: str, started: int = 500) -> None:
    node.put(f"/proc/{process}/cgroup", f"0::{group}\n")
    node.put(f"/proc/{process}/stat", f"{process} (python3) S " + "0 " * 18 + f"{started} 0\n")


@pytest.fixture
def held(node: Files) -> Files:
    node.load_own("nvidia_peermem", references=2)
    node.put(REGIONS, HEAD + line(4711) + line(4711))
    return node


@pytest.mark.parametrize(
    "group",
    [
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}"
        ".slice/cri-containerd-5d1.scope",
        f"/kubepods/besteffort/pod{UID}/5d1",
    ],
)
def test_a_pod(held: Files, group: str) -> None:
    """Control groups have the names of systemd's driver, or of the driver cgroupfs."""
    run(held, 4711, group)
    (owner,) = owners(held.root)
    assert owner.pod == UID
    assert str(owner) == f"process 4711 (python3) of pod {UID} has 2 registrations"
    # A directory that kubelet has not made.
    held.put(f"/var/log/pods/trainer_{UID}/x")
    (owner,) = owners(held.root)
    assert owner.pod == UID
    held.put(f"/var/log/pods/ml_trainer-0_{UID}/x")
    held.put("/var/log/pods/ml_trainer-1_4b0bd2a1-6f0c-4f0e-9d52-0d6f2c9e7a11/x")
    (owner,) = owners(held.root)
    assert owner.pod == "ml/trainer-0" and owner.bytes == 131072


def test_no_pod(held: Files) -> None:
    run(held, 4711, "/user.slice/user-0.slice/session-1.scope")
    assert [str(owner) for owner in owners(held.root)] == [
        "process 4711 (python3) has 2 registrations"
    ]


def test_several(held: Files) -> None:
    """Orphans keep no module."""
    held.put(
        REGIONS, HEAD + line(5, name="a") + line(4, name="b\\040c") + line(6, state="orphaned")
    )
    found = owners(held.root)
    assert [(owner.process, owner.command, owner.registrations) for owner in found] == [
        (4, "b c", 1),
        (5, "a", 1),
    ]
    assert who(2, found) == ("process 4 (b c) has 1 registration; process 5 (a) has 1 registration")
    assert who(8, found * 4).count("process") == 8 and "others" not in who(8, found * 4)
    assert who(20, found * 5).count("process") == 8 and who(20, found * 5).endswith("; and others")


def test_no_rights(held: Files) -> None:
    """Without the capability, the list cannot be opened."""
    held.drop(REGIONS)
    assert owners(held.root) == []
    assert who(3, []).startswith("3 references to the module are held; with the rights of owners.y")
