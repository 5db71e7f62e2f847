# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Bytes that nobody writes by chance, and how to compare them."""
import random

PART = 1 << 20
POISON = 0xdb


def pattern(length, *seed):
    """The same for the same seed."""
    chance = random.Random(" ".join(map(str, seed)))
    parts = (chance.getrandbits(8 * PART).to_bytes(PART, "little") for _ in range(0, length, PART))
    return b"".join(parts)[:length]


def poison(length):
    """What is there before something else comes."""
    return bytes([POISON]) * length


def difference(expected, found):
    """What is wrong with the bytes that were found; empty if nothing is."""
    if expected == found:
        return ""
    pages = [at for at in range(0, len(expected), 4096) if expected[at:at + 4096] != found[at:at + 4096]]
    first = next(at for at in range(pages[0], len(expected)) if expected[at:at + 1] != found[at:at + 1])
    what = "nothing arrived" if found == poison(len(found)) else "wrong bytes in %d of %d pages of 4 KiB" % (
        len(pages), -(-len(expected) // 4096))
    return "%s, the first at offset %d" % (what, first)
