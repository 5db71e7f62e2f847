# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""If a log is of this node, `nvpm explain` compares its cause with the facts of `nvpm status`. A
script beside the program gives the facts here."""

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from program import PROGRAM

MEMLOCK = "NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory\n"
ENOMEM = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n"
EFAULT = "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address\n"
BAR1 = ("GPU 0000:03:00.0", "BAR1", "bad", "256 MiB", "")


class Here:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.program = shutil.copy(PROGRAM, place)

    def facts(self, *facts: tuple[str, str, str, str, str]) -> None:
        """Lets the node have these facts: section, name, verdict, value and advice."""
        names = ("section", "name", "verdict", "value", "advice")
        found = {"facts": [dict(zip(names, fact, strict=True)) for fact in facts]}
        script = self.place / "nvpm.sh"
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(found)}\nEND\n")
        script.chmod(0o755)

    def explain(self, log: str, *words: str) -> str:
        ended = subprocess.run(
            [self.program, "explain", *(words or ("--here", "-"))],
            input=log,
            capture_output=True,
            check=False,
            text=True,
        )
        return " ".join(ended.stdout.split())


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def memlock(verdict: str) -> tuple[str, str, str, str, str]:
    return "access", "memory lock of slurmd", verdict, "64 KiB", ""


def test_it_confirms_and_contradicts(here: Here) -> None:
    here.facts(memlock("bad"))
    fact = "This node: access, memory lock of slurmd: 64 KiB."
    assert f"{fact} That fits." in here.explain(MEMLOCK)
    here.facts(memlock("good"))
    assert f"{fact} That speaks against this cause now." in here.explain(MEMLOCK)


def test_it_chooses_between_causes(here: Here) -> None:
    here.facts()
    assert "the limit on locked memory" in here.explain(ENOMEM)
    here.facts(memlock("good"), BAR1)
    said = here.explain(ENOMEM)
    assert "BAR1 has room for" in said.partition("Cause")[2].partition("To do")[0]


def test_it_adds_no_cause(here: Here) -> None:
    here.facts(memlock("bad"), BAR1)
    assert "BAR1" not in here.explain(MEMLOCK)
    assert here.explain("hello\n").count("Cause") == 0


def test_the_advice_is_that_of_the_node(here: Here) -> None:
    advice = "modprobe nvidia-peermem; for each boot put it into /etc/modules-load.d."
    here.facts(("module", "state", "bad", "not loaded", advice))
    assert f"To do: {advice}" in here.explain(EFAULT)


def test_which_log_is_of_this_node(here: Here, tmp_path: Path) -> None:
    here.facts(memlock("bad"))
    own, log = socket.gethostname().partition(".")[0], tmp_path / "x.log"
    for host, is_own in ((own, True), (f"{own}1", False), (f"{own}.example.org", True)):
        log.write_text(f"{host}:9:9 [0] {MEMLOCK}")
        assert ("This node" in here.explain("", str(log))) == is_own, host


def test_logs_before_the_boot(here: Here, tmp_path: Path) -> None:
    """The node may have been set up differently before it booted. The newest log counts."""
    here.facts(memlock("bad"))
    own, old, new = socket.gethostname().partition(".")[0], tmp_path / "old", tmp_path / "new"
    for log in (old, new):
        log.write_text(f"{own}:9:9 [0] {MEMLOCK}")
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    os.utime(old, (time.time() - uptime - 3600,) * 2)
    assert "This node" not in here.explain("", str(old))
    assert "This node" in here.explain("", str(old), str(new))


def test_without_facts(here: Here) -> None:
    """The program may stand alone, or the rest of nvpm may fail."""
    assert "This node" not in here.explain(MEMLOCK)
    script = here.place / "nvpm.sh"
    script.write_text("#!/bin/sh\necho no\nexit 3\n")
    script.chmod(0o755)
    said = here.explain(MEMLOCK)
    assert "the limit on locked memory" in said and "This node" not in said
