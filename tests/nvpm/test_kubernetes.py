# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/kubernetes.md names files and settings that exist."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
KEEPER = TOP / "nvpm/keeper/src"
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
    program = (KEEPER / "settings.rs").read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    known = re.findall(r'environment\("(NVPM_[A-Z_]+)"\)', program)
    assert known and set(re.findall(r"\b(NVPM_[A-Z_]+)=", PAGE)) <= set(known)


def test_states() -> None:
    """The table of the page has the states that the keeper can have."""
    program = (KEEPER / "decide.rs").read_text(encoding="utf-8")
    known = re.findall(r'Self::[A-Z][a-z]+ => "([a-z]+)",', program)
    rows = re.findall(r"^\| (`[a-z`, ]+`) \| (?:yes|no) \|", PAGE, re.MULTILINE)
    assert set(re.findall("[a-z]+", " ".join(rows))) == set(known) - {"unloading"}
