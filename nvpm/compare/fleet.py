# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The nodes of a fleet: their kinds, and the groups of each kind."""

from collections import Counter
from typing import Container, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..read.machine import clean
from .features import Features, Key, Seen, seen
from .groups import MISSING, Group, groups_of, modes_of, nearest, norm_of
from .inputs import Node
from .kinds import kinds_of
from .measured import Pairs, Rates, compared, pairs, rates, results
from .names import MOST, without_domain
from .wording import is_real

# The versions of the JSON objects that are read: of nvpm status, and of nvpm selftest.
STATUS, SELFTEST = 2, 1


class Kind(NamedTuple):
    """Nodes of one kind. `norm` has the features that are usual among them, and `groups` the nodes
    that are alike, the smallest group first."""

    key: Key
    nodes: List[str]
    norm: Features
    groups: List[Group]

    def odd(self) -> List[Group]:
        return [group for group in self.groups if group.differences]

    def alike(self) -> List[str]:
        return [name for group in self.groups if not group.differences for name in group.nodes]


class Newer(ValueError):
    """A node has printed a later version of the JSON object. The message says what to do."""


class Expected(NamedTuple):
    """The nodes that should be there: their names, or only their number."""

    names: Sequence[str]
    number: int


class Fleet:
    """The nodes of all inputs."""

    def __init__(self, nodes: Iterator[Node], expected: Optional[Expected] = None) -> None:
        self.seen: Dict[str, Seen] = {}
        self.silent: List[Node] = []
        self.measured: Dict[str, Pairs] = {}
        self.tested: Dict[str, Features] = {}
        self.rates: Dict[str, Rates] = {}
        self.cut = False
        self.read(nodes)
        for name in self.tested:
            self.seen.setdefault(name, Seen({}))
        self.versions = versions(self.seen)
        self.kinds = self.of_kinds()
        self.nodes = {name: found.features for name, found in self.seen.items()}
        self.total = len(self.seen) + len(self.silent)
        self.expected = expected
        self.missing, self.unexpected = self.compared_with(expected)
        self.missing_count = len(self.missing)
        if expected and not expected.names:
            self.missing_count = max(0, expected.number - self.total)

    @property
    def odd(self) -> List[Group]:
        found = [group for kind in self.kinds for group in kind.odd()]
        return sorted(found, key=lambda group: (len(group.nodes), group.nodes[0]))

    @property
    def alike(self) -> int:
        return sum(len(kind.alike()) for kind in self.kinds)

    @property
    def norm(self) -> Features:
        """The features that are usual in the largest kind."""
        return self.kinds[0].norm if self.kinds else {}

    def read(self, nodes: Iterator[Node]) -> None:
        used: Dict[str, int] = {}
        used_by_tests: Dict[str, int] = {}
        for node in nodes:
            if len(self.seen) + len(self.tested) + len(self.silent) >= MOST:
                self.cut = True
                break
            name = clean(node.name)
            if node.status is None:
                self.silent.append(node._replace(name=name, words=clean(node.words)))
                continue
            try:
                if "facts" in node.status:
                    check_schema(node.status, STATUS, "status")
                    self.seen[unused(name, self.seen, used)] = seen(node.status)
                else:
                    check_schema(node.status, SELFTEST, "selftest")
                    name = unused(name, self.tested, used_by_tests)
                    self.tested[name] = results(node.status)
                    self.rates[name] = rates(node.status)
                    self.measured[name] = pairs(node.status)
            except Newer as reason:
                self.silent.append(Node(name, None, clean(str(reason))))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                self.silent.append(Node(name, None, "a status in another form"))

    def of_kinds(self) -> List[Kind]:
        """Returns the kinds. A node of no kind is compared with the nearest kind."""
        kinds, others = kinds_of({name: found.key for name, found in self.seen.items()})
        keys = [self.seen[nodes[0]].key for nodes in kinds]
        if others:
            norms = [norm_of({name: self.seen[name].features for name in nodes}) for nodes in kinds]
            near: Dict[str, int] = {}
            for name in others:
                features = self.seen[name].features
                apart = [distance(features, norm) for norm in norms]
                near[name] = apart.index(min(apart))
            for name, at in near.items():
                kinds[at].append(name)
        strangers = set(others)
        return [
            self.kind(at, key, kinds[at], set(kinds[at]) - strangers) for at, key in enumerate(keys)
        ]

    def kind(self, at: int, key: Key, nodes: List[str], own: Set[str]) -> Kind:
        """Returns a kind with its groups. OWN are the nodes that decide what is usual."""
        features = {name: self.seen[name].features for name in nodes}
        version = most_frequent([self.seen[name].nvpm for name in nodes if name in own])
        usual = {
            name: its
            for name, its in features.items()
            if name in own and self.seen[name].nvpm == version
        }
        norm = norm_of(usual)
        model = next((name for name, its in usual.items() if is_usual(its, norm)), "")
        theirs = self.seen[model].verdicts if model else frozenset()
        # Features that only other nodes have are differences, too.
        others = (its for name, its in features.items() if name not in usual)
        norm = {**{name: MISSING for its in others for name in its}, **norm}
        tested = self.add_selftests(nodes)
        norm.update(modes_of({name: its for name, its in tested.items() if name in own}))
        features.update((name, {**features[name], **its}) for name, its in tested.items())

        def counts(node: str, name: str, value: str, usual: str) -> bool:
            if name.startswith("selftest"):
                # Administrators may test only a part of the nodes, so a missing test is no
                # difference.
                return node in tested
            one = self.seen[node]
            return one.nvpm == version or is_real(name, value, usual, one.verdicts, theirs)

        groups = nearest(groups_of(features, norm, counts), norm)
        return Kind(key, nodes, norm, [group._replace(kind=at) for group in groups])

    def add_selftests(self, nodes: List[str]) -> Dict[str, Features]:
        """Adds the results of selftests to the nodes of a kind. Returns the results."""
        rated = compared({name: self.rates[name] for name in nodes if name in self.rates})
        tested = {name: self.tested[name] for name in nodes if name in self.tested}
        for name in tested:
            tested[name] = {**tested[name], **rated.get(name, {})}
            features = {**self.seen[name].features, **tested[name]}
            self.seen[name] = self.seen[name]._replace(features=features)
        return tested

    def compared_with(self, expected: Optional[Expected]) -> Tuple[List[str], List[str]]:
        """Returns the expected names that are not there, and the names that were not expected."""
        if not expected or not expected.names:
            return [], []
        there = {name.split("#")[0] for name in self.seen}
        there |= {node.name for node in self.silent}
        short = {without_domain(name) for name in there}
        wanted = set(expected.names) | {without_domain(name) for name in expected.names}
        missing = [
            name
            for name in expected.names
            if name not in there and without_domain(name) not in short
        ]
        return list(dict.fromkeys(missing)), sorted(
            name for name in there if name not in wanted and without_domain(name) not in wanted
        )


def is_usual(features: Features, norm: Features) -> bool:
    return all(features.get(name, MISSING) == value for name, value in norm.items())


def distance(features: Features, norm: Features) -> int:
    """Returns the number of features in which a node differs from a norm."""
    return sum(features.get(name, MISSING) != value for name, value in norm.items()) + sum(
        name not in norm for name in features
    )


def most_frequent(values: List[str]) -> str:
    return Counter(values).most_common(1)[0][0] if values else ""


def versions(nodes: Dict[str, Seen]) -> Dict[str, List[str]]:
    """Returns the nodes with each version of nvpm, the most frequent version first. A node without
    a status has no version."""
    found: Dict[str, List[str]] = {}
    for name, one in nodes.items():
        if one.features:
            found.setdefault(clean(one.nvpm), []).append(name)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def check_schema(said: Dict[str, object], known: int, command: str) -> None:
    schema = said.get("schema", 1)
    if isinstance(schema, int) and schema > known:
        version = f"nvpm {said['nvpm']}" if said.get("nvpm") else "a newer nvpm"
        raise Newer(
            f"{version} prints schema {schema} of nvpm {command} --json, and this nvpm reads up to "
            f"schema {known}: run nvpm compare of that version"
        )


def unused(name: str, names: Container[str], used: Dict[str, int]) -> str:
    """Returns NAME. If NAMES has this name already, appends a number to NAME. USED has the last
    number of each name, because one node may print thousands of statuses."""
    free = name
    while free in names:
        used[name] = used.get(name, 1) + 1
        free = f"{name}#{used[name]}"
    return free
