# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The answer of `nvpm explain` has its size, names nodes, ranks, versions and runs, and redacts."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from program import PROGRAM, TOP, explain

MEMLOCK = (
    "alpha1:9:9 [0] x.cc:1 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"
)
MODIFY_QP = (
    "alpha1:9:9 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Network "
    "is unreachable"
)


def object_of(*lines: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explain("--json", text="\n".join(lines)).out)
    return found


def causes(*lines: str) -> list[str]:
    return [one["cause"] for one in object_of(*lines)["causes"]]


def test_few_ranks() -> None:
    lines = []
    for rank in range(32):
        host, gpu = f"alpha{rank // 8}", rank % 8
        start = f"{host}:{100 + rank}:{200 + rank} [{gpu}] NCCL INFO"
        lines.append(
            f"{start} ncclCommInitRank comm 0x1 rank {rank} nranks 32 cudaDev {gpu} - Init START"
        )
    lines += [
        MEMLOCK.replace("alpha1:9:9 [0]", f"alpha2:{100 + rank}:{200 + rank} [{rank % 8}]")
        for rank in range(16, 24)
    ]
    said = explain(text="\n".join(lines)).words
    assert "32 ranks on 4 nodes" in said
    assert (
        "8 lines like it; only on ranks 16-23 of 32; only on alpha2, and not on 3 other nodes"
        in said
    )


def test_rank_of_a_subgroup() -> None:
    """A process has a rank in each communicator. The job's communicator is the largest one."""
    start = "alpha1:{0}:{0} [{1}] NCCL INFO ncclCommInitRank comm 0x1 rank {2} nranks {3} cudaDev 0"
    lines = [
        start.format(100 + rank, rank, *place)
        for rank in range(4)
        for place in ((rank % 2, 2), (rank, 4), (rank % 2, 2))
    ]
    lines.append(MEMLOCK.replace("alpha1:9:9 [0]", "alpha1:103:103 [3]"))
    assert "only on rank 3 of 4" in explain(text="\n".join(lines)).words


def test_nodes_that_are_named_by_address() -> None:
    """If a name contains points, its beginning is the host. The beginning of an address is no
    host."""
    places = ("10.0.0.1", "10.0.0.2", "alpha.a.org", "alpha", "beta.a.org")
    lines = [f"{place}:7:7 [0] NCCL INFO Bootstrap" for place in places]
    assert "4 nodes" in explain(text="\n".join(lines)).out.splitlines()[0]


def test_two_versions() -> None:
    """The ranks of a job have two versions. Each version counts, in the order of the log."""
    versions = ("2.27.3", "2.21.5", "2.27.3", "2.9.1")
    lines = [f"NCCL version {version}+cuda12.4" for version in versions]
    assert object_of(*lines)["log"]["versions"]["nccl"] == ["2.27.3", "2.21.5", "2.9.1"]
    assert "NCCL 2.27.3 and 2.21.5" in explain(text="\n".join(lines)).words


# ---- runs ----


def test_one_run() -> None:
    """The time between two lines of one run, and the command line before it, begin no new run."""
    for text in (
        f"2026-11-20 10:00:00 {MEMLOCK}\n2026-11-20 12:00:00 {MODIFY_QP}",
        f"$ mpirun -np 2 ./all_reduce_perf\n{MEMLOCK}\n{MODIFY_QP}",
    ):
        assert causes(text)[0] == "memlock"


def test_clocks_in_two_zones() -> None:
    """The clock of each other node is 14 hours behind. All lines are one run."""
    second = MEMLOCK.replace("alpha1", "beta2").replace(
        "ibv_create_cq failed with error Cannot allocate memory",
        "ibv_reg_mr failed with error Bad address",
    )
    lines = [
        f"2026-01-02 {20 - 14 * (at % 2):02}:00:{at:02} {(MEMLOCK, second)[at % 2]}"
        for at in range(5)
    ]
    in_order = [f"{line[:11]}20:00:{at:02}{line[19:]}" for at, line in enumerate(lines)]
    assert causes(*lines) == causes(*in_order)


# ---- lines that no row knows ----

STRANGE = "transport/net.cc:1 NCCL WARN Something new that nobody knows failed"
FINE = "NCCL INFO DMA-BUF is available on GPU device 0"
FOLLOWS = "alpha1:9:9 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 0"


@pytest.mark.parametrize(
    "line",
    [
        STRANGE,
        "[  1.2] NVRM: Xid (PCI:0000:cb:00): 31, pid=7, name=python, Ch 00000008, MMU Fault",
        "mlx5_ib: Unknown symbol ib_umem_dmabuf_get_pinned (err -2)",
        "ib_core: exports duplicate symbol ib_register_client (owned by kernel)",
        "efa 0000:4f:00.0: something of efa failed with error -22",
        "UCX  ERROR   something new",
        "Open MPI failed to open an OpenFabrics device of a new kind.",
        "libfabric:4711:1773800000:efa:mr:efa_mr_new():1:<warn> something new failed",
    ],
)
@pytest.mark.parametrize("others", [[], [FINE], [FOLLOWS]], ids=["alone", "fine", "follows"])
def test_no_error_is_nothing(line: str, others: list[str]) -> None:
    """An error that the tables do not know is shown, whatever else matched."""
    said = explain(text="\n".join([*others, line]))
    assert said.code != 0, said
    assert "nothing is wrong" not in said.words and "not in this log" not in said.words


def test_unknown_lines_beside_a_cause() -> None:
    assert "nvpm does not know it (line 2)." in explain(text=f"{MEMLOCK}\n{STRANGE}").words
    assert "nvpm does not know" not in explain(text=MEMLOCK).words


def test_order_of_unknown_lines() -> None:
    words = ("zebra is missing", "ant failed to come here", "monkey cannot open it")
    unknown = [f"GPUDirect RDMA error: the {word}" for word in words]
    assert [one["text"] for one in object_of(*unknown)["unknown"]] == unknown


# ---- output ----


def test_all_and_json() -> None:
    text = f"x\n{MEMLOCK}\n{STRANGE}"
    found = object_of(text)
    assert found["answer"] == "cause" and found["causes"][0]["cause"] == "memlock"
    assert found["causes"][0]["messages"][0]["line"] == 2 and found["log"]["lines"] == 3
    every = explain("--all", text=text)
    assert every.code == 3 and STRANGE in every.out


def test_the_page_names_each_key() -> None:
    page = (TOP / "docs/monitoring.md").read_text(encoding="utf-8")
    row = page.partition("| `nvpm explain --json` ")[2].partition("\n")[0]
    named = set(re.findall(r"`(\w+)`", row)) | {"schema"}
    found = object_of(MEMLOCK, STRANGE)
    there = set(found) | set(found["log"]) | set(found["causes"][0])
    there |= set(found["causes"][0]["messages"][0])
    assert len(there) > 20 and there <= named, there - named


@pytest.mark.parametrize("width", ["80", "60"])
def test_lines_of_a_terminal(width: str) -> None:
    """A narrow terminal gets the whole answer in lines that it can show."""
    master, slave = pty.openpty()
    log = f"{MEMLOCK}\n" * 50
    subprocess.run(
        [PROGRAM, "explain", "-"],
        input=log.encode(),
        stdout=slave,
        check=False,
        env={"COLUMNS": width},
    )
    lines = os.read(master, 1 << 16).decode().splitlines()
    assert 4 < len(lines) <= 12
    assert all(len(line) <= int(width) for line in lines if not line.startswith("First: ")), lines


def test_control_characters() -> None:
    said = explain(text=b"\x1b[31m" + MEMLOCK.encode() + b" \x1b]0;owned\x07\x9b31m\xff\r\n")
    assert said.code == 3
    assert not [one for one in said.out if ord(one) < 32 and one != "\n"]
    assert "\x9b" not in said.out


def test_redaction() -> None:
    text = "192.0.2.77: ibv_create_cq failed: Cannot allocate memory\n"
    assert "192.0.2.77" in explain(text=text).out
    for form in ([], ["--json"], ["--all"]):
        said = explain("--redact", *form, text=text)
        assert said.code == 3 and "192.0.2.77" not in said.out


@pytest.mark.parametrize("form", [[], ["--json"], ["--all"]])
def test_redaction_of_hosts_and_variables(tmp_path: Path, form: list[str]) -> None:
    """The names of the log's hosts and of the file, and values of variables, are redacted."""
    log = tmp_path / "gpu-node-17.log"
    line = MEMLOCK.replace("alpha1", "gpu-node-17")
    log.write_text(f"NCCL_SOCKET_IFNAME=192.0.2.77\n{line}\n{line}\n")
    said = explain("--redact", *form, log)
    assert said.code == 3
    assert "gpu-node-17" not in said.out and "192.0.2.77" not in said.out


def test_list() -> None:
    """The list has each message with its causes and advice; a search for a part of a line finds
    them."""
    lines = explain("--list").out.splitlines()
    at = lines.index("- `nv_peer_mem: only root can do that` (this package)")
    assert lines[at + 1].startswith("  - certain: A user other than root")
    assert lines[at + 1].endswith("To do: Call it with `sudo`.")
    start = next(
        at for at, line in enumerate(lines) if line.startswith("- `Couldn't allocate MR` ")
    )
    assert any("**locked memory**" in line for line in lines[start : start + 12])
    causes = lines[lines.index("## Causes") :]
    assert any(line.startswith("- **locked memory**: The limit") for line in causes)
    assert not [line for line in lines if "****" in line or "- **service-" in line]


def test_routine_lines_are_shown() -> None:
    """A line that looks like a failure, and after which the program goes on, is named as such."""
    line = "NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP job(-2)"
    said = explain(text=f"n1:5:6 [1] {line}\n")
    assert said.code == 4 and "No line is a failure" not in said.words
    assert "SHARP coll init error" in said.words and "goes on without SHARP" in said.words


def test_unknown_lines_stand_in_the_order_of_the_log() -> None:
    """The first line is nearest to the cause, also if it is not about GPUDirect RDMA."""
    lines = ["the socket cannot be created", "GPUDirect RDMA error: the zebra is missing"]
    said = explain(text="\n".join(lines)).words
    assert 0 < said.index(lines[0]) < said.index(lines[1])
