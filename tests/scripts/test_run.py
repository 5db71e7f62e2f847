# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tests/run on machines that cannot hold the lab: it says why, and installs nothing."""

from pathlib import Path

import pytest
from system import TOP, System


@pytest.fixture
def machine(tmp_path: Path) -> System:
    """Makes a Debian machine of root, which has only the programs that the doubles replace."""
    system = System(tmp_path / "root")
    for name in ("apt-get", "python3"):
        system.put(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >>"$NVPM_SYSROOT/calls"\n', 0o755)
    system.put("bin/id", "#!/bin/sh\necho 0\n", 0o755)
    system.put("bin/uname", "#!/bin/sh\necho x86_64\n", 0o755)
    system.put("bin/unshare", "#!/bin/sh\n", 0o755)
    text = (TOP / "tests/run").read_text(encoding="utf-8")
    system.put("etc/debian_version", "13.1\n")
    system.put(
        "tests/run", text.replace("/etc/debian_version", f"{system.root}/etc/debian_version")
    )
    return system


def runs(machine: System, *words: str) -> int:
    return machine.run("dash", machine.root / "tests/run", *words)


def test_help(machine: System) -> None:
    machine.put("bin/unshare", "#!/bin/sh\nexit 1\n", 0o755)
    for words in ([], ["help"], ["-h"], ["--help"]):
        assert runs(machine, *words) == 0
        assert machine.calls() == [f"python3 -B {machine.root}/tests/lab/lab help"]


def test_mounting_is_refused(machine: System) -> None:
    """The message has the system's own words."""
    words = "unshare: cannot change root filesystem propagation: Invalid argument"
    machine.put("bin/unshare", f"#!/bin/sh\necho '{words}' >&2\nexit 1\n", 0o755)
    assert runs(machine, "demo") == 1
    assert f"the system refuses that here ({words}). In a container" in machine.output
    assert machine.calls() == []


@pytest.mark.parametrize(
    "program, text, said",
    [
        ("id", "echo 1000", "run it as root (sudo tests/run demo)."),
        ("uname", "echo aarch64", "runs on x86-64 only, not on aarch64."),
    ],
)
def test_other_machines(machine: System, program: str, text: str, said: str) -> None:
    machine.put(f"bin/{program}", f"#!/bin/sh\n{text}\n", 0o755)
    assert runs(machine, "demo") == 1
    assert said in machine.output and machine.calls() == []
    (machine.root / "etc/debian_version").unlink()
    assert runs(machine, "demo") == 1
    assert "needs a Debian machine (12 or 13)." in machine.output


def test_an_installation_fails(machine: System) -> None:
    """The programs that are missing are installed. If apt fails, its last words are shown."""
    machine.put("bin/mmdebstrap", "#!/bin/sh\n", 0o755)
    text = (machine.root / "tests/run").read_text().replace("mkfs.ext4:", "no-such-program:")
    machine.put("tests/run", text)
    machine.put("bin/apt-get", "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n", 0o755)
    assert runs(machine, "demo") == 1
    assert "[host] installing" in machine.output and "e2fsprogs" in machine.output
    assert "E: no network\ntests/run: cannot install" in machine.output
    assert machine.calls() == []
