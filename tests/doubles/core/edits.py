# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Edits files of the kernel. The kernel's files change in as few lines as possible: a call here, a
function that answers instead there. Every edit names the one line that it expects, and stops when
that line is not there exactly once. Kernels differ: where a function or a line has other names in
others, the edit has them all."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path


def edit(
    path: Path,
    where: str,
    lines: str | Sequence[str],
    *,
    before: str = "",
    after: str = "",
    instead: str = "",
    times: int = 1,
) -> None:
    """For the first of LINES that the file has, but for its indentation, in the block whose head
    has the name WHERE, or anywhere. What is put there is indented as that line is. Such a block
    begins in the first column, and ends with a brace there."""
    lines = [lines] if isinstance(lines, str) else lines
    found = [(line, line.lstrip("\t ")) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = next((line for line in lines if line in [text for _, text in found]), lines[0])
    inside, hits, out = not where, 0, []
    for line, text in found:
        if where and re.match(rf"(?=[a-z]).*\b({where})(\(| {{$)", line):
            inside = True
        if inside and text == wanted:
            hits += 1
            indentation = line.removesuffix(text)
            parts = [part for part in (before, instead or text, after) if part]
            out += [indentation + added for part in parts for added in part.split("\n")]
        else:
            out.append(line)
        if where and line.startswith("}"):
            inside = False
    if hits != times:
        sys.exit(
            f"{path}: expected the line '{wanted}' {times} times in '{where}', found {hits}: "
            "this kernel moved it; see what became of it and correct the edit"
        )
    path.write_text("\n".join(out) + "\n", encoding="utf-8")


def uses(pattern: str, known: int, paths: Sequence[Path]) -> None:
    """Fails if a function that uses a user's memory is not known. A new kernel could bring one."""
    found = sum(len(re.findall(pattern, path.read_text(encoding="utf-8"))) for path in paths)
    if found != known:
        sys.exit(
            f"{paths[0].parent}: {found} uses of '{pattern}', {known} are known: see that peer "
            "memory is guarded in all"
        )
