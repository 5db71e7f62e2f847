# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The journal of a run: a file with a record in each line, which is flushed to the disk before the
act that it announces. After a panic, the last record names the step. The acts to be undone stand
in the journal before they are done, so any later process can undo them."""

import json
import os
import time
from pathlib import Path
from typing import Any, Dict, List

NAME = "journal"

Record = Dict[str, Any]


class Journal:
    """A journal to write to. Children of the process may write too: each record is a single write,
    and the file is open for appending."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.file = os.open(str(self.path), flags, 0o600)
        # A line that a crash has cut off must not spoil the next one.
        size = os.fstat(self.file).st_size
        if size and os.pread(self.file, 1, size - 1) != b"\n":
            os.write(self.file, b"\n")
        # The name of a new file must be on the disk, too.
        above = os.open(str(directory), os.O_RDONLY)
        os.fsync(above)
        os.close(above)

    def write(self, kind: str, **fields: Any) -> None:
        record = {"is": kind, "at": round(time.time(), 3)}
        record.update(fields)
        os.write(self.file, (json.dumps(record, sort_keys=True) + "\n").encode())
        os.fsync(self.file)

    def undo(self, *what: str) -> None:
        """Notes an act that has to be undone. The caller does the act after this call."""
        number = sum(record["is"] == "undo" for record in self.records())
        self.write("undo", number=number, what=list(what))

    def records(self) -> List[Record]:
        """Returns the records by the open file, which is there also if somebody removes it."""
        return parsed(os.pread(self.file, os.fstat(self.file).st_size, 0))


def read(directory: Path) -> List[Record]:
    """Returns the records of a run, or none if there is no journal."""
    try:
        return parsed((directory / NAME).read_bytes())
    except OSError:
        return []


def parsed(data: bytes) -> List[Record]:
    """Returns the records. A line that was cut off by a crash is left out."""
    records = []
    for line in data.decode(errors="replace").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "is" in record:
            records.append(record)
    return records


def first(records: List[Record], kind: str) -> Record:
    return next((record for record in records if record["is"] == kind), {})


def to_undo(records: List[Record]) -> List[Record]:
    """Returns what is to be undone, the last act first."""
    undone = {record["number"] for record in records if record["is"] == "undone"}
    acts = [record for record in records if record["is"] == "undo"]
    return [act for act in reversed(acts) if act["number"] not in undone]


def unfinished_step(records: List[Record]) -> str:
    """Returns the name of the step that has begun and not ended."""
    name = ""
    for record in records:
        if record["is"] == "step":
            name = record["name"]
        elif record["is"] in ("done", "end"):
            name = ""
    return name
