# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that the rows of `nvpm explain` belong to the format strings in tests/nvpm/formats, and
that a search in docs/messages.md finds what users met. No clone is needed."""

import errno
import os
import re

import formats
import messages_page
import pytest
from logged import logs

from nvpm.explain import texts
from nvpm.explain.table import INDEX, SECTIONS, WORDS

ROWS = formats.rows()
# At least this part of a row's text stands in its formats. The rest are values, such as the name
# of a module or the text of an error.
LITERAL = 0.2
PLAIN = re.compile(r"\(?[A-Za-z][A-Za-z'-]*[,.;:)]*")
LEVELS = {"NCCL", "UCX", "WARN", "INFO", "ERROR", "DEBUG", "DIAG", "FATAL", "ERR"}
ERRORS = sorted({os.strerror(one) for one in errno.errorcode}, key=len, reverse=True)
MESSAGES = [message for section in SECTIONS for message in section.messages]
# The share of the messages in logs that a search for their longest run of plain words finds.
FOUND = 0.99
WITH_FORMAT = 700


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


def test_each_placeholder_is_one() -> None:
    """A bar outside of a placeholder means that alternatives contain a placeholder or a bracket,
    and then no line can have the text."""
    assert [text for text, _ in ROWS if "|" in texts.PLACEHOLDER.sub("", text)] == []


@pytest.mark.parametrize("block", formats.blocks().values(), ids=lambda one: one.row[:60])
def test_each_format_is_matched_by_its_row(block: formats.Block) -> None:
    """A format with values is a line that the row's pattern finds."""
    row = next(text for text, _ in ROWS if text.strip() == block.row.strip())
    for whole in [one.before + one.text for one in block.formats] + block.met:
        fits = formats.filled(row, whole)
        best = max(fits, key=lambda each: each.literal / each.total, default=None)
        assert best and best.literal >= LITERAL * best.total, (whole, best)
        line = best.filled
        assert texts.pattern(row).search(line), (whole, line)


def longest_words(line: str) -> str:
    """Returns the longest run of plain words in a line, without levels and texts of errors. The
    page tells its reader to search for this run."""
    for error in ERRORS:
        line = line.replace(error, "|")
    line = re.sub(r"'[^']*' |\"[^\"]*\"", " | ", line)
    words = [one if PLAIN.fullmatch(one) and one not in LEVELS else "|" for one in line.split()]
    # A mark of punctuation other than a comma or a full stop ends a run.
    runs = re.split(r"\||(?<=[;:)])\s|\s(?=\()", " ".join(words))
    return max((run.strip(" ,.;:()") for run in runs), key=len)


def met() -> dict[str, str]:
    """Returns for each row of other programs a line of a log that contains the row's text."""
    found: dict[str, str] = {}
    theirs = {text for text, _ in ROWS}
    for line in [line for log in logs() for line in log.lines]:
        for word in WORDS & set(texts.WORD.findall(line)):
            for entry in INDEX[word]:
                text = entry.message.text
                if text in theirs and texts.pattern(text).search(re.sub(" +", " ", line)):
                    found.setdefault(text, line)
    return found


def test_a_search_in_the_page_finds_messages() -> None:
    cells = {message.text: messages_page.printed(message.text) for message in MESSAGES}
    page = messages_page.PAGE.read_text(encoding="utf-8").replace(r"\|", "|")
    lines = met()
    missed = {}
    for text, line in lines.items():
        assert cells[text] in page, text
        words = longest_words(line)
        if words.lower() not in cells[text].lower():
            missed[text] = words
    share = 1 - len(missed) / len(lines)
    print(f"{share:.0%} of {len(lines)} messages are found, not: {missed}")
    assert share >= FOUND
