# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the rows of programs, and the pages that are made of the rows. The table programs_by_pair
tests what follows from the rows on machines."""

import re
from pathlib import Path

import programs_page
import pytest
from installed import TOP

from nvpm.facts.consumers import PROGRAMS, Program
from nvpm.read.ways import DMA_BUF

# A row names a repository and a version or commit, or says why it cannot.
SOURCE = re.compile(
    r"[\w.-]+/[\w.-]+ (v[0-9.x-]+|[0-9a-f]{7})\b|[\w.-]+/[\w.-]+, branch [\w-]+"
    r"|no public source|the verbs themselves"
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_row(program: Program) -> None:
    assert SOURCE.search(program.source), program.source
    assert not (program.only and set(program.never) & set(program.only))
    run = program.ran if "/" in program.ran else f"guest/scenarios/{program.ran}.sh"
    assert not program.ran or (TOP / "tests" / run).is_file()
    # A setting to skip dma-buf makes sense only if the program takes dma-buf by itself.
    by_itself = any(one.way == DMA_BUF and not one.setting for one in program.tries)
    assert by_itself or not program.skip_dma_buf


def test_names_are_unique() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("file", programs_page.PAGES, ids=lambda file: file.name)
def test_page(file: Path) -> None:
    old = file.read_text(encoding="utf-8")
    assert old == programs_page.page(file, old), "run tests/nvpm/programs_page.py"
