# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prometheus' own tools read the metrics. promtool checks the metrics and the alert rules. The node
exporter serves the file that its textfile collector reads."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from installed import TOP
from machine import STATISTICS, Machine
from tables import Player, called

from nvpm.read import machine as subject

RULES = TOP / "docs/monitoring"
# Seconds until the exporter answers.
LIMIT = 30


def metrics(tmp_path: Path, *changes: str) -> str:
    """Returns the metrics of a machine with eight GPUs and twelve RDMA devices."""
    tmp_path.mkdir(exist_ok=True)
    player = Player(tmp_path)
    root = player.environment["NVPM_SYSROOT"]
    machine = Machine(root)
    machine.many_devices()
    for change in changes:
        machine.change(change)
    said, code = called(subject.Machine(root), player.environment, "status", "--prometheus")
    assert code == 0
    return said


def test_findings_that_do_not_fit(tmp_path: Path) -> None:
    """The line of a plug-in has the number of the findings that are left out, whichever number that
    is. With each further device file that is not open to all users, the line has less room."""
    player = Player(tmp_path)
    root = player.environment["NVPM_SYSROOT"]
    machine = Machine(root)
    machine.many_devices()
    machine.put("/sys/module/nv_peer_mem/statistics/failed_no_memory", "3")
    machine.put("/sys/module/nv_peer_mem/statistics/failed_driver", "3")
    for number in range(2, 10):
        if number % 2:
            machine.bar1(f"0000:{number - 1}3:00.0", 256, 131072)
        else:
            machine.port(f"mlx5_{number}", 1, "DOWN", "Polling", "InfiniBand")

    def shown() -> tuple[int, int]:
        said, _ = called(subject.Machine(root), player.environment, "check")
        findings = re.findall(r"(?:^NVPM \w+ - |; )[a-z0-9_.:-]+/[a-z0-9_.:-]+: ", said)
        more = re.search("; and ([0-9]+) more: nvpm status", said)
        return len(findings), int(more[1]) if more else 0

    machine.put("/dev/infiniband/uverbs100", "")
    machine.mode("600", "/dev/infiniband/uverbs100")
    everything = shown()[0]
    lefts = set()
    for number in range(101, 160):
        machine.put(f"/dev/infiniband/uverbs{number}", "")
        machine.mode("600", f"/dev/infiniband/uverbs{number}")
        found, left = shown()
        assert found + left == everything
        lefts.add(left)
    assert {0, 1} <= lefts


def test_long_lines(tmp_path: Path) -> None:
    """Each line of a status is short. srun cuts a long line, and two writers of a pipe tear a long
    line."""
    player = Player(tmp_path)
    root = player.environment["NVPM_SYSROOT"]
    Machine(root).many_devices()
    said, _ = called(subject.Machine(root), player.environment, "status", "--json")
    assert len(json.loads(said)["ways"]) == 96
    assert max(map(len, said.split("\n"))) < 1000


def test_promtool(tmp_path: Path) -> None:
    """promtool has no complaint about the metrics, even if names in them need quotation marks."""
    said = metrics(
        tmp_path, f"{STATISTICS}/failed_driver = 3", '/proc/sys/kernel/osrelease = 6.8-"x"'
    )
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
    source = "".join(path.read_text(encoding="utf-8") for path in (TOP / "nvpm/show").glob("*.py"))
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
    samples = metrics(tmp_path, f"{STATISTICS}/failed_driver = 3", f"{STATISTICS}/orphans = 2")
    printed = set(re.findall(r"(?m)^(nvpm_\w+)", samples))
    labels = set(re.findall(r'[{,](\w+)="', samples)) | {"instance", "file"}
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


def test_line_of_a_bad_machine(tmp_path: Path) -> None:
    """The line of check fits into the 1,024 bytes that NRPE passes on: equal facts about several
    devices are one item, errors come first, and the line tells how many items it leaves out."""
    player = Player(tmp_path)
    root = player.environment["NVPM_SYSROOT"]
    machine = Machine(root)
    machine.many_devices()
    for i in range(1, 9):
        gpu, nic = f"0000:{i}3:00.0", f"0000:{i}4:00.0"
        machine.link(gpu, "16.0", 8, "32.0", 16)
        machine.bar1(gpu, 256, 131072)
        machine.link(nic, "16.0", 8, "32.0", 16)
        machine.settings(nic, "0930")
        machine.iommu(nic, "DMA-FQ")
        machine.acs(f"0000:{i}1:00.0", 4)
        machine.port(f"mlx5_{i + 1}", 1, "DOWN", "Polling", f"of a long name {i}")
    for figure in "failed_no_memory", "failed_not_supported", "failed_freed", "failed_driver":
        machine.put(f"{STATISTICS}/{figure}", "3")
    machine.put("/sys/module/nvidia/version", "595.58.03")
    said, code = called(subject.Machine(root), player.environment, "check")
    line = said.rstrip("\n")
    assert code == 2 and "\n" not in line and 800 < len(line.encode()) <= 1024, line
    assert line.startswith("NVPM CRITICAL - driver/crash_at_exit: 595.58.03")
    assert "gpu_0000:13:00.0/link: 16.0 GT/s x8: both ends can x16 [8 devices]" in line
    machine = Machine(root)
    machine.many_devices()
    for i in range(1, 9):
        machine.settings(f"0000:{i}4:00.0", "0930")
    said, _ = called(subject.Machine(root), player.environment, "check")
    assert "rdma_device_mlx5_2/maxreadreq: 128 [mlx5_2 to mlx5_9] |" in said
    assert re.search(r"; and \d+ more: nvpm status \| reachable_regions=0 ", line)


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


# ---- the keys of each JSON -----------------------------------------------------------------------

PAGE = (TOP / "docs/monitoring.md").read_text(encoding="utf-8")
REGION = "42 5 5 0x7f0000000000 65536 nv_mem mapped - python3"


def keys(said: object) -> set[str]:
    """Returns the keys of an object and of the objects in its lists."""
    if isinstance(said, list):
        return {key for one in said for key in keys(one)}
    return (
        {*said, *(key for one in said.values() for key in keys(one))}
        if isinstance(said, dict)
        else set()
    )


def test_keys_of_each_json(tmp_path: Path) -> None:
    """The page names each key that a command prints."""
    player = Player(tmp_path)
    root = player.environment["NVPM_SYSROOT"]
    Machine(root).put("/proc/driver/nv_peer_mem/regions", REGION)
    for command in ("regions", "selftest"):
        said, _ = called(subject.Machine(root), player.environment, command, "--json")
        found = json.loads(said[said.index("{") :])
        row = PAGE.partition(f"| `nvpm {command} --json` |")[2].partition("\n")[0]
        named = set(re.findall(r"`(\w+)`", row)) | {"schema"}
        there = keys(found) if command == "regions" else set(found)
        assert there <= named and len(there) > 4, (command, there - named)
