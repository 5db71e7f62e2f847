# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds nvpm, whose tables have the messages of the image's program."""

import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(TOP / "tests/explain")]
