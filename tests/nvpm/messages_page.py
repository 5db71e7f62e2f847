#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""messages_page.py: writes the tables of docs/messages.md, which are made of the table of `nvpm
explain`. The text before the first and after the last of these tables stays."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/messages.md"
if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    sys.dont_write_bytecode = True

import formats  # noqa: E402

from nvpm.explain import texts, verbs, wording  # noqa: E402
from nvpm.explain.conditions import in_words  # noqa: E402
from nvpm.explain.model import (  # noqa: E402
    CAUSE,
    FINE,
    FITS,
    NAMED,
    POSSIBLE,
    Case,
    Cause,
    Message,
)
from nvpm.explain.table import CAUSES, SECTIONS, as_proven  # noqa: E402

BEGIN = "<!-- tests/nvpm/messages_page.py writes the tables from here on. -->"
END = "<!-- The tables end here. -->"
CAUSES_HEAD = "| cause | what is wrong | what to do | `nvpm status` |\n|---|---|---|---|"
HEAD = "| printed | cause | what to do | source |\n|---|---|---|---|"
# The cases that several messages share, and the verb under which the page has these cases.
SHARED = {
    verbs.REG_MR: "ibv_reg_mr",
    verbs.REG_DMABUF_MR: "ibv_reg_dmabuf_mr",
    verbs.CREATE: "ibv_create_cq",
    verbs.MODIFY_QP: "ibv_modify_qp",
    verbs.OPEN_DEVICE: "ibv_open_device",
}
VERBS_HEAD = "| verb | error | cause |\n|---|---|---|"
# A placeholder of a row looks like a conversion of a format.
CONVERSIONS = {"<n>": "%d", "<w>": "%s", "<*>": "%s"}
SURE = {NAMED: "", FITS: "", POSSIBLE: " (possible)"}


def printed(text: str) -> str:
    """Returns the texts that a message stands for, as code: the formats in the program's source,
    the whole messages that users met, and each text of the row that stands in none of them."""
    block = formats.of_row(text)
    shown = [one.before + one.text for one in block.formats] + block.met if block else []
    spans = [
        texts.PLACEHOLDER.sub(lambda one: CONVERSIONS[one.group()], one).strip()
        for one in texts.expanded(text)
    ]
    spans = [one for one in spans if not any(one in form for form in shown)]
    return ", ".join(map(code, dict.fromkeys([*spans, *shown])))


def code(text: str) -> str:
    """Returns a text as code of Markdown, also if it has backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def sentence(text: str) -> str:
    """Returns a phrase as a sentence with a full stop."""
    first = wording.sentence(text)
    return first if first.endswith(("?", ".")) else f"{first}."


def under(case: Case) -> str:
    """Returns the conditions of a case in words, with a colon."""
    when = ", ".join(map(in_words, case.when))
    unless = " or ".join(map(in_words, case.unless))
    text = (
        f"{when}, unless {unless}" if when and unless else when or (unless and f"unless {unless}")
    )
    return f"{text}: " if text else ""


def cases_of(message: Message) -> str:
    """Returns the causes of a message by their names."""
    verb, taken = borrowed(message)
    parts = [
        f"{under(case)}**{case.cause.name}**{SURE[message.sure_of(case)]}"
        for case in as_proven(message).cases
        if (case.cause, case.when) not in taken
    ]
    if verb:
        parts.append(f"{'else by' if parts else 'By'} the error, as [`{verb}`](#any-program)")
    return sentence("; ".join(parts))


def borrowed(message: Message) -> "tuple[str, set[tuple[Cause, tuple[str, ...]]]]":
    """Returns a verb if the message has at least half of the verb's cases, and the causes and
    conditions of these cases. The page does not repeat these cases. The verb is empty if there is
    no such verb."""
    for cases, verb in SHARED.items():
        taken = {(case.cause, case.when) for case in cases}
        if 2 * len(taken & {(case.cause, case.when) for case in message.cases}) >= len(taken):
            return verb, taken
    return "", set()


def cause_cell(message: Message) -> str:
    parts = [sentence(message.note)] if message.note else []
    if message.kind == CAUSE:
        parts.insert(0, cases_of(message))
    elif message.kind == FINE:
        parts.insert(0, "Nothing is wrong.")
    elif not parts:
        parts.append("A consequence of another failure.")
    if message.unless:
        parts.append(f"Nothing is wrong if {' or '.join(map(in_words, message.unless))}.")
    return " ".join(parts)


def to_do(message: Message) -> str:
    """Returns the advice of a message, and of its cases with advice of their own. The table of
    causes has the advice of the other cases."""
    _, taken = borrowed(message)
    of_case = {
        case.do: case.cause.name
        for case in message.cases
        if case.do and (case.cause, case.when) not in taken
    }
    parts = [sentence(message.do)] if message.do else []
    for do, cause in of_case.items():
        parts.append(sentence(do) if len(message.cases) == 1 else f"**{cause}**: {sentence(do)}")
    return " ".join(parts) or "-"


def concern(cause: Cause) -> str:
    """Returns what nv_peer_mem has to do with a cause."""
    if cause.ours:
        return "This module helps"
    return "This module or another" if cause.subject else "Not this module"


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def lines() -> Iterator[str]:
    yield from ("", "## Causes", "")
    yield from wrapped(
        "The other tables refer to these causes. **This module helps** means that loading or "
        "setting up nv_peer_mem removes the failure. **This module or another** means that "
        "nv_peer_mem itself, or another module, can be what fails. **Not this module** means that "
        "neither is the case."
    )
    yield ""
    yield CAUSES_HEAD
    for cause in CAUSES:
        ours = f" **{concern(cause)}**"
        yield row(
            f"**{cause.name}**", sentence(cause.says) + ours, sentence(cause.do), cause.status
        )
    yield from ("", "## Any program", "")
    yield from wrapped(
        "The error of a failed verb says the cause in every program. The tables below refer to "
        "these rows. `nvpm explain` calls a cause certain or probable only if a log of a user, or "
        "one that an independent reader of the program wrote, has the message and this cause. "
        "Other causes are marked **(possible)**, where the row is not one of those that refer to "
        "this table. If a log names only NICs of other makers than NVIDIA, **NIC that never asks** "
        "stands in place of **no client** and **VMM memory**, and **NIC without dma-buf** in place "
        "of **no dma-buf**."
    )
    yield from ("", VERBS_HEAD)
    for message in verbs.GENERAL:
        for case in as_proven(message).cases:
            possible = SURE[message.sure_of(case)]
            yield row(
                printed(message.text), under(case).rstrip(": "), f"**{case.cause.name}**{possible}"
            )
    for section in SECTIONS:
        yield from ("", f"## {section.title}", "")
        if section.intro:
            yield from (*wrapped(section.intro), "")
        yield HEAD
        for message in section.messages:
            yield row(printed(message.text), cause_cell(message), to_do(message), message.source)
    yield ""


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def page(old: str) -> str:
    """Returns the page with new tables."""
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    return "".join([before, BEGIN, "\n", "\n".join(lines()), "\n", END, after])


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    rows = sum(len(section.messages) for section in SECTIONS)
    print(f"{PAGE}: {len(CAUSES)} causes, {rows} messages")


if __name__ == "__main__":
    main()
