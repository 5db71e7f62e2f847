# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the keeper, which is a part of the image, and nvpm."""

import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(TOP / "container"),
    str(TOP),
    str(Path(__file__).parent),
    str(TOP / "tests/explain"),
]

from files import Files  # noqa: E402


@pytest.fixture
def node(tmp_path: Path) -> Files:
    return Files(tmp_path / "node")
