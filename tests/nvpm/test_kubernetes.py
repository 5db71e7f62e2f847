# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The two hooks in docs/kubernetes.md unload and load the module around a restart of OFED. They run
with doubles of rmmod and modprobe, which print their words."""

import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from installed import TOP

PAGE = (TOP / "docs/kubernetes.md").read_text(encoding="utf-8")


def block(words: str) -> str:
    """Returns the indented block in the page that contains WORDS."""
    blocks = [textwrap.dedent(text) for text in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)]
    return next(text for text in blocks if words in text)


def run(tmp_path: Path, script: str, loaded: list[str], in_use: str = "") -> tuple[int, list[str]]:
    """Runs a hook on a machine with these modules. Returns the exit code and the calls."""
    modules, calls, tools = tmp_path / "module", tmp_path / "calls", tmp_path / "bin"
    tools.mkdir()
    calls.touch()
    for name in loaded:
        (modules / name).mkdir(parents=True)
    for name in "rmmod", "modprobe":
        tool = tools / name
        tool.write_text(
            f'#!/bin/sh\necho "{name} $*" >>{calls}\n[ "$1" != "{in_use}" ] || exit 1\n'
        )
        tool.chmod(0o755)
    hook = tmp_path / "hook"
    hook.write_text(script.replace("/sys/module", str(modules)))
    ended = subprocess.run(
        ["sh", str(hook)], env={"PATH": f"{tools}:/usr/bin:/bin"}, check=False, timeout=30
    )
    return ended.returncode, calls.read_text().splitlines()


@pytest.mark.parametrize(
    ("loaded", "in_use", "code", "calls"),
    [
        (["nv_peer_mem", "nvidia_peermem"], "", 0, ["rmmod nvidia_peermem", "rmmod nv_peer_mem"]),
        (["nv_peer_mem"], "", 0, ["rmmod nv_peer_mem"]),
        ([], "", 0, []),
        (["nv_peer_mem"], "nv_peer_mem", 1, ["rmmod nv_peer_mem"]),
        (["nv_peer_mem", "nvidia_peermem"], "nvidia_peermem", 1, ["rmmod nvidia_peermem"]),
    ],
)
def test_release(
    tmp_path: Path, loaded: list[str], in_use: str, code: int, calls: list[str]
) -> None:
    """The marker is unloaded first, because it uses nv_peer_mem."""
    assert run(tmp_path, block('rmmod "$module"'), loaded, in_use) == (code, calls)


def test_return(tmp_path: Path) -> None:
    found = run(tmp_path, block("modprobe -d"), [])
    assert found == (0, ["modprobe -d /host nv_peer_mem"])


def test_names() -> None:
    """The policy names the programs where the container sees the node's files."""
    policy = block("OPENIBD_PRE_STOP")
    for name in "release", "return":
        assert f"`/usr/local/sbin/nv_peer_mem-{name}`" in PAGE
        assert f"value: /host/usr/local/sbin/nv_peer_mem-{name}}}" in policy
