# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads /etc/infiniband/nv_peer_mem.conf by the same rules as the service's shell functions in
init.d/conf.sh. The file is read as text, and no part of it is ever executed. nvpm does not call the
shell functions. It may be a single file in a directory where other users can write, and a shell
file in such a directory must not be executed. tests/nvpm/test_conf.py checks that both readers give
the same result."""

import re
from typing import Iterator, List, Tuple

from .machine import CONF, Machine, decoded, once

REFUSED = "?"

YES = (b"YES", b"Y", b"ON", b"1", b"TRUE", b"ENABLED")
NO = (b"NO", b"N", b"OFF", b"0", b"FALSE", b"DISABLED")

# Control characters, tabs and the line ends of Windows count as blanks.
BLANKS = bytes.maketrans(bytes([*range(1, 10), *range(11, 32), 127]), b" " * 31)
UTF8_MARK = b"\xef\xbb\xbf"
LONGEST = 80


def pairs_of(line: bytes) -> Iterator[Tuple[bytes, bytes]]:
    """Yields a pair for a line without outer blanks. The pair is the name of a setting with "yes",
    "no" or "unclear". If the line is not understood, a pair of "?" and the line is yielded."""
    said = re.sub(b"^export +", b"", line).upper()
    known = re.match(b"(ONBOOT|MARKER)(?![A-Z0-9_])", said)
    if known:
        said = re.sub(b" *#.*", b"", said, count=1, flags=re.DOTALL)
        said = said.replace(b'"', b"").replace(b"'", b"").rstrip(b" ;")
        said = re.sub(b" *= *", b"=", said, count=1)
        value = said[len(known[1]) :]
        for word, spellings in (b"yes", YES), (b"no", NO):
            if value[:1] == b"=" and value[1:] in spellings:
                yield known[1], word
                return
        yield known[1], b"unclear"
    yield REFUSED.encode(), line[:LONGEST]


def read(data: bytes) -> Iterator[Tuple[str, str]]:
    """Yields the pairs of a whole file."""
    for number, line in enumerate(data.translate(BLANKS).split(b"\n")):
        if not number and line.startswith(UTF8_MARK):
            line = line[len(UTF8_MARK) :]
        line = line.strip(b" ")
        if line and not line.startswith(b"#"):
            for name, value in pairs_of(line):
                yield decoded(name), decoded(value)


@once
def configuration(machine: Machine) -> List[Tuple[str, str]]:
    """Returns pairs (NAME, "yes", "no" or "unclear"), and ("?", LINE) for each line that is not
    understood."""
    return list(read(machine.read(CONF)))


def configured(machine: Machine, name: str) -> str:
    """Returns the last value of NAME; an empty string if NAME has no value."""
    return dict(configuration(machine)).get(name, "")
