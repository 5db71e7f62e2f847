# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads lines of files that others have made, so that a file without line ends does not fill
memory."""

from typing import AnyStr, Callable, Iterator


def lines(readline: Callable[[int], AnyStr], longest: int) -> Iterator[AnyStr]:
    """Yields the lines of a file. A line that is longer than LONGEST is cut to its beginning."""
    line = readline(longest)
    end = "\n" if isinstance(line, str) else b"\n"
    while line:
        yield line
        while line and line[-1:] != end:
            line = readline(longest)
        line = readline(longest)
