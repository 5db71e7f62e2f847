# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures how plainly comments and pages are written, and fails above the bounds. CONTRIBUTING.md
has the rule; a text within the bounds is not yet clear.

    prose.py [FILE...]   prints the figures of each part, and the lines of files that are too dense

A line of six words or more is *dense* if a quarter of the words are pronouns and particles. A
comment block is a *riddle* if its first word announces a subject that does not come.
"""

import os
import re
import sys
from collections.abc import Iterator

# Per cent of the lines that may be dense, and of the blocks that may be riddles.
DENSE, DENSE_IN_TESTS, RIDDLES = 3.0, 5.0, 1.0
# A file may have FEW dense lines. In a file with more dense lines, their share may be at most TIMES
# the bound.
FEW, TIMES = 3, 3

LEFT_OUT = re.compile(
    r"^\./(\.git/|LICENSES/|debian/copyright|docs/performance/results)"
    r"|/target/|\.(gz|S|lock|pyc|ko|o)$"
)
PARTICLE = re.compile(
    r"\b(it|its|that|which|what|whatever|who|whoever|one|ones|none|those|such|there|so|of|otherwise"
    r"|alone|anew|behind|beside|meanwhile|nobody|somebody)\b",
    re.IGNORECASE,
)
RIDDLE = re.compile(
    r"(What|Whatever|Who|Whoever|Where|Of|As|Those|One|None|Nobody|Somebody|Until) "
)
# Patterns of comments, by the suffix of a file.
LINE_COMMENT = {".rs": re.compile(r"//[/!]?\s?(.*)")}
HASH = re.compile(r"^\s*# ?(.*)")
PAGES = (".md", ".7", ".8")


def prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields number and words of each line of a comment, a docstring or a page."""
    suffix = os.path.splitext(path)[1]
    lines = list(enumerate(text.split("\n"), 1))
    lines = [(at, line) for at, line in lines if "SPDX" not in line and not line.startswith("#!")]
    if suffix in PAGES:
        yield from ((at, line) for at, line in lines if not line.startswith(("    ", "|", "[")))
    elif suffix in (".c", ".h"):
        yield from between(lines, r"/\*+\s?", r"\*/", r"^\s*\*(?!/)\s?")
    elif suffix == ".py":
        yield from between(lines, r'^\s*[rf]?"""', '"""', r"^\s*")
        yield from matches(lines, re.compile(r"(?:^\s*|  )# ?(.*)"))
    else:
        yield from matches(lines, LINE_COMMENT.get(suffix, HASH))


def matches(lines: list[tuple[int, str]], comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for at, line in lines:
        if found := comment.search(line):
            yield at, found[1]


def between(
    lines: list[tuple[int, str]], begin: str, end: str, margin: str
) -> Iterator[tuple[int, str]]:
    """Yields the lines of comments that have a beginning and an end."""
    inside = False
    for at, line in lines:
        found = None if inside else re.search(begin, line)
        if inside or found:
            words = line[found.end() :] if found else re.sub(margin, "", line)
            inside = not re.search(end, words)
            yield at, re.split(end, words)[0]


class Figures:
    """The counts of a file or of a part."""

    def __init__(self) -> None:
        self.lines = self.dense = self.blocks = self.riddles = 0

    def add(self, other: "Figures") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def shares(self) -> tuple[float, float]:
        return 100 * self.dense / max(self.lines, 1), 100 * self.riddles / max(self.blocks, 1)


def measure(path: str) -> tuple[Figures, list[str]]:
    """Returns the figures of a file, and its dense lines and riddles."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError:
        return Figures(), []
    figures, shown, before = Figures(), [], -1
    for at, words in prose(path, text):
        count = len(words.split())
        dense = count >= 6 and len(PARTICLE.findall(words)) / count >= 0.25
        begins = bool(words.strip()) and before != at - 1
        riddle = begins and bool(RIDDLE.match(words.strip()))
        figures.lines += count >= 6
        figures.dense += dense
        figures.blocks += begins
        figures.riddles += riddle
        # A paragraph of a page, or of a comment, is a block of its own.
        before = at if words.strip() else -1
        if dense or riddle:
            shown.append(f"{path}:{at}: {words.strip()}")
    return figures, shown


def files() -> Iterator[str]:
    for directory, directories, names in os.walk("."):
        directories[:] = sorted(set(directories) - {".git", "target", "rust.build"})
        for name in sorted(names):
            path = os.path.join(directory, name)
            if not LEFT_OUT.search(path) and not os.path.islink(path):
                yield path


def part(path: str) -> str:
    words = path.split("/")
    return words[1] if len(words) > 2 else "top"


def main(chosen: list[str]) -> int:
    parts: dict[str, Figures] = {}
    failed = False
    for path in chosen or files():
        figures, shown = measure(path)
        name = part(os.path.join(".", os.path.relpath(path)))
        parts.setdefault(name, Figures()).add(figures)
        bound = DENSE_IN_TESTS if name == "tests" else DENSE
        if figures.dense > FEW and figures.shares()[0] > TIMES * bound:
            failed = True
            print("\n".join([f"{path} is too dense:", *shown]))
    for name, figures in sorted(parts.items()):
        dense, riddles = figures.shares()
        bound = DENSE_IN_TESTS if name == "tests" else DENSE
        above = not chosen and (dense > bound or riddles > RIDDLES) and figures.lines > 20
        failed |= above
        mark = "too much" if above else "ok"
        shares = f"{dense:.1f} % dense ({bound}), {riddles:.1f} % riddles ({RIDDLES})"
        print(f"{mark} {name}: {shares}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
