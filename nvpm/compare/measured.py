# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The features of a node that `nvpm selftest --json` found. Rates differ a little between equal
nodes, so a rate is compared with the median of all nodes."""

from statistics import median
from typing import Dict, Iterator, List, Tuple, cast

from .features import Features, Json

# No device transfers more bytes per second. A node may print any number, also an infinite one.
FASTEST = 1e15
# A rate below this share of the median makes a node odd.
SHARE = 0.8

Rates = Dict[str, float]


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
            rate = pair.get(key)
            if isinstance(rate, (int, float)) and 0 <= rate <= FASTEST:
                found[f"{name}, {direction}"] = float(rate)
    return found


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
