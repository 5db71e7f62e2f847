# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""put_in.py MUTANT FILE: puts a mutant into the file whose lines the mutant quotes.

A line of the mutant that begins with "-" is removed from the file, a line that begins with "+" is
added, and a line that begins with a blank is context. The lines between two lines "..." belong
together. Such a piece must be in the file exactly once. If it is not, the file stays unchanged, and
the exit code is 1.
"""

import sys


def pieces(mutant: str) -> list[tuple[str, str]]:
    """Returns the old lines and the new lines of each piece of the mutant."""
    found: list[tuple[str, str]] = [("", "")]
    for line in mutant.splitlines(keepends=True):
        old, new = found[-1]
        if line == "...\n":
            found.append(("", ""))
        elif line[0] in " -":
            found[-1] = (old + line[1:], new + line[1:] * (line[0] == " "))
        elif line[0] == "+":
            found[-1] = (old, new + line[1:])
    return found


def read(name: str) -> str:
    with open(name, encoding="utf-8") as file:
        return file.read()


def main(mutant: str, name: str) -> int:
    text = "\n" + read(name)
    for old, new in pieces(read(mutant)):
        times = text.count("\n" + old) if old else 0
        if times != 1:
            print(f"these lines are in {name} {times} times, not once:\n{old}", end="")
            return 1
        text = text.replace("\n" + old, "\n" + new)
    with open(name, "w", encoding="utf-8") as file:
        file.write(text[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
