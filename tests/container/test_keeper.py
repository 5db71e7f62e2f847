# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The program of the container image as the image runs it. The tests of its functions are in
nvpm/keeper."""

from pathlib import Path

import pytest
from keeper import keeper
from program import PROGRAM

REGIONS = """\
# process started age address length client state device name
4711 500 7 0x7f0000000000 65536 nv_mem mapped 0000:17:00.0 python3
4711 500 7 0x7f0000010000 65536 nv_mem mapped 0000:17:00.0 python3
4712 500 7 0x7f0000000000 65536 nv_mem orphaned 0000:17:00.0 b
4713 500 7 0x7f0000000000 65536 nv_mem mapped 0000:17:00.0 b\\040c
"""


@pytest.mark.parametrize(
    "words, code",
    [((), 2), (("--help",), 0), (("-h",), 0), (("load",), 2), (("probe", "--x"), 2)],
)
def test_usage(words: tuple[str, ...], code: int) -> None:
    ended = keeper(*words)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith("Usage: nv-peer-mem serve | unload | probe")


def test_a_wrong_setting() -> None:
    ended = keeper("serve", NVPM_NAME="x")
    said = "nv-peer-mem: NVPM_NAME=x: the module is called nvidia_peermem or nv_peer_mem.\n"
    assert (ended.returncode, ended.stdout) == (2, said)


def test_a_probe_before_the_program_serves() -> None:
    ended = keeper("probe")
    assert (ended.returncode, ended.stdout) == (1, "nv-peer-mem: serve has not begun.\n")


def test_the_metrics_have_the_answers_of_nvpm(tmp_path: Path) -> None:
    """nvpm lists the registrations for machines, and prints the metrics of the node."""
    module = tmp_path / "node/sys/module/nv_peer_mem"
    for name, text in {"initstate": "live\n", "version": "2.0.0\n"}.items():
        module.mkdir(parents=True, exist_ok=True)
        (module / name).write_text(text, encoding="utf-8")
    (module / "statistics").mkdir()
    (module / "statistics/reachable_regions").write_text("2\n", encoding="utf-8")
    regions = tmp_path / "node/proc/driver/nv_peer_mem/regions"
    regions.parent.mkdir(parents=True)
    regions.write_text(REGIONS, encoding="utf-8")
    (tmp_path / "nvpm").symlink_to(PROGRAM.resolve())
    node = str(tmp_path / "node")
    ended = keeper("metrics", PATH=f"{tmp_path}:/usr/bin:/bin", NVPM_SYSROOT=node)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0 and "nvpm_loaded 1" in lines
    start = "nv_peer_mem_pod_registrations{process="
    assert [line for line in lines if line.startswith(start)] == [
        start + '"4711",command="python3",pod=""} 2',
        start + '"4713",command="b c",pod=""} 1',
    ]
    # Without nvpm, the pod's own metrics are there.
    alone = keeper("metrics", PATH="/none").stdout
    assert alone.startswith("# TYPE nv_peer_mem_pod_state gauge\n") and start not in alone
