# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The texts of messages. A text is literal, except for its placeholders:

<*>      any characters
<n>      a number, decimal or hexadecimal, also negative
<w>      a word, such as the name of a device or a host
<a|b|>   one of these texts, and after the last bar the empty text"""

import functools
import re
from typing import Iterator, List, Pattern, Tuple

PLACEHOLDER = re.compile(r"<(?:[*nw]|[^<>]*\|[^<>]*)>")
ANY = "<*>"
MATCHED = {
    # The number of characters is bounded, because a line can be made so that the search for the
    # next part takes seconds.
    ANY: ".{0,300}?",
    "<n>": r"(?<![0-9A-Za-z])-?(?:0x)?[0-9a-fA-F]+(?![0-9A-Za-z])",
    "<w>": r"[^\s,;'\"()]+",
}
# A word in brackets contains no bracket, so that the search does not come back to each of many
# brackets.
IN_BRACKETS = r"[^\s,;'\"()\[\]]+"
WORD = re.compile("[A-Za-z_]+")
# A literal part of this length after <*> occurs only once in an honest line. The search therefore
# takes the nearest part, and does not come back to it. Otherwise a line that repeats such parts
# would cost the product of their numbers. A group that looks ahead, and is then repeated, is never
# tried twice.
UNMISTAKABLE = 6
NEAREST = r"(?=({0}{1}))\{2}"


def expanded(text: str) -> List[str]:
    """Returns the texts that TEXT stands for, one for each choice among its alternatives."""
    found = next((one for one in PLACEHOLDER.finditer(text) if "|" in one.group()), None)
    if not found:
        return [text]
    before, after = text[: found.start()], text[found.end() :]
    chosen = found.group()[1:-1].split("|")
    return [before + one + rest for one in chosen for rest in expanded(after)]


@functools.lru_cache(maxsize=None)
def pattern(text: str) -> Pattern[str]:
    """Returns a pattern that finds TEXT in a line. A run of blanks is one blank in the text and in
    the line."""
    text = re.sub(" +", " ", text)
    parts: List[str] = []
    last = groups = 0
    for found in PLACEHOLDER.finditer(text):
        literal = text[last : found.start()]
        if parts[-1:] == [MATCHED[ANY]] and len(literal) >= UNMISTAKABLE:
            groups += 1
            parts[-1:] = [NEAREST.format(MATCHED[ANY], re.escape(literal), groups)]
        else:
            parts.append(re.escape(literal))
        placeholder = found.group()
        choice = "|".join(map(re.escape, placeholder[1:-1].split("|")))
        in_brackets = placeholder == "<w>" and literal.endswith("[")
        parts.append(IN_BRACKETS if in_brackets else MATCHED.get(placeholder) or f"(?:{choice})")
        last = found.end()
    return re.compile("".join([*parts, re.escape(text[last:])]))


def words(text: str) -> Iterator[Tuple[str, bool]]:
    """Yields the words of a text without alternatives. If the second value is false, the word may
    be a part of a longer word in the line, because it stands at the edge of a literal part."""
    last = 0
    for found in [*PLACEHOLDER.finditer(text), None]:
        part = text[last : found.start() if found else len(text)]
        for word in WORD.finditer(part):
            yield word.group(), word.start() > 0 and word.end() < len(part)
        last = found.end() if found else 0
