# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the blocks of nvpm/data/programs.table, and the pages that are made of the blocks. The
table programs_by_pair tests what follows from the blocks on machines."""

import re
from pathlib import Path

import pytest

from reports import programs_page
from reports.programs_page import PROGRAMS, TOP, Program

# A block names a repository and a version or commit, or says why it cannot.
SOURCE = re.compile(
    r"[\w.-]+/[\w.-]+ (v[0-9.x-]+|[0-9a-f]{7})\b|[\w.-]+/[\w.-]+, branch [\w-]+"
    r"|no public source|the verbs themselves"
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_block(program: Program) -> None:
    assert SOURCE.search(program.source), program.source
    run = program.ran if "/" in program.ran else f"guest/scenarios/{program.ran}.sh"
    assert not program.ran or (TOP / "tests" / run).is_file()
    # A setting to skip dma-buf makes sense only if the program takes dma-buf by itself.
    by_itself = any(one.way == "dma-buf" and not one.setting for one in program.tries)
    assert by_itself or not program.skip_dma_buf


def test_names_are_unique() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) > 20


@pytest.mark.parametrize("file", programs_page.PAGES, ids=lambda file: file.name)
def test_page(file: Path) -> None:
    old = file.read_text(encoding="utf-8")
    assert old == programs_page.page(file, old), "run tests/lab/reports/programs_page.py"
