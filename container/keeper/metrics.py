# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Serves metrics for Prometheus on a port: those of `nvpm status --prometheus`, the keeper's state,
and the registrations that keep the module loaded."""

from __future__ import annotations

import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import report
from .node import Node
from .owners import owners

STATES = (
    "waiting",
    "building",
    "loading",
    "ready",
    "held",
    "unloading",
    "unloaded",
    "blocked",
    "failed",
)
# A scrape of several servers at a time must not look at the machine several times.
KEPT = 10


def start(port: int, node: Node) -> None:
    page = Page(node)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404, "only /metrics is here")
                return
            text = page.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Leaves out a line of the log for each scrape."""

    server = ThreadingHTTPServer(("", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Page:
    """The metrics, which are made again at most every KEPT seconds."""

    def __init__(self, node: Node) -> None:
        self.node, self.lock = node, threading.Lock()
        self.made, self.kept = float("-inf"), ""

    def text(self) -> str:
        with self.lock:
            if time.monotonic() - self.made > KEPT:
                self.kept = of_nvpm() + of_keeper(self.node)
                self.made = time.monotonic()
            return self.kept


def of_nvpm() -> str:
    command = ["nvpm", "status", "--prometheus"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return said.stdout


def of_keeper(node: Node) -> str:
    status = report.read()
    lines = ["# TYPE nv_peer_mem_pod_state gauge"]
    reached = status.state if status else ""
    for state in STATES:
        here = int(state == reached)
        lines.append(f'nv_peer_mem_pod_state{{state="{state}"}} {here}')
    own = node.own()
    lines += [
        "# TYPE nv_peer_mem_pod_references gauge",
        f"nv_peer_mem_pod_references {own.references if own else 0}",
        "# TYPE nv_peer_mem_pod_registrations gauge",
    ]
    for owner in owners(node.root):
        labels = f'process="{owner.process}",command="{quoted(owner.command)}",pod="{owner.pod}"'
        lines.append(f"nv_peer_mem_pod_registrations{{{labels}}} {owner.registrations}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
