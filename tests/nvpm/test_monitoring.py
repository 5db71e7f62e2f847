# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prometheus' own tools read the metrics. promtool checks the metrics and the alert rules. The node
exporter serves the file that its textfile collector reads. nvpm/tests/program/monitoring.rs has
the tests that need no such tool."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/explain"))

from program import nvpm  # noqa: E402

RULES = TOP / "docs/monitoring"
# Seconds until the exporter answers.
LIMIT = 30

MODULE = "/sys/module/nv_peer_mem"
GPU = "/sys/bus/pci/devices/0000:03:00.0"
# The files of a machine with the module and a GPU, on which nvpm prints each of its metrics.
FILES = {
    "/proc/sys/kernel/osrelease": '6.8-"x"',
    f"{MODULE}/version": "2.0.0",
    f"{MODULE}/parameters/persistent_api_support": "1",
    **{
        f"{MODULE}/statistics/{name}": value
        for name, value in {
            "reachable_regions": "1",
            "bytes": "65536",
            "orphans": "2",
            "registrations": "4",
            "revocations": "1",
            "failed_no_memory": "0",
            "failed_not_supported": "0",
            "failed_freed": "0",
            "failed_driver": "3",
            "failed_orphans": "0",
        }.items()
    },
    "/proc/driver/nv_peer_mem/regions": "42 1 5 0x7f0000000000 1073741824 nv_mem mapped - a",
    "/sys/module/nvidia/version": "550.54.14",
    "/sys/module/ib_core/taint": "",
    f"{GPU}/vendor": "0x10de",
    f"{GPU}/class": "0x030200",
    f"{GPU}/device": "0x2330",
    f"{GPU}/current_link_speed": "32.0 GT/s PCIe",
    f"{GPU}/current_link_width": "16",
    f"{GPU}/max_link_speed": "32.0 GT/s PCIe",
    f"{GPU}/max_link_width": "16",
}


def attribute(kind: int, value: bytes) -> bytes:
    """Returns an attribute of netlink, filled up to whole words."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(command: int, body: bytes) -> bytes:
    """Returns a message about RDMA devices (<rdma/rdma_netlink.h>)."""
    return struct.pack("=IHHII", 16 + len(body), 5 << 10 | command, 2, 1, 0) + body


def registration(length: int, *others: bytes) -> bytes:
    """Returns a registration of process 42."""
    found = attribute(45, struct.pack("=Q", length)) + attribute(28, struct.pack("=I", 42))
    return message(13, attribute(40, attribute(41, found + b"".join(others))))


# The lists of the RDMA core: a device, GPU memory, and host memory that is paged on demand.
LISTS = {
    "/rdma-netlink/dev": message(1, attribute(1, bytes(4)) + attribute(2, b'mlx"0\0')),
    "/rdma-netlink/mr/0": registration(1 << 30)
    + registration(1 << 20, attribute(52, attribute(54, b"odp\0") + attribute(54, b"explicit\0"))),
    "/proc/42/status": b"Tgid:\t42\nVmPin:\t24 kB\nVmRSS:\t65536 kB\n",
}


def metrics(root: Path) -> str:
    """Returns the metrics of a machine, whose files are made below ROOT."""
    for name, data in LISTS.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for name, text in FILES.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")
    said = nvpm("status", "--prometheus", NVPM_SYSROOT=str(root))
    assert said.code == 0, said
    return said.out


def test_promtool(tmp_path: Path) -> None:
    """promtool has no complaint about the metrics, even if names in them need quotation marks."""
    said = metrics(tmp_path)
    assert r'kernel="6.8-\"x\""' in said
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=said, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_rules() -> None:
    """The alert rules are valid. They fire for exactly those series for which they should fire."""
    for words in ("check rules nvpm.rules.yml", "test rules nvpm.rules_test.yml"):
        subprocess.run(["promtool", *words.split()], cwd=RULES, check=True)
    written = (RULES / "nvpm.rules.yml").read_text(encoding="utf-8")
    tested = (RULES / "nvpm.rules_test.yml").read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", written)
    assert alerts and set(alerts) == set(re.findall(r"alertname: (\w+)", tested))
    # Each metric of nvpm in the rules is a metric that nvpm prints.
    source = (TOP / "nvpm/src/show/figures.rs").read_text(encoding="utf-8")
    for name in set(re.findall(r"\bnvpm_\w+", re.sub("(?m)^ *#.*", "", written))):
        assert name.removeprefix("nvpm_").removesuffix("_total") in source, name


def queries(said: object) -> Iterator[str]:
    """Yields each query of the dashboard."""
    if isinstance(said, list):
        for one in said:
            yield from queries(one)
    elif isinstance(said, dict):
        yield from (str(said[key]) for key in ("expr", "definition") if key in said)
        for one in said.values():
            yield from queries(one)


DASHBOARD = json.loads((RULES / "nvpm.dashboard.json").read_text(encoding="utf-8"))


def test_dashboard(tmp_path: Path) -> None:
    """Each metric and each label of the dashboard is one that nvpm prints, and each metric that
    nvpm prints is in the dashboard."""
    samples = metrics(tmp_path)
    printed = set(re.findall(r"(?m)^(nvpm_\w+)", samples))
    # A pod of the container image adds its state.
    labels = set(re.findall(r'[{,](\w+)="', samples)) | {"instance", "file", "state"}
    found = list(queries(DASHBOARD))
    used = {name for query in found for name in re.findall(r"\bnvpm_\w+", query)}
    assert len(found) > 15 and used == printed
    legends = re.findall(r"\{\{(\w+)\}\}", json.dumps(DASHBOARD))
    named = [name for query in found for name in re.findall(r"(\w+)=~?\"|by \((\w+)\)", query)]
    assert {*legends, *filter(None, (name for pair in named for name in pair))} <= labels
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)


def test_queries_of_the_dashboard(tmp_path: Path) -> None:
    """Prometheus understands each query, after Grafana has replaced its variables."""
    rules = []
    for at, query in enumerate(queries(DASHBOARD)):
        if not query.startswith("label_values"):
            text = query.replace("$instance", ".*").replace("$__rate_interval", "5m")
            assert "$" not in text
            rules.append({"record": f"q{at}", "expr": text})
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    subprocess.run(["promtool", "check", "rules", path], check=True)


@contextlib.contextmanager
def exporter(directory: Path) -> Iterator[str]:
    """Runs the node exporter with no other collector than the textfile collector. Yields its
    address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--collector.disable-defaults", "--collector.textfile"]
    running = subprocess.Popen(
        [
            "prometheus-node-exporter",
            *options,
            f"--collector.textfile.directory={directory}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "no_proxy": "*"},
    )
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        running.kill()
        running.wait()


def read(address: str) -> str:
    """Waits until the exporter serves, and returns the text that it serves."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + LIMIT
    while True:
        try:
            with opener.open(address, timeout=LIMIT) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def test_node_exporter(tmp_path: Path) -> None:
    """The node exporter reads the file without an error, and serves each sample."""
    said = metrics(tmp_path / "machine")
    collected = tmp_path / "textfiles"
    collected.mkdir()
    (collected / "nvpm.prom").write_text(said, encoding="utf-8")
    with exporter(collected) as address:
        served = read(address)
    assert "node_textfile_scrape_error 0" in served
    samples = [line for line in said.splitlines() if not line.startswith("#")]
    assert len(samples) > 20
    names = {re.split("[{ ]", line)[0] for line in samples}
    assert names <= {re.split("[{ ]", line)[0] for line in served.splitlines()}
