# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Watches the devices of a guest: each address that a device holds, and each access.

A device may hold an address of GPU memory only while the driver of the GPU has the memory pinned,
and an address of any memory only while the memory is mapped for the device. Otherwise the witness
records a violation, with the moment at which the rule was broken. A key that was revoked holds no
address any more, and neither does a device whose firmware has died.

The simulated driver of the GPU tells which frames it has pinned, by writing a word of 32 bits to
the device's configuration space. The word contains the first frame, the number of frames, and a bit
for the end of the pin."""

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keys import Key, Keys
from layout import C
from memory import File, Memory, Unreachable

if TYPE_CHECKING:
    from device import Device

FRAME = 1 << 16
UNPIN = 1 << 31


class Witness:
    def __init__(self, gpu: Path) -> None:
        """GPU is the file with the GPU's memory."""
        found = gpu.stat()
        self.gpu = (found.st_dev, found.st_ino)
        self.pinned: Counter[int] = Counter()
        self.violations: dict[str, tuple[int, str]] = {}
        self.counts: Counter[str] = Counter()
        self.devices: list[Device] = []

    def violation(self, kind: str, text: str) -> None:
        count, first = self.violations.get(kind, (0, text))
        self.violations[kind] = (count + 1, first)

    # ---- moments -----------------------------------------------------------------

    def pins(self, word: int) -> None:
        """Handles a message of the driver of the GPU."""
        first, count = word & 0xFFFF, word >> 16 & 0x7FFF
        frames = range(first, first + count)
        if not word & UNPIN:
            self.pinned.update(frames)
            return
        self.pinned.subtract(frames)
        gone = {frame for frame in frames if self.pinned[frame] <= 0}
        for device in self.devices:
            for key in device.keys.live() if device.firmware.alive else ():
                if held := gone & key.frames:
                    frame = min(held)
                    self.violation(
                        "unpinned", f"key {key.index:#x} still reaches frame {frame}, unpinned"
                    )
            if held := gone & self.mapped_frames(device.memory):
                self.violation("unpinned_mapped", f"frame {min(held)} is mapped, and unpinned")

    def unmapped(self, keys: Keys, start: int, length: int) -> None:
        """Handles the end of a mapping for a device."""
        for key in keys.live():
            if reaches(key.spans, start, length):
                self.violation(
                    "unmapped", f"key {key.index:#x} still reaches {start:#x}, mapped no longer"
                )

    def filled(self, key: Key, memory: Memory) -> None:
        """Handles a change of a key's table."""
        if key.free:
            key.spans, key.frames = [], set()
            return
        key.spans = list(spans_of(key))
        key.frames = set()
        self.counts["entries"] += sum(1 for page in key.pages if page & (C.EN_RD | C.EN_WR))
        for start, end in key.spans:
            try:
                key.frames.update(self.frames(memory.pieces(start, end - start), memory))
            except Unreachable as at:
                self.violation(
                    "entry_unmapped", f"key {key.index:#x} got {at}, which is not mapped"
                )
        if unpinned := [frame for frame in key.frames if self.pinned[frame] <= 0]:
            frame = min(unpinned)
            self.violation("entry_unpinned", f"key {key.index:#x} got frame {frame}, not pinned")

    def access(self, key: Key, address: int, length: int, memory: Memory) -> None:
        """Handles an access by a request."""
        for frame in self.frames(memory.pieces(address, length), memory):
            self.counts["gpu_accesses"] += 1
            if self.pinned[frame] <= 0:
                self.violation(
                    "access_unpinned", f"key {key.index:#x} was used for frame {frame}, not pinned"
                )

    # ---- places ------------------------------------------------------------------

    def mapped_frames(self, memory: Memory) -> set[int]:
        """Returns the frames that an IOMMU maps for a device. Without an IOMMU the device reaches
        all of the GPU's memory at any time, which is no mapping."""
        gpu = memory.files.get(self.gpu)
        return {
            frame
            for part in memory.ranges
            if part.file is gpu and part.end - part.start < len(gpu.bytes)
            for frame in frames_of(part.offset, part.end - part.start)
        }

    def frames(self, pieces: Iterable[tuple[File, int, int]], memory: Memory) -> Iterator[int]:
        """Yields the frames of GPU memory in pieces of memory."""
        gpu = memory.files.get(self.gpu)
        for file, offset, length in pieces:
            if file is gpu:
                yield from frames_of(offset, length)


def frames_of(offset: int, length: int) -> range:
    return range(offset // FRAME, (offset + length - 1) // FRAME + 1)


def spans_of(key: Key) -> Iterator[tuple[int, int]]:
    """Yields the bus addresses that requests can reach through the key's own pages, from a first
    address to an end. Pages may reach farther than the key."""
    address, end = key.start, key.start + key.length
    begin = stop = 0
    while key.pages and address < end:
        number, inside = key.page_of(address)
        if number >= len(key.pages):
            break
        piece = min(end - address, (1 << key.page_shift) - inside)
        entry = key.pages[number]
        if entry & (C.EN_RD | C.EN_WR):
            bus = (entry & ~0xFFF) + inside
            if bus != stop:
                if stop > begin:
                    yield begin, stop
                begin = bus
            stop = bus + piece
        address += piece
    if stop > begin:
        yield begin, stop


def reaches(spans: list[tuple[int, int]], start: int, length: int) -> bool:
    """Tells whether one of the spans has an address in a range."""
    if len(spans) > 16:
        spans = sorted(spans)
        first = max(0, bisect.bisect(spans, (start,)) - 1)
        spans = spans[first : bisect.bisect(spans, (start + length,))]
    return any(begin < start + length and start < end for begin, end in spans)
