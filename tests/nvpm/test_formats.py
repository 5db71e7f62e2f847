# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that the rows of `nvpm explain` belong to the format strings in tests/nvpm/formats, and
that a search in docs/messages.md finds what users met. No clone is needed."""

import formats
import pytest

from nvpm.explain import texts

ROWS = formats.rows()
# At least this part of a row's text stands in its formats. The rest are values, such as the name
# of a module or the text of an error.
LITERAL = 0.35
WITH_FORMAT = 600


def test_each_row_has_a_block() -> None:
    assert len(ROWS) > 800
    known = formats.blocks()
    for text, source in ROWS:
        block = known.get(text.strip())
        assert block, f"no block in tests/nvpm/formats for: {text} ({source})"
        assert block.formats or block.why, text
        assert all(one.path and one.tree for one in block.formats), text
    gone = set(known) - {text.strip() for text, _ in ROWS}
    assert not gone, f"blocks without a row: {gone}"
    assert sum(bool(one.formats) for one in known.values()) >= WITH_FORMAT


@pytest.mark.parametrize("block", formats.blocks().values(), ids=lambda one: one.row[:60])
def test_each_format_is_matched_by_its_row(block: formats.Block) -> None:
    """A format with values is a line that the row's pattern finds."""
    row = next(text for text, _ in ROWS if text.strip() == block.row.strip())
    for one in block.formats:
        fits = formats.filled(row, one)
        best = max(fits, key=lambda each: each.literal / each.total, default=None)
        assert best and best.literal >= LITERAL * best.total, (one.text, best)
        line = best.filled
        assert texts.pattern(row).search(line), (one.text, line)
