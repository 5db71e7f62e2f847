# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the lines of a log in parts of bounded size, so that a file without line ends does not fill
memory. A progress bar writes its states into one line, and collectors of logs write a whole log
into one string of JSON: such a line is given in parts, each with as many of its own lines as fit.
"""

import re
from typing import Callable, Iterator, Tuple

# A part has this number of bytes at most.
LONGEST = 1 << 16
# The number of bytes that stay of the beginning and of the end of a longer part.
KEPT = 1 << 13
# The ends of lines within a line: a carriage return, and the ends that a string of JSON has.
END = re.compile(rb"\r|\\+[nr]")


def lines(readline: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yields the lines of a file without NUL bytes, which stand in logs that were cut off while a
    program wrote them. Only the last part of a line has a line end."""
    rest = b""
    part = readline(LONGEST)
    while part:
        if b"\0" in part:
            part = part.translate(None, b"\0")
        if not rest and (len(part) < LONGEST or part.endswith(b"\n")):
            yield part
        else:
            done, rest = divided(rest + part)
            if done:
                yield done
            if part.endswith(b"\n"):
                yield rest
                rest = b""
        part = readline(LONGEST)
    if rest:
        yield rest


def divided(text: bytes) -> Tuple[bytes, bytes]:
    """Returns the part of an unfinished line up to its last own line end, and the rest. If the rest
    is long, only its beginning and its end stay."""
    last = 0
    for end in END.finditer(text):
        last = end.end()
    done, rest = text[:last], text[last:]
    if len(rest) > LONGEST:
        rest = rest[:KEPT] + b" ... " + rest[-KEPT:]
    return done, rest
