# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the string literals of a source file, as a program prints them. Adjacent literals are
joined. The code between two literals of one message (the argument of a macro, a value of a C++
stream, a term of a sum) becomes {}. Each line of a file of another kind is a literal."""

import itertools
import re
from collections.abc import Iterator

HOLE = "{}"
C_LIKE = ("c", "h", "cc", "cpp", "cxx", "cu", "cuh", "hpp", "inl", "go", "rs")
PYTHON = ("py", "pyx", "pxd")
TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/
    | r\#+"(?P<rust>.*?)"\#+ | R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"
    | `(?P<go>[^`]*)`
    | (?:\b(?:u8|[uULbr]))?"(?P<text>(?:\\.|[^"\\\n])*?)"
    | '(?:\\[^'\n]*|[^'\\\n])'
    | (?P<name>[A-Za-z_]\w*) | (?P<op><<|[^\s\\]) """,
    re.DOTALL | re.VERBOSE,
)
PYTHON_TOKEN = re.compile(
    r"""\#[^\n]*
    | [fFrRbBuU]{0,2}(?:\"\"\"(?P<raw>.*?)\"\"\"|'''(?P<go>.*?)''')
    | [fFrRbBuU]{0,2}"(?P<text>(?:\\.|[^"\\\n])*?)" | [fFrRbBuU]{0,2}'(?P<rust>(?:\\.|[^'\\\n])*?)'
    | (?P<name>[A-Za-z_]\w*) | (?P<op>[^\s\\]) | (?P<mark>\0) """,
    re.DOTALL | re.VERBOSE,
)
INCLUDE = re.compile(r"^\s*#\s*include.*", re.MULTILINE)
INTTYPES = re.compile(r"PRI([diouxX])(\d+|MAX|PTR)$")
KEYWORDS = {"if", "else", "or", "and", "in", "not", "return", "case", "for", "is"}
# The arguments of these calls are printed one after the other.
CONCATENATING = {"THROW", "StrCat"}
# A list of errors in a macro: _(NUMBER, NAME, text).
LISTED = re.compile(r"\b_\(\d+,\s*\w+,\s*((?:[^()\n]|\([^()\n]*\))+)\)")
LONGEST_GAP = 60  # tokens between two literals of one message
QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')


def literals(path: str, text: str) -> Iterator[str]:
    """Yields the literals of a file."""
    found: Iterator[str]
    kind = path.rsplit(".", 1)[-1] if "." in path.rsplit("/", 1)[-1] else ""
    if kind in C_LIKE:
        found = itertools.chain(joined(TOKEN, INCLUDE.sub("", text)), LISTED.findall(text))
    elif kind in PYTHON:
        found = joined(PYTHON_TOKEN, text)
    else:
        found = of_lines(text)
    for one in found:
        one = plain(one)
        if one:
            yield one


def plain(literal: str) -> str:
    """Returns a literal without escaped quotes, and without a newline at its end."""
    literal = re.sub(r"\\\n\s*", "", literal)
    literal = re.sub(r"\\([\"'\\$`])", r"\1", literal).replace("\\t", " ")
    literal = re.sub(r"\s+", " ", literal)
    return re.sub(r"(?:\\n|\s)+$", "", literal).lstrip()


def of_lines(text: str) -> Iterator[str]:
    """Yields the lines of a script or of a text, and the quoted strings in them."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("#"):
            continue
        quoted = [one for one in QUOTED.findall(line) if " " in one]
        yield from quoted or [line]


def joined(token: "re.Pattern[str]", text: str) -> Iterator[str]:
    """Yields the literals of a language with tokens."""
    message: list[str] = []
    gap: list[str] = []
    call = False  # the literal stands in a call of CONCATENATING
    for found in token.finditer(text):
        group = found.lastgroup
        if group in ("text", "raw", "go", "rust", "mark"):
            literal = next(
                (found[one] for one in ("text", "raw", "go", "rust") if found[one] is not None), ""
            )
            between = bridge(gap, call) if message else None
            if message and between is None:
                yield finished(message, gap, call)
            message = [*message, between, literal] if between is not None else [literal]
            gap = []
        elif group == "name" and found[group] in CONCATENATING:
            call = True
        elif found.group() == ";":
            if message:
                yield finished(message, gap, call)
            message, gap, call = [], [], False
        elif group and message:
            gap.append(found[group])
            if gap[-1] == "}" or len(gap) > LONGEST_GAP:
                yield finished(message, gap, call)
                message, gap = [], []
    if message:
        yield finished(message, gap, call)


def bridge(gap: list[str], call: bool) -> "str | None":
    """Returns the text that stands in a message for the tokens between two of the message's
    literals."""
    if not gap:
        return ""
    found = INTTYPES.match(gap[0])
    if len(gap) == 1 and found:
        return {"64": "l", "MAX": "j"}.get(found[2], "") + found[1]
    if len(gap) <= 3 and all(re.match(r"[#\w]", one) for one in gap) and not KEYWORDS & set(gap):
        return HOLE
    if gap[0] == gap[-1] and gap[0] in ("<<", "+", *([","] if call else [])):
        return "" if len(gap) == 1 else HOLE
    return None


def finished(message: list[str], gap: list[str], call: bool) -> str:
    """Returns a message, with a hole at its end if a value follows."""
    found = INTTYPES.match(gap[0]) if gap else None
    if found:
        return "".join(message) + {"64": "l", "MAX": "j"}.get(found[2], "") + found[1]
    more = (
        len(gap) > 1
        and gap[0] in ("<<", "+", "#", *([","] if call else []))
        and gap[1] not in ("std", "endl")
    )
    return "".join([*message, HOLE if more else ""])
