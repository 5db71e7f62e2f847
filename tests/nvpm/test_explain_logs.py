# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`nvpm explain` names the cause of the logs in logs/, reads logs of each form, and compares the
cause with this node if the log is of this node."""

import bz2
import gzip
import json
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from explained import line_of
from logged import Log, answered, logs, wrong

from nvpm.explain import archives, as_json, here, inputs, long_lines, main, show, texts, texts_of
from nvpm.explain.answer import CODES, Answer
from nvpm.explain.conditions import holds_in_log
from nvpm.explain.model import FOLLOWS
from nvpm.explain.scan import MOST_SHAPES, Scan, Shape, Variant
from nvpm.explain.table import CAUSES, ENTRIES, NAMES, Entry
from nvpm.facts.fact import BAD, GOOD, Fact
from nvpm.read.machine import Machine

MEMLOCK = (
    "alpha1:9:9 [0] x.cc:1 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"
)
LOGS = list(logs())


def shown(answer: Answer, width: int = 0) -> list[str]:
    return list(show.Text(answer, width).brief())


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.file}: {log.title}")
def test_log(log: Log) -> None:
    said = wrong(log, answered(log.text()))
    assert not said, said


def test_logs_are_read() -> None:
    assert len(LOGS) >= 1000
    assert all(log.expected for log in LOGS)


@pytest.mark.parametrize("width", [0, 80, 60])
def test_size_of_the_answer(width: int) -> None:
    for log in LOGS:
        answer = shown(answered("\n".join(log.lines * 50).encode()), width)
        assert len(answer) <= 12, log.title
        assert max(map(len, answer)) <= (width or show.WIDTH), log.title


# ---- inputs ----


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_text(f"first\n{MEMLOCK}\n")
    return file


def run(*words: str) -> int:
    return main.main(Machine(), [*words])


def test_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(log)) == 3
    said = capsys.readouterr().out
    assert said.startswith("train.log: 2 lines")
    assert "line 2: " in said


def test_compressed(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = log.read_bytes()
    for compress in (gzip.compress, lzma.compress, bz2.compress):
        log.write_bytes(compress(data))
        assert run(str(log)) == 3
        assert "train.log: 2 lines" in capsys.readouterr().out


def test_cut_compressed(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(gzip.compress(os.urandom(1 << 16).hex().encode())[:-100])
    assert run(str(log)) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_archive(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = log.parent / "report.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(log, "report/dmesg.txt")
    assert run(str(archive)) == 3
    assert "report.tar.gz:report/dmesg.txt" in capsys.readouterr().out


def test_utf_16(log: Path) -> None:
    log.write_text(f"{MEMLOCK}\n", encoding="utf-16")
    assert run(str(log)) == 3


def test_no_text(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(b"\x7fELF\0\0")
    assert run(str(log)) == 1
    assert "is no text" in capsys.readouterr().err


def test_pipe(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that can be read only once, such as `<(zcat log.gz)`, is read once."""
    pipe = log.parent / "pipe"
    os.mkfifo(pipe)
    for data in (log.read_bytes(), gzip.compress(log.read_bytes())):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        assert run(str(pipe)) == 3
        writer.join()
        assert "2 lines" in capsys.readouterr().out


def test_directory(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log.parent / "program").write_bytes(b"\x7fELF\0\0")
    below = log.parent / "node2"
    below.mkdir()
    (below / "other.log").write_text("nothing\n")
    assert run(str(log.parent)) == 3
    said = capsys.readouterr()
    assert "program is no text" in said.err
    assert said.out.startswith("2 files: 3 lines")
    assert "train.log:2: " in said.out


def test_order_of_a_directory(tmp_path: Path) -> None:
    """The oldest file of a directory comes first, and files of the same time come in the order of
    their names. The names of rotated logs are in another order."""
    times = {"job.log": 3000, "job.log.1": 2000, "job.log.2": 1000, "b": 1500, "a": 1500}
    for name, time in times.items():
        file = tmp_path / name
        file.write_text("hello\n")
        os.utime(file, (time, time))
    found = [name for name, _ in inputs.from_paths([str(tmp_path)], print)]
    assert found == ["job.log.2", "a", "b", "job.log.1", "job.log"]


def test_slow_pipe(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe may give a compressed file byte by byte."""
    pipe = log.parent / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for one in gzip.compress(log.read_bytes()):
                file.write(bytes([one]))

    writer = threading.Thread(target=write)
    writer.start()
    assert run(str(pipe)) == 3
    writer.join()
    assert "2 lines" in capsys.readouterr().out


def test_one_bad_file_of_several(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = log.parent / "bad"
    bad.write_bytes(b"\x7fELF\0\0")
    for files in ((str(bad), str(log)), (str(log), str(bad))):
        assert run(*files) == 3
        assert "is no text" in capsys.readouterr().err


BAR = b"".join(b"\rLoading shards:  %3d%% |####      | %d/300" % (n // 3, n) for n in range(300))


def nothing_lost(data: bytes, capsys: pytest.CaptureFixture[str], file: Path) -> None:
    file.write_bytes(data)
    assert run(str(file)) == 3
    assert "limit on locked memory" in capsys.readouterr().out


def test_line_behind_a_progress_bar(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The states of a bar end with a carriage return, and the next line of the log stands behind
    the last state."""
    for bar in (BAR, BAR * 40):
        nothing_lost(bar + b"\r" + MEMLOCK.encode() + b"\n", capsys, log)
        nothing_lost(bar + MEMLOCK.encode() + b"\n", capsys, log)


def test_end_of_a_long_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in (4096, 1 << 16, 1 << 20):
        nothing_lost(b"x" * size + b" " + MEMLOCK.encode() + b"\n", capsys, log)


def test_log_in_a_string_of_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'step {n}: "loss" 0.{n}' for n in range(20000)]
    for text in (MEMLOCK, MEMLOCK + "\n" + "\n".join(lines)):
        whole = json.dumps({"log": "\n".join([*lines, text])})
        nothing_lost(whole.encode(), capsys, log)
        nothing_lost(json.dumps({"body": whole}).encode(), capsys, log)


def test_nul_bytes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log begins with NUL bytes if it was emptied while a program wrote it."""
    for nuls in (1, 5000, 1 << 20):
        nothing_lost(b"\0" * nuls + MEMLOCK.encode() + b"\n", capsys, log)
        nothing_lost(b"boot\n" * 900 + b"\0" * nuls + b"\n" + MEMLOCK.encode(), capsys, log)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_two_bytes_for_a_character(
    log: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    nothing_lost(MEMLOCK.encode(encoding), capsys, log)


def test_archive_of_compressed_members(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A member of an archive can be compressed, or can be no text. nvpm says so, as for a file of a
    directory."""
    packed = log.parent / "train.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    binary = log.parent / "core"
    binary.write_bytes(bytes(range(256)) * 32)
    tar, archive = log.parent / "sos.tgz", log.parent / "logs.zip"
    with tarfile.open(tar, "w:gz") as file:
        file.add(binary, "sos/core")
        file.add(packed, "sos/train.log.gz")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.write(binary, "core")
        zipped.write(packed, "train.log.gz")
    for path in (tar, archive):
        assert run(str(path)) == 3
        said = capsys.readouterr()
        assert "limit on locked memory" in said.out
        assert "core is no text" in said.err


def test_archive_of_archives(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = log
    for depth in range(4):
        outer = log.parent / f"{depth}.tar"
        with tarfile.open(outer, "w") as file:
            file.add(inner, inner.name)
        inner = outer
        assert run(str(outer)) == (3 if depth < 2 else 1)
    assert "unpack it first" in capsys.readouterr().err


def test_zip_that_cannot_be_read(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = log.parent / "logs.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for number in range(archives.LONGEST_LIST // 1000):
            zipped.writestr(f"{number:01000}", "")
    assert run(str(archive)) == 1
    assert "too many members" in capsys.readouterr().err
    archive.write_bytes(archive.read_bytes()[:200])
    assert run(str(archive)) == 1
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("magic", [*(magic for magic, _, _ in texts_of.PACKED), texts_of.JOURNAL])
def test_what_nvpm_cannot_unpack(
    log: Path, capsys: pytest.CaptureFixture[str], magic: bytes
) -> None:
    log.write_bytes(magic + os.urandom(100))
    assert run(str(log)) == 1
    said = capsys.readouterr().err
    assert "unpack it first" in said or "journalctl --file=" in said


def test_empty_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for data in (b"", b"\0" * 9000):
        log.write_bytes(data)
        assert run(str(log)) == 1
        assert "train.log is empty" in capsys.readouterr().err


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the lines that the scan looks at closely."""
    texts: list[str] = []
    look = Scan.look

    def count(scan: Scan, text: str, key: int) -> Shape:
        texts.append(text)
        return look(scan, text, key)

    monkeypatch.setattr(Scan, "look", count)
    return texts


def test_hosts_do_not_defeat_the_shapes(looked: list[str]) -> None:
    """Lines that differ in the names of their hosts have one shape."""
    hosts = [f"gp{a}{b}{c}" for a in "ghijklmnop" for b in "ghijklmnop" for c in "ghijklmnop"]
    answered("".join(f"{host}:7:7 [0] NCCL INFO Bootstrap : Using\n" for host in hosts).encode())
    assert len(looked) == 1


def test_rest_of_a_cut_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The part of a cut file that can be read is explained."""
    log.write_bytes(gzip.compress(f"{MEMLOCK}\n{os.urandom(1 << 17).hex()}\n".encode())[:-100])
    assert run(str(log)) == 3
    assert "cannot be read" in capsys.readouterr().err


def test_cut_archive(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = log.parent / "report.tar"
    with tarfile.open(archive, "w") as file:
        file.add(log, "report/dmesg.txt")
    archive.write_bytes(archive.read_bytes()[:520])
    assert run(str(archive)) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_archive_on_standard_input(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = log.parent / "report.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(log, "report/dmesg.txt")
        link = tarfile.TarInfo("report/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    data = archive.read_bytes()
    for cut, code in ((len(data), 3), (30, 1)):
        archive.write_bytes(data[:cut])
        with archive.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert run() == code
    assert "standard input cannot be read" in capsys.readouterr().err


def test_empty_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path)) == 1
    assert "no log that can be read" in capsys.readouterr().err


def test_clocks_in_two_zones(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The clock of each other node is 14 hours behind. All lines are one run, and both causes are
    of the last run."""
    first, second = (
        MEMLOCK,
        MEMLOCK.replace("alpha1", "beta2").replace(
            "ibv_create_cq failed with error Cannot allocate memory",
            "ibv_reg_mr failed with error Bad address",
        ),
    )
    lines = [
        f"2026-01-02 {20 - 14 * (at % 2):02}:00:{at:02} {(first, second)[at % 2]}"
        for at in range(5)
    ]
    log.write_text("\n".join(lines) + "\n")
    run("--all", "--json", str(log))
    found = json.loads(capsys.readouterr().out)
    in_order = [f"{line[:11]}20:00:{at:02}{line[19:]}" for at, line in enumerate(lines)]
    log.write_text("\n".join(in_order) + "\n")
    run("--all", "--json", str(log))
    assert scores(found) == scores(json.loads(capsys.readouterr().out))


def scores(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(one["cause"], one["score"]) for one in answer["causes"]]


def test_file_that_vanishes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = log.parent / "gone.log"
    gone.write_text("a line\n")
    written = inputs.written

    def remove(path: str) -> float:
        gone.unlink(missing_ok=True)
        return written(path)

    monkeypatch.setattr(inputs, "written", remove)
    assert run(str(log.parent)) == 3
    assert not gone.exists(), "the file has not vanished"


def test_names_of_files_are_cleaned(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = log.parent / "\x1b[31mred"
    bad.write_bytes(b"\0")
    run(str(bad))
    assert "\x1b" not in capsys.readouterr().err


def test_byte_order_mark(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(b"\xef\xbb\xbf" + MEMLOCK.encode())
    assert run(str(log)) == 3
    assert "line 1: x.cc:1 NCCL WARN" in capsys.readouterr().out


def test_file_that_is_named_twice(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(log), str(log)) == 3
    assert "train.log: 2 lines" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[""], ["--journal", "--since"]])
def test_empty_words(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(str(tmp_path / "missing"))
    assert ended.value.code == 2
    assert "there is no" in capsys.readouterr().err


def test_unreadable(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        assert run("/proc/self/mem") == 1
    else:
        log.chmod(0)
        assert run(str(log)) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_standard_input(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in ([], ["-"]):
        with log.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert run(*words) == 3


def test_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, slave = os.openpty()
    with open(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with pytest.raises(SystemExit) as ended:
            run()
    assert ended.value.code == 2
    assert "which log" in capsys.readouterr().err


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def program(place: Path, name: str, text: str) -> None:
    file = place / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_journal(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "2026-01-01T00:00:00+00:00 here kernel: "
    line += "nv_peer_mem: Unknown symbol nvidia_p2p_get_pages (err -2)"
    program(programs, "journalctl", f'[ "$5" = "--since=-1h" ] && echo "{line}"')
    assert run("--journal", "--since", "-1h") == 3
    assert "journalctl: 1 line" in capsys.readouterr().out


def test_dmesg_is_forbidden(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(programs, "dmesg", "echo 'dmesg: read kernel buffer failed' >&2; exit 1")
    assert run("--dmesg") == 1
    assert "read kernel buffer failed. Only root" in capsys.readouterr().err


def test_since_needs_the_journal(log: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--since", "-1h", str(log))
    assert ended.value.code == 2


# ---- this node ----


def node(verdict: str) -> list[Fact]:
    return [Fact("access", "memory lock of slurmd", verdict, "64 KiB")]


def test_node_confirms() -> None:
    text = " ".join(shown(answered(MEMLOCK.encode(), facts=node(BAD))))
    assert "This node: access, memory lock of slurmd: 64 KiB. That fits." in text


def test_node_contradicts() -> None:
    text = " ".join(shown(answered(MEMLOCK.encode(), facts=node(GOOD))))
    assert "That speaks against this cause now." in text


def test_node_chooses_between_causes() -> None:
    line = b"NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    assert CAUSES[answered(line).verdict.causes[0].cause] == "memlock"
    facts = [*node(GOOD), Fact("GPU 0000:03:00.0", "BAR1", BAD, "256 MiB")]
    assert CAUSES[answered(line, facts=facts).verdict.causes[0].cause] == "bar1"


def test_node_adds_nothing() -> None:
    facts = [*node(BAD), Fact("GPU 0000:03:00.0", "BAR1", BAD, "256 MiB")]
    assert [
        CAUSES[one.cause] for one in answered(MEMLOCK.encode(), facts=facts).verdict.causes
    ] == ["memlock"]
    assert answered(b"hello", facts=facts).kind() == "nothing"


def test_which_node() -> None:
    assert here.is_here({"alpha1", "alpha2"}, "alpha2.example.org")
    assert not here.is_here({"alpha1"}, "alpha11")
    assert not here.is_here({""}, "")


# ---- size ----


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
    text = " ".join(shown(answered("\n".join(lines).encode())))
    assert "32 ranks on 4 nodes" in text
    assert (
        "8 lines like it; only on ranks 16-23 of 32; only on alpha2, and not on 3 other nodes"
        in text
    )


def test_nodes_that_are_named_by_address() -> None:
    """If a name contains points, its beginning is the host. The beginning of an address is no
    host."""
    line = "NCCL INFO Bootstrap"
    places = ("10.0.0.1", "10.0.0.2", "alpha.a.org", "alpha", "beta.a.org")
    lines = "\n".join(f"{place}:7:7 [0] {line}" for place in places)
    assert "4 nodes" in shown(answered(lines.encode()))[0]


def test_two_versions() -> None:
    """The ranks of a job have two versions. Each version counts, in the order of the log."""
    versions = ("2.27.3", "2.21.5", "2.27.3", "2.9.1")
    lines = "\n".join(f"NCCL version {version}+cuda12.4" for version in versions)
    answer = answered(lines.encode())
    assert answer.scan.facts.versions["nccl"] == ["2.27.3", "2.21.5", "2.9.1"]
    assert "NCCL 2.27.3 and 2.21.5" in shown(answer)[0]
    assert holds_in_log("nccl<2.10", answer.scan.facts)
    assert holds_in_log("nccl>=2.27", answer.scan.facts)


def test_order_of_lines_that_name_no_cause() -> None:
    """Unknown errors, and messages that follow from a failure, come in the order of the log."""
    words = ("zebra is missing", "ant failed to come here", "monkey cannot open it")
    unknown = [f"GPUDirect RDMA error: the {word}" for word in words]
    answer = answered("\n".join(unknown).encode())
    assert [hit.text for hit in answer.unknown()] == unknown
    follows = [entry.message for entry in ENTRIES if entry.message.kind == FOLLOWS]
    two = [line_of(texts.expanded(message.text)[0]) for message in follows[:2]]
    for lines in (two, two[::-1]):
        answer = answered("\n".join(lines).encode())
        assert answer.kind() == "follows"
        text = " ".join(shown(answer))
        assert 0 < text.index("line 1: ") < text.index("line 2: ")


def test_lines_of_one_shape_are_looked_at_once(looked: list[str]) -> None:
    line = "alpha1:{0}:{0} [0] NCCL INFO Channel {0}/0 : 1[{0}] -> 2[1] via P2P/CUMEM/read 0x{0:x}"
    answered("".join(f"{line.format(number)}\n" for number in range(5000)).encode())
    assert len(looked) == 1


def test_equal_lines_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    variants = Scan.variants

    def count(scan: Scan, entries: tuple[Entry, ...], text: str) -> list[Variant]:
        looked.append(text)
        return variants(scan, entries, text)

    monkeypatch.setattr(Scan, "variants", count)
    scan = answered(f"{MEMLOCK}\n".encode() * 5000).scan
    assert len(looked) == 1
    assert [hit.count for hit in scan.hits.values()] == [5000]


def test_rank_of_a_subgroup() -> None:
    """A process has a rank in each communicator. The job's communicator is the largest one."""
    start = "alpha1:{0}:{0} [{1}] NCCL INFO ncclCommInitRank comm 0x1 rank {2} nranks {3} cudaDev 0"
    lines = [
        start.format(100 + rank, rank, *place)
        for rank in range(4)
        for place in ((rank % 2, 2), (rank, 4), (rank % 2, 2))
    ]
    lines.append(MEMLOCK.replace("alpha1:9:9 [0]", "alpha1:103:103 [3]"))
    assert "only on rank 3 of 4" in " ".join(shown(answered("\n".join(lines).encode())))


def test_memory_is_constant() -> None:
    """Lines without a common shape, and with ever new hosts and processes, do not fill memory."""
    letters = [chr(ord("g") + number) for number in range(20)]
    words = [a + b + c + d for a in letters for b in letters for c in letters for d in letters[:4]]
    text = "\n".join(f"{word}:1:1 [0] NCCL WARN rdma {word} failed" for word in words)
    scan = answered(text.encode()).scan
    assert scan.lines == len(words) == 32000
    assert len(scan.shapes) <= MOST_SHAPES
    assert len(scan.sources) <= 4096
    assert len(scan.unknown) <= 64


def test_long_lines(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(b"x" * (1 << 20) + b"\n" + MEMLOCK.encode() + b"x" * (1 << 20))
    assert run(str(log)) == 3
    assert "2 lines" in capsys.readouterr().out
    with log.open("rb") as file:
        assert max(map(len, long_lines.lines(file.readline))) <= long_lines.LONGEST


# ---- runs ----

MODIFY_QP = (
    "alpha1:9:9 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Network "
    "is unreachable"
)
TRIES = [
    # Days lie between two tries.
    f"2026-11-20 10:00:00 {MEMLOCK}\n2026-11-26 16:00:00 {MODIFY_QP}",
    # Someone ran the program again.
    f"$ mpirun -np 2 ./all_reduce_perf\n{MEMLOCK}\n$ mpirun -np 2 ./all_reduce_perf\n{MODIFY_QP}",
]


def causes_of(text: str) -> list[str]:
    return [NAMES[one.cause] for one in answered(text.encode()).verdict.causes]


@pytest.mark.parametrize("text", TRIES)
def test_newest_run_comes_first(text: str) -> None:
    assert causes_of(text)[:2] == ["rails", "memlock"]
    old, new = text.replace(MEMLOCK, "x"), text.replace(MODIFY_QP, "x")
    assert causes_of(old)[0] == "rails" and causes_of(new) == ["memlock"]


def test_one_run() -> None:
    """The time between two lines of one run, and the command line before it, begin no new run."""
    for text in (
        f"2026-11-20 10:00:00 {MEMLOCK}\n2026-11-20 12:00:00 {MODIFY_QP}",
        f"$ mpirun -np 2 ./all_reduce_perf\n{MEMLOCK}\n{MODIFY_QP}",
    ):
        assert causes_of(text)[0] == "memlock"


def test_boot_belongs_to_each_run() -> None:
    """A module that could not be loaded days before explains the failure of today."""
    line = (
        "2026-11-20T03:04:05+00:00 alpha1 kernel: nv_peer_mem: Unknown symbol nvidia_p2p_get_pages"
    )
    reg = MODIFY_QP.replace("ibv_modify_qp", "ibv_reg_mr").replace(
        "Network is unreachable", "Bad address"
    )
    causes = causes_of(f"{line} (err -2)\n2026-11-26 16:00:00 {reg}")
    assert causes[0] not in ("no_client", "vmm") and "no_client" in causes


# ---- unknown lines ----

STRANGE = "transport/net.cc:1 NCCL WARN Something new that nobody knows failed"
FINE_LINE = "NCCL INFO DMA-BUF is available on GPU device 0"
FOLLOWS_LINE = "alpha1:9:9 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 0"


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
def test_no_error_of_the_topic_is_nothing(line: str) -> None:
    """An error of the topic that the table does not know is shown, whatever else matched."""
    for others in ([], [FINE_LINE], [FOLLOWS_LINE]):
        answer = answered("\n".join([*others, line]).encode())
        text = " ".join(shown(answer))
        assert CODES[answer.kind()] != 0, text
        assert "nothing is wrong" not in text and "not in this log" not in text


def test_unknown_lines_beside_a_cause() -> None:
    text = " ".join(shown(answered(f"{MEMLOCK}\n{STRANGE}".encode())))
    assert "nvpm does not know it (line 2)." in text
    assert "nvpm does not know" not in " ".join(shown(answered(MEMLOCK.encode())))


# ---- output ----


def test_control_characters(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(b"\x1b[31m" + MEMLOCK.encode() + b" \x1b]0;owned\x07\x9b31m\xff\r\n")
    assert run(str(log)) == 3
    said = capsys.readouterr().out
    assert not [one for one in said if ord(one) < 32 and one != "\n"]
    assert "\x9b" not in said


def test_redaction(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text("192.0.2.77: ibv_create_cq failed: Cannot allocate memory\n")
    assert run(str(log)) == 3
    assert "192.0.2.77" in capsys.readouterr().out
    assert run("--redact", str(log)) == 3
    assert "192.0.2.77" not in capsys.readouterr().out
    assert run("--redact", "--json", str(log)) == 3
    assert "192.0.2.77" not in capsys.readouterr().out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_redaction_of_hosts_and_variables(
    log: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    """The names of the log's hosts and of the file, and values of variables, are redacted."""
    named = log.rename(log.parent / "gpu-node-17.log")
    line = MEMLOCK.replace("alpha1", "gpu-node-17")
    named.write_text(f"NCCL_SOCKET_IFNAME=192.0.2.77\n{line}\n{line}\n")
    assert run("--redact", *form, str(named)) == 3
    said = capsys.readouterr().out
    assert "gpu-node-17" not in said and "192.0.2.77" not in said


def test_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", str(log)) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["answer"] == "cause" and said["certain"]
    assert said["causes"][0]["cause"] == "memlock"
    assert said["causes"][0]["messages"][0]["line"] == 2
    assert said["log"]["lines"] == 2


def test_all(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(f"{MEMLOCK}\nNCCL INFO DMA-BUF is available on GPU device 0\n")
    assert run("--all", str(log)) == 3
    assert "Aside: nothing is wrong:" in capsys.readouterr().out


def test_json_of_each_log() -> None:
    for log in LOGS:
        answer = answered(log.text())
        said = json.loads(as_json.as_json(answer, str))
        assert said["answer"] == answer.kind(), log.title
