# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command of a build, and the links that it needs."""

from pathlib import Path

import pytest

from keeper import build
from keeper.places import Places


@pytest.mark.parametrize("processors, jobs", [(1, 1), (2, 2), (224, 4)])
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int, jobs: int
) -> None:
    """A node with many processors must not run as many compilers, because of the pod's memory."""
    release, work = tmp_path / "release", tmp_path / "work"
    release.mkdir()
    for part in build.PARTS:
        (release / part).write_text(part, encoding="utf-8")
    commands = []

    def run(command: list[str], log: Path) -> int:
        commands.append(command)
        log.write_text("NV_SRC       /d/usr/src/nvidia-570.1/nvidia\n", encoding="utf-8")
        return 0

    monkeypatch.setattr(build, "run", run)
    monkeypatch.setattr(build, "lay_links", lambda places: None)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(processors)))
    found = Places(Path("/d"), Path("/d/headers"), "DRIVER_ROOT=/d", "CORE_ROOT=/c")
    built = build.build(release, found, "6.8.0", "nvidia_peermem", work)
    assert built == (work / "tree", Path("/d/usr/src/nvidia-570.1/nvidia/nv-p2p.h"))
    settings = "KVER=6.8.0 KDIR=/d/headers NVPM_NAME=nvidia_peermem NVPM_RUST=prebuilt"
    expected = f"make -C {work}/tree -j{jobs} {settings} DRIVER_ROOT=/d CORE_ROOT=/c"
    assert commands == [expected.split()]
    assert (work / "tree/Kbuild").read_text() == "Kbuild"


def test_the_links(tmp_path: Path) -> None:
    """Links of an earlier build are replaced. The image's own directories stay."""
    root, top = tmp_path / "root", tmp_path / "usr"
    for name in ("usr/src/linux-headers-1-common", "usr/src/own", "usr/lib/linux-kbuild-1"):
        (root / name).mkdir(parents=True)
    (root / "usr/lib/other").mkdir()
    for name in ("src/own", "lib"):
        (top / name).mkdir(parents=True)
    (top / "src/linux-headers-1-common").symlink_to("/gone")
    places = Places(root, Path("/h"), "", "")
    for _ in range(2):
        build.lay_links(places, top)
    assert (
        top / "src/linux-headers-1-common"
    ).readlink() == root / "usr/src/linux-headers-1-common"
    assert (top / "lib/linux-kbuild-1").readlink() == root / "usr/lib/linux-kbuild-1"
    assert not (top / "src/own").is_symlink() and not (top / "lib/other").exists()
