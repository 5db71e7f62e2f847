# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Memory keys: which memory a request may use, and where that memory is on the bus."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from held import Held
from layout import C, View, byte_of, size

# Rights of a key, by the names of the key's fields: local read and write, remote read and write,
# and atomic operations.
RIGHTS = ("lr", "lw", "rr", "rw", "a")

# A key that reaches the whole bus, for the kernel's own requests. The driver asks for its number.
RESERVED = 7

ALL = 1 << 64


class Denied(Exception):
    """A key does not allow an access."""


class Failed(Exception):
    """A request for memory keys cannot be carried out."""


class Indirect(NamedTuple):
    """An entry of a key whose entries are parts of other keys."""

    length: int
    key: int
    address: int


@dataclass
class Key:
    """A memory key. The entries of its table are bus addresses of pages, or parts of other keys."""

    index: int
    tag: int = 0
    mode: int = 0
    free: bool = False
    start: int = 0
    length: int = 0
    page_shift: int = 0
    domain: int = 0
    rights: set[str] = field(default_factory=set)
    # The remote side may end the use of the key by a message.
    remote_invalidation: bool = False
    pages: list[int] = field(default_factory=list)
    parts: list[Indirect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.held = Held(f"key {self.index:#x}")

    @property
    def number(self) -> int:
        """The key as programs write it: the index, and the tag in the lowest byte."""
        return self.index << 8 | self.tag

    def is_indirect(self) -> bool:
        return self.mode in (C.MKC_ACCESS_MODE_KLMS, C.MKC_ACCESS_MODE_KSM)

    def set_context(self, context: View, mask: int = ~0) -> None:
        """Takes those values of a key's context whose bits are in MASK."""
        if mask & C.MKEY_MASK_LEN:
            self.length = ALL if context["length64"] else context["len"]
        if mask & (C.MKEY_MASK_PAGE_SIZE | C.MKEY_MASK_PAGE_SIZE_5):
            self.page_shift = context["log_page_size"]
        if mask & C.MKEY_MASK_START_ADDR:
            self.start = context["start_addr"]
        if mask & C.MKEY_MASK_PD:
            self.domain = context["pd"]
        if mask & C.MKEY_MASK_KEY:
            self.tag = context["mkey_7_0"]
        if mask & C.MKEY_MASK_FREE:
            self.free = bool(context["free"])
        if mask & C.MKEY_MASK_EN_RINVAL:
            self.remote_invalidation = bool(context["en_rinval"])
        for right in RIGHTS:
            if mask & getattr(C, f"MKEY_MASK_{right.upper()}"):
                self.rights.discard(right)
                if context[right]:
                    self.rights.add(right)

    def set_entries(self, data: bytes | bytearray, octowords: int = 0) -> None:
        """Writes entries into the table, OCTOWORDS * 16 bytes after its beginning."""
        if self.is_indirect():
            found = [Indirect(*struct.unpack_from(">IIQ", data, at)) for at in whole(data, 16)]
            self.parts[octowords : octowords + len(found)] = found
            return
        first, count = octowords * 2, len(data) // 8
        self.pages.extend([0] * (first - len(self.pages)))
        self.pages[first : first + count] = struct.unpack_from(f">{count}Q", data)

    def page_of(self, address: int) -> tuple[int, int]:
        """Returns the number of the page with the address ADDRESS, and the place in that page. The
        table begins with the page that contains the key's first address."""
        inside = self.start % (1 << self.page_shift) + address - self.start
        return divmod(inside, 1 << self.page_shift)


def whole(data: bytes | bytearray, length: int) -> range:
    """Returns the places of the complete entries of LENGTH bytes."""
    return range(0, len(data) - length + 1, length)


class Keys:
    """The keys of a device."""

    def __init__(self) -> None:
        self.by_index: dict[int, Key] = {}

    def clear(self) -> None:
        reserved = Key(RESERVED, length=ALL, mode=C.MKC_ACCESS_MODE_PA, rights=set(RIGHTS))
        self.by_index = {RESERVED: reserved}

    def live(self) -> Iterator[Key]:
        """Yields the keys that the device may use."""
        return (key for key in self.by_index.values() if not key.free)

    def find(self, number: int, domain: int) -> Key:
        """Returns the key with this number, if requests of this protection domain may use it."""
        key = self.by_index.get(number >> 8)
        if not key:
            raise Denied(f"there is no key {number:#x}")
        if key.free:
            raise Denied(f"key {number:#x} is free")
        if key.tag != number & 0xFF:
            raise Denied(f"key {number:#x} has the tag {key.tag:#x}")
        if key.domain != domain and key.index != RESERVED:
            raise Denied(f"key {number:#x} is of the protection domain {key.domain:#x}")
        return key

    def translate(
        self, number: int, address: int, length: int, right: str, domain: int
    ) -> Iterator[tuple[Key, int, int]]:
        """Yields the keys, bus addresses and lengths of the memory behind a range of a key, for a
        request that needs RIGHT."""
        key = self.find(number, domain)
        if key.index == RESERVED and right not in ("lr", "lw"):
            raise Denied(f"key {number:#x} is only for the driver's own memory")
        if right not in key.rights:
            raise Denied(f"key {number:#x} does not have the right {right}")
        if address < key.start or address + length > key.start + key.length:
            raise Denied(
                f"key {number:#x}: {length:#x} bytes from {address:#x} on are not in "
                f"{key.length:#x} bytes from {key.start:#x} on"
            )
        if key.mode == C.MKC_ACCESS_MODE_PA:
            yield key, address, length
        elif key.is_indirect():
            yield from self.translate_parts(key, address - key.start, length, right, domain)
        else:
            yield from translate_pages(key, address, length, right)

    def translate_parts(
        self, key: Key, offset: int, length: int, right: str, domain: int
    ) -> Iterator[tuple[Key, int, int]]:
        """Yields the same for a key whose entries are parts of other keys. A remote access needs
        rights of this key only. The other keys need the rights of a local access."""
        local = "lr" if right in ("lr", "rr") else "lw"
        for part in key.parts:
            span = 1 << key.page_shift if key.mode == C.MKC_ACCESS_MODE_KSM else part.length
            if offset < span and length:
                now = min(length, span - offset)
                yield from self.translate(part.key, part.address + offset, now, local, domain)
                offset, length = span, length - now
            offset -= span
        if length:
            raise Denied(f"key {key.number:#x} of keys ends {length:#x} bytes early")


def translate_pages(
    key: Key, address: int, length: int, right: str
) -> Iterator[tuple[Key, int, int]]:
    """Yields the bus addresses behind a range of a key with a table of pages. Pages in a row are
    one piece."""
    needed = C.EN_RD if right in ("lr", "rr") else C.EN_WR
    begin = done = 0
    while length:
        number, inside = key.page_of(address)
        entry = key.pages[number] if number < len(key.pages) else 0
        if not entry & needed:
            raise Denied(f"key {key.number:#x}: page {number} is not present")
        piece = min(length, (1 << key.page_shift) - inside)
        bus = (entry & ~0xFFF) + inside
        if begin + done != bus and done:
            yield key, begin, done
            done = 0
        begin, done = (begin, done + piece) if done else (bus, piece)
        address, length = address + piece, length - piece
    if done:
        yield key, begin, done


# ---- requests that change keys -------------------------------------------------------------

CONTROL = size("mlx5_wqe_ctrl_seg")
CONTEXT = CONTROL + size("mlx5_wqe_umr_ctrl_seg")
TABLE = CONTEXT + size("mkc")


def table_of(request: bytes) -> tuple[bytes, tuple[int, int, int]]:
    """Returns the entries that a request of type UMR contains, and the place of entries that the
    request does not contain: key, address and length."""
    control = View("mlx5_wqe_umr_ctrl_seg", request, CONTROL)
    length = control["xlt_octowords"] * 16
    if control["flags"] & C.UMR_INLINE:
        return request[TABLE : TABLE + length], (0, 0, 0)
    if len(request) < TABLE + size("mlx5_wqe_data_seg"):
        return b"", (0, 0, 0)
    data = View("mlx5_wqe_data_seg", request, TABLE)
    return b"", (data["lkey"], data["addr"], data["byte_count"] or length)


def change(key: Key, request: bytes, entries: bytes) -> None:
    """Carries out a request of type UMR on KEY."""
    control = View("mlx5_wqe_umr_ctrl_seg", request, CONTROL)
    flags = control["flags"]
    # Each flag is named after a state that the device looks for. If the key is in this state, the
    # request fails.
    if flags & C.UMR_CHECK_FREE and key.free:
        raise Failed(f"key {key.index << 8:#x} is free")
    if flags & C.UMR_CHECK_NOT_FREE and not key.free:
        raise Failed(f"key {key.index << 8:#x} is in use")
    key.set_context(View("mkc", request, CONTEXT), control["mkey_mask"])
    if entries:
        offset = control["xlt_offset"] | control["xlt_offset_47_16"] << 16
        key.set_entries(entries, offset if flags & C.UMR_TRANSLATION_OFFSET_EN else 0)


def access_mode(context: View) -> int:
    return context["access_mode_4_2"] << 2 | context["access_mode_1_0"]


def created(index: int, given: View) -> Key:
    """Returns the key that the command CREATE_MKEY describes."""
    context = given.part("memory_key_mkey_entry", "mkc")
    key = Key(index, mode=access_mode(context))
    key.set_context(context)
    begin = byte_of("create_mkey_in", "klm_pas_mtt")
    length = given["translations_octword_actual_size"] * 16
    key.set_entries(given.data[begin : begin + length])
    return key
