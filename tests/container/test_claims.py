# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each claim of docs/kubernetes.md that was only read says where."""

import re
import subprocess
import sys
from pathlib import Path

from claims import TABLE, reads

TOP = Path(__file__).resolve().parents[2]


def spaced(text: str) -> str:
    return " ".join(text.split())


def test_each_claim_has_a_place() -> None:
    page = spaced((TOP / "docs/kubernetes.md").read_text(encoding="utf-8"))
    claims = {read.claim for read in reads()}
    assert not [claim for claim in claims if claim not in page]
    # What stands between two marks has the words of a claim. The first mark is explained.
    marks = [match.start() for match in re.finditer(r"\bread\)|\(read[,;]", page)]
    assert len(marks) > 20
    without = []
    for begin, mark in zip(marks, marks[1:], strict=False):
        # A claim may go on behind its mark.
        around = page[begin : mark + 60]
        if not any(claim in around for claim in claims):
            without.append(page[max(begin, mark - 80) : mark + 5])
    assert not without


def test_a_change_is_noticed(tmp_path: Path) -> None:
    """The clone has one file, without the literal."""
    read = next(one for one in reads() if one.repository)
    clone = tmp_path / read.repository.replace("/", "+")
    (clone / read.file).parent.mkdir(parents=True)
    (clone / read.file).write_text("something else\n", encoding="utf-8")
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    program = TABLE.with_name("claims.py")
    done = subprocess.run(
        [sys.executable, "-B", program, tmp_path, "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{read.file} does not have: {read.literal}" in done.stdout
    assert "not here: " in done.stdout
