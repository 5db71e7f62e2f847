# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/kubernetes.md names files and settings that exist."""

import re

from installed import TOP

PAGE = (TOP / "docs/kubernetes.md").read_text(encoding="utf-8")


def test_hooks() -> None:
    """The policy names the programs where the container sees the files of the package."""
    named = re.findall(r"value: /host/usr/lib/nvidia-peer-memory/([\w-]+)}", PAGE)
    assert named == ["ofed-container-pre-stop", "ofed-container-post-start"]
    packaged = (TOP / "debian/nvidia-peer-memory.install").read_text(encoding="utf-8")
    for name in named:
        assert f"init.d/{name} " in packaged
        assert (TOP / "init.d" / name).stat().st_mode & 0o111 == 0o111


def test_settings() -> None:
    """The keeper knows the variables of the page."""
    program = "".join(
        file.read_text(encoding="utf-8")
        for file in (TOP / "container/keeper").iterdir()
        if file.suffix == ".py"
    )
    assert set(re.findall(r"\b(NVPM_[A-Z_]+)=", PAGE)) <= set(re.findall("NVPM_[A-Z_]+", program))


def test_states() -> None:
    """The table of the page has the states that the keeper can have."""
    metrics = (TOP / "container/keeper/metrics.py").read_text(encoding="utf-8")
    known = re.findall(r'"([a-z]+)"', metrics.partition("STATES = (")[2].partition(")")[0])
    rows = re.findall(r"^\| (`[a-z`, ]+`) \| (?:yes|no) \|", PAGE, re.MULTILINE)
    assert set(re.findall("[a-z]+", " ".join(rows))) == set(known) - {"unloading"}
