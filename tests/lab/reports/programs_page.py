#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""programs_page.py: writes the tables of programs in docs/programs.md and docs/choosing.md, which
are made of the blocks of nvpm/data/programs.table. The text around the tables stays.
nvpm/data/README.md explains the fields of a block."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[3]
TABLE = TOP / "nvpm/data/programs.table"

BEGIN = "<!-- tests/lab/reports/programs_page.py writes the table from here on. -->"
END = "<!-- The table ends here. -->"
ORDER_HEAD = (
    "| program | its ways, in its order | if a registration is refused | without a way "
    "| RDMA devices | source | run by |\n|---|---|---|---|---|---|---|"
)
SKIP_HEAD = "| setting | programs that then register pointers |\n|---|---|"
ONLY = {"mlx5_core": "mlx5", "efa": "EFA"}
# The text for programs whose block names no other reason.
NOT_EFA = "EFA has no reliable connections"


class Way(NamedTuple):
    """A way that a program tries, and the lines below the way by their first word."""

    way: str
    conditions: dict[str, list[str]]

    def words(self, name: str) -> list[str]:
        return " ".join(self.conditions.get(name, [])).split()

    @property
    def setting(self) -> str:
        return " ".join(self.conditions.get("setting", []))


class Program(NamedTuple):
    """A block: its head, its ways, and its other fields by their first word."""

    name: str
    tries: list[Way]
    fields: dict[str, str]

    @property
    def source(self) -> str:
        return self.fields.get("source", "")

    @property
    def ran(self) -> str:
        return self.fields.get("ran", "")

    @property
    def skip_dma_buf(self) -> str:
        return self.fields.get("skip", "")


def programs() -> list[Program]:
    found: list[Program] = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.strip().partition(" ")
        indent = len(line) - len(line.lstrip(" "))
        if line.startswith("#"):
            continue
        if indent == 0:
            found.append(Program(line, [], {}))
        elif indent == 4:
            found[-1].tries[-1].conditions.setdefault(word, []).append(rest)
        elif word in ("dma-buf", "pointer"):
            found[-1].tries.append(Way(word, {}))
        else:
            assert word not in found[-1].fields, line
            found[-1].fields[word] = rest
    return found


PROGRAMS = programs()


def row(*cells: str) -> str:
    """Returns a row of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def listed(words: list[str]) -> str:
    """Returns the words as code, and signs without the directories that the page names."""
    short = (re.sub("^/sys/(kernel/mm/)?", "", word) for word in words)
    return " or ".join(f"`{word}`" for word in short)


def way(attempt: Way) -> str:
    """Returns a way and its conditions."""
    parts = [attempt.way]
    if attempt.setting:
        parts.append(f"only {attempt.setting}")
    if "gpu-alone" in attempt.conditions:
        parts.append("if the GPU's driver has it, whatever the device has")
    if signs := attempt.conditions.get("sees"):
        parts.append(f"if it sees {listed(signs)}")
    if names := attempt.words("names"):
        parts.append(f"with devices named {listed(names)}")
    if drivers := attempt.words("drivers"):
        parts.append(f"with devices of {listed(drivers)}")
    if drivers := attempt.words("not-with"):
        parts.append(f"not with devices of {listed(drivers)}")
    if numbers := attempt.words("not-on"):
        parts.append(f"not on devices {listed(numbers)}")
    return ", ".join(parts)


def refused(program: Program) -> str:
    """Returns what follows if the first way is taken, and the registration is refused."""
    first, *others = program.tries
    if not others or others[0].setting or "refused" not in first.conditions:
        return "error"
    return "next way, without looking" if "gpu-alone" in first.conditions else "next way"


def devices(program: Program) -> str:
    fields = program.fields
    if "only" in fields:
        text = f"only {' and '.join(ONLY[driver] for driver in fields['only'].split())}"
    elif "also-efa" in fields:
        text = "all"
    else:
        text = f"not EFA: {fields.get('no-efa') or fields.get('efa-row') or NOT_EFA}"
    texts = [text, fields.get("instead", "")]
    if option := fields.get("option"):
        texts.append(f"`NVreg_RegistryDwords={option}` of the NVIDIA driver")
    return "; ".join(filter(None, texts))


def order() -> Iterator[str]:
    yield ORDER_HEAD
    for program in PROGRAMS:
        yield row(
            program.name,
            "; then ".join(map(way, program.tries)),
            refused(program),
            program.fields.get("without", "fails"),
            devices(program),
            program.source,
            f"`{program.ran}`" if program.ran else "read only",
        )


def skip() -> Iterator[str]:
    yield SKIP_HEAD
    settings: dict[str, list[str]] = {}
    for program in PROGRAMS:
        if program.skip_dma_buf:
            settings.setdefault(program.skip_dma_buf, []).append(program.name)
    for setting, names in settings.items():
        yield row(f"`{setting}`", "; ".join(names))
    without = [
        program.name
        for program in PROGRAMS
        if program.tries[0] == Way("dma-buf", {"gpu-alone": [""]}) and not program.skip_dma_buf
    ]
    yield row("none: they stay with dma-buf", "; ".join(without))


PAGES = {TOP / "docs/programs.md": order, TOP / "docs/choosing.md": skip}


def page(file: Path, old: str) -> str:
    """Returns the page with a new table."""
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    return "".join([before, BEGIN, "\n\n", "\n".join(PAGES[file]()), "\n\n", END, after])


def main() -> None:
    for file in PAGES:
        file.write_text(page(file, file.read_text(encoding="utf-8")), encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
