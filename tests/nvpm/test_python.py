# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm runs on Python 3.6, which RHEL 8 and SLES 15 have."""

import ast
import re
from pathlib import Path

import pytest
from installed import TOP

FILES = sorted((TOP / "nvpm").rglob("*.py"))
# Names that later versions of Python have added to the standard library.
LATER = re.compile(
    r"capture_output|text=True|missing_ok|dataclass|removeprefix|removesuffix|functools\.cache\b|"
    r"import .*\bProtocol\b|TypedDict|strict=|dirs_exist_ok"
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TOP)))
def test_python_3_6(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 6))
    assert not LATER.findall(text)


def test_commit_of_archives() -> None:
    """nvpm/__init__.py has one format string. git archive replaces it by the commit, which nvpm
    prints."""
    attributes = (TOP / ".gitattributes").read_text(encoding="utf-8").split("\n")
    assert "nvpm/__init__.py export-subst" in attributes
    start = (TOP / "nvpm/__init__.py").read_text(encoding="utf-8")
    assert re.findall("[$]Format:[^$]*[$]", start) == ["$Format:%H$"]
