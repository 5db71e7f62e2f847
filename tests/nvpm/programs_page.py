#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""programs_page.py: writes the tables of programs in docs/consumers.md and docs/choosing.md, which
are made of the rows of nvpm/facts/consumers.py. The text around the tables stays."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    sys.dont_write_bytecode = True


from nvpm.facts.consumers import (  # noqa: E402
    GIVES_UP,
    PROGRAMS,
    Program,
    Try,
)
from nvpm.read.ways import DMA_BUF  # noqa: E402

BEGIN = "<!-- tests/nvpm/programs_page.py writes the table from here on. -->"
END = "<!-- The table ends here. -->"
ORDER_HEAD = (
    "| program | its ways, in its order | if a registration is refused | without a way "
    "| RDMA devices | source | run by |\n|---|---|---|---|---|---|---|"
)
SKIP_HEAD = "| setting | programs that then register pointers |\n|---|---|"
ONLY = {"mlx5_core": "mlx5", "efa": "EFA"}


def row(*cells: str) -> str:
    """Returns a row of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def listed(words: tuple[str, ...]) -> str:
    """Returns the words as code, and signs without the directories that the page names."""
    short = (re.sub("^/sys/(kernel/mm/)?", "", word) for word in words)
    return " or ".join(f"`{word}`" for word in short)


def way(attempt: Try) -> str:
    """Returns a way and its conditions."""
    parts = ["dma-buf" if attempt.way == DMA_BUF else "pointer"]
    if attempt.setting:
        parts.append(f"only {attempt.setting}")
    if attempt.gpu_alone:
        parts.append("if the GPU's driver has it, whatever the device has")
    if attempt.looks_for:
        parts.append(f"if it sees {listed(attempt.looks_for)}")
    if attempt.names:
        parts.append(f"with devices named {listed(tuple(attempt.names.split('|')))}")
    if attempt.drivers:
        parts.append(f"with devices of {listed(attempt.drivers)}")
    if attempt.not_with:
        parts.append(f"not with devices of {listed(attempt.not_with)}")
    if attempt.not_on:
        parts.append(f"not on devices {listed(attempt.not_on)}")
    return ", ".join(parts)


def refused(program: Program) -> str:
    """Returns what follows if the first way is taken, and the registration is refused."""
    first = program.tries[0]
    if len(program.tries) == 1 or program.tries[1].setting or first.refused == GIVES_UP:
        return "error"
    return "next way, without looking" if first.gpu_alone else "next way"


def devices(program: Program) -> str:
    if program.only:
        text = f"only {' and '.join(ONLY[driver] for driver in program.only)}"
    elif program.never:
        text = f"not EFA: {program.why_never}"
    else:
        text = "all"
    texts = [text, program.instead]
    if program.driver_option:
        texts.append(f"`NVreg_RegistryDwords={program.driver_option}` of the NVIDIA driver")
    return "; ".join(filter(None, texts))


def order() -> Iterator[str]:
    yield ORDER_HEAD
    for program in PROGRAMS:
        yield row(
            program.name,
            "; then ".join(map(way, program.tries)),
            refused(program),
            program.without,
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
        if program.tries[0] == Try(DMA_BUF, gpu_alone=True) and not program.skip_dma_buf
    ]
    yield row("none: they stay with dma-buf", "; ".join(without))


PAGES = {TOP / "docs/consumers.md": order, TOP / "docs/choosing.md": skip}


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
