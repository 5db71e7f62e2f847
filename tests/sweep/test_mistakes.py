# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests which mistakes the rules make, and which lines get none."""

import pytest

from areas import AREAS, TOP
from mistakes import RUST, SHELL, C, mistakes_in
from thought import Thought, thoughts


def made(text: str, language: str) -> set[str]:
    """Returns what the rules put in place of the lines of a text."""
    return {one.instead.strip() for one in mistakes_in("file", text, language)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    if len == 0 || len > most {", "if len == 0 || len >= most {"),
        ("    if len == 0 || len > most {", "if len != 0 || len > most {"),
        ("    if len == 0 || len > most {", "if len == 0 && len > most {"),
        ("    if len == 0 || len > most {", "if len == 1 || len > most {"),
        ("    if len == 0 || len > most {", "if len == 0 {"),
        ("    if len == 0 || len > most {", "if len > most {"),
        ("    if len == 0 || len > most {", "if true || (len == 0 || len > most) {"),
        ("    if len == 0 || len > most {", "if false && (len == 0 || len > most) {"),
        ("    for one in &all {", "for one in (&all).into_iter().take(1) {"),
        ("    let it = all.iter().max();", "let it = all.iter().min();"),
        ("    let it = all.iter().max();", "let it = all.iter().take(1).max();"),
        (
            "    let files = machine.glob(&ALL);",
            "let files = machine.glob(&ALL).into_iter().take(1).collect::<Vec<_>>();",
        ),
        ("    while let Some(one) = next() {", "if let Some(one) = next() {"),
        ("    put(number, pin, device);", "put(pin, number, device);"),
        ("    put(number, pin, device);", ""),
        ("    self.count += 1;", ""),
        ("    let end = start + len;", "let end = start - len;"),
        ("    let free = !self.used;", "let free = self.used;"),
        ("        && other.is_some()", ""),
        ("    unsafe { close(self.0) };", ""),
        ("    let _ = unsafe { release(self.0) };", ""),
        ("    Err(EFAULT | ENOMEM) => 0,", "Err(ENOMEM) => 0,"),
        ("    Err(EFAULT | ENOMEM) => 0,", "Err(EFAULT) => 0,"),
        ('    "a" | "b" | "c" if more => {', '"a" | "c" if more => {'),
        ("    Phase::Mapped { .. } => Some(1),", ""),
        ("    const MOST: usize = 1_000;", "const MOST: usize = 2000;"),
    ],
)
def test_rust(line: str, expected: str) -> None:
    assert expected in made(f"{{\n{line}\n}}", RUST)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("\tif (ret < 0)", "if (ret <= 0)"),
        ("\tif (ret < 0)", "if (true || (ret < 0))"),
        ("\tif (!key)", "if (key)"),
        ("\tput_device(dev);", ";"),
        ("\treturn link(dev, iova, len);", "return link(iova, dev, len);"),
    ],
)
def test_c(line: str, expected: str) -> None:
    assert expected in made(f"{{\n{line}\n}}", C)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('\tif [ -z "$1" ]; then', 'if [ -n "$1" ]; then'),
        ('\tif [ -z "$1" ]; then', "if true; then"),
        ('\t[ "$1" -le 3 ] || return 1', '[ "$1" -lt 3 ] || return 1'),
        ('\t[ "$1" -le 3 ] || return 1', '[ "$1" -le 4 ] || return 1'),
        ('\t[ "$1" -le 3 ] || return 1', '[ "$1" -le 3 ] && return 1'),
        ('\t[ "$1" -le 3 ] || return 1', '[ "$1" -le 3 ] || return 0'),
        ("\tunload nv_peer_mem", ":"),
        ('\t[ -z "$a" ] || [ -L "$b" ] || "$b"', '[ -L "$b" ] || "$b"'),
        ('\t[ -z "$a" ] || [ -L "$b" ] || "$b"', '[ -z "$a" ] || "$b"'),
        ("\t75) exit 1 ;;", ""),
        ("\tsed 's/[\"'\\'']//g' | tail -n 1", "sed 's/[\"'\\'']//g' | head -n 1"),
        ("\techo \"it's\" | tail -n 1 # it's", "echo \"it's\" | head -n 1 # it's"),
        (
            '\tfor kernel in "$@"; do',
            'for kernel in "$@"; do [ -z "${swept-}" ] || continue; swept=1',
        ),
        ("\tls | head -n 1", "ls | tail -n 1"),
    ],
)
def test_shell(line: str, expected: str) -> None:
    assert expected in made(f"{{\n{line}\n}}", SHELL)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("// if a == b {", RUST),
        ('    let text = "a == b && c < 1";', RUST),
        ("/* if (a < 1)\n * put(a, b);\n */", C),
        ("#if A > 1", C),
        ("#ifdef NVPM_KUNIT\nvoid again(void)\n{\n\tinit(&all, 5 * HZ, 10);\n}\n#endif", C),
        ("\tKUNIT_STATIC_STUB_REDIRECT(map, dev, addr,\n\t\t\t\t   len + 1);", C),
        ("# if [ 1 -eq 2 ]", SHELL),
        ("\tlocal a='a && b'", SHELL),
        ("mod tests {\n    if a == 1 {\n    }\n}", RUST),
        ("    let list: Vec<Option<u8>> = Vec::new();", RUST),
        ("fn both(first: &str, second: &str) {", RUST),
        ("static_assert(sizeof(struct a) == 152);", C),
        ("const NAMES: [&str; 2] =", RUST),
        ("\tlocal a=$(cat <<'END'\n\tif [ -e a ]; then\nEND", SHELL),
    ],
)
def test_nothing_is_changed(text: str, language: str) -> None:
    assert not made(text, language)


def test_a_mistake_is_put_into_its_line() -> None:
    text = "{\n    a == b;\n    a == b;\n}\n"
    second = [one for one in mistakes_in("file", text, RUST) if one.line == 3][0]
    assert second.put_in(text).splitlines()[1:3] == ["    a == b;", second.instead]


@pytest.mark.parametrize("area", AREAS)
def test_mistakes_of_people_fit_their_files(area: str) -> None:
    every = thoughts(area)
    assert every and len({one.name() for one in every}) == len(every)
    for one in every:
        text = (TOP / one.file).read_text(encoding="utf-8")
        assert one.put_in(text) != text


def test_pieces_are_found_in_the_old_text() -> None:
    moved = Thought("file", "Moved.", ("-a();", "...", " b();", "+a();"))
    assert moved.put_in("a();\nb();\n") == "b();\na();\n"
    with pytest.raises(AssertionError):
        moved.put_in("a();\na();\nb();\n")
