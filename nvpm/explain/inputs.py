# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Opens logs: files, also compressed ones, the files of a directory or of a report's archive,
standard input, and the output of journalctl and dmesg."""

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import zlib
from typing import BinaryIO, Iterable, Iterator, List, Tuple, cast

from ..read import programs

Stream = Iterable[bytes]
# The first bytes of compressed files, and what reads them.
MAGIC = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", lzma.open), (b"BZh", bz2.open))
TAR = (257, b"ustar")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
BEGINNING = 4096
# The rest of a longer line is dropped, so that a file without line ends does not fill memory.
LONGEST = 1 << 16
# Seconds within which journalctl and dmesg have to end.
PROGRAM_LIMIT = 60.0
# What can go wrong while a file is read or decompressed.
READING = (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, UnicodeError)


class Unreadable(Exception):
    """A log cannot be read. The text says why."""


def of_stream(name: str, raw: BinaryIO) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in a file: the file itself, or each file in an archive. The file may be
    compressed, and may be a pipe. Raises Unreadable if the file is no text."""
    file = buffered(raw)
    start = file.peek(BEGINNING)[:BEGINNING]
    for magic, reader in MAGIC:
        if start.startswith(magic):
            file = buffered(cast(BinaryIO, reader(file, "rb")))
            start = file.peek(BEGINNING)[:BEGINNING]
            break
    if start[TAR[0] :].startswith(TAR[1]):
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                inner = archive.extractfile(member)
                if inner:
                    yield f"{name}:{member.name}", lines(cast(BinaryIO, inner))
    elif start.startswith(UTF_16):
        yield name, (line.encode() for line in io.TextIOWrapper(file, encoding="utf-16"))
    elif b"\0" in start:
        raise Unreadable(f"{name} is no text")
    else:
        yield name, lines(file)


def buffered(file: BinaryIO) -> io.BufferedReader:
    return (
        file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, file))
    )


def lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of a file. Of a line that is too long, yields the beginning."""
    readline = file.readline
    for line in iter(lambda: readline(LONGEST), b""):
        yield line
        while len(line) == LONGEST and not line.endswith(b"\n"):
            line = readline(LONGEST)


def from_file(path: str) -> Iterator[Tuple[str, Stream]]:
    try:
        with open(path, "rb") as file:
            for name, stream in of_stream(os.path.basename(path) or path, file):
                yield name, guarded(path, stream)
    except READING as error:
        raise unreadable(path, error) from None


def guarded(path: str, stream: Stream) -> Iterator[bytes]:
    """Yields the lines of a stream. Raises Unreadable if the rest of the stream cannot be read."""
    try:
        yield from stream
    except READING as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> Unreadable:
    return Unreadable(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}")


def from_directory(path: str) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts of the files in a directory, and of its directories, from the oldest to the
    newest. Files that are no texts are left out."""
    names = [
        os.path.join(place, name)
        for place, _, files in os.walk(path)
        for name in files
        if not name.startswith(".")
    ]
    names = [name for name in names if os.path.isfile(name)]
    for name in sorted(names, key=lambda name: (os.path.getmtime(name), name)):
        try:
            for inner, stream in from_file(name):
                yield (
                    os.path.relpath(name, path) if inner == os.path.basename(name) else inner,
                    stream,
                )
        except Unreadable as reason:
            sys.stderr.write(f"nvpm explain: {reason}, and is left out\n")


def from_program(command: List[str]) -> Iterator[Tuple[str, Stream]]:
    """Yields the output of a program. Raises Unreadable if the program fails."""
    # The shell puts error messages into the output, where they say why the program has failed.
    ended = programs.run(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], PROGRAM_LIMIT)
    if ended.code != 0:
        said = ended.output.decode("utf-8", "replace").strip().split("\n")[-1]
        why = ended.why or said or f"exit code {ended.code}"
        raise Unreadable(f"{command[0]} failed: {why}. Only root may read this log on many systems")
    yield command[0], io.BytesIO(ended.output)


def from_paths(paths: Iterable[str]) -> Iterator[Tuple[str, Stream]]:
    for path in paths:
        if path == "-":
            for name, stream in of_stream("standard input", sys.stdin.buffer):
                yield name, guarded("standard input", stream)
        elif os.path.isdir(path):
            yield from from_directory(path)
        else:
            yield from from_file(path)
