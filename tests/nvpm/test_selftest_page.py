# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The page of `nvpm selftest --bandwidth --html` marks slow pairs not by a colour alone, and no cut
page stays. tests/compare/test_page.py examines the form that both pages share."""

import os
from pathlib import Path

import pytest

from nvpm.show.page import NewFile, heat, page


@pytest.mark.parametrize(
    ("share", "begin"),
    [
        (1.2, '<td class="h0">x'),
        (0.95, '<td class="h0">x'),
        (0.94, '<td class="h1">x'),
        (0.79, '<td class="h2">▼ x'),
        (0.5, '<td class="h2">▼ x'),
        (0.3, '<td class="h3">▼▼ x'),
        (0.1, '<td class="h4">▼▼▼ x'),
        (None, '<td class="h4">▼▼▼ x'),
    ],
)
def test_levels(share: float | None, begin: str) -> None:
    assert heat(share, "x").startswith(begin)


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that cannot be written completely does not stay."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"), NewFile(str(tmp_path / "p")) as file:
        file.keep(page("x", []))
    assert not (tmp_path / "p").exists()
