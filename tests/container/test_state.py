# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The state of serve, and the exit code of the probe."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from files import Files

from keeper import node as nodes
from keeper import report


@pytest.mark.parametrize(
    "state, loaded, age, code, said",
    [
        ("ready", True, 59, 0, "ready: because"),
        ("held", True, 0, 0, "held: because"),
        ("ready", True, 61, 1, "serve has not looked at the node for a minute; it was ready"),
        ("ready", False, 0, 1, "the module was unloaded a moment ago"),
        ("loading", True, 0, 1, "loading: because"),
        ("failed", False, 90, 1, "failed: because"),
        ("", False, 0, 1, "serve has not begun"),
    ],
)
def test_probe(
    node: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: str,
    loaded: bool,
    age: int,
    code: int,
    said: str,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    told = report.Report(tmp_path)
    if state:
        told.write(state, "because", "nvidia_peermem")
    now[0] += age
    status = report.read(tmp_path)
    node.load_core()
    if loaded:
        node.load_own("nvidia_peermem")
    monkeypatch.setattr(nodes, "Node", lambda: node)
    monkeypatch.setattr(report, "read", lambda: status)
    monkeypatch.setattr(sys, "argv", ["nv-peer-mem", "probe"])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("keeper.__main__")
    assert ended.value.code == code and said in capsys.readouterr().out
