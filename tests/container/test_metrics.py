# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The metrics, over a port."""

from __future__ import annotations

import http.client
import socket

import pytest
from files import Files

from keeper import metrics, report
from keeper.owners import Owner


@pytest.fixture
def port(node: Files, monkeypatch: pytest.MonkeyPatch) -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    owners = [Owner(7, 'py "x" \\', "ml/trainer", 2, 65536)]
    monkeypatch.setattr(metrics, "of_nvpm", lambda: "nv_peer_mem_up 1\n")
    monkeypatch.setattr(metrics, "owners", lambda root: owners)
    monkeypatch.setattr(report, "read", lambda: report.Status("held", "", "nv_peer_mem", 0))
    monkeypatch.setattr(metrics, "LONGEST", 0.3)
    node.load_own("nv_peer_mem", references=2)
    metrics.start(port, node)
    return port


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page(port: int) -> None:
    status, text = get(port, "/metrics")
    lines = text.splitlines()
    assert status == 200 and lines[0] == "nv_peer_mem_up 1"
    assert [line for line in lines if line.endswith("} 1")] == [
        'nv_peer_mem_pod_state{state="held"} 1'
    ]
    assert "nv_peer_mem_pod_references 2" in lines
    assert lines[-1] == (
        'nv_peer_mem_pod_registrations{process="7",command="py \\"x\\" \\\\",pod="ml/trainer"} 2'
    )
    assert get(port, "/")[0] == 404


def test_a_silent_client(port: int) -> None:
    """Each connection has a thread, so a client that asks nothing must not keep one."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as silent:
        assert silent.recv(1) == b""
