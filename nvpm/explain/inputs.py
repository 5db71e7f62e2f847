# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Opens logs: files, also compressed ones, the files of a directory or of a report's archive,
standard input, and the output of journalctl and dmesg."""

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import sys
import tarfile
import zlib
from typing import BinaryIO, Callable, Iterable, Iterator, List, Tuple, cast

from ..read import bounded, programs

Stream = Iterable[bytes]
TAR = (257, b"ustar")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
BEGINNING = 4096
STANDARD_INPUT = "standard input"
# The rest of a longer line is dropped, so that a file without line ends does not fill memory.
LONGEST = 1 << 16
# Seconds within which journalctl and dmesg have to end.
PROGRAM_LIMIT = 60.0
# What can go wrong while a file is read or decompressed.
READING = (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, UnicodeError)
# The greatest size of a header in an archive. tarfile reads the long name and the other fields of a
# file as a whole, and a few hundred compressed bytes can become a gigabyte.
LONGEST_HEADER = 1 << 20
# xz -9 takes 65 MiB.
XZ_MEMORY = 96 << 20
# The kinds of members that are such headers: long names of GNU tar, and the fields of pax.
HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class Member(tarfile.TarInfo):
    """A member of an archive. Raises HeaderError if the member is a header that is too large, or
    the list of the parts of a sparse file, which has no limit."""

    # tarfile calls this method after it has read the block of the member, and before it reads the
    # contents. The public methods around it differ between the versions of Python.
    def _proc_member(self, archive):  # type: ignore[no-untyped-def]
        if self.type in HEADERS and self.size > LONGEST_HEADER:
            raise tarfile.HeaderError(f"a header of {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.HeaderError(SPARSE)
        return super()._proc_member(archive)  # type: ignore[misc]

    def _proc_gnusparse_10(self, *_words):  # type: ignore[no-untyped-def]
        raise tarfile.HeaderError(SPARSE)


SPARSE = "a sparse file: make the archive without --sparse"


class Xz(io.RawIOBase):
    """The contents of an xz file. The file says how much memory its reading takes, up to 4 GiB, and
    lzma.open() has no limit for that."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.decoder, self.rest = file, self.fresh(), b""

    @staticmethod
    def fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        part = b""
        while not part:
            if self.decoder.eof:
                # An xz file may have several streams, with zeros between them.
                self.rest = self.decoder.unused_data.lstrip(b"\0")
                while not self.rest:
                    more = self.file.read(BEGINNING)
                    if not more:
                        return 0
                    self.rest = more.lstrip(b"\0")
                self.decoder = self.fresh()
            elif self.decoder.needs_input:
                self.rest = self.file.read(BEGINNING)
                if not self.rest:
                    raise EOFError("the file ends before its contents")
            part = self.decoder.decompress(self.rest, len(buffer))
            self.rest = b""
        buffer[: len(part)] = part
        return len(part)


def unxz(file: BinaryIO, _mode: str) -> BinaryIO:
    return cast(BinaryIO, Xz(file))


# The first bytes of compressed files, and what reads them.
MAGIC = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", unxz), (b"BZh", bz2.open))


class Unreadable(Exception):
    """A log cannot be read. The text says why."""


class NoText(Unreadable):
    """A file is no log, so nothing is lost if the file is left out."""


# A function that is told why a part of the logs cannot be read.
Tell = Callable[[Unreadable], None]


class Joined(io.RawIOBase):
    """The beginning of a file that was read already, and then its rest."""

    def __init__(self, start: bytes, file: BinaryIO, ended: bool) -> None:
        self.start, self.file, self.ended = start, file, ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        part = self.start[: len(buffer)]
        self.start = self.start[len(part) :]
        if not part and not self.ended:
            part = self.file.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def of_stream(name: str, raw: BinaryIO) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in a file: the file itself, or each file in an archive. The file may be
    compressed, and may be a pipe, whose first bytes can come one by one. Raises Unreadable if the
    file is no text."""
    start = raw.read(BEGINNING)
    ended = len(start) < BEGINNING
    if start.startswith(codecs.BOM_UTF8):
        start = start[len(codecs.BOM_UTF8) :]
    file = io.BufferedReader(Joined(start, raw, ended))
    for magic, reader in MAGIC:
        if start.startswith(magic):
            file = io.BufferedReader(cast(Joined, reader(file, "rb")))
            start = file.peek(BEGINNING)
            break
    if start[TAR[0] :].startswith(TAR[1]):
        with tarfile.open(fileobj=file, mode="r|", tarinfo=Member) as archive:
            for member in archive:
                # tarfile keeps each member, and an archive may have millions of empty ones.
                archive.members = []  # type: ignore[attr-defined]
                inner = archive.extractfile(member) if member.isfile() else None
                if inner:
                    yield f"{name}:{member.name}", bounded.lines(inner.readline, LONGEST)
    elif start.startswith(UTF_16):
        text = io.TextIOWrapper(file, encoding="utf-16", errors="replace")
        yield name, bounded.lines(lambda limit: text.readline(limit).encode(), LONGEST)
    elif b"\0" in start[:BEGINNING]:
        raise NoText(f"{name} is no text")
    else:
        yield name, bounded.lines(file.readline, LONGEST)


def from_file(path: str) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in a file, or in standard input. Raises Unreadable if the file cannot be
    read."""
    name = STANDARD_INPUT if path == "-" else path
    try:
        with contextlib.ExitStack() as stack:
            own = path != "-"
            file = stack.enter_context(open(path, "rb")) if own else sys.stdin.buffer
            for inner, stream in of_stream(os.path.basename(name) or name, file):
                yield inner, guarded(name, stream)
    except READING as error:
        raise unreadable(name, error) from None


def guarded(path: str, stream: Stream) -> Iterator[bytes]:
    """Yields the lines of a stream. Raises Unreadable if the rest of the stream cannot be read."""
    try:
        yield from stream
    except READING as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> Unreadable:
    return Unreadable(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}")


def written(path: str) -> float:
    """Returns when a file was written. Returns 0 if the file is gone, as rotated logs may be."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def files_of(path: str, tell: Tell) -> List[str]:
    """Returns the files in a directory, and in its directories, from the oldest to the newest."""

    def failed(error: OSError) -> None:
        tell(unreadable(error.filename, error))

    names = [
        os.path.join(place, name)
        for place, _, files in os.walk(path, onerror=failed)
        for name in files
        if not name.startswith(".")
    ]
    return sorted(filter(os.path.isfile, names), key=lambda name: (written(name), name))


def from_directory(path: str, tell: Tell) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts of the files in a directory. Tells which files are no texts."""
    for name in files_of(path, tell):
        try:
            for inner, stream in from_file(name):
                whole = inner == os.path.basename(name)
                yield os.path.relpath(name, path) if whole else inner, stream
        except Unreadable as reason:
            tell(reason)


def from_program(command: List[str]) -> Iterator[Tuple[str, Stream]]:
    """Yields the output of a program. Raises Unreadable if the program fails."""
    # The shell puts error messages into the output, where they say why the program has failed.
    ended = programs.run(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], PROGRAM_LIMIT)
    if ended.code != 0:
        said = ended.output.decode("utf-8", "replace").strip().split("\n")[-1]
        why = ended.why or said or f"exit code {ended.code}"
        raise Unreadable(f"{command[0]} failed: {why}. Only root may read this log on many systems")
    yield command[0], io.BytesIO(ended.output)


def from_paths(paths: Iterable[str], tell: Tell) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts of files and directories. Tells what cannot be read, and goes on. A path
    that is named twice is read once."""
    for path in dict.fromkeys(paths):
        try:
            yield from from_directory(path, tell) if os.path.isdir(path) else from_file(path)
        except Unreadable as reason:
            tell(reason)
