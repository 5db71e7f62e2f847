# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the parts of `nvpm selftest` that choose one of several things on a machine that is made
of files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from machine import Machine as Made

from nvpm.facts.fact import BAD, WARN, Fact
from nvpm.read.machine import Machine
from nvpm.selftest import limits, matrix
from nvpm.selftest.judge import all_software, judge
from nvpm.selftest.limits import Limit
from nvpm.selftest.main import Reasons
from nvpm.selftest.port import Port, usable_port

PORTS = "/sys/class/infiniband/mlx5_0/ports"
ZERO, LOCAL, LOCAL_2 = (0, 0), (0xFE80 << 48, 1), (0xFE80 << 48, 2)
IPV4, IPV4_2 = (0, 0xFFFF0A000001), (0, 0xFFFF0A000002)
GLOBAL = (0x20010DB8 << 32, 1)
V1, V2 = "IB/RoCE v1", "RoCE v2"


def gid(words: tuple[int, int]) -> str:
    text = f"{words[0] << 64 | words[1]:032x}"
    return ":".join(text[at : at + 4] for at in range(0, 32, 4))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(str(tmp_path))


@pytest.mark.parametrize(
    ("entries", "index"),
    [
        ([(LOCAL, V2), (GLOBAL, V2)], 1),
        ([(GLOBAL, V2), (LOCAL, V2)], 0),
        ([(LOCAL, V2), (GLOBAL, V2), (IPV4, V2)], 2),
        ([(IPV4, V1), (LOCAL, V2)], 1),
        ([(IPV4, V1), (LOCAL, V1), (LOCAL, V2), (GLOBAL, V2)], 3),
        ([(LOCAL, V1), (GLOBAL, V1), (IPV4, V1)], 2),
        ([(IPV4_2, V2), (IPV4, V2)], 0),
        ([(LOCAL_2, V2), (LOCAL, V2)], 0),
        ([(ZERO, V2), (LOCAL, V2), (ZERO, V2)], 1),
    ],
)
def test_address_of_a_port(
    made: Made, entries: list[tuple[tuple[int, int], str]], index: int
) -> None:
    """If there are several addresses, selftest takes the address that programs also take, wherever
    that address stands."""
    made.gone(f"{PORTS}/1/gids", f"{PORTS}/1/gid_attrs")
    for at, (words, kind) in enumerate(entries):
        made.put(f"{PORTS}/1/gids/{at}", gid(words))
        made.put(f"{PORTS}/1/gid_attrs/types/{at}", kind)
    found, raw = Port(Machine(str(made.root)), f"{PORTS}/1").gid()
    assert (found, raw.hex()) == (index, gid(entries[index][0]).replace(":", ""))


def test_first_active_port(made: Made) -> None:
    """The port with the lowest number is used, and not the one whose name comes first."""
    for number, state in (1, "DOWN"), (10, "ACTIVE"), (2, "ACTIVE"):
        made.port("mlx5_0", number, state, "LinkUp", "InfiniBand")
    port, _ = usable_port(Machine(str(made.root)), "mlx5_0")
    assert port and port.number == 2
    for number in 2, 10:
        made.port("mlx5_0", number, "DOWN", "Polling", "InfiniBand")
    port, reason = usable_port(Machine(str(made.root)), "mlx5_0")
    assert port is None
    assert "(port 1 is DOWN, port 2 is DOWN, port 10 is DOWN)" in reason


@pytest.mark.parametrize(
    ("speed", "rate"),
    [
        # Gigabytes per second that are data, on a link with 16 lanes.
        ("2.5", 3.37),
        ("5.0", 6.74),
        ("8.0", 14.40),
        ("16.0", 28.81),
        ("32.0", 57.61),
        ("64.0", 115.23),
    ],
)
def test_rate_of_a_link(made: Made, speed: str, rate: float) -> None:
    made.link("0000:04:00.0", speed, 16)
    made.put(f"{PORTS}/1/rate", "4000 Gb/sec (4X)")
    for pci in "0000:02:00.0", "0000:02:01.0", "0000:03:00.0":
        made.link(pci, "128.0", 16)
    limit = limits.limit_of(Machine(str(made.root)), "0000:03:00.0", "mlx5_0", f"{PORTS}/1")
    assert limit and round(limit.rate / 1e9, 2) == rate
    assert limit.what == f"mlx5_0 {float(speed):g} GT/s x16"


@pytest.mark.parametrize(
    ("speeds", "what"),
    [
        # The speed of the GPU's link now, its best speed, the best speed of the slot, and the
        # speed of the RDMA device's link.
        (("2.5", "32.0", "32.0", "16.0"), "mlx5_0 16 GT/s x16"),
        (("2.5", "16.0", "32.0", "32.0"), "GPU 16 GT/s x16"),
        (("2.5", "32.0", "8.0", "16.0"), "GPU 8 GT/s x16"),
        (("32.0", "32.0", "Unknown", "64.0"), "GPU 32 GT/s x16"),
    ],
)
def test_slowest_part(made: Made, speeds: tuple[str, str, str, str], what: str) -> None:
    """The GPU's link counts with the speed that it has under load, and the device's link with the
    speed that it has now."""
    now, best, slot, device = speeds
    made.put(f"{PORTS}/1/rate", "4000 Gb/sec (4X)")
    made.link("0000:03:00.0", now, 16, best)
    made.link("0000:02:00.0", slot, 16)
    made.link("0000:04:00.0", device, 16, "64.0")
    limit = limits.limit_of(Machine(str(made.root)), "0000:03:00.0", "mlx5_0", f"{PORTS}/1")
    assert limit and limit.what == what


GPU, OTHER_GPU, NIC, OTHER_NIC = "0000:03:00.0", "0000:83:00.0", "mlx5_0", "mlx5_1"
CARD = Fact("RDMA devices", f"card {OTHER_NIC}", BAD, "has no driver", "x")
FAR = Fact("distance", f"{OTHER_GPU} nearest", WARN, "SYS", "x")
OF_PAIR = Fact("distance", f"{GPU} {NIC}", WARN, "SYS", "x")
OF_OTHERS = Fact(f"RDMA device {OTHER_NIC}", "place", BAD, "not a PCI device", "x")
MODULE = Fact("module", "state", WARN, "loaded, version 2.0.0", "x")


@pytest.mark.parametrize(
    ("facts", "names", "expected"),
    [
        ([CARD, FAR, OF_OTHERS], (GPU, NIC), []),
        ([CARD, FAR, OF_OTHERS], (GPU, OTHER_NIC), [CARD, OF_OTHERS]),
        ([CARD, FAR, OF_OTHERS], (OTHER_GPU, NIC), [FAR]),
        ([OF_OTHERS, OF_PAIR, MODULE], (GPU, NIC), [OF_PAIR, MODULE]),
        ([OF_OTHERS, OF_PAIR, MODULE], (GPU, OTHER_NIC), [OF_OTHERS]),
    ],
)
def test_reasons_of_a_pair(facts: list[Fact], names: tuple[str, str], expected: list[Fact]) -> None:
    """A failed pair is explained by facts about its own GPU and device, and by facts about no GPU
    and no device. The name of a GPU or a device is in the section or in the name of a fact."""
    reasons = Reasons(Machine("/nonexistent"), [GPU, OTHER_GPU, NIC, OTHER_NIC])
    reasons.facts = facts
    assert reasons.of(*names) == expected


def flow(to: float, back: float, limit: float | None, gpu: int = 0, device: str = NIC) -> Any:
    """Returns the results of a pair with these rates, whose links allow a rate. All rates are in
    gigabytes per second."""
    return SimpleNamespace(
        rates=lambda: (to * 1e9, back * 1e9),
        limit_of_links=None if limit is None else Limit(limit * 1e9, f"link {limit}"),
        distance="PIX",
        remarks=[],
        by_dma_buf=False,
        failure=None,
        gpu=SimpleNamespace(index=gpu),
        port=SimpleNamespace(device=device),
    )


@pytest.mark.parametrize(
    ("flows", "marked"),
    [
        # Each direction has its own best pair. A rate is marked below half of the best rate.
        ([flow(20, 4, None), flow(5, 10, None)], [1, 1]),
        ([flow(20, 5, None), flow(10, 10, None)], [0, 0]),
        ([flow(20, 20, None), flow(9.9, 9.9, None)], [0, 2]),
        # A rate is also marked below half of the rate that the links allow.
        ([flow(20, 20, 40), flow(20, 19, 40)], [0, 1]),
        # Slower links explain a slower rate, and equal links do not.
        ([flow(20, 20, 30), flow(9, 9, 15)], [0, 0]),
        ([flow(50, 50, 15), flow(9, 9, 15)], [0, 2]),
    ],
)
def test_slow_rates(flows: list[Any], marked: list[int]) -> None:
    for several in (flows, flows[::-1]):
        for one in several:
            one.remarks.clear()
        judge(several)
        assert [len(one.remarks) for one in flows] == marked


def test_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """The columns are in the order of the GPUs, also if the first device has no result with the
    first GPU. The last column has the fastest link of a device."""
    flows = [
        flow(3, 4, 10, gpu=1),
        flow(1, 2, 30, gpu=0, device=OTHER_NIC),
        flow(5, 6, 20, gpu=2, device=OTHER_NIC),
    ]
    for several in (flows, [flows[0], flows[2], flows[1]]):
        matrix.print_matrix(several)
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert rows[1][:6] == ["GPU", "0", "GPU", "1", "GPU", "2"]
        assert rows[2] == [NIC, "-", "3.0/4.0", "-", "10.0", "(link", "10)"]
        assert rows[3] == [OTHER_NIC, "1.0/2.0", "-", "5.0/6.0", "30.0", "(link", "30)"]


def test_link_of_a_coherent_gpu(made: Made) -> None:
    """The data of a coherent GPU does not pass the GPU's own link."""
    made.put(f"{PORTS}/1/rate", "4000 Gb/sec (4X)")
    made.link(GPU, "2.5", 1)
    limit = limits.limit_of(Machine(str(made.root)), GPU, NIC, f"{PORTS}/1")
    assert limit and limit.what == "GPU 2.5 GT/s x1"
    made.put(f"/proc/driver/nvidia/gpus/{GPU}/numa_status", "Node: 1")
    limit = limits.limit_of(Machine(str(made.root)), GPU, NIC, f"{PORTS}/1")
    assert limit and limit.what == "mlx5_0 32 GT/s x16"


def test_software_alone(made: Made) -> None:
    made.put("/sys/class/infiniband/rxe0/node_type", "1: CA")
    machine = Machine(str(made.root))
    hard, soft = flow(1, 1, None), flow(1, 1, None, device="rxe0")
    assert all_software(machine, [soft])
    assert not all_software(machine, [soft, hard]) and not all_software(machine, [])
