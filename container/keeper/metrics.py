# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Metrics for Prometheus: those of `nvpm status --prometheus`, the state that `serve` has reached,
and the registrations that keep the module loaded. `serve` gives them to whoever asks its port."""

from __future__ import annotations

import socketserver
import subprocess
import sys
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
# A request must come within this many seconds, because anybody who reaches the pod can connect.
SILENT = 10
# Several servers that ask at a time must not make this pod look at the node several times.
KEPT = 10
# Seconds after which a command of nvpm counts as hung.
LONGEST = 60


def start(port: int) -> ThreadingHTTPServer:
    """Serves the metrics on PORT, from threads of this process. Port 0 is any free port."""
    page = Page()

    class Handler(BaseHTTPRequestHandler):
        timeout = SILENT

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

    server = Server(("", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Server(ThreadingHTTPServer):
    """A server without a name. HTTPServer asks the name service for the name of this host, and the
    pod would not start while that service does not answer."""

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", int(self.server_address[1])


class Page:
    """The metrics, which are made again at most every KEPT seconds. Another process makes them,
    because nvpm uses signals, and this is not the main thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made, self.kept = float("-inf"), ""

    def text(self) -> str:
        with self.lock:
            if time.monotonic() - self.made > KEPT:
                self.kept = printed([sys.executable, "-B", "-m", "keeper", "metrics"])
                self.made = time.monotonic()
            return self.kept


def printed(command: list[str]) -> str:
    """Returns the output of a command, or nothing if the command hangs."""
    try:
        said = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return said.stdout


def metrics(node: Node, status: report.Status | None) -> str:
    """Returns all metrics."""
    return printed(["nvpm", "status", "--prometheus"]) + of_pod(node, status)


def of_pod(node: Node, status: report.Status | None) -> str:
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
