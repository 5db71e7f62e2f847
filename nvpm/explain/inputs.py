# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Opens logs: files, the files of a directory, standard input, and the output of journalctl and
dmesg."""

import contextlib
import io
import os
import sys
from typing import Iterable, Iterator, List, Tuple

from ..read import programs
from .texts_of import READING, Budget, Stream, Tell, Unreadable, texts_of

STANDARD_INPUT = "standard input"
# Seconds within which journalctl and dmesg have to end.
PROGRAM_LIMIT = 60.0


def from_file(path: str, tell: Tell, budget: Budget) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts in a file, or in standard input. Raises Unreadable if the file cannot be
    read, and tells which members of an archive are no texts."""
    name = STANDARD_INPUT if path == "-" else path
    try:
        with contextlib.ExitStack() as stack:
            own = path != "-"
            file = stack.enter_context(open(path, "rb")) if own else sys.stdin.buffer
            budget.open(file)
            for inner, stream in texts_of(os.path.basename(name) or name, file, tell, budget):
                yield inner, guarded(name, stream, budget)
    except READING as error:
        raise unreadable(name, error) from None


def guarded(path: str, stream: Stream, budget: Budget) -> Iterator[bytes]:
    """Yields the lines of a stream. Raises Unreadable if the rest of the stream cannot be read."""
    try:
        for line in stream:
            budget.take(budget.LINE)
            yield line
    except READING as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> Unreadable:
    return Unreadable(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}")


def written(path: str) -> float:
    """Returns when a file was written. Returns 0 if the file is gone, as rotated logs may be."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def files_of(path: str, tell: Tell) -> List[str]:
    """Returns the files in a directory, and in its directories, from the oldest to the newest."""

    def failed(error: OSError) -> None:
        tell(unreadable(error.filename, error))

    names = [
        os.path.join(place, name)
        for place, _, files in os.walk(path, onerror=failed)
        for name in files
        if not name.startswith(".")
    ]
    return sorted(filter(os.path.isfile, names), key=lambda name: (written(name), name))


def from_directory(path: str, tell: Tell, budget: Budget) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts of the files in a directory. Tells which files are no texts."""
    for name in files_of(path, tell):
        try:
            for inner, stream in from_file(name, tell, budget):
                whole = inner == os.path.basename(name)
                yield os.path.relpath(name, path) if whole else inner, stream
        except Unreadable as reason:
            tell(reason)


def from_program(command: List[str]) -> Iterator[Tuple[str, Stream]]:
    """Yields the output of a program. Raises Unreadable if the program fails."""
    # The shell puts error messages into the output, where they say why the program has failed.
    ended = programs.run(["sh", "-c", 'exec "$@" 2>&1', "sh", *command], PROGRAM_LIMIT)
    if ended.code != 0:
        said = ended.output.decode("utf-8", "replace").strip().split("\n")[-1]
        why = ended.why or said or f"exit code {ended.code}"
        raise Unreadable(f"{command[0]} failed: {why}. Only root may read this log on many systems")
    yield command[0], io.BytesIO(ended.output)


def from_paths(paths: Iterable[str], tell: Tell) -> Iterator[Tuple[str, Stream]]:
    """Yields the texts of files and directories. Tells what cannot be read, and goes on. A path
    that is named twice is read once."""
    budget = Budget()
    for path in dict.fromkeys(paths):
        source = from_directory if os.path.isdir(path) else from_file
        try:
            yield from source(path, tell, budget)
        except Unreadable as reason:
            tell(reason)
