# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads compressed files, with bounded memory."""

import bz2
import gzip
import io
import lzma
from typing import BinaryIO, Callable, Optional, Tuple, cast

# Bytes that are read at once.
CHUNK = 4096
# The memory that the contents of a compressed file may take. xz -9 takes 65 MiB, and xz -6, which
# is the default, takes 9 MiB. A file within another file gets the smaller room, so that both files
# together stay below 100 MiB.
MEMORY, INNER_MEMORY = 70 << 20, 10 << 20
Opener = Callable[[BinaryIO], BinaryIO]


class Xz(io.RawIOBase):
    """The contents of an xz file. The file says how much memory its reading takes, up to 4 GiB, and
    lzma.open() has no limit for that."""

    def __init__(self, file: BinaryIO, memory: int) -> None:
        self.file, self.memory, self.rest = file, memory, b""
        self.decoder = self.fresh()

    def fresh(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=self.memory)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        part = b""
        while not part:
            if self.decoder.eof:
                # An xz file may have several streams, with zeros between them.
                self.rest = self.decoder.unused_data.lstrip(b"\0")
                while not self.rest:
                    more = self.file.read(CHUNK)
                    if not more:
                        return 0
                    self.rest = more.lstrip(b"\0")
                self.decoder = self.fresh()
            elif self.decoder.needs_input:
                self.rest = self.file.read(CHUNK)
                if not self.rest:
                    raise EOFError("the file ends before its contents")
            part = self.decoder.decompress(self.rest, len(buffer))
            self.rest = b""
        buffer[: len(part)] = part
        return len(part)


def opener(start: bytes, depth: int) -> Optional[Opener]:
    """Returns a function that opens the contents of a compressed file with this beginning. Returns
    None if the file is not compressed. DEPTH is the number of files around the file."""

    def unxz(file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, Xz(file, INNER_MEMORY if depth else MEMORY))

    def ungzip(file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))

    def unbzip2(file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, bz2.BZ2File(file, "rb"))

    known: Tuple[Tuple[bytes, Opener], ...] = (
        (b"\x1f\x8b", ungzip),
        (b"\xfd7zXZ", unxz),
        (b"BZh", unbzip2),
    )
    return next((one for magic, one in known if start.startswith(magic)), None)
