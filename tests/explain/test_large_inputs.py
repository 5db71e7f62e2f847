# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Logs and archives that others have made cost `nvpm explain` little time and memory, and hide no
other log. The kernel ends the program if it takes more than SECONDS of processor time."""

import bz2
import gzip
import lzma
import os
import random
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from program import PROGRAM, Said

SECONDS, MEMORY = 20, 60 << 20
SEED = int(os.environ.get("SEED", "1"))

# Runs a command within the limits, and prints its memory and its exit code. The memory of a process
# counts from before its exec, so the command must be started by a small process, not by pytest.
STARTER = f"""
import resource, subprocess, sys
def limit():
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
with open(sys.argv[1], "wb") as out, open(sys.argv[2], "wb") as err:
    ended = subprocess.run(sys.argv[3:], stdout=out, stderr=err, preexec_fn=limit)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, ended.returncode)
"""


def limited(tmp_path: Path, *words: str, input: "IO[bytes] | None" = None) -> Said:
    """Explains logs within the limits."""
    out, err = tmp_path / "out", tmp_path / "err"
    said = subprocess.run(
        [sys.executable, "-c", STARTER, str(out), str(err), PROGRAM, "explain", *words],
        stdin=input,
        stdout=subprocess.PIPE,
        check=True,
    )
    memory, code = map(int, said.stdout.split())
    texts = [file.read_text(errors="surrogateescape") for file in (out, err)]
    assert "panicked" not in texts[1] and code >= 0, (code, texts[1][-2000:])
    assert memory <= MEMORY, f"{memory >> 20} MiB"
    return Said(code, *texts)


FEW = "it has far more bytes than it takes on the disk"
# A megabyte of zeros.
SMALL = bz2.compress(bytes(1 << 20))
LOG = b"ibv_reg_mr failed: Cannot allocate memory\n"


def header(name: str, kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def put_bomb(path: Path, kind: bytes) -> None:
    """Makes an archive with a header of 256 MiB. Compressed, the archive has a few hundred
    bytes."""
    end = header("a.log", tarfile.REGTYPE, 0) + bytes(1024)
    parts = [bz2.compress(header("././@x", kind, 256 << 20)), *[SMALL] * 256, bz2.compress(end)]
    path.write_bytes(b"".join(parts))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    ],
)
def test_header_of_an_archive(tmp_path: Path, kind: bytes) -> None:
    """The other logs of the directory are explained."""
    logs = tmp_path / "logs"
    logs.mkdir()
    put_bomb(logs / "bomb.tar.bz2", kind)
    (logs / "job.log").write_bytes(LOG)
    ended = limited(tmp_path, str(logs))
    assert "bomb.tar.bz2 cannot be read: " + FEW in ended.err
    assert "ibv_reg_mr" in ended.out


def test_many_members(tmp_path: Path) -> None:
    """An archive has 120,000 empty files before the log."""
    with gzip.open(tmp_path / "logs.tar.gz", "wb", compresslevel=1) as file:
        empty = b"".join(header(f"{number}.log", tarfile.REGTYPE, 0) for number in range(1000))
        for _ in range(120):
            file.write(empty)
        file.write(header("job.log", tarfile.REGTYPE, len(LOG)))
        file.write(LOG + bytes(512 - len(LOG)) + bytes(1024))
    ended = limited(tmp_path, str(tmp_path / "logs.tar.gz"))
    assert "ibv_reg_mr" in ended.out


def test_sparse_file_of_an_archive(tmp_path: Path) -> None:
    """The list of the parts of a sparse file may be longer than the archive's other contents."""
    path = tmp_path / "a.tar"
    path.write_bytes(header("a.log", tarfile.GNUTYPE_SPARSE, 512) + bytes(2048))
    ended = limited(tmp_path, str(path))
    assert "cannot be read: a sparse file" in ended.err


def put_sparse_log(path: Path) -> None:
    """Makes a log of 15 TB that takes 4 KiB on the disk."""
    path.write_bytes(LOG)
    os.truncate(path, 15 << 40)


def put_sparse_member(path: Path, version: str) -> None:
    """Makes a sparse file of 10^15 bytes in an archive, in GNU's format 0.0 or 0.1."""
    size, member = str(10**15), tarfile.TarInfo("a.log")
    member.size = len(LOG)
    if version == "0.1":
        fields = {"GNU.sparse.map": f"0,{len(LOG)}", "GNU.sparse.size": size}
    else:
        fields = {
            "GNU.sparse.size": size,
            "GNU.sparse.numblocks": "1",
            "GNU.sparse.offset": "0",
            "GNU.sparse.numbytes": str(len(LOG)),
        }
    member.pax_headers = fields
    path.write_bytes(member.tobuf(tarfile.PAX_FORMAT) + LOG.ljust(512, b"\0") + bytes(1024))


def put_packed_lines(path: Path) -> None:
    """Makes a file of 70 KiB with 28 million lines."""
    path.write_bytes(bz2.compress(b"ibv_reg_mr x\n" * 70_000) * 400)


def put_packed_zeros(path: Path) -> None:
    """Makes an archive of 45 KB with a file of 8 GiB that is no log, so that it is only passed
    over."""
    end = header("b.log", tarfile.REGTYPE, len(LOG)) + LOG.ljust(512, b"\0") + bytes(1024)
    first = header("a.bin", tarfile.REGTYPE, 1 << 30) + b"\x7fELF\1\2\3".ljust(512, b"\1")
    rest = bz2.compress(bytes(1 << 20)) * 1023 + bz2.compress(bytes((1 << 20) - 512))
    path.write_bytes(bz2.compress(first) + rest + bz2.compress(end))


@pytest.mark.parametrize(
    "put",
    [
        put_sparse_log,
        put_packed_lines,
        put_packed_zeros,
    ],
    ids=["sparse log", "packed lines", "packed zeros"],
)
@pytest.mark.parametrize("way", ["file", "directory", "input"])
def test_small_file_with_much_in_it(tmp_path: Path, put: Callable[[Path], None], way: str) -> None:
    """A file that takes little room is not read without end, and other logs are explained."""
    logs = tmp_path / "logs"
    logs.mkdir()
    put(logs / "bad.log")
    (tmp_path / "job.log").write_bytes(LOG)
    if way == "input":
        with (logs / "bad.log").open("rb") as file:
            ended = limited(tmp_path, "-", input=file)
        assert FEW in ended.err
        return
    bad = logs if way == "directory" else logs / "bad.log"
    ended = limited(tmp_path, str(bad), str(tmp_path / "job.log"))
    assert "bad.log cannot be read: " + FEW in ended.err
    assert "ibv_reg_mr" in ended.out


@pytest.mark.parametrize("version", ["0.0", "0.1"])
def test_sparse_member(tmp_path: Path, version: str) -> None:
    """The parts of a sparse file stand in the archive, so nothing is lost without the holes."""
    put_sparse_member(tmp_path / "a.tar", version)
    assert "ibv_reg_mr" in limited(tmp_path, str(tmp_path / "a.tar")).out


def test_large_log_is_read_whole(tmp_path: Path) -> None:
    """A log with many lines is no such file, and neither is the same log in a pipe, or packed."""
    text = b"".join(b"%d: %s\n" % (number, b"nothing happens " * 60) for number in range(80_000))
    path = tmp_path / "job.log"
    path.write_bytes(text + LOG)
    assert limited(tmp_path, str(path)).code == 3
    packed = tmp_path / "job.log.gz"
    packed.write_bytes(gzip.compress(text + LOG, 1))
    assert limited(tmp_path, str(packed)).code == 3
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert cat.stdout
        assert limited(tmp_path, "-", input=cat.stdout).code == 3


def test_list_of_a_zip_file(tmp_path: Path) -> None:
    """Two records have the size of the list of members: the old one says 100 bytes, and the one for
    large archives says 700 MiB. Another archive has 100,000 members."""
    path, size = tmp_path / "a.zip", 700 << 20
    with path.open("wb") as file:
        file.write(b"PK\3\4")
        file.seek(4 + size)
        file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 4))
        file.write(struct.pack("<4sLQL", b"PK\6\7", 0, 4 + size, 1))
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 100, 4, 0))
    assert "a.zip cannot be read: " in limited(tmp_path, str(path)).err
    with zipfile.ZipFile(path, "w") as zipped:
        for number in range(100_000):
            zipped.writestr(f"{number}", "")
    assert "too many members: unpack it first" in limited(tmp_path, str(path)).err


def test_xz(tmp_path: Path) -> None:
    """Files of xz are read, also several streams, unless reading them would take much memory."""
    path = tmp_path / "job.log.xz"
    path.write_bytes(lzma.compress(b"fine\n") + bytes(4) + lzma.compress(LOG, preset=9))
    assert "ibv_reg_mr" in limited(tmp_path, str(path)).out
    large = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20, "preset": 0, "mf": lzma.MF_HC3}]
    path.write_bytes(lzma.compress(LOG, filters=large))
    assert "cannot be read" in limited(tmp_path, str(path)).err
    path.write_bytes(lzma.compress(LOG * 999)[:90])
    assert "cannot be read" in limited(tmp_path, str(path)).err


# Parts of lines that a pattern may try again and again.
PIECES = ("a1Z", "ab9f", "0x", "select.c:", "UCX  ERROR ", "[a] ", "://", " transport to ", "1.1")


def test_long_lines(tmp_path: Path) -> None:
    """Lines of 4 KiB are as long as explain reads them. 3,000 of them, with repeated parts in a
    random order, and each line different, take seconds."""
    print(f"SEED={SEED}")
    choose = random.Random(SEED)
    with (tmp_path / "job.log").open("w") as file:
        for _ in range(300):
            few = choose.sample(PIECES, 3)
            line = "".join(choose.choices(few, k=2000))[:4000]
            for number in range(10):
                file.write(f"{number}{line}\n")
        for _ in range(600):
            file.write(choose.randbytes(2040).hex() + "\n")
    limited(tmp_path, str(tmp_path / "job.log"))
