# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each claim of docs/kubernetes.md that was only read says where."""

import re
import sys
from pathlib import Path

import claims
import pytest
from claims import reads

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


def test_a_change_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two files in a clone, one has lost its literal."""
    kept = next(one for one in reads() if one.repository == "NVIDIA/k8s-device-plugin")
    changed = next(one for one in reads() if one.repository == "Mellanox/network-operator")
    for read in (kept, changed):
        (tmp_path / read.repository.replace("/", "+")).mkdir()
    texts = {kept.file: f"x {kept.literal} y", changed.file: "something else"}

    def text_of(_: Path, commit: str, file: str) -> str | None:
        assert commit == "HEAD"
        return texts.get(file)

    monkeypatch.setattr(claims, "text_of", text_of)
    monkeypatch.setattr(sys, "argv", ["claims.py", str(tmp_path), "HEAD"])
    assert claims.main() == 1
    said = capsys.readouterr().out
    assert f"{changed.file} does not have: {changed.literal}" in said
    assert f"{kept.file} does" not in said and "not here: " in said
