# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What sweeps have found, which is kept between runs."""

import hashlib
import json
import os
import threading
from pathlib import Path

from areas import MADE, TOP, Area
from thought import Made, thoughts

KEPT = Path(os.environ.get("SWEEP_KEPT", "/tmp/sweep"))
NOTICED, UNNOTICED, NO_PROGRAM = "noticed", "NOT NOTICED", "does not compile"


def digest(*texts: bytes) -> str:
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def files_of(path: Path) -> list[Path]:
    """Returns a file, or the files of a directory."""
    return [path] if path.is_file() else [one for one in sorted(path.rglob("*")) if one.is_file()]


class Results:
    """The results of an area, by the names of the mistakes. A mistake that was noticed is not tried
    again until its file changes. One that was not noticed is tried again when any file has changed
    that the area's tests need."""

    def __init__(self, name: str, area: Area) -> None:
        self.path = KEPT / f"{name}.json"
        self.known: dict[str, tuple[str, str, str]] = {}
        if self.path.exists():
            self.known = json.loads(self.path.read_text(encoding="utf-8"))
        # The files as they are when the sweep begins, because people go on working.
        mine = {*area.files(), *(one.file for one in thoughts(name))}
        self.sums = {file: digest((TOP / file).read_bytes()) for file in mine}
        needed = [path for name in area.needs for path in files_of(TOP / name)]
        read = [path.read_bytes() for path in needed if not set(MADE) & set(path.parts)]
        self.all = digest(*read)
        self.lock = threading.Lock()

    def of(self, mistake: Made) -> str | None:
        outcome, file, every = self.known.get(mistake.name(), ("", "", ""))
        fits = every == self.all if outcome == UNNOTICED else file == self.sums[mistake.file]
        return outcome if outcome and fits else None

    def was_missed(self, mistake: Made) -> bool:
        return self.known.get(mistake.name(), ("", "", ""))[0] == UNNOTICED

    def keep(self, mistake: Made, outcome: str) -> None:
        with self.lock:
            self.known[mistake.name()] = (outcome, self.sums[mistake.file], self.all)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.known, indent=0), encoding="utf-8")
            new.replace(self.path)
