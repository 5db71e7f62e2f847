# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges the rates of all pairs. Each rate is compared with the rate that the pair's links allow,
and with the rate of the best pair."""

from typing import List, Sequence

from ..facts.topology import NODE, PHB, SYS
from ..read.machine import Machine
from . import limits
from .bandwidth import Flow

# A rate is marked if it is below this share of the rate that the links allow, or of the best rate.
SHARE = 0.5

DIRECTIONS = ("to the GPU (the device writes)", "from the GPU (the device reads)")
# The likely cause if a direction is slow or does not work, by the distance of the pair.
CAUSES = {
    PHB: "the root complex: some forward reads between their root ports slowly or not at all",
    NODE: "two root complexes, between which the data passes the processor",
    SYS: "the link between the processors, which the data crosses",
}
SWITCHED = "ACS redirect at the switch (nvpm status: PCI, ACS), the IOMMU, or another load"


def likely(distance: str) -> str:
    return CAUSES.get(distance, SWITCHED)


def judge(flows: Sequence[Flow]) -> None:
    """Adds a remark to each flow for each slow direction."""
    for direction in (0, 1):
        measured = [flow for flow in flows if flow.rates()[direction] is not None]
        if measured:
            best = max(measured, key=lambda flow: flow.rates()[direction] or 0)
            for flow in measured:
                flow.remarks += remarks(flow, best, direction)


def remarks(flow: Flow, best: Flow, direction: int) -> List[str]:
    rate, most = flow.rates()[direction] or 0, best.rates()[direction] or 0
    limit = flow.limit_of_links
    text = f"{gigabytes(rate)} GB/s {DIRECTIONS[direction]}"
    cause = f"likely {likely(flow.distance)}"
    if limit and rate < SHARE * limit.rate:
        return [f"{text}, where {limit.what} allows {gigabytes(limit.rate)}; {cause}"]
    # Slower links explain a slower rate.
    others = best.limit_of_links
    slower = limit and others and limit.rate < others.rate
    if not slower and rate < SHARE * most:
        return [f"{text}, and the best pair reaches {gigabytes(most)}; {cause}"]
    return []


def gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.1f}" if rate >= 1e8 else f"{rate / 1e9:.3f}"


def all_software(machine: Machine, flows: Sequence[Flow]) -> bool:
    return bool(flows) and all(limits.is_software(machine, flow.port.device) for flow in flows)
