# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Inputs that other users or other machines have made cost nvpm little time and memory, end no
command with an exception, and hide no other input. Each command runs in a process that the kernel
ends if it takes more than SECONDS of processor time, or more than MEMORY bytes."""

import bz2
import gzip
import json
import lzma
import os
import random
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from installed import SERVICE
from machine import Machine

SECONDS, MEMORY = 20, 150 << 20
SEED = int(os.environ.get("SEED", "1"))


class Ended(NamedTuple):
    code: int
    out: str
    err: str


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


def limited(
    tmp_path: Path,
    *words: str,
    most: int = MEMORY,
    input: IO[bytes] | None = None,
    **environment: str,
) -> Ended:
    """Runs nvpm within the limits. It may take MOST bytes of memory."""
    out, err = tmp_path / "out", tmp_path / "err"
    nvpm = [sys.executable, "-B", str(SERVICE / "nvpm"), *words]
    said = subprocess.run(
        [sys.executable, "-c", STARTER, str(out), str(err), *nvpm],
        stdin=input,
        stdout=subprocess.PIPE,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": "/", **environment},
    )
    memory, code = map(int, said.stdout.split())
    texts = [file.read_text(errors="surrogateescape") for file in (out, err)]
    assert "Traceback" not in texts[1] and code >= 0, (code, texts[1][-2000:])
    assert memory <= most, f"{memory >> 20} MiB"
    return Ended(code, *texts)


# ---- the list of registrations -------------------------------------------------------------------

MANY = 130_000
LINE = "{} 5 10 0x{:x} 65536 nv_mem mapped 0000:03:00.0 t"
COMMANDS = ("check", "status --all", "status --prometheus", "regions", "regions --json", "holders")


@pytest.mark.parametrize("processes", [1, MANY])
def test_many_registrations(tmp_path: Path, processes: int) -> None:
    """A user has many registrations, in one process or in as many processes."""
    root = tmp_path / "machine"
    machine = Machine(str(root))
    machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", str(MANY))
    lines = (LINE.format(1 + number % processes, number) for number in range(MANY))
    machine.put("/proc/driver/nv_peer_mem/regions", "\n".join(["# head", *lines]))
    # With one process, only the commands differ that print each registration.
    for command in COMMANDS if processes > 1 else ("check", "regions --json"):
        ended = limited(tmp_path, *command.split(), NVPM_SYSROOT=str(root))
        if command not in ("check", "status --prometheus"):
            assert f" registrations of {MANY} were read" in ended.out, command


def test_nothing_is_left_out_of_a_short_list(tmp_path: Path) -> None:
    """The last line counts, though it has no end, and the counter may be ahead of the list."""
    root = tmp_path / "machine"
    machine = Machine(str(root))
    machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", "9")
    file = machine.at("/proc/driver/nv_peer_mem/regions")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(LINE.format(7, i) for i in range(8)))
    ended = limited(tmp_path, "regions", NVPM_SYSROOT=str(root))
    assert ended.out.endswith("all: 8 registrations, 512 KiB\n")


# ---- logs and archives that explain reads --------------------------------------------------------

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
    put_bomb(tmp_path / "bomb.tar.bz2", kind)
    (tmp_path / "job.log").write_bytes(LOG)
    ended = limited(tmp_path, "explain", str(tmp_path))
    assert "bomb.tar.bz2 cannot be read: a header of 268435456 bytes" in ended.err
    assert "ibv_reg_mr" in ended.out


def test_many_members(tmp_path: Path) -> None:
    """An archive has 120,000 empty files before the log."""
    with gzip.open(tmp_path / "logs.tar.gz", "wb", compresslevel=1) as file:
        empty = b"".join(header(f"{number}.log", tarfile.REGTYPE, 0) for number in range(1000))
        for _ in range(120):
            file.write(empty)
        file.write(header("job.log", tarfile.REGTYPE, len(LOG)))
        file.write(LOG + bytes(512 - len(LOG)) + bytes(1024))
    ended = limited(tmp_path, "explain", str(tmp_path / "logs.tar.gz"), most=60 << 20)
    assert "ibv_reg_mr" in ended.out


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_sparse_files(tmp_path: Path, form: str) -> None:
    """The list of the parts of a sparse file may be longer than the archive's other contents."""
    path = tmp_path / "a.tar"
    if form == "gnu":
        path.write_bytes(header("a.log", tarfile.GNUTYPE_SPARSE, 512) + bytes(2048))
    else:
        member = tarfile.TarInfo("a.log")
        member.size = 512
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        path.write_bytes(member.tobuf(tarfile.PAX_FORMAT) + b"1\n0\n512\n".ljust(1536, b"\0"))
    ended = limited(tmp_path, "explain", str(path))
    assert "cannot be read: a sparse file" in ended.err


FEW = "it has far more bytes than it takes on the disk"


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
        lambda path: put_sparse_member(path, "0.0"),
        lambda path: put_sparse_member(path, "0.1"),
        put_packed_lines,
        put_packed_zeros,
    ],
    ids=["sparse log", "sparse 0.0", "sparse 0.1", "packed lines", "packed zeros"],
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
            ended = limited(tmp_path, "explain", "-", input=file)
        assert FEW in ended.err
        return
    bad = logs if way == "directory" else logs / "bad.log"
    ended = limited(tmp_path, "explain", str(bad), str(tmp_path / "job.log"))
    assert "bad.log cannot be read: " + FEW in ended.err
    assert "ibv_reg_mr" in ended.out


def test_large_log_is_read_whole(tmp_path: Path) -> None:
    """A log with many lines is no such file, and neither is the same log in a pipe, or packed."""
    text = b"".join(b"%d: %s\n" % (number, b"nothing happens " * 60) for number in range(80_000))
    path = tmp_path / "job.log"
    path.write_bytes(text + LOG)
    assert limited(tmp_path, "explain", str(path)).code == 3
    packed = tmp_path / "job.log.gz"
    packed.write_bytes(gzip.compress(text + LOG, 1))
    assert limited(tmp_path, "explain", str(packed)).code == 3
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert cat.stdout
        assert limited(tmp_path, "explain", "-", input=cat.stdout).code == 3


def test_list_of_a_zip_file(tmp_path: Path) -> None:
    """Two records have the size of the list of members: the old one says 100 bytes, and the one for
    large archives, which Python prefers, says 700 MiB."""
    path, size = tmp_path / "a.zip", 700 << 20
    with path.open("wb") as file:
        file.write(b"PK\3\4")
        file.seek(4 + size)
        file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 4))
        file.write(struct.pack("<4sLQL", b"PK\6\7", 0, 4 + size, 1))
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 100, 4, 0))
    ended = limited(tmp_path, "explain", str(path), most=60 << 20)
    assert "a.zip cannot be read: the archive has too many members" in ended.err


def test_xz(tmp_path: Path) -> None:
    """Files of xz are read, also several streams, unless reading them would take much memory."""
    path = tmp_path / "job.log.xz"
    path.write_bytes(lzma.compress(b"fine\n") + bytes(4) + lzma.compress(LOG, preset=9))
    assert "ibv_reg_mr" in limited(tmp_path, "explain", str(path)).out
    large = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20, "preset": 0, "mf": lzma.MF_HC3}]
    path.write_bytes(lzma.compress(LOG, filters=large))
    assert "cannot be read" in limited(tmp_path, "explain", str(path)).err
    path.write_bytes(lzma.compress(LOG * 999)[:90])
    assert "cannot be read" in limited(tmp_path, "explain", str(path)).err


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
    limited(tmp_path, "explain", str(tmp_path / "job.log"))


# ---- what other nodes have printed ---------------------------------------------------------------

STATUS = (
    '{\n  "host": "%s",\n%s  "facts": [\n'
    '    {"id": "a/b", "section": "a", "name": "b", "value": "%s"}\n  ]\n}\n'
)
DEEP = "[" * 100_000 + "]" * 100_000
BAD_NODES = {
    "deep": STATUS % ("bad", f'  "x": {DEEP},\n', "y"),
    "deep in a fact": (STATUS % ("bad", "", "y")).replace('"name": "b"', f'"name": {DEEP}'),
    "digits": STATUS % ("n", f'  "x": {"1" * 100_000},\n', "y"),
    "exponent": STATUS % ("n", '  "x": 1e999999999,\n', "y"),
    "name of digits": STATUS % ("1" * 100_000, "", "y"),
    "name that is slow": STATUS % ("1" * 60_000 + "x1x", "", "y"),
    "name of blanks": STATUS % (" " * 60_000, "", "y"),
    "value": STATUS % ("n", "", "y" * 1_000_000),
    "no list": '{"facts": 5}\n',
    "facts that are numbers": '{\n  "facts": [\n    5\n  ]\n}\n',
    "null": STATUS % ("n", '  "ways": null, "programs": 7,\n', "y"),
    "ways": STATUS % ("n", '  "ways": [{"gpu": 1}],\n', "y"),
    "never ends": "{\n" + '  "x": "y",\n' * 1_000_000,
    "one line": "{" + " " * (20 << 20),
    "many statuses": "".join(STATUS % ("same", "", "y") for _ in range(20_000)),
}


@pytest.mark.parametrize("kind", BAD_NODES)
def test_one_bad_node(tmp_path: Path, kind: str) -> None:
    """The other nodes are compared: good3 differs from good1 and good2."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name in "bad1", "bad2":
        # The second bad node differs in one character, so the names of the two are compared.
        (fleet / f"{name}.json").write_text(BAD_NODES[kind].replace("1x1x", f"1x{name[-1]}x"))
    for name, value in ("good1", "y"), ("good2", "y"), ("good3", "odd"):
        (fleet / f"{name}.json").write_text(STATUS % (name, "", value))
    ended = limited(tmp_path, "compare", "--all", "--json", str(fleet))
    found = json.loads(ended.out)
    assert ended.code == 1
    odd = [group for group in found["groups"] if "good3" in group["nodes"]]
    assert [one["value"] for one in odd[0]["differences"] if one["feature"] == "a, b"] == ["odd"]
    assert max(map(len, (name for group in found["groups"] for name in group["nodes"]))) <= 260


LABELS = 500_000
NODES = {
    "names of a heading": f"-----\nn{'[0-99998]' * 200}\n-----\nx\n",
    "words of a heading": f"-----\n{'n,' * 500_000}\n-----\nx\n",
    "labels": "".join(f"a{number}: x\n" for number in range(LABELS)),
    "statuses": "".join(f'a{number}: {{"facts": []}}\n' for number in range(LABELS // 4)),
}


@pytest.mark.parametrize("kind", NODES)
def test_many_nodes_in_one_file(tmp_path: Path, kind: str) -> None:
    """A node prints the names of many nodes, in its own file. The other nodes are compared."""
    for name, value in ("good1", "y"), ("good2", "y"), ("good3", "odd"):
        (tmp_path / f"{name}.json").write_text(STATUS % (name, "", value))
    (tmp_path / "later.txt").write_text(NODES[kind])
    names = [str(tmp_path / f"{name}.json") for name in ("good1", "good2", "good3")]
    command = ("compare", "--json", *names, str(tmp_path / "later.txt"))
    ended = limited(tmp_path, *command)
    found = json.loads(ended.out)
    assert "good3" in [node for group in found["groups"] for node in group["nodes"]]
    assert ("only the first 100000 nodes are compared" in ended.err) == (kind == "statuses")


@pytest.mark.parametrize("pairs", [100, 3000])
def test_page_of_many_pairs(tmp_path: Path, pairs: int) -> None:
    """A table has a cell for each GPU and each RDMA device, also if few of the pairs were measured.
    A table of the 100 largest nodes' size is shown."""
    found = [
        {"gpu": number, "device": f"mlx5_{number}", "way": "dma-buf", "passed": True, "to_gpu": 1e9}
        for number in range(pairs)
    ]
    for name in "n1", "n2":
        said = {"schema": 1, "host": name, "bandwidth": True, "pairs": found}
        (tmp_path / f"{name}.json").write_text(json.dumps(said))
    page = tmp_path / "page.html"
    files = [str(tmp_path / f"{name}.json") for name in ("n1", "n2")]
    ended = limited(tmp_path, "compare", "--html", str(page), *files)
    assert ended.code == 0, ended.err
    text = page.read_text()
    assert len(text) < 1 << 20
    assert text.count('<td class="h') >= 100 or pairs > 100
    assert ("3000 RDMA devices and 3000 GPUs are too many" in text) == (pairs == 3000)


RATES = ("-1", "-0.0", "1e400", "1" + "0" * 400, "-" + "9" * 5000, "NaN", "Infinity", '"x"', "null")


@pytest.mark.parametrize("rate", RATES)
def test_rates_that_are_no_rates(tmp_path: Path, rate: str) -> None:
    """A rate that no device can have is no reason to pass over the rates of other nodes. The median
    of the other nodes may be 0."""
    for usual in "0", "20e9":
        for name, its in ("n1", usual), ("n2", usual), ("n3", usual), ("bad", rate):
            pair = f'{{"gpu": "0", "device": "d", "way": "w", "passed": true, "to_gpu": {its}}}'
            text = f'{{"host": "{name}", "bandwidth": true, "pairs": [{pair}]}}'
            (tmp_path / f"{name}.json").write_text(text)
        names = [str(tmp_path / f"{name}.json") for name in ("n1", "n2", "n3", "bad")]
        found = json.loads(limited(tmp_path, "compare", "--json", *names).out)
        assert not [group for group in found["groups"] if "n1" in group["nodes"]]
