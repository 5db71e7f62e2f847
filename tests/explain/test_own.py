# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The files in nvpm/data/own have each message that the programs of nv_peer_mem print, and no
other. `nvpm explain` answers each message with the words of its row."""

import printed
import pytest
from own import MESSAGES, Own, answer, of_causes, rows
from program import explain

PRINTED = printed.everything()
# Other programs print these, and tests/container/test_messages.py compares the messages of the pod.
OF_OTHERS = ("others-", "pod")
# A time stamp of dmesg, and a line of the journal and of dkms' make.log before a message.
BEFORE = ("", "[   12.345678] ", "Nov 26 20:14:07 beta7 kernel: ")


# ---- logs as they were written, and not made from the rows ----

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


def test_all_are_found() -> None:
    """The reader of the sources sees the messages of each program. The numbers are those of a
    count by hand of `die` and `missing` in build/, and of the macros in src/."""
    files = [one.file for one in PRINTED]
    build = "build/make", "build/configure", "build/find", "build/has", "build/rust"
    assert sum(file.startswith(build) for file in files) >= 50
    assert sum(file.startswith("src/") for file in files) >= 20
    for folder in (
        "init.d",
        "debian",
        "rpm",
        "preload/src",
        "nvpm/src/compare",
        "build/dkms",
        "nvpm",
    ):
        assert any(file.startswith(folder) for file in files), folder
    assert len(PRINTED) > 250 and len(MESSAGES) > 200
    assert len({one.id for one in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("one", PRINTED, ids=lambda one: f"{one.file}-{one.text[:40]}")
def test_each_message_has_a_row(one: printed.Printed, before: str) -> None:
    """A failure is the first cause. Other messages are known as such."""
    found = rows(before + one.text)
    assert found, one
    causes = of_causes(before + one.text)
    if any(row.is_failure for row in found):
        assert causes and answer(before + one.text)["answer"] == "cause", (one, found)


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.id)
def test_each_row_is_printed(one: Own) -> None:
    if not one.group.startswith(OF_OTHERS):
        texts = [found.text for found in PRINTED]
        if one.group.startswith("nvpm"):
            texts += printed.literals_with(one.text)
        assert any(one in rows(text) for text in texts), one.text


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: one.id)
def test_a_failure_has_advice(one: Own) -> None:
    assert not one.is_failure or one.fields["do"], one


@pytest.mark.parametrize(("name", "log"), SAID, ids=[name for name, _ in SAID])
def test_logs(name: str, log: str) -> None:
    assert [one.id for one in of_causes(log)][:1] == [name]
    assert answer(log)["certain"]


@pytest.mark.parametrize("log", OURS)
def test_the_module_is_not_acquitted(log: str) -> None:
    assert "is not the cause" not in explain("--all", text=log).words


@pytest.mark.parametrize("log", OTHERS)
def test_the_module_is_acquitted(log: str) -> None:
    assert "nv_peer_mem is not the cause." in explain("--all", text=log).words


def test_what_is_fine() -> None:
    line = "[ 3.2] nv_peer_mem: version 2.0.0 loaded: GPU memory is pinned until deregistration"
    assert explain(text=line).code == 0
