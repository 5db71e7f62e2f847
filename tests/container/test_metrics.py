# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The metrics of the pod, and the port that gives them."""

from __future__ import annotations

import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from files import Files

from keeper import metrics
from keeper.owners import Owner
from keeper.report import Status


def test_of_the_pod(node: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    node.load_own("nvidia_peermem", references=3)
    held = [Owner(4711, 'a"b\\c', "ml/trainer-0", 2, 131072)]
    monkeypatch.setattr(metrics, "owners", lambda root: held)
    lines = metrics.of_pod(node, Status("held", "why", "nvidia_peermem", 1.0)).splitlines()
    states = [line for line in lines if line.startswith("nv_peer_mem_pod_state{")]
    assert len(states) == len(metrics.STATES)
    assert [line for line in states if line.endswith(" 1")] == [
        'nv_peer_mem_pod_state{state="held"} 1'
    ]
    assert "nv_peer_mem_pod_references 3" in lines
    assert (
        'nv_peer_mem_pod_registrations{process="4711",command="a\\"b\\\\c",pod="ml/trainer-0"} 2'
        in lines
    )


def test_nothing_is_known(node: Files) -> None:
    lines = metrics.of_pod(node, None).splitlines()
    assert not any(line.endswith("} 1") for line in lines)
    assert "nv_peer_mem_pod_references 0" in lines


def test_a_command_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "LONGEST", 0.1)
    assert metrics.printed(["sleep", "60"]) == ""
    assert metrics.printed(["echo", "x"]) == "x\n"


def test_the_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metrics are made once for several servers that ask at the same time."""
    calls = tmp_path / "calls"
    words = f"open({str(calls)!r}, 'a').write('x'); print('m 1')"
    made = metrics.printed

    def printed(command: list[str]) -> str:
        assert command[-3:] == ["-m", "keeper", "metrics"]
        return made([sys.executable, "-c", words])

    monkeypatch.setattr(metrics, "printed", printed)
    server = metrics.start(0)
    place = f"http://127.0.0.1:{server.server_port}"
    for _ in range(2):
        with urllib.request.urlopen(f"{place}/metrics") as answer:
            assert answer.read() == b"m 1\n"
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert calls.read_text() == "x"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{place}/")
    assert caught.value.code == 404
    server.shutdown()


def test_no_name_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod starts although no server knows the name of its host, or answers at all."""

    def silent(*_words: object) -> str:
        raise AssertionError("the name service is asked")

    for name in "getfqdn", "gethostname", "gethostbyaddr", "getaddrinfo":
        monkeypatch.setattr(socket, name, silent)
    metrics.start(0).shutdown()


def test_a_silent_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection has a thread, so a client that asks nothing must not keep the thread."""
    monkeypatch.setattr(metrics, "SILENT", 0.3)
    server = metrics.start(0)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as silent:
        assert silent.recv(1) == b""
    server.shutdown()
