# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The features of a node that `nvpm selftest --json` found. Rates differ a little between equal
nodes, so a rate is compared with the median of all nodes."""

from statistics import median
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, cast

from .features import Features, Json

# No device transfers more bytes per second. A node may print any number, also an infinite one.
FASTEST = 1e15
# A rate below this share of the median makes a node odd.
SHARE = 0.8

Rates = Dict[str, float]


class Pair(NamedTuple):
    """The rates of a GPU and an RDMA device by one way, from a test with --bandwidth: the rates to
    the GPU and from the GPU, and the rate that the links allow, in bytes per second."""

    to_gpu: Optional[float]
    from_gpu: Optional[float]
    allowed: Optional[float]
    failure: str
    slow: bool


# The pairs of a node, by GPU, RDMA device and way.
Pairs = Dict[Tuple[str, str, str], Pair]


def results(said: Json) -> Features:
    """Returns for each pair whether its test passed."""
    found = {}
    for name, pair in pairs_of(said):
        found[name] = "passed" if pair.get("passed") else f"failed: {pair.get('failure')}"
    if not found:
        absent = cast(List[Json], said.get("absent") or [])
        found["selftest"] = ", ".join(str(one.get("what")) for one in absent) or "tested nothing"
    return found


def rates(said: Json) -> Rates:
    """Returns the rates of sustained transfers, in bytes per second, by pair and direction. A test
    without --bandwidth measures a single transfer, which is no basis for a comparison."""
    found: Rates = {}
    for name, pair in pairs_of(said) if said.get("bandwidth") else ():
        for key, direction in (("to_gpu", "to the GPU"), ("from_gpu", "from the GPU")):
            rate = number(pair.get(key))
            if rate is not None:
                found[f"{name}, {direction}"] = rate
    return found


def pairs(said: Json) -> Pairs:
    """Returns the pairs of a test with --bandwidth."""
    found: Pairs = {}
    for pair in cast(List[Json], said.get("pairs") or []) if said.get("bandwidth") else ():
        place = str(pair.get("gpu")), str(pair.get("device")), str(pair.get("way"))
        found[place] = Pair(
            number(pair.get("to_gpu")),
            number(pair.get("from_gpu")),
            number(pair.get("links_allow")),
            "" if pair.get("passed") else str(pair.get("failure") or "failed"),
            bool(pair.get("slow")),
        )
    return found


def number(rate: object) -> Optional[float]:
    """Returns a rate, or None for anything that is no rate."""
    good = isinstance(rate, (int, float)) and 0 <= rate <= FASTEST
    return float(cast(float, rate)) if good else None


def pairs_of(said: Json) -> Iterator[Tuple[str, Json]]:
    for pair in cast(List[Json], said.get("pairs") or []):
        yield (
            f"selftest, GPU {pair.get('gpu')} with {pair.get('device')} by {pair.get('way')}",
            pair,
        )


def compared(measured: Dict[str, Rates]) -> Dict[str, Features]:
    """Returns for each node its rates as features. All usual rates of a pair have the same value,
    which is the median."""
    by_name: Dict[str, List[float]] = {}
    for found in measured.values():
        for name, rate in found.items():
            by_name.setdefault(name, []).append(rate)
    usual = {name: median(values) for name, values in by_name.items()}
    return {
        node: {name: as_feature(rate, usual[name]) for name, rate in found.items()}
        for node, found in measured.items()
    }


def as_feature(rate: float, usual: float) -> str:
    if rate >= SHARE * usual:
        return f"about {usual / 1e9:.3g} GB/s"
    return f"{100 * rate / usual:.0f} % of the usual rate"
