#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""sources.py DIRECTORY [OWNER/REPO...]: looks the formats in tests/nvpm/formats up in clones and
prints which rows are not found. DIRECTORY has a clone OWNER+REPO, or its git directory below that
name. A format counts as found in a tree if its file there has the literal; in the newest tree and
in versions, another file may have it. Without names the result is written to formats/RESULT.txt."""

import datetime
import functools
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    sys.dont_write_bytecode = True

import formats  # noqa: E402
from literals import literals  # noqa: E402

RESULT = formats.FORMATS / "RESULT.txt"
# A piece of this length is rare, and is short enough to stand in one of several adjacent literals.
PIECE = 20


class Clone:
    """The git directory of a repository."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def git(self, *command: str) -> str:
        run = subprocess.run(
            ["git", "--git-dir", str(self.directory), *command], capture_output=True, check=False
        )
        return run.stdout.decode(errors="replace") if run.returncode == 0 else ""

    @functools.cache  # noqa: B019
    def texts(self, tree: str, path: str) -> frozenset[str]:
        """Returns the literals of a file, and their lines."""
        found = set(literals(path, self.git("show", f"{tree}:{path}")))
        return frozenset(found | {line.strip() for one in found for line in one.split("\\n")})

    def has(self, tree: str, path: str, text: str) -> bool:
        return text in self.texts(tree, path)

    def anywhere(self, tree: str, text: str) -> str:
        """Returns a path with the literal in a tree, or an empty text."""
        run = max(formats.holes(text)[0].split(formats.HOLE), key=len).strip()
        if len(run) < 4:
            return ""
        listed = self.git("grep", "-lF", "-e", run[:PIECE], tree).splitlines()
        paths = [one.partition(":")[2] for one in listed]
        return next((path for path in paths if self.has(tree, path, text)), "")


def clone_of(directory: Path, repository: str) -> "Clone | None":
    top = directory / repository.replace("/", "+")
    for one in (top / "repo/.git", top / ".git", top / "repo", top):
        if (one / "objects").is_dir():
            return Clone(one)
    return None


def checked(clone: Clone, one: formats.Format) -> "tuple[str, list[str]]":
    """Returns where a format stands (newest, moved, older or absent), and the versions that lack
    it."""
    commit = one.tree.split()[0]
    if clone.has("HEAD", one.path, one.text):
        place = "newest"
    elif clone.anywhere("HEAD", one.text):
        place = "moved"
    else:
        place = "older" if clone.has(commit, one.path, one.text) else "absent"
    versions = one.versions.removesuffix(" and later").split(" to ") if one.versions else []
    lacking = [
        tag
        for tag in dict.fromkeys(versions)
        if not clone.has(tag, one.path, one.text) and not clone.anywhere(tag, one.text)
    ]
    return place, lacking


def report(directory: Path, only: "list[str]") -> "list[str]":
    """Returns the lines of the result."""
    table, wrong, without = [], [], []
    total = dict.fromkeys(("rows", "with", "newest", "moved", "older", "absent", "lacking"), 0)
    for file in sorted(set(formats.FORMATS.glob("*.txt")) - {RESULT}):
        repository = file.stem.replace("+", "/")
        if only and repository not in only:
            continue
        blocks = formats.of_file(file)
        count = dict.fromkeys(total, 0)
        count["rows"] = len(blocks)
        count["with"] = sum(bool(block.formats) for block in blocks)
        without += [f"{repository}: {one.row}: {one.why}" for one in blocks if not one.formats]
        clone = clone_of(directory, repository)
        for block in blocks:
            for one in block.formats if clone else []:
                assert clone
                place, lacking = checked(clone, one)
                count[place] += 1
                count["lacking"] += bool(lacking)
                if place == "absent" or lacking:
                    why = place if place == "absent" else f"not in {', '.join(lacking)}"
                    wrong.append(f"{repository}: {block.row}: {one.text}: {why}")
        newest = clone.git("log", "-1", "--format=%h %cs").strip() if clone else "no clone"
        table.append(f"{repository:45} {newest:22}" + "".join(f"{n:8}" for n in count.values()))
        total = {key: total[key] + count[key] for key in total}
        print(table[-1], file=sys.stderr)
    head = f"{'repository':45} {'newest tree':22}" + "".join(f"{key:>8}" for key in total)
    table.append(f"{'all':45} {'':22}" + "".join(f"{n:8}" for n in total.values()))
    wrong[:0] = ["", f"Formats not found: {len(wrong)}"]
    without[:0] = ["", f"Rows without a format: {len(without)}"]
    return [head, *table, *wrong, *without]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = report(Path(sys.argv[1]), sys.argv[2:])
    if sys.argv[2:]:
        print("\n".join(lines))
        return
    head = f"""# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The result of sources.py on {datetime.date.today()}: the rows of each repository, those with a
# format, and where the formats stand: in the named file of the newest tree, in another file of
# that tree, only in the older tree that the block names, or nowhere. The last column counts the
# formats that a named version lacks. Formats of a repository without a clone were not looked up.
"""
    RESULT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
