# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the texts in a file: the file itself, or the members of an archive, each of which may be
compressed or an archive."""

import codecs
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from typing import BinaryIO, Callable, Iterable, Iterator, Tuple, cast

from . import archives, compressed, long_lines

Stream = Iterable[bytes]
# The beginning of a file that says what the file is.
BEGINNING = 4096
# A program that writes on into a log that was emptied leaves NUL bytes before its lines.
MOST_NULS = 64 << 20
# An archive is read, and an archive within this archive, but no deeper archive.
DEEPEST = 2
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# Text has few of these control characters: at most the share MOST_CONTROLS of its bytes.
CONTROLS = bytes(one for one in range(32) if one not in b"\t\n\v\f\r\b\x1b") + b"\x7f"
MOST_CONTROLS = 0.05
# The first bytes of files that nvpm cannot unpack, with the program that packed them, and the
# command that unpacks them.
PACKED = (
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x"),
)
JOURNAL = b"LPKSHHRH"
# The errors that can end the reading or the decompression of a file. zipfile raises the last two
# for members that are encrypted, or compressed in another way.
READING = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    UnicodeError,
    NotImplementedError,
    RuntimeError,
)


class Unreadable(Exception):
    """A log cannot be read. The text says why."""


class NoText(Unreadable):
    """A file is no log, so nothing is lost if the file is left out."""


class Budget:
    """The bytes that may be read out of all logs of a command. A sparse file, or an archive within
    an archive, has a million times as many bytes as it takes on the disk. So each byte on the disk,
    and each byte of a pipe, allows TIMES bytes, and FREE bytes are allowed in any case. Each line
    costs as much time as LINE bytes."""

    FREE, TIMES, LINE = 64 << 20, 200, 64

    def __init__(self) -> None:
        self.left, self.pipe = self.FREE, False

    def open(self, file: BinaryIO) -> None:
        """Allows the bytes of another file. Some file systems do not say how many a file takes."""
        try:
            about = os.fstat(file.fileno())
            blocks = about.st_blocks if stat.S_ISREG(about.st_mode) else 0
        except OSError:
            blocks = 0
        self.pipe = not blocks
        self.left += self.TIMES * 512 * blocks

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise OSError("it has far more bytes than it takes on the disk")

    def take_outer(self, count: int) -> None:
        """Takes bytes of the file itself, and not of its contents."""
        self.take(count * (1 - self.TIMES) if self.pipe else count)


# A function that is told that bytes were read.
Count = Callable[[int], None]
# A function that is told why a part of the logs cannot be read.
Tell = Callable[[Unreadable], None]


class Joined(io.RawIOBase):
    """The beginning of a file that was read already, and then its rest."""

    def __init__(self, start: bytes, file: BinaryIO, ended: bool, count: Count) -> None:
        self.start, self.file, self.ended, self.count = start, file, ended, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        part = self.start[: len(buffer)]
        self.start = self.start[len(part) :]
        if not part and not self.ended:
            part = self.file.read(len(buffer))
            self.count(len(part))
        buffer[: len(part)] = part
        return len(part)


def texts_of(
    name: str, raw: BinaryIO, tell: Tell, budget: Budget, depth: int = 0
) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in a file. The file may be compressed, and may be a pipe, whose first bytes
    can come one by one. Raises Unreadable if the file is no text, and tells which members of an
    archive are no text. DEPTH is the number of archives around the file."""
    count = budget.take if depth else budget.take_outer
    start, ended = beginning(raw, count)
    if archives.is_zip(start):
        yield from inner_texts(name, archives.of_zip(raw), tell, budget, depth)
        return
    file = io.BufferedReader(Joined(start, raw, ended, count))
    opener = compressed.opener(start, depth)
    if opener:
        unpacked = opener(cast(BinaryIO, file))
        file = io.BufferedReader(Joined(b"", unpacked, False, budget.take))
        start = file.peek(BEGINNING)
    if archives.is_tar(start):
        yield from inner_texts(name, archives.of_tar(cast(BinaryIO, file)), tell, budget, depth)
    else:
        yield name, text_of(name, start, cast(BinaryIO, file))


def beginning(raw: BinaryIO, count: Count) -> Tuple[bytes, bool]:
    """Returns the first bytes of a file behind its NUL bytes and its mark of UTF-8, and whether the
    file has no further bytes."""
    start, read = raw.read(BEGINNING), BEGINNING
    while start and not start.strip(b"\0") and read < MOST_NULS:
        start = raw.read(BEGINNING)
        read += BEGINNING
        count(BEGINNING)
    ended = len(start) < BEGINNING
    if start.startswith(codecs.BOM_UTF8):
        start = start[len(codecs.BOM_UTF8) :]
    return start, ended


def inner_texts(
    name: str, members: Iterator[archives.Inner], tell: Tell, budget: Budget, depth: int
) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in the members of an archive."""
    if depth >= DEEPEST:
        raise Unreadable(f"{name} is an archive within {depth} others: unpack it first")
    for inner, file in members:
        try:
            yield from texts_of(f"{name}:{inner}", file, tell, budget, depth + 1)
        except Unreadable as reason:
            tell(reason)


def text_of(name: str, start: bytes, file: BinaryIO) -> Stream:
    """Returns the lines of a text with this beginning. Raises Unreadable if the file is no text."""
    for magic, program, command in PACKED:
        if start.startswith(magic):
            raise Unreadable(f"{name} is packed by {program}: unpack it first ({command})")
    if start.startswith(JOURNAL):
        raise Unreadable(f"{name} is a file of the journal: journalctl --file= prints its lines")
    encoding = utf_16(start)
    if encoding:
        text = io.TextIOWrapper(file, encoding=encoding, errors="replace")
        return long_lines.lines(lambda limit: text.readline(limit).encode())
    if start and not is_text(start):
        raise NoText(f"{name} is no text")
    return long_lines.lines(file.readline)


def utf_16(start: bytes) -> str:
    """Returns the encoding of a text of two bytes for each character, or an empty text. Without a
    mark at the beginning, every second byte of English text is NUL."""
    if start.startswith(UTF_16):
        return "utf-16"
    even, odd = start[::2], start[1::2]
    for nuls, letters, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if len(letters) > 1 and nuls.count(0) > 0.8 * len(nuls) and letters.count(0) < 2:
            return encoding
    return ""


def is_text(start: bytes) -> bool:
    """Returns whether a file with this beginning is text. A log can contain NUL bytes, where the
    machine crashed or the log was emptied while a program wrote."""
    text = start.replace(b"\0", b"")
    controls = len(text) - len(text.translate(None, CONTROLS))
    return bool(text) and controls <= MOST_CONTROLS * len(text)
