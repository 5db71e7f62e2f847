# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Watches the devices of a guest: each address that a device holds, and each access.

A device holds addresses in memory keys, in queues, and in memory that users have registered for
queues. A device may hold an address of GPU memory only while the driver of the GPU has the memory
pinned, and an address of any memory only while the memory is mapped for the device. Otherwise the
witness records a violation, with the moment at which the rule was broken. A key that was revoked
holds no address any more, and neither does a device whose firmware has died.

The simulated driver of the GPU tells which frames it has pinned, by writing a word of 32 bits to
the device's configuration space. The word contains the first frame, the number of frames, and a bit
for the end of the pin. Each registration has a pin of its own, so a frame may have no more holders
than pins."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from held import Held, Spans
from keys import Key
from layout import C
from memory import File, Memory, Unreachable

FRAME = 1 << 16
UNPIN = 1 << 31


class Watched(Protocol):
    """A card, as the witness needs it."""

    memory: Memory

    def holders(self) -> Iterator[Held]: ...


class Witness:
    def __init__(self, gpu: Path) -> None:
        """GPU is the file with the GPU's memory."""
        found = gpu.stat()
        self.gpu = (found.st_dev, found.st_ino)
        self.pinned: Counter[int] = Counter()
        self.violations: dict[str, tuple[int, str]] = {}
        self.counts: Counter[str] = Counter()
        self.cards: list[Watched] = []

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
        holders: Counter[int] = Counter()
        for device in self.cards:
            for held in device.holders():
                for frame in held.frames.intersection(frames):
                    holders[frame] += 1
                    if holders[frame] > self.pinned[frame]:
                        text = f"{held.name} still reaches frame {frame}, unpinned"
                        self.violation("unpinned", text)
                        break

    def unmapped(self, device: Watched, start: int, length: int) -> None:
        """Handles the end of a mapping for a device."""
        for held in device.holders():
            if any(begin < start + length and start < end for begin, end in held.spans):
                text = f"{held.name} still reaches {start:#x}, mapped no longer"
                self.violation("unmapped", text)

    def filled(self, key: Key, memory: Memory) -> None:
        """Handles a change of a key's table."""
        if not key.held.spans and not key.free:
            self.counts["entries"] += sum(1 for page in key.pages if page & (C.EN_RD | C.EN_WR))
        self.holds(key.held, [] if key.free else list(spans_of(key)), memory)

    def holds(self, held: Held, spans: Spans, memory: Memory) -> None:
        """Handles new addresses in an object."""
        held.spans, held.frames = spans, set()
        for start, end in spans:
            try:
                held.frames.update(self.frames(memory.pieces(start, end - start), memory))
            except Unreachable as at:
                self.violation("entry_unmapped", f"{held.name} got {at}, which is not mapped")
        if unpinned := [frame for frame in held.frames if self.pinned[frame] <= 0]:
            text = f"{held.name} got frame {min(unpinned)}, not pinned"
            self.violation("entry_unpinned", text)

    def access(self, name: str, address: int, length: int, memory: Memory) -> None:
        """Handles an access by a request."""
        for frame in self.frames(memory.pieces(address, length), memory):
            self.counts["gpu_accesses"] += 1
            if self.pinned[frame] <= 0:
                text = f"{name} was used for frame {frame}, not pinned"
                self.violation("access_unpinned", text)

    def rest(self) -> None:
        """Handles a question about violations, which a test asks when no memory is being freed. At
        other times, unpinned memory may be mapped for a moment, if no device gets the address."""
        for device in self.cards:
            left = {frame for frame in self.mapped_frames(device.memory) if self.pinned[frame] <= 0}
            if left:
                self.violation("left_mapped", f"frame {min(left)} is mapped, and not pinned")

    # ---- places ------------------------------------------------------------------

    def mapped_frames(self, memory: Memory) -> set[int]:
        """Returns the frames that an IOMMU maps for a device. Without an IOMMU there is no such
        mapping, because the device reaches all of the GPU's memory at any time."""
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
    """Yields the bus addresses that requests can reach through the key's own pages. Pages may reach
    farther than the key."""
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
