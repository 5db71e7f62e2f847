# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes mechanical mistakes in a text: comparisons, conditions, numbers, the first element alone, a
statement that is left out, arguments in the wrong order.

The mistakes are made line by line, because formatters decide how a line looks: a binary operator
has a blank on both sides, so it is never taken for the bracket of a type or for a reference. A
mistake that does not compile is not counted."""

import re
from collections.abc import Iterator
from typing import NamedTuple

RUST, C, SHELL = "Rust", "C", "shell"


class Mistake(NamedTuple):
    """A line of a file, from 1, and what stands in its place. `kind` names the rule."""

    file: str
    line: int
    kind: str
    stands: str
    instead: str

    def name(self) -> str:
        """Returns the text by which a judgement finds the mistake again, also after other lines
        have changed."""
        return f"{self.file}: {self.stands.strip()} -> {self.instead.strip() or 'nothing'}"

    @property
    def place(self) -> str:
        return f"line {self.line}, {self.kind}"

    def put_in(self, text: str) -> str:
        lines = text.split("\n")
        assert lines[self.line - 1] == self.stands, f"{self.file} has changed"
        lines[self.line - 1] = self.instead
        return "\n".join(lines)


# ---- what is code ---------------------------------------------------------------

COMMENTS = r"//[^\n]*|/\*.*?\*/"
QUOTED = {
    RUST: COMMENTS
    + r"""|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n']+|[^\\'])'|#!?\[[^\n]*\]$""",
    C: COMMENTS + r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^[ \t]*#[^\n]*""",
    # What is in double quotes may be code, but an apostrophe in it is none.
    SHELL: r"""(?:(?<=\s)|^)#[^\n]*|\\[^\n]|"(?:\\.|[^"\\])*"|'[^']*'""",
}
TESTS_OF_A_FILE = r"^(?:pub\(crate\) )?mod tests \{\n.*?^\}"
# The code of the KUnit suite. Its macro is empty in a module for users.
KUNIT = r"^#ifdef NVPM_KUNIT\n.*?^#endif$|^\s*KUNIT_STATIC_STUB_REDIRECT\([^;]*;"
HERE_DOCUMENT = r"<<-?'?(\w+)'?\n.*?^\s*\1$"
WHOLE = re.DOTALL | re.MULTILINE


def code_of(text: str, language: str) -> str:
    """Returns the text with blanks in place of comments and of strings, which are no code."""

    def blank(found: re.Match[str]) -> str:
        if language == SHELL and found.group().startswith('"'):
            return found.group()
        return re.sub(r"[^\n]", " ", found.group())

    if language == SHELL:
        text = re.sub(HERE_DOCUMENT, blank, text, flags=WHOLE)
    if language == C:
        text = re.sub(KUNIT, blank, text, flags=WHOLE)
    code = re.sub(QUOTED[language], blank, text, flags=WHOLE)
    return re.sub(TESTS_OF_A_FILE, blank, code, flags=WHOLE) if language == RUST else code


# ---- the rules of a line ----------------------------------------------------------------

COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPUTE = {
    "+": "-",
    "-": "+",
    "*": "+",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "+=": "-=",
    "-=": "+=",
}
JOIN = {"&&": "||", "||": "&&"}
OPPOSITES = [
    ("min", "max"),
    ("first", "last"),
    ("any", "all"),
    ("is_some", "is_none"),
]
OPPOSITES += [("is_ok", "is_err"), ("is_some_and", "is_none_or"), ("starts_with", "ends_with")]
TRUTH = {"true": "false", "false": "true"}
SHELL_FILES = {
    "-n": "-z",
    "-z": "-n",
    "-e": "-d",
    "-d": "-e",
    "-x": "-e",
    "-r": "-e",
    "-s": "-e",
    "-L": "-e",
}
SHELL_TESTS = [("-eq", "-ne"), ("-lt", "-le"), ("-gt", "-ge"), ("=", "!=")]
SHELL_TESTS += [
    ("&&", "||"),
    ("continue", "break"),
    ("head", "tail"),
    ("return 1", "return 0"),
    ("exit 1", "exit 0"),
]

Change = tuple[str, int, int, str]


def both_ways(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return dict(pairs) | {second: first for first, second in pairs}


def words(code: str, kind: str, table: dict[str, str], form: str) -> Iterator[Change]:
    names = "|".join(re.escape(name) for name in sorted(table, key=len, reverse=True))
    for found in re.finditer(form.format(names), code):
        yield kind, *found.span(1), table[found.group(1)]


def numbers(code: str) -> Iterator[Change]:
    for found in re.finditer(r"(?<![\w.\"'])(0|[1-9][\d_]*)(?![\w.\"'])", code):
        # The length of an array follows from its elements.
        if re.match(r".*; $", code[: found.start()]) and code[found.end() :].startswith("]"):
            continue
        yield "one more", *found.span(1), str(int(found.group(1).replace("_", "")) + 1)


def twice(code: str) -> Iterator[Change]:
    """A constant that stands for something outside, such as a limit of the kernel."""
    if re.match(r"\s*(pub(\(\w+\))? )?const ", code):
        for found in re.finditer(r"(?<![\w.])([1-9][\d_]+)(?![\w.])", code):
            yield "twice", *found.span(1), str(int(found.group(1).replace("_", "")) * 2)


def alternatives(code: str, line: str) -> Iterator[Change]:
    """One of several patterns that is missing, and one arm of several."""
    patterns = [found.span(1) for found in re.finditer(r"\(([^()]*\| [^()]*)\)", code)]
    if arm := re.search(r" (if .* )?=>", code):
        patterns.append((len(line) - len(line.lstrip()), arm.start()))
    for begin, end in patterns:
        # A string is blank in the code, so only the bar itself says where the next pattern begins.
        joints = [begin + joint.start() for joint in re.finditer(r" \|(?= )", code[begin:end])]
        edges = list(zip([begin, *(at + 3 for at in joints)], [*joints, end], strict=True))
        whole = all(
            code[one:other].count("(") == code[one:other].count(")") for one, other in edges
        )
        for left_out in edges if joints and whole else []:
            rest = [line[one:other] for one, other in edges if (one, other) != left_out]
            yield "alternative", begin, end, " | ".join(rest)
    if re.match(r"\s+\S.* => [^{]*,$", code) and code.count("(") == code.count(")"):
        yield "arm", 0, len(line), ""


def is_call(code: str, at: int) -> bool:
    """Returns whether the innermost bracket around a place is that of a call."""
    depth = 0
    for place in range(at - 1, 0, -1):
        depth += (code[place] in ")]}") - (code[place] in "([{")
        if depth < 0:
            return code[place] == "(" and bool(re.match(r"[\w!]", code[place - 1]))
    return False


def swapped(code: str) -> Iterator[Change]:
    """Two arguments that are names, in the wrong order."""
    name = r"&?(?:mut )?[a-z_][\w.]*"
    for found in re.finditer(rf"(?<=[(,\w ][( ])({name}), ({name})(?=[,)])", code):
        first, second = found.groups()
        if first != second and is_call(code, found.start()) and not re.search(r"\bfn ", code):
            yield "arguments", *found.span(), f"{second}, {first}"


def conditions(code: str, line: str, form: str) -> Iterator[Change]:
    """A guard that always, or never, holds, and a condition that is dropped."""
    for found in re.finditer(form, code):
        begin, end = found.span(1)
        if re.search(r"\blet ", found.group(1)):
            continue
        yield "guard", begin, end, f"true || ({line[begin:end]})"
        yield "guard", begin, end, f"false && ({line[begin:end]})"
        joints = list(re.finditer(r" (?:&&|\|\|) ", found.group(1)))
        parts = (
            [(begin, begin + joints[0].start()), (begin + joints[0].end(), end)]
            if len(joints) == 1
            else []
        )
        if all(code[one:other].count("(") == code[one:other].count(")") for one, other in parts):
            for one, other in parts:
                yield "condition", begin, end, line[one:other]
    if re.match(r"\s*(&&|\|\|) .*[^{]$", code):
        yield "condition", 0, len(line), ""


def only_first(code: str, language: str) -> Iterator[Change]:
    if language == RUST:
        for found in re.finditer(r"\bfor .+? in (.+) \{$", code):
            yield "first alone", *found.span(1), f"({found.group(1)}).into_iter().take(1)"
        for found in re.finditer(r"\.iter\(\)(?!\.take)", code):
            yield "first alone", *found.span(), ".iter().take(1)"
        # A machine of files on which there is only one such file is too simple.
        for found in re.finditer(r"\.glob\(.*\)(?=;$)", code):
            first = ".into_iter().take(1).collect::<Vec<_>>()"
            yield "first alone", found.end(), found.end(), first
        for found in re.finditer(r"\b(while)(?= let )", code):
            yield "first alone", *found.span(1), "if"
    if language == SHELL:
        for found in re.finditer(r"^\s*for \w+ in .*; do$", code):
            end = found.end()
            yield "first alone", end, end, ' [ -z "${swept-}" ] || continue; swept=1'


NO_COMMAND = "if|then|else|elif|fi|do|done|case|esac|for|while|local|return|exit"
GOES_ON = ("\\", "|", "&&", "||")
NO_STATEMENT = (
    "let (?!_ )|return|use|mod|pub|const|static|type|break|continue|extern|struct|goto|else|unsafe"
)
NO_STATEMENT += "|impl|enum|case|fn"
# In C, a line of a type and a name is a declaration.
DECLARATION_IN_C = r"\s+(struct |unsigned |const )?\w+ \**\w+( =.*|\[.*\])?;$"


def command_left_out(code: str, previous: str) -> Iterator[Change]:
    if previous.endswith(GOES_ON) or code.endswith(GOES_ON):
        return
    if re.match(rf"\s+(?!({NO_COMMAND})\b)[a-z_]+( [^;(){{}}]*)?$", code):
        yield "left out", len(code) - len(code.lstrip()), len(code), ":"


def statement_left_out(code: str, previous: str, language: str) -> Iterator[Change]:
    """A statement that is one line. A declaration of a foreign function, which has the types of its
    parameters, is none."""
    if not re.search(r"([;{}:]|^\s*|\*/|=>)\s*$", previous) or code.count("(") != code.count(")"):
        return
    call = r"(unsafe|let _ = unsafe) \{ [^{}]*\};$"
    if not re.match(rf"\s+({call}|(?!({NO_STATEMENT})\b)[*&]*[\w:.]+[^{{}}]*;$)", code):
        return
    if language == RUST and re.search(r"\(\w+: ", code):
        return
    if language == C and re.match(DECLARATION_IN_C, code):
        return
    yield "left out", len(code) - len(code.lstrip()), len(code), ";" if language == C else ""


def changes(code: str, line: str, previous: str, language: str) -> Iterator[Change]:
    """Returns the changes of a line."""
    if language == SHELL:
        yield from words(code, "word", both_ways(SHELL_TESTS), r"(?:(?<=\s)|^)({})(?=[\s;]|$)")
        yield from words(code, "word", SHELL_FILES, r"(?:(?<=\[ )|(?<=\[ ! ))({})(?= )")
        for found in re.finditer(r"(?:(?<=\[ )|(?<=if )|^(?<=\s))(! )", code):
            yield "not", *found.span(1), ""
        for found in re.finditer(r"\bif ([^;]+); then", code):
            yield "guard", *found.span(1), "true"
            yield "guard", *found.span(1), "false"
        for found in re.finditer(r"(?<![\w$])((?:! )?\[ [^]]* \] (?:&&|\|\|) )", code):
            yield "condition", *found.span(1), ""
        if re.match(r"\s*[^()]+\) .* ;;$", code):
            yield "arm", 0, len(line), ""
    else:
        yield from words(code, "comparison", COMPARE, r" ({}) ")
        yield from words(code, "arithmetic", COMPUTE, r"(?<=[\w)\]]) ({}) (?=[\w(&*])")
        yield from words(code, "and, or", JOIN, r"(?<=[\w)\]?] )({})(?= )")
        yield from words(code, "opposite", both_ways(OPPOSITES), r"(?<![\w])({})(?=\()")
        yield from words(code, "opposite", TRUTH, r"(?<![\w.])({})(?!\w)")
        for found in re.finditer(r"(?<![\w=!<>])(!)(?=[a-z_(*])", code):
            yield "not", *found.span(1), ""
        yield from swapped(code)
    if language == RUST:
        yield from conditions(code, line, r"\bif ([^{}]+?)(?: \{$| =>)")
        yield from alternatives(code, line)
        yield from twice(code)
    if language == C:
        yield from conditions(code, line, r"\bif \((.+)\)(?: \{)?$")
    yield from numbers(code)
    yield from only_first(code, language)
    if language == SHELL:
        yield from command_left_out(code, previous)
    else:
        yield from statement_left_out(code, previous, language)


def mistakes_in(file: str, text: str, language: str) -> list[Mistake]:
    """Returns all mistakes that the rules make in a file."""
    found, previous = [], ""
    lines = text.split("\n")
    pairs = zip(lines, code_of(text, language).split("\n"), strict=True)
    for number, (line, code) in enumerate(pairs, start=1):
        # A wrong assertion does not compile, or is not in the product.
        if not code.strip() or code.lstrip().startswith(
            ("static_assert", "assert!(", "debug_assert", "const _")
        ):
            continue
        for kind, begin, end, instead in changes(code.rstrip(), line, previous, language):
            wrong = (line[:begin] + instead + line[end:]).rstrip()
            if wrong != line and wrong.strip() != ".iter().take(1)":
                found.append(Mistake(file, number, kind, line, wrong))
        previous = code.rstrip()
    return found
