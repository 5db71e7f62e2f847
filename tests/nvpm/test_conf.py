# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm reads any configuration file in the same way as the shell functions of the service."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from installed import SERVICE

from nvpm.read import conf
from nvpm.read.machine import CONF

LINES = [
    *(b"", b"ONBOOT=yes", b"ONBOOT=no", b"MARKER=yes", b"marker = Off ;", b"export ONBOOT=1"),
    *(b"export  MARKER = 'true' ; # so", b"EXPORT ONBOOT=yes", b"exportONBOOT=yes", b"export"),
    *(b"ONBOOT", b"ONBOOT=", b"ONBOOT no", b"ONBOOT==yes", b"ONBOOT=yes=yes", b"ONBOOT= = yes"),
    *(b"ONBOOT_X=yes", b"ONBOOT1=yes", b"ONBOOTX=yes", b"ONBOOT-X=yes", b"ONBOOT =yes no"),
    *(b"# ONBOOT=yes", b"#", b" # x", b"ONBOOT#=yes", b"ONBOOT=yes#no", b"ONBOOT=yes # a # b"),
    *(b"ONBOOT=ye\0s", b"\0ONBOOT=yes", b"ONBOOT\0=yes", b"ONBOOT=yes\0", b"ONBOOT=$(id)"),
    *(b"ONBOOT=`id`", b"ONBOOT=yes; id", b". /etc/passwd", b"x" * 79, b"y" * 80, b"z" * 81),
    *(b"\xc3\xa4" * 50, b"ONBOOT=\xff", b"\xffONBOOT=no", b"ONBOOT=n\x7fo", b"\x1bONBOOT=enabled"),
    *(b'"ONBOOT"=yes', b'ONBOOT="y""es"', b"ONBOOT=' ye s '", b"ONBOOT=disabled;;  ;"),
    *(b"\xef\xbb\xbfONBOOT=yes", b"\xef\xbb\xbf", b" \xef\xbb\xbfONBOOT=yes", b"ONBOOT=y\\"),
    *(b"ONBOOT = yes", b"ONBOOT\t=\tno\r", b"ONBOOT=yes\x0b", b"ONBOOT;=yes", b"ONBOOT yes=no"),
]
PARTS = st.sampled_from(
    [
        *(b"ONBOOT", b"MARKER", b"onboot", b"Marker", b"export ", b"export", b"=", b" = ", b"yes"),
        *(b"no", b"Y", b"n", b"on", b"OFF", b"1", b"0", b"true", b"False", b"enabled", b"disabled"),
        *(b" ", b"\t", b"\r", b"\0", b"#", b" # ", b"'", b'"', b";", b"_", b"X", b"\n", b"\n\n"),
        *(b"\xef\xbb\xbf", b"\xff", b"\x1b[2J", b"\x7f", b"$(id)", b"\\", b"?", b"yes no"),
    ]
)
FILES = st.one_of(
    st.lists(PARTS, max_size=30).map(b"".join),
    st.lists(st.one_of(st.sampled_from(LINES), PARTS), max_size=12).map(b"\n".join),
    st.binary(max_size=200),
)


def by_shell(root: Path, data: bytes) -> list[tuple[str, str]]:
    file = root / CONF.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    said = subprocess.run(
        ["dash", "-c", ". ./conf.sh; conf_lines"],
        cwd=SERVICE,
        env={"NVPM_SYSROOT": str(root), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode("utf-8", "surrogateescape")
    found = (line.partition(" ") for line in said.split("\n") if line)
    return [(name, value) for name, _, value in found]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conf")


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_line(line: bytes, root: Path) -> None:
    """Tries a line without its newline, and the line after another line."""
    for data in (line, b"MARKER=no\n" + line + b"\n"):
        assert list(conf.read(data)) == by_shell(root, data)


def test_all_lines(root: Path) -> None:
    data = b"\n".join(LINES)
    found = list(conf.read(data))
    assert found == by_shell(root, data)
    assert {value for name, value in found if name != "?"} == {"yes", "no", "unclear"}


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=300,
    suppress_health_check=list(HealthCheck),
)
@given(FILES)
def test_any_file(root: Path, data: bytes) -> None:
    assert list(conf.read(data)) == by_shell(root, data)
