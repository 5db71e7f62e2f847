# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The memory that a device reaches on its bus: the guest's memory, and memory of other devices.

QEMU tells the device about each range that the device may reach, and gives a file with the memory.
Without an IOMMU the ranges are the guest's whole memory and the BARs of devices. Behind an IOMMU
the ranges are those that the guest's drivers have mapped for the device, and these ranges change
all the time."""

import bisect
import mmap
import os
from collections.abc import Iterator
from typing import NamedTuple


class Unreachable(Exception):
    """No memory is mapped at a bus address."""


class Range(NamedTuple):
    """Bus addresses from START to END, which show FILE from OFFSET on."""

    start: int
    end: int
    file: "File"
    offset: int


class File:
    """A file with memory, mapped as a whole."""

    def __init__(self, descriptor: int) -> None:
        self.bytes = mmap.mmap(descriptor, os.fstat(descriptor).st_size)


class Memory:
    def __init__(self) -> None:
        self.files: dict[tuple[int, int], File] = {}
        self.starts: list[int] = []
        self.ranges: list[Range] = []

    def map(self, start: int, length: int, descriptor: int, offset: int) -> None:
        """Adds a range. The caller still owns the descriptor of the file."""
        found = os.fstat(descriptor)
        file = self.files.get((found.st_dev, found.st_ino))
        if not file:
            file = self.files[found.st_dev, found.st_ino] = File(descriptor)
        at = bisect.bisect(self.starts, start)
        self.starts.insert(at, start)
        self.ranges.insert(at, Range(start, start + length, file, offset))

    def unmap(self, start: int, length: int) -> None:
        """Removes the ranges that begin in LENGTH bytes from START on."""
        first = bisect.bisect_left(self.starts, start)
        end = bisect.bisect_left(self.starts, start + length)
        del self.starts[first:end], self.ranges[first:end]

    def clear(self) -> None:
        self.starts.clear()
        self.ranges.clear()

    def pieces(self, address: int, length: int) -> Iterator[tuple[File, int, int]]:
        """Yields the files, offsets and lengths behind a range of bus addresses."""
        while length:
            at = bisect.bisect(self.starts, address) - 1
            if at < 0 or address >= self.ranges[at].end:
                raise Unreachable(f"{address:#x}")
            part = self.ranges[at]
            piece = min(length, part.end - address)
            yield part.file, part.offset + address - part.start, piece
            address, length = address + piece, length - piece

    def reachable(self, address: int, length: int) -> bool:
        try:
            return all(True for _ in self.pieces(address, length))
        except Unreachable:
            return False

    def read(self, address: int, length: int) -> bytes:
        pieces = [file.bytes[at : at + n] for file, at, n in self.pieces(address, length)]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, address: int, data: bytes) -> None:
        """Writes DATA as a whole, or nothing if a part of the range is not mapped."""
        done = 0
        for file, at, length in list(self.pieces(address, len(data))):
            file.bytes[at : at + length] = data[done : done + length]
            done += length

    def read_number(self, address: int, size: int) -> int:
        return int.from_bytes(self.read(address, size))
