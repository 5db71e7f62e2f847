# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests which lines prose.py takes for prose."""

from pathlib import Path

import pytest

from checks.prose import measure, prose

C = """/*
 * A comment
 * of two lines.
 */
int of_which = one_of(those);
/* One line. */
static int it;	/* behind code */
"""
RUST = """/// Returns it.
fn it() {} // or not
"""
PYTHON = '''"""Says it
twice."""
it = 1  # or not
'''
PAGE = """A line.

    code
| a table |
"""


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("a.c", C, ["A comment", "of two lines.", "One line.", "behind code"]),
        ("a.rs", RUST, ["Returns it.", "or not"]),
        ("a.py", PYTHON, ["Says it", "twice.", "or not"]),
        ("a.md", PAGE, ["A line."]),
        ("a.sh", "# A comment.\nit=1\n", ["A comment."]),
    ],
)
def test_code_is_no_prose(path: str, text: str, words: list[str]) -> None:
    found = [line.strip() for _, line in prose(path, text)]
    assert [line for line in found if line] == words


def test_dense_lines_and_riddles(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    dense, plain = "What is behind it is one of those.", "The driver pins the pages of a GPU."
    file.write_text(f"{dense}\n\n{plain}\n", encoding="utf-8")
    figures, shown = measure(str(file))
    assert (figures.lines, figures.dense, figures.blocks, figures.riddles) == (2, 1, 2, 1)
    assert len(shown) == 1
