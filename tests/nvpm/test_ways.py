# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests what follows from the ways of several pairs of a GPU and an RDMA device."""

import pytest

from nvpm.read import peers, ways
from nvpm.read.machine import MODULE, PEERMEM, Machine
from nvpm.read.products import MAY, NO, YES
from nvpm.read.ways import DMA_BUF

Pairs = dict[tuple[str, str], list[str]]
A, B, NIC, OTHER = "0000:03:00.0", "0000:83:00.0", "mlx5_0", "efa_0"
OWN = "efa's own"


@pytest.mark.parametrize(
    ("pairs", "by_dma_buf", "without_core"),
    [
        ({}, False, False),
        ({(A, NIC): []}, False, False),
        ({(A, NIC): [MODULE, DMA_BUF]}, True, True),
        ({(A, NIC): [MODULE, PEERMEM]}, False, False),
        ({(A, NIC): [OWN]}, False, True),
        # Each GPU has to reach at least one device, and need not reach each device.
        ({(A, NIC): [MODULE], (A, OTHER): [DMA_BUF]}, True, True),
        ({(A, NIC): [DMA_BUF], (B, NIC): [MODULE]}, False, False),
        ({(A, NIC): [MODULE], (B, NIC): [DMA_BUF]}, False, False),
        ({(A, NIC): [DMA_BUF], (B, NIC): [OWN, MODULE]}, False, True),
        ({(A, NIC): [], (A, OTHER): [DMA_BUF], (B, NIC): [DMA_BUF], (B, OTHER): []}, True, True),
    ],
)
def test_served(
    monkeypatch: pytest.MonkeyPatch, pairs: Pairs, by_dma_buf: bool, without_core: bool
) -> None:
    monkeypatch.setattr(ways, "of_pairs", lambda _machine: pairs)
    machine = Machine("/nonexistent")
    assert ways.dma_buf_serves(machine) == by_dma_buf
    assert ways.served_without_core(machine) == without_core
    for way in (MODULE, PEERMEM, DMA_BUF, OWN):
        assert ways.there_are(machine, way) == any(way in found for found in pairs.values())


def test_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs are in one group only if they have the same ways to the same devices."""
    pairs: Pairs = {
        (gpu, device): [MODULE] if gpu == "c" and device == "y" else [MODULE, DMA_BUF]
        for gpu in "abc"
        for device in "xy"
    }
    monkeypatch.setattr(ways, "of_pairs", lambda _machine: pairs)
    assert ways.grouped(Machine("/nonexistent")) == [
        (["a", "b"], ["x", "y"], [MODULE, DMA_BUF]),
        (["c"], ["x"], [MODULE, DMA_BUF]),
        (["c"], ["y"], [MODULE]),
    ]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], ""),
        ([NO], "its driver never asks"),
        ([NO, NO], "no RDMA device can use it (its driver never asks)"),
        ([NO, YES], ""),
        ([YES, NO], ""),
        ([NO, MAY], ""),
    ],
)
def test_none_asks(monkeypatch: pytest.MonkeyPatch, answers: list[str], said: str) -> None:
    """If one of several devices asks, or may ask, the module has something to serve."""
    monkeypatch.setattr(peers, "nics", lambda _machine: answers)
    monkeypatch.setattr(
        peers, "asks", lambda _machine, can: peers.Asks(can, "its driver never asks")
    )
    assert peers.none_asks(Machine("/nonexistent")) == said
