# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Groups the nodes that are alike, and finds the features in which a group differs from the
others."""

from typing import Callable, Counter, Dict, List, NamedTuple, Sequence, Tuple

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


# The number of larger groups with which a group is compared.
MOST_LARGER = 20


class Group(NamedTuple):
    """Nodes that have the same differences from the norm. A difference is a feature and its value
    on these nodes. `others` has the value of each such feature on the other nodes. If `like` has
    names, these nodes are the others: a larger group of odd nodes to which this group is nearer
    than to the norm. `kind` is the place of the kind in the fleet."""

    nodes: List[str]
    differences: List[Difference]
    others: Features = {}
    like: Sequence[str] = ()
    kind: int = 0


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
    """Returns the features of the largest group of equal nodes. If several groups have this size,
    takes the group that is most like all nodes. Features of different nodes together would be a
    node that does not exist."""
    modes = modes_of(nodes)
    groups = groups_of(nodes, modes)
    if not groups:
        return modes
    largest = max(groups, key=lambda group: (len(group.nodes), -len(group.differences)))
    features = nodes[largest.nodes[0]]
    return {name: features.get(name, MISSING) for name in modes}


def rank(difference: Difference, norm: Features) -> Tuple[bool, int]:
    """Returns the place of a feature among the differences of a node: causes first, and features
    that are not on both sides last, because they mostly follow from another difference."""
    name, value = difference
    place = next((at for at, begin in enumerate(CAUSES) if name.startswith(begin)), len(CAUSES))
    return MISSING in (value, norm[name]), place


def every(_node: str, _name: str, _value: str, _usual: str) -> bool:
    """Counts every difference."""
    return True


def groups_of(
    nodes: Dict[str, Features],
    norm: Features,
    counts: Callable[[str, str, str, str], bool] = every,
) -> List[Group]:
    """Returns the groups of equal nodes, the smallest first. COUNTS tells whether a difference
    counts."""
    found: Dict[Tuple[Difference, ...], List[str]] = {}
    for node, its in nodes.items():
        differences = tuple(
            (name, its.get(name, MISSING))
            for name, usual in norm.items()
            if its.get(name, MISSING) != usual and counts(node, name, its.get(name, MISSING), usual)
        )
        found.setdefault(differences, []).append(node)
    groups = [
        Group(
            names,
            sorted(differences, key=lambda one: rank(one, norm)),
            {name: norm[name] for name, _ in differences},
        )
        for differences, names in found.items()
    ]
    return sorted(groups, key=lambda group: (len(group.nodes), group.nodes[0]))


def nearest(groups: List[Group], norm: Features) -> List[Group]:
    """Compares each odd group with the group that differs least from it: the norm, or a larger odd
    group. If many nodes differ from the norm in the same way, a further fault of one of these nodes
    is thereby seen."""
    larger = [group for group in groups[::-1] if group.differences and len(group.nodes) > 1]
    return [compared_with_nearest(group, larger[:MOST_LARGER], norm) for group in groups]


def compared_with_nearest(group: Group, larger: List[Group], norm: Features) -> Group:
    best = group
    for other in larger:
        if len(other.nodes) > len(group.nodes):
            mine, theirs = dict(group.differences), dict(other.differences)
            apart = {
                name
                for name in {**mine, **theirs}
                if mine.get(name, norm[name]) != theirs.get(name, norm[name])
            }
            # The larger group is itself odd, so naming it must save more than one difference.
            if len(apart) + 1 < len(best.differences):
                others = {name: theirs.get(name, norm[name]) for name in apart}
                differences = [(name, mine.get(name, norm[name])) for name in apart]
                differences.sort(key=lambda one: (rank(one, others), one))
                best = Group(group.nodes, differences, others, other.nodes)
    return best
