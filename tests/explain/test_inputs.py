# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`nvpm explain` reads logs of each form, and says of each file why it cannot be read."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from program import PROGRAM, Said, explain

MEMLOCK = (
    "alpha1:9:9 [0] x.cc:1 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_text(f"first\n{MEMLOCK}\n")
    return file


def is_explained(said: Said) -> bool:
    return said.code == 3 and "limit on locked memory" in said.words


def test_file(log: Path) -> None:
    said = explain(log)
    assert is_explained(said)
    assert said.out.startswith("train.log: 2 lines")
    assert "line 2: " in said.out


def test_compressed(log: Path) -> None:
    data = log.read_bytes()
    for compress in (gzip.compress, lzma.compress, bz2.compress):
        log.write_bytes(compress(data))
        said = explain(log)
        assert is_explained(said) and "train.log: 2 lines" in said.out


def test_cut_compressed(log: Path) -> None:
    """The part of a cut file that can be read is explained. If that part shows nothing, the exit
    code says that there is more."""
    log.write_bytes(gzip.compress(os.urandom(1 << 16).hex().encode())[:-100])
    said = explain(log)
    assert said.code == 1 and "cannot be read" in said.err
    log.write_bytes(gzip.compress(f"{MEMLOCK}\n{os.urandom(1 << 17).hex()}\n".encode())[:-100])
    said = explain(log)
    assert is_explained(said) and "cannot be read" in said.err


def test_archive(log: Path) -> None:
    archive = log.parent / "report.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(log, "report/dmesg.txt")
    said = explain(archive)
    assert is_explained(said) and "report.tar.gz:report/dmesg.txt" in said.out


def test_cut_archive(log: Path) -> None:
    archive = log.parent / "report.tar"
    with tarfile.open(archive, "w") as file:
        file.add(log, "report/dmesg.txt")
    archive.write_bytes(archive.read_bytes()[:520])
    said = explain(archive)
    assert said.code == 1 and "cannot be read" in said.err


def test_archive_on_standard_input(log: Path) -> None:
    archive = log.parent / "report.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(log, "report/dmesg.txt")
        link = tarfile.TarInfo("report/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    data = archive.read_bytes()
    assert is_explained(explain(text=data))
    said = explain(text=data[:30])
    assert said.code == 1 and "standard input cannot be read" in said.err


def test_archive_of_compressed_members(log: Path) -> None:
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
        said = explain(path)
        assert is_explained(said) and "core is no text" in said.err


def test_archive_of_archives(log: Path) -> None:
    inner = log
    for depth in range(4):
        outer = log.parent / f"{depth}.tar"
        with tarfile.open(outer, "w") as file:
            file.add(inner, inner.name)
        inner = outer
        said = explain(outer)
        assert said.code == (3 if depth < 2 else 1)
        assert ("unpack it first" in said.err) == (depth >= 2)


def test_zip_that_is_cut(log: Path) -> None:
    archive = log.parent / "logs.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.write(log, "train.log")
    archive.write_bytes(archive.read_bytes()[:200])
    said = explain(archive)
    assert said.code == 1 and "cannot be read" in said.err


# The first bytes of files of lz4 and 7z.
PACKED = [b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c"]


@pytest.mark.parametrize("magic", [*PACKED, b"LPKSHHRH"])
def test_what_nvpm_cannot_unpack(log: Path, magic: bytes) -> None:
    """The message says which program reads the file."""
    log.write_bytes(magic + os.urandom(100))
    said = explain(log)
    assert said.code == 1
    assert "unpack it first" in said.err or "journalctl --file=" in said.err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings(log: Path, encoding: str) -> None:
    log.write_text(f"{MEMLOCK}\n", encoding=encoding)
    said = explain(log)
    assert is_explained(said) and "line 1: " in said.out


def test_no_text(log: Path) -> None:
    log.write_bytes(b"\x7fELF\0\0")
    said = explain(log)
    assert said.code == 1 and "is no text" in said.err


def test_one_bad_file_of_several(log: Path) -> None:
    bad = log.parent / "bad"
    bad.write_bytes(b"\x7fELF\0\0")
    for files in ((bad, log), (log, bad)):
        said = explain(*files)
        assert is_explained(said) and "is no text" in said.err


def test_empty_file(log: Path) -> None:
    for data in (b"", b"\0" * 9000):
        log.write_bytes(data)
        said = explain(log)
        assert said.code == 1 and "train.log is empty" in said.err


def test_pipe(log: Path) -> None:
    """A file that can be read only once, such as `<(zcat log.gz)`, is read once."""
    pipe = log.parent / "pipe"
    os.mkfifo(pipe)
    for data in (log.read_bytes(), gzip.compress(log.read_bytes())):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        said = explain(pipe)
        writer.join()
        assert is_explained(said) and "2 lines" in said.out


def test_slow_pipe(log: Path) -> None:
    """A pipe may give a compressed file byte by byte."""
    pipe = log.parent / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for one in gzip.compress(log.read_bytes()):
                file.write(bytes([one]))

    writer = threading.Thread(target=write)
    writer.start()
    said = explain(pipe)
    writer.join()
    assert is_explained(said) and "2 lines" in said.out


# ---- directories ----


def test_directory(log: Path) -> None:
    (log.parent / "program").write_bytes(b"\x7fELF\0\0")
    below = log.parent / "node2"
    below.mkdir()
    (below / "other.log").write_text("nothing\n")
    said = explain(log.parent)
    assert is_explained(said) and "program is no text" in said.err
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
    files = json.loads(explain("--json", tmp_path).out)["log"]["files"]
    assert files == ["job.log.2", "a", "b", "job.log.1", "job.log"]


def test_empty_directory(tmp_path: Path) -> None:
    said = explain(tmp_path)
    assert said.code == 1 and "no log that can be read" in said.err


# ---- lines ----

BAR = b"".join(b"\rLoading shards:  %3d%% |####      | %d/300" % (n // 3, n) for n in range(300))


def nothing_lost(data: bytes) -> None:
    said = explain(text=data)
    assert is_explained(said), said


def test_line_behind_a_progress_bar() -> None:
    """The states of a bar end with a carriage return, and the next line of the log stands behind
    the last state."""
    for bar in (BAR, BAR * 40):
        nothing_lost(bar + b"\r" + MEMLOCK.encode() + b"\n")
        nothing_lost(bar + MEMLOCK.encode() + b"\n")


def test_long_lines() -> None:
    """The message may stand at the beginning or at the end of a long line."""
    for size in (4096, 1 << 16, 1 << 20):
        nothing_lost(b"x" * size + b" " + MEMLOCK.encode() + b"\n")
        nothing_lost(MEMLOCK.encode() + b" " + b"x" * size + b"\n")


def test_log_in_a_string_of_json() -> None:
    lines = [f'step {n}: "loss" 0.{n}' for n in range(20000)]
    for text in (MEMLOCK, MEMLOCK + "\n" + "\n".join(lines)):
        whole = json.dumps({"log": "\n".join([*lines, text])})
        nothing_lost(whole.encode())
        nothing_lost(json.dumps({"body": whole}).encode())


def test_nul_bytes() -> None:
    """A log begins with NUL bytes if it was emptied while a program wrote it."""
    for nuls in (1, 5000, 1 << 20):
        nothing_lost(b"\0" * nuls + MEMLOCK.encode() + b"\n")
        nothing_lost(b"boot\n" * 900 + b"\0" * nuls + b"\n" + MEMLOCK.encode())


# ---- words of the command ----


def test_names_of_files_are_cleaned(log: Path) -> None:
    bad = log.parent / "\x1b[31mred"
    bad.write_bytes(b"\0\1")
    assert "\x1b" not in explain(bad).err


def test_file_that_is_named_twice(log: Path) -> None:
    said = explain(log, log)
    assert is_explained(said) and "train.log: 2 lines" in said.out


@pytest.mark.parametrize("words", [[""], ["--journal", "--since"], ["--since", "-1h", "/dev/null"]])
def test_wrong_words(words: list[str]) -> None:
    assert explain(*words).code == 2


def test_no_file(tmp_path: Path) -> None:
    said = explain(tmp_path / "missing")
    assert said.code == 2 and "there is no" in said.err


def test_unreadable(log: Path) -> None:
    if os.geteuid() == 0:
        said = explain("/proc/self/mem")
    else:
        log.chmod(0)
        said = explain(log)
    assert said.code == 1 and "cannot be read" in said.err


def test_standard_input(log: Path) -> None:
    assert is_explained(explain(text=log.read_bytes()))
    assert is_explained(explain("-", text=log.read_bytes()))


def test_terminal() -> None:
    """A user who names no log at a terminal is asked for one."""
    _, slave = os.openpty()
    said = explain(stdin=slave)
    assert said.code == 2 and "which log" in said.err


def program(place: Path, name: str, text: str) -> str:
    """Makes a program, and returns a PATH in which it comes first."""
    file = place / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def test_journal(tmp_path: Path) -> None:
    line = "2026-01-01T00:00:00+00:00 here kernel: "
    line += "nv_peer_mem: Unknown symbol nvidia_p2p_get_pages (err -2)"
    path = program(tmp_path, "journalctl", f'[ "$5" = "--since=-1h" ] && echo "{line}"')
    said = explain("--journal", "--since", "-1h", PATH=path)
    assert said.code == 3 and "journalctl: 1 line" in said.out


def test_dmesg_is_forbidden(tmp_path: Path) -> None:
    path = program(tmp_path, "dmesg", "echo 'dmesg: read kernel buffer failed' >&2; exit 1")
    said = explain("--dmesg", PATH=path)
    assert said.code == 1 and "read kernel buffer failed. Only root" in said.err


def test_full_disk(log: Path) -> None:
    """An answer that cannot be written is no success."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [PROGRAM, "explain", log], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 1 and b"cannot be written" in ended.stderr
