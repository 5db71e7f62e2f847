# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table nvpm/own has each message that the programs of nv_peer_mem print, and no other. `nvpm
explain` and `nvpm advise` answer each message with the words of the table, and
docs/troubleshooting.md is made of it."""

import re
from pathlib import Path

import own_page
import printed
import pytest
from explained import scanned
from installed import TOP

from nvpm.explain import texts
from nvpm.explain.advise import advice
from nvpm.explain.answer import FOUND, NOTHING, Answer, plain
from nvpm.explain.judge import judged
from nvpm.explain.show import Text
from nvpm.explain.wording import sentence
from nvpm.own import others, pod
from nvpm.own.model import CAUSE, FINE, FOLLOWS, KINDS, Own
from nvpm.own.table import BY_ID, MESSAGES
from nvpm.read.machine import Machine

PRINTED = printed.everything()
# tests/container/test_messages.py compares the messages of the pod.
OF_OTHERS = [message for group in (*others.GROUPS, pod.POD) for message in group.messages]
# A time stamp of dmesg, and a line of the journal and of dkms' make.log before a message.
BEFORE = ("", "[   12.345678] ", "Nov 26 20:14:07 beta7 kernel: ")


# ---- logs as they were written, and not made from the table ----

MAKE_LOG = """\
DKMS make.log for nvidia-peer-memory-2.0.0 for kernel 6.8.0-60-generic (x86_64)
Wed Nov 25 08:12:44 UTC 2026
make: Entering directory '/var/lib/dkms/nvidia-peer-memory/2.0.0/build'
nv_peer_mem: no RDMA core with peer memory for kernel 6.8.0-60-generic: install MLNX_OFED or \
DOCA-OFED (package mlnx-ofed-kernel-dkms or doca-ofed) for it, or give OFA_KERNEL=.
make: *** [Makefile:34: modules] Error 1
make: Leaving directory '/var/lib/dkms/nvidia-peer-memory/2.0.0/build'
"""
SAID = [
    ("build-no-rdma-core", MAKE_LOG),
    (
        "build-no-driver",
        "nv_peer_mem is not built for kernel 6.1.0-40-amd64: no NVIDIA driver for kernel "
        "6.1.0-40-amd64: install it (package nvidia-open-kernel-dkms or nvidia-kernel-dkms), or "
        "give NV_SRC= with its Module.symvers.\n"
        "This kernel is skipped. When the cause is removed, run: dkms install "
        "nvidia-peer-memory/2.0.0 -k 6.1.0-40-amd64",
    ),
    (
        "module-parameter",
        "[  112.004211] nv_peer_mem: peerdirect_support=2: the values of this parameter are 0 and "
        "1 "
        "(modinfo nv_peer_mem explains them); look for it in /etc/modprobe.d\n"
        "modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument",
    ),
    (
        "service-still-in-use",
        "Nov 25 09:00:01 node7 nv_peer_mem[4711]: nv_peer_mem: still in use (registrations of GPU "
        "memory: 3). End the programs that hold them, then try again.",
    ),
    (
        "load-not-found",
        "modprobe: FATAL: Module nv_peer_mem not found in directory /lib/modules/6.8.0-60-generic",
    ),
    ("unload-in-use", "rmmod: ERROR: Module nv_peer_mem is in use"),
    (
        "load-no-callback",
        "[ 4.1] nv_peer_mem: Unknown symbol nvpm_callback_serve (err -2)",
    ),
    (
        "load-gpl-only",
        "nv_peer_mem: module using GPL-only symbols uses symbols nvidia_p2p_get_pages from "
        "proprietary module nvidia.",
    ),
    (
        "load-unsupported",
        "modprobe: ERROR: module 'nv_peer_mem' is unsupported\n"
        "modprobe: ERROR: Use --allow-unsupported or set allow_unsupported_modules 1 in "
        "/etc/modprobe.d/10-unsupported-modules.conf",
    ),
]


def rows(line: str) -> list[Own]:
    """Returns the messages of the table that the line contains."""
    return [one for one in MESSAGES if texts.pattern(one.text).search(line)]


def answer(*lines: str) -> Answer:
    scan = scanned(list(lines))
    return Answer(["log"], scan, judged(scan), None)


def words(line: str) -> tuple[str, str]:
    """Returns the cause and the advice of a line."""
    found = answer(line)
    if found.verdict.causes:
        first = found.verdict.causes[0]
        return first.says(), first.best().to_do()
    asides = found.verdict.follows or found.verdict.aside
    message = asides[0].variant.entry.message
    return message.note, message.do


def test_all_are_found() -> None:
    """The reader of the sources sees the messages of each program. The numbers are those of a
    count by hand of `die` and `missing` in build/, and of the macros in src/."""
    files = [one.file for one in PRINTED]
    build = "build/make", "build/configure", "build/find", "build/has", "build/rust"
    assert sum(file.startswith(build) for file in files) >= 50
    assert sum(file.startswith("src/") for file in files) >= 20
    for folder in ("init.d", "debian", "rpm", "preload/src", "nvpm/compare", "build/dkms"):
        assert any(file.startswith(folder) for file in files), folder
    assert len(PRINTED) > 250


@pytest.mark.parametrize("one", PRINTED, ids=lambda one: f"{one.file}-{one.text[:40]}")
def test_each_message_has_a_row(one: printed.Printed) -> None:
    assert rows(one.text), one


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.id)
def test_each_row_is_printed(one: Own) -> None:
    if one not in OF_OTHERS:
        assert any(texts.pattern(one.text).search(found.text) for found in PRINTED), one.text


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.id)
def test_form(one: Own) -> None:
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)+", one.id) and one.kind in KINDS
    assert one.cause and not one.cause.endswith(".") and not one.action.endswith(".")
    assert one.kind == FINE or one.action
    assert not re.search("\n", one.cause + one.action)


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.id)
def test_the_answer_is_not_cut(one: Own) -> None:
    """The cause and the action fit into the lines that the answer has for them."""
    for said in (f"Cause (certain): {one.cause}.", f"To do: {one.action}."):
        lines = Text(answer()).sentence(plain(said))
        assert not lines[-1].endswith(" ..."), lines


def test_each_identifier_stands_once() -> None:
    assert len(BY_ID) == len(MESSAGES) > 200


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("one", PRINTED, ids=lambda one: f"{one.file}-{one.text[:40]}")
def test_explain_has_the_words(one: printed.Printed, before: str) -> None:
    """The answer for a line that a program prints has the cause and the action of a row of this
    line. If the line has several rows, the surest row counts."""
    found = rows(one.text)
    surest = [row for row in found if row.kind == CAUSE and not row.rest] or [
        row for row in found if row.kind == CAUSE
    ]
    said = words(before + one.text)
    expected = surest or found
    assert said[0] in {row.cause for row in expected}, (said, expected)
    if surest or all(row.kind == FOLLOWS for row in found):
        assert said[1] in {row.action for row in expected}
    assert answer(before + one.text).kind() == FOUND if surest else True


@pytest.mark.parametrize(("name", "log"), SAID, ids=[name for name, _ in SAID])
def test_advise_has_the_words(name: str, log: str, tmp_path: Path) -> None:
    """The service's advice has the cause of the table, and its action, unless the action depends on
    the machine."""
    one, said = BY_ID[name], advice(Machine(str(tmp_path)), "nv_peer_mem", log)
    assert said.startswith(plain(sentence(one.cause))), said
    assert one.here or said.endswith(plain(sentence(one.action)))


def test_page() -> None:
    page = own_page.PAGE.read_text(encoding="utf-8")
    assert page == own_page.page(page), "run tests/nvpm/own_page.py"
    for one in MESSAGES:
        if one.kind != FINE:
            assert plain(one.cause)[1:40] in plain(page), one.id


@pytest.mark.parametrize(("name", "log"), SAID, ids=[name for name, _ in SAID])
def test_logs(name: str, log: str) -> None:
    found = answer(*log.splitlines())
    first = found.verdict.causes[0]
    assert (first.says(), first.best().to_do()) == (BY_ID[name].cause, BY_ID[name].action)
    assert found.verdict.certain()


def everything(log: str) -> str:
    """Returns the whole answer in one line."""
    return " ".join(" ".join(Text(answer(*log.splitlines())).everything()).split())


# Lines in which nv_peer_mem itself fails, or may fail.
OURS = [
    "nv_peer_mem: peerdirect_support=2: the values of this parameter are 0 and 1 (modinfo …)",
    "modprobe: ERROR: could not insert 'nv_peer_mem': Key was rejected by service",
    "nv_peer_mem: version magic '6.1.0-40-amd64 SMP' should be '6.1.0-41-amd64 SMP'",
    "nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client",
    "modprobe: FATAL: Module nv_peer_mem not found in directory /lib/modules/6.1.0-41-amd64",
    "modprobe: ERROR: could not insert 'nv_peer_mem': Exec format error",
    "Error! Bad return status for module build on kernel: 6.1.0-41-amd64 (x86_64)\nnv_peer_mem",
    "nv_peer_mem: no NVIDIA driver for kernel 6.1.0-41-amd64: install it (package …)",
]
OTHERS = [
    "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
    "max locked memory (kbytes, -l) 64",
    "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.",
]


@pytest.mark.parametrize("log", OURS)
def test_the_module_is_not_acquitted(log: str) -> None:
    assert "is not the cause" not in everything(log)


@pytest.mark.parametrize("log", OTHERS)
def test_the_module_is_acquitted(log: str) -> None:
    assert "nv_peer_mem is not the cause." in everything(log)


def test_what_is_fine() -> None:
    line = "[ 3.2] nv_peer_mem: version 2.0.0 loaded: GPU memory is pinned until deregistration"
    assert answer(line).kind() == NOTHING
    assert any(line[6:] in one for one in Text(answer(line)).brief())


def test_names_keep_their_letters() -> None:
    said = "\n".join(
        Text(answer("modprobe: ERROR: could not insert 'nvidia': Key was rejected")).brief()
    )
    assert "  nv_peer_mem cannot load before" in said


def test_script_of_the_page_is_beside_the_other() -> None:
    assert (TOP / "tests/nvpm/own_page.py").stat().st_mode & 0o100
