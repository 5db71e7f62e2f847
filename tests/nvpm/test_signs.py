# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The facts that a log shows are seen in the forms in which users have them. The texts by which a
line is chosen for a pattern never miss a line that the pattern matches."""

import re

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as some

from nvpm.explain import needed
from nvpm.explain.conditions import holds_in_log
from nvpm.explain.log_facts import can_match, has_facts
from nvpm.explain.scan import Scan
from nvpm.explain.signs import PROGRAMS, SIGNS, Sign


def facts(*lines: str) -> Scan:
    scan = Scan()
    scan.read("log", [f"{line}\n".encode() for line in lines])
    return scan


@pytest.mark.parametrize("sign", [*SIGNS, *PROGRAMS], ids=lambda one: one.fact)
@seed(64)
@settings(max_examples=150, deadline=None, database=None)
@given(data=some.data())
def test_no_match_is_missed(sign: Sign, data: some.DataObject) -> None:
    text = data.draw(some.from_regex(sign.pattern))
    assert can_match(sign, text.lower()) and has_facts(text), text


def test_each_sign_needs_a_text() -> None:
    """A line is searched only if it has a text that a sign needs, so each sign must need a text."""
    assert not [sign.fact for sign in (*SIGNS, *PROGRAMS) if not sign.needed]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc|de", ("abc", "de")),
        ("a?bc", ("bc",)),
        ("x(?:one|two)?yz", ("yz",)),
        ("[Rr][Dd]ma", ("rdma",)),
        ("(?:ab)*c", ()),
        (r"\\d+ab+cde", ("cde",)),
        ("(?i)ABC", ("abc",)),
    ],
)
def test_needed_texts(pattern: str, expected: tuple[str, ...]) -> None:
    assert needed.texts(re.compile(pattern)) == expected


# Each line was taken from a public log or from the program's documentation.
FORMS: dict[str, list[tuple[str, ...]]] = {
    "gb10": [("Product Name: NVIDIA_DGX_Spark",), ("DGX Spark",), ("NVIDIA GB10",)],
    "gid_zero": [("MC_GID_INDEX=0",), ("export NCCL_IB_GID_INDEX=0",)],
    "rdma_up": [("        state:                  PORT_ACTIVE (4)",)],
    "memlock_limited": [
        ("libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",),
        ("$ ulimit -l", "64"),
        ("LimitMEMLOCK=65536",),
        ("    memlock:", "      soft: 65536"),
        ('"Name": "memlock",', '"Hard": 65536,'),
        ("Max locked memory         65536                65536                bytes",),
        ("max locked memory       (kbytes, -l) 64",),
    ],
    "memlock_unlimited": [
        ("$ ulimit -l", "unlimited"),
        ("$ docker exec vllm bash -c 'ulimit -l'", "unlimited"),
        ("LimitMEMLOCK=infinity",),
        ("    memlock:", "      soft: -1", "      hard: -1"),
        ('                "Name": "memlock",', '                "Hard": -1,'),
        ("docker run --ulimit memlock=-1 image",),
        ("docker run --ulimit memlock=-1:-1 image",),
        ("docker run --cap-add=IPC_LOCK image",),
        ('        add: ["IPC_LOCK"]',),
        ("          - IPC_LOCK",),
        ("Max locked memory         unlimited            unlimited            bytes",),
    ],
    "peermem_loaded": [
        ("nvidia_peermem         16384  0",),
        ("node1: nvidia_peermem         16384  0",),
        ("10.0.0.1: nvidia_peermem 16384 0",),
        ("- nvidia_peermem 16384 0",),
        ("root@n:~# nvidia_peermem 16384 0",),
        ("node1:lsmod.txt:nv_peer_mem 20480 0",),
        ("12 nvidia_peermem         16384  0",),
    ],
    "vmm": [
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",),
        ("{'expandable_segments': True}",),
        ('"expandable_segments":"True"',),
    ],
    "ucx_dmabuf": [("cuda dma_buf is supported",), ("dmabuf is supported",)],
    "perftest": [("ib_atomic_bw -d mlx5_0",)],
}
# Lines that only speak of a fact.
NO_FORMS: dict[str, list[tuple[str, ...]]] = {
    "vmm": [
        (
            "torch.OutOfMemoryError: CUDA out of memory. If reserved but unallocated memory is "
            "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
            "fragmentation.",
        ),
        ("{'expandable_segments': False}",),
        ('"expandable_segments":"False"',),
        ("unset PYTORCH_CUDA_ALLOC_CONF (was expandable_segments:True)",),
    ],
    "peermem_loaded": [("ib_core 434176 9 rdma_cm,nvidia_peermem,ib_uverbs",)],
    "memlock_limited": [("$ ulimit -l", "unlimited"), ("memlock:", "soft: -1")],
    "memlock_unlimited": [("$ ulimit -l", "64"), ("memlock:", "soft: 65536")],
}


def cases(forms: dict[str, list[tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(fact, lines) for fact, every in forms.items() for lines in every]


@pytest.mark.parametrize(("fact", "lines"), cases(FORMS))
def test_fact_is_seen(fact: str, lines: tuple[str, ...]) -> None:
    assert fact in facts(*lines).facts.names


@pytest.mark.parametrize(("fact", "lines"), cases(NO_FORMS))
def test_fact_is_not_seen(fact: str, lines: tuple[str, ...]) -> None:
    assert fact not in facts(*lines).facts.names


@pytest.mark.parametrize(
    "lines",
    [
        ("$ uname -r", "7.0.0-31-generic"),
        ("7.0.0-1019-nvidia",),
        ("Linux spark-a 7.0.0-1019-nvidia #19-Ubuntu SMP aarch64 GNU/Linux",),
        ("the kernel (7.0.0-1019-nvidia) of the image",),
        ("Linux version 7.0.0-1019-nvidia (buildd@bos03)",),
    ],
)
def test_kernel_is_seen(lines: tuple[str, ...]) -> None:
    assert holds_in_log("kernel>=7.0", facts(*lines).facts)
    assert not holds_in_log("kernel<7.0", facts(*lines).facts)


def test_version_in_the_name_of_a_package() -> None:
    scan = facts("Unpacking nccl_2.21.5-1+cuda12.4_x86_64.txz")
    assert scan.facts.versions["nccl"] == ["2.21.5"]
