# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads from the sources of nv_peer_mem which messages its programs print. The result does not
depend on the files in nvpm/data/own, which test_own.py compares with it.

A value that varies, such as a variable of the shell, becomes VALUE. A text with fewer than two
words is data, and no message."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from program import TOP

# The value is a number and a word, because each placeholder of the table must match.
VALUE = "7"
WORD = re.compile(r"[A-Za-z][a-z']+")


class Printed(NamedTuple):
    """A message of FILE, as one line."""

    file: str
    text: str


def is_message(text: str) -> bool:
    return len(WORD.findall(text)) >= 2 and " " in text


# ---- scripts of the shell ----

# The functions and programs that print. `missing` prints its last two words with a colon.
PRINTERS = "set|die|skip|say|complain|echo|printf|missing|found|tell_people|logger|unknown"
# Variables whose values are parts of messages.
PARTS = "why|unsuitable|stale|set_aside|other_first|mark|compiler"
BEFORE = r"(?:^|[;|&{(!)]|\b(?:then|else|do|quiet)\b)[ \t]*@?(?:\w+=\S* )*"
COMMAND = re.compile(
    rf"{BEFORE}(?:({PRINTERS})(?=[ \t]+[^=}}\s])|({PARTS})=(?=[\"']))", re.MULTILINE
)
HEREDOC = re.compile(r"<<-?'?(TEXT)'?\n(.*?)\n[ \t]*\1$", re.DOTALL | re.MULTILINE)


def quoted(text: str, at: int) -> tuple[str, int]:
    """Returns the contents of the string in double quotation marks that begins at AT, with VALUE
    for each expansion, and the place after it."""
    parts, at = [], at + 1
    while text[at] != '"':
        if text[at] == "\\":
            parts.append(text[at + 1] if text[at + 1] in '"$`\\' else text[at : at + 2])
            at += 2
        elif text[at] == "$":
            at = expansion(text, at)
            parts.append(VALUE)
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts), at + 1


def expansion(text: str, at: int) -> int:
    """Returns the place after the expansion of a variable or a command that begins at AT."""
    after = text[at + 1]
    if after not in "{(":
        found = re.compile(r"\$(?:\w+|.)").match(text, at)
        assert found
        return found.end()
    opened, closed, depth, at = after, {"{": "}", "(": ")"}[after], 1, at + 2
    while depth:
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            at = quoted(text, at)[1] - 1
        elif text[at] == "'" and opened == "(":
            at = text.index("'", at + 1)
        elif text[at] == "$" and text[at + 1] in "{(":
            at = expansion(text, at) - 1
        elif text[at] == opened:
            depth += 1
        elif text[at] == closed:
            depth -= 1
        at += 1
    return at


def arguments(text: str, at: int) -> list[str]:
    """Returns the words of a command from AT to its end."""
    found: list[str] = []
    word: list[str] | None = None
    while at < len(text) and text[at] not in "\n;|&)>":
        if text[at] in " \t":
            if word is not None:
                found.append("".join(word))
                word = None
            at += 1
            continue
        word = [] if word is None else word
        if text[at] == '"':
            part, at = quoted(text, at)
        elif text[at] == "'":
            end = text.index("'", at + 1)
            part, at = text[at + 1 : end], end + 1
        elif text[at] == "$":
            part, at = VALUE, expansion(text, at)
        elif text[at] == "\\":
            part, at = ("", at + 2) if text[at + 1] == "\n" else (text[at + 1], at + 2)
            if not part:
                word = word or None
                continue
        else:
            part, at = text[at], at + 1
        word.append(part)
    return found + ([] if word is None else ["".join(word)])


def of_words(name: str, words: list[str]) -> str:
    """Returns the text that a command prints."""
    if name == "printf":
        text, values = words[0], words[1:]
        text = re.sub(r"%[-0-9]*s", lambda _: values.pop(0) if values else VALUE, text)
        return text.replace("\\n", "\n")
    if name == "missing":
        return ": ".join(words[1:])
    if name == "set":
        return words[-1] if words[0] == "--" else ""
    if name == "logger":
        return max(words, key=len)
    return " ".join(words)


def without_comments(text: str) -> str:
    return re.sub(r"(?m)^[ \t]*(?:#|//).*$", "", text)


def of_shell(file: str, text: str, prefix: str = "") -> Iterator[Printed]:
    """Yields what a script prints. Some functions of the script put PREFIX before each message."""
    text = without_comments(text)
    for found in HEREDOC.finditer(text):
        yield from lines_of(file, re.sub(r"\$\{?\w+\}?", VALUE, found[2]))
    for found in COMMAND.finditer(text):
        words = arguments(text, found.end())
        said = of_words(found[1] or "echo", words) if words else ""
        why = found[2] == "why" and file == "preload/build"
        if said and file not in PARTS_OF_OTHERS.get(found[1] or found[2], ()):
            yield from lines_of(file, (prefix if found[1] in PREFIXED or why else "") + said)


def lines_of(file: str, text: str) -> Iterator[Printed]:
    """Yields each line of a text that is a message."""
    for line in text.split("\n"):
        line = " ".join(line.split())
        if is_message(line):
            yield Printed(file, line)


# ---- make and rpm ----

MACRO = re.compile(r"%\{[^}]*\}|%\([^)]*\)")


def of_spec(file: str, text: str) -> Iterator[Printed]:
    """Yields what the scripts of a package with RPM print."""
    yield from of_shell(file, MACRO.sub(VALUE, text))


def of_make(file: str, text: str) -> Iterator[Printed]:
    for found in re.finditer(r"\$\(error (.*)\)$", text, re.MULTILINE):
        yield Printed(file, re.sub(r"\$\([^()]*(?:\([^()]*\))*[^()]*\)", VALUE, found[1]))
    yield from of_shell(file, re.sub(r"\$\([^()]*\)", VALUE, without_comments(text)))


# ---- the kernel module and the preloaded library ----

LITERAL = r'"((?:[^"\\]|\\.)*)"'
RUST = re.compile(rf"\bpr_\w+!\(\s*{LITERAL}")
C = re.compile(rf"\b(?:pr|dev)_\w+\((?:[^\"();]*,)?\s*{LITERAL}")
FORMAT_OF_C = re.compile(r"%[-.0-9*]*(?:l|ll|z)?[a-zA-Z]")


# Texts about the outcome of a registration begin with these words. The other texts of the library
# are reasons.
OUTCOME = re.compile("registered|a dma-buf|no dma-buf|on demand")


def of_rust(file: str, text: str) -> Iterator[Printed]:
    for found in RUST.finditer(text):
        line = found[1].replace('\\"', '"').replace("\\n", "")
        yield from lines_of(file, "nv_peer_mem: " + re.sub(r"\{[^{}]*\}", VALUE, line))


def of_c(file: str, text: str) -> Iterator[Printed]:
    for found in C.finditer(text):
        module = "nvidia_peermem: " if "marker" in file else "nv_peer_mem: "
        yield from lines_of(file, module + FORMAT_OF_C.sub(VALUE, found[1].replace("\\n", "")))


def of_preload(file: str, text: str) -> Iterator[Printed]:
    """Yields what the library writes into its log: the outcomes and the reasons, and a line that is
    not about one registration."""
    if file.endswith("log.rs"):
        for found in re.finditer(rf"\bc{LITERAL}", text):
            if found[1].startswith("nvpm_preload: %s was"):
                yield from lines_of(file, FORMAT_OF_C.sub(VALUE, found[1].replace("\\n", "")))
    if not file.endswith(("translate.rs", "cuda.rs")):
        return
    for found in re.finditer(rf"\bc{LITERAL}", text):
        said = found[1]
        if file.endswith("cuda.rs"):
            said = f"no dma-buf: {VALUE} answered {said}"
        elif not OUTCOME.match(said):
            said = f"no dma-buf: {said}"
        if " " in found[1]:
            yield from lines_of(file, f"nvpm_preload: ibv_reg_mr of {VALUE}, {VALUE} bytes: {said}")


# ---- nvpm ----

# Calls with messages, values with messages, and a table of endings.
SAID = re.compile(
    r"""(?P<by>\b(?:tell|wrong|Err|io::Error::other)\(|\.lost\(|= \|[^|]*\| |\(b"\S+", )"""
    r"""\s*&?(?:format!\()?\s*"(?P<text>(?:[^"\\]|\\[\s\S])*)\""""
)
# A whole line, which begins with the name of the program.
WHOLE = re.compile(r'stderr\(\),\s*"(?P<text>nv(?:[^"\\]|\\[\s\S])* (?:[^"\\]|\\[\s\S])*)"')
BEGINNINGS = {"io": "log cannot be read: ", "wrong(": "error: ", "(b": "log "}


CONSTANT = re.compile(r'const (\w+): &str =\s*"((?:[^"\\]|\\[\s\S])*)"')


def one_line(text: str) -> str:
    """Returns a literal of Rust without the breaks between its lines."""
    return re.sub(r"\\\n\s*", "", text)


@functools.cache
def constants() -> dict[str, str]:
    """Returns the texts that have names."""
    sources = (file.read_text(encoding="utf-8") for file in files("nvpm/src/*/*.rs"))
    return {name: one_line(text) for source in sources for name, text in CONSTANT.findall(source)}


def filled(text: str) -> str:
    """Returns a literal with the named texts, and with VALUE for other values."""
    known = re.sub(r"\{(\w+)\}", lambda found: constants().get(found[1], VALUE), one_line(text))
    return re.sub(r"\{[^{}]*\}", VALUE, known)


# The beginnings of messages, which the sources add to their texts.
BEFORE_LITERALS = ("", "nvpm run: ", "nvpm selftest: ", "nvpm selftest: error: ", "error: ")
LITERAL_OF_RUST = re.compile(r'"((?:[^"\\]|\\[\s\S])*)"')


def literals_with(pattern: str) -> list[str]:
    """Returns texts of nvpm that have the longest fixed part of a message's pattern."""
    fixed = max(re.split(r"<[^>]*>", pattern), key=len).strip().removeprefix("error: ")
    options = re.findall(r"<([^>]*\|[^>]*)>", pattern) if len(fixed) < 5 else []
    words = [word for option in options for word in option.split("|")] or [fixed]
    sources = (file.read_text(encoding="utf-8") for file in files("nvpm/src/*/*.rs"))
    texts = [filled(text) for source in sources for text in LITERAL_OF_RUST.findall(source)]
    there = [text for text in texts if any(word in text for word in words)]
    return [before + text for text in there for before in BEFORE_LITERALS]


# These parts of nvpm print messages.
PARTS_OF_NVPM = ("explain", "compare", "preload", "selftest", "report", "commands", "read", "show")


def of_program(file: str, text: str) -> Iterator[Printed]:
    """Yields what a command writes to the standard error. A reason of `nvpm explain` stands behind
    the name of a file."""
    command = {"preload": "run"}.get(Path(file).parent.name, Path(file).parent.name)
    for whole in WHOLE.finditer(text.partition("#[cfg(test)]")[0]):
        yield from lines_of(file, filled(whole["text"]))
    if command in ("commands", "read", "show") or file.endswith("selftest/port.rs"):
        return
    if command == "compare" and not file.endswith(("command.rs", "names.rs", "fleet.rs")):
        return
    for found in SAID.finditer(text.partition("#[cfg(test)]")[0]):
        before = next((words for by, words in BEGINNINGS.items() if found["by"].startswith(by)), "")
        said = filled(found["text"])
        if said != f"nvpm {command}":
            yield from lines_of(file, f"nvpm {command}: {before}{said}")


# ---- all ----

# The functions of the shell that put the name of the program before a message. `echo` and `printf`
# print a message alone.
PREFIXED = ("die", "skip", "say", "complain", "missing", "logger")
BUILD = ("build/make", "build/configure", "build/find/*", "build/rust-assembly", "build/has/ask")
SHELL = {
    **dict.fromkeys((*BUILD, "build/rust/*.sh", "build/dkms/*", "dkms.conf"), "nv_peer_mem: "),
    "build_release.sh": "build_release.sh: ",
    "init.d/nv_peer_mem": "nv_peer_mem: ",
    "init.d/module-event": "nv_peer_mem: ",
    "init.d/openibd-hook": "nv_peer_mem: ",
    "init.d/ofed-container-*": "nv_peer_mem: ",
    "init.d/nvpm-missing": "",
    "debian/*.p*": "",
    "debian/preinst.in": "",
    "debian/postinst.d/*": "",
    "debian/postrm.d/*": "",
    "debian/rust-metadata": "rust-metadata: ",
    "preload/build": "nvpm_preload: ",
    "preload/link": "nvpm_preload: ",
    "nvpm/compile": "nvpm-bin: ",
    "nvpm/sysroots": "nvpm/sysroots: ",
}
# These texts are the program's usage, or are written into files.
NO_MESSAGE = re.compile(
    r"^(?:\S+: )?(?:Usage: |/\* |#!|// SPDX|\* substr|release nvidia|nvpm-bin 7 7$|nvpm:Depends=)"
    r"|^nvpm explain: 7 \(module 7\)$|^nvpm selftest: GPU 7: 7$"
    r"|^(?:nvpm )?[\w./-]+:(?: error:)?(?: 7[:.]?)+$|^(?:\S+: )?\\tput |\x1b"
    r"|^(?:rustc|cargo)-1|^deb \[trusted|^\(the disk of|^7 \(the whole log"
)
# Parts of the messages of build/find, which do not stand alone: why a tree is no tree of the core,
# and why Rust cannot be compiled in one way.
PARTS_OF_OTHERS = {
    "why": ("build/find/rust.sh", "build_release.sh", "nvpm/compile"),
    "unsuitable": ("nvpm/compile",),
    "stale": ("build/find/core.sh",),
    "set_aside": ("build/find/core.sh",),
    "other_first": ("build/find/core.sh",),
    "echo": ("build/find/core.sh", "build/rust-assembly"),
}


def name_of(file: Path) -> str:
    return str(file.relative_to(TOP))


def files(pattern: str) -> list[Path]:
    return sorted(file for file in TOP.glob(pattern) if file.is_file())


def everything() -> list[Printed]:
    """Returns all messages of all programs."""
    found: list[Printed] = []
    for pattern, prefix in SHELL.items():
        for file in files(pattern):
            found += of_shell(name_of(file), file.read_text(encoding="utf-8"), prefix)
    for reader, patterns in (
        (of_make, ("Kbuild", "Makefile", "debian/rules")),
        (of_spec, ("rpm/*.spec",)),
        (of_rust, ("src/**/*.rs",)),
        (of_c, ("src/**/*.c",)),
        (of_preload, ("preload/src/*.rs",)),
        (of_program, [f"nvpm/src/{part}/*.rs" for part in PARTS_OF_NVPM]),
    ):
        for pattern in patterns:
            for file in files(pattern):
                found += reader(name_of(file), file.read_text(encoding="utf-8"))
    return [one for one in dict.fromkeys(found) if not NO_MESSAGE.search(one.text)]
