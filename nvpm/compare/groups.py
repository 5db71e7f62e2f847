# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Groups the nodes that are alike, and finds the features in which a group differs from the
others."""

from typing import Counter, Dict, List, NamedTuple, Tuple

from .features import Features
from .names import folded as folded

MISSING = "not there"

Difference = Tuple[str, str]

# The beginnings of features on which others depend, the first cause first.
CAUSES = (
    *("kernel", "machine, ", "GPU, driver", "GPU, ", "driver, nvidia", "driver, ", "RDMA device, "),
    *("RDMA devices, ", "RDMA core, peer memory", "RDMA core, ", "security, ", "module, state"),
    *("module, ", "access, ", "PCI, ", "distance", "ways", "selftest"),
)


class Group(NamedTuple):
    """Nodes that have the same differences from the norm. A difference is a feature and its value
    on these nodes."""

    nodes: List[str]
    differences: List[Difference]


def modes_of(nodes: Dict[str, Features]) -> Features:
    """Returns the most frequent value of each feature."""
    counts: Dict[str, Counter[str]] = {}
    for found in nodes.values():
        for name, value in found.items():
            counts.setdefault(name, Counter())[value] += 1
    modes = {}
    for name, count in counts.items():
        value, times = count.most_common(1)[0]
        # Most nodes may lack the feature.
        modes[name] = value if times >= len(nodes) - sum(count.values()) else MISSING
    return modes


def norm_of(nodes: Dict[str, Features]) -> Features:
    """Returns the features of the largest group of equal nodes: of several, the group that is most
    like all nodes. Features of different nodes together would be a node that does not exist."""
    modes = modes_of(nodes)
    groups = groups_of(nodes, modes)
    if not groups:
        return modes
    largest = max(groups, key=lambda group: (len(group.nodes), -len(group.differences)))
    features = nodes[largest.nodes[0]]
    return {name: features.get(name, MISSING) for name in modes}


def rank(difference: Difference, norm: Features) -> Tuple[bool, int]:
    """Returns the place of a feature among the differences of a node: causes first, and features
    that are not on both sides last, because they mostly follow from another."""
    name, value = difference
    place = next((at for at, begin in enumerate(CAUSES) if name.startswith(begin)), len(CAUSES))
    return MISSING in (value, norm[name]), place


def groups_of(nodes: Dict[str, Features], norm: Features) -> List[Group]:
    """Returns the groups of equal nodes, the smallest first."""
    found: Dict[Tuple[Difference, ...], List[str]] = {}
    for node, its in nodes.items():
        differences = tuple(
            (name, its.get(name, MISSING))
            for name, usual in norm.items()
            if its.get(name, MISSING) != usual
        )
        found.setdefault(differences, []).append(node)
    groups = [
        Group(names, sorted(differences, key=lambda one: rank(one, norm)))
        for differences, names in found.items()
    ]
    return sorted(groups, key=lambda group: (len(group.nodes), group.nodes[0]))
