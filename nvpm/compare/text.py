# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a fleet on one screen: the kinds of nodes, and the odd nodes."""

import sys
import textwrap
from typing import Dict, Iterator, List, Sequence

from .fleet import Fleet, Kind
from .groups import MISSING, Group
from .inputs import Node
from .kinds import NAMES, deciding, value_of
from .names import folded

# The lines of a screen, its columns, and the columns of a name.
HEIGHT, WIDTH, NAME = 24, 100, 14
# These features describe nodes that are alike.
DESCRIBING = (
    *("GPU, model", "driver, nvidia", "driver, flavour", "module, state", "module, source"),
    *("RDMA core, peer memory", "RDMA device, firmware", "ways", "kernel"),
)


def wrapped(name: str, text: str, most: int) -> List[str]:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=name.ljust(NAME - 1) + " ",
        subsequent_indent=" " * NAME,
        break_on_hyphens=False,
    )
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], lines[most - 1][: WIDTH - 4] + " ..."]


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def headline(fleet: Fleet) -> str:
    total, several = fleet.total, len(fleet.kinds) > 1
    nodes = plural(total, "node") + (f" of {len(fleet.kinds)} kinds" if several else "")
    alike = "is alike" if fleet.alike == 1 else "are alike"
    texts = [f"{nodes}: {fleet.alike} {alike}" + (" within their kind" if several else "")]
    if total == fleet.alike == 1:
        texts = ["1 node: there is no other to compare it with"]
    differ = sum(len(group.nodes) for group in fleet.odd)
    if differ:
        ways = plural(len(fleet.odd), "way")
        texts.append(f"{differ} {'differs' if differ == 1 else 'differ'}, in {ways}")
    if fleet.silent:
        texts.append(f"{len(fleet.silent)} gave no status")
    if fleet.missing_count:
        texts.append(f"{fleet.missing_count} {'is' if fleet.missing_count == 1 else 'are'} missing")
    return ", ".join(texts) + "."


def version_lines(fleet: Fleet) -> Iterator[List[str]]:
    """Yields a line for each other version of nvpm. Their words are no differences of nodes."""
    (usual, _), *others = fleet.versions.items() or [("", [])]
    for version, names in others:
        text = (
            f"another nvpm: {version or 'an earlier one'}; the others {usual or 'an earlier one'}"
        )
        yield named(names, text, 2)
    if others:
        yield [" " * NAME + "What only the words of two versions tell apart does not count."]


def sizes(fleet: Fleet) -> str:
    """Returns for example "12 kinds of 20 nodes" or "2 kinds, of 10 and 9 nodes"."""
    counts = [len(kind.nodes) for kind in fleet.kinds]
    if len(set(counts)) == 1:
        return f"{len(counts)} kinds of {plural(counts[0], 'node')}"
    shown = [str(count) for count in counts[:6]]
    if len(counts) > 6:
        return f"{len(counts)} kinds, of {', '.join(shown)} nodes and fewer"
    return f"{len(counts)} kinds, of {', '.join(shown[:-1])} and {shown[-1]} nodes"


def of_kind(fleet: Fleet, kind: Kind) -> str:
    """Returns the facts that decide a kind, and how much else differs from the first kind."""
    keys = [one.key for one in fleet.kinds]
    places = deciding(keys)
    text = ", ".join(f"{NAMES[place]} {value_of(kind.key, place)}" for place in places)
    first = fleet.kinds[0]
    if kind is first:
        return text
    names = {*first.norm, *kind.norm} - {"kernel", "driver, nvidia", "RDMA core, built for"}
    names -= {"GPU, model"}
    others = sum(
        kind.norm.get(name, MISSING) != first.norm.get(name, MISSING)
        for name in names
        if not name.startswith("selftest")
    )
    more = plural(others, "other difference") if others else "no other difference"
    return f"{text} ({more} from kind 1)"


def kind_lines(fleet: Fleet, every: bool) -> Iterator[List[str]]:
    """Yields the kinds. If some nodes are odd, the screen has lines for four kinds."""
    if len(fleet.kinds) < 2:
        return
    yield [sizes(fleet) + ":"]
    most = len(fleet.kinds) if every else 4 if fleet.odd or fleet.silent else 8
    for at, kind in enumerate(fleet.kinds[:most], 1):
        text = f"{plural(len(kind.nodes), 'node')}: {of_kind(fleet, kind)}: {folded(kind.nodes)}"
        name = f"  kind {at}"
        short = len(fleet.kinds) > 3 and not every
        yield [cut(name.ljust(NAME) + text)] if short else wrapped(name, text, 2 + 99 * every)
    if len(fleet.kinds) > most:
        yield [f"  and {len(fleet.kinds) - most} more kinds: nvpm compare --all"]


def silent_by_words(fleet: Fleet) -> Dict[str, List[str]]:
    """Returns the nodes with the same last words. The words may contain the name of the node, which
    becomes a star if several nodes have the same words otherwise."""
    by_words: Dict[str, List[Node]] = {}
    for node in fleet.silent:
        words = node.words.replace(node.name, "*") if len(node.name) > 2 else node.words
        by_words.setdefault(words, []).append(node)
    return {
        words if len(nodes) > 1 else nodes[0].words: [node.name for node in nodes]
        for words, nodes in by_words.items()
    }


def silent_lines(fleet: Fleet) -> Iterator[List[str]]:
    for words, names in silent_by_words(fleet).items():
        yield named(names, f"no status: {words or 'no output'}", 2)


def missing_lines(fleet: Fleet) -> Iterator[List[str]]:
    if fleet.missing:
        yield named(fleet.missing, "missing: nothing about these nodes was read", 2)
    elif fleet.missing_count and fleet.expected:
        count = fleet.expected.number
        yield [f"{count} nodes were expected: --expect with their names says which are missing"]
    if fleet.unexpected:
        yield named(fleet.unexpected, "not expected, and compared all the same", 2)


def named(names: List[str], text: str, most: int) -> List[str]:
    """Returns lines about nodes. Names that do not fit before the text have a line of their own."""
    name = folded(names)
    if len(name) <= NAME - 2:
        return wrapped(name, text, most)
    return [cut(name), *wrapped("", text, most)]


def cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 4] + " ..."


def group_lines(fleet: Fleet, group: Group, most: int) -> List[str]:
    """Returns lines with the differences of a group. Each difference is printed with the value that
    the other nodes have."""
    count = f"{len(group.nodes)} nodes: " if len(group.nodes) > 1 else ""
    others = "the others"
    if len(fleet.kinds) > 1:
        others = f"the others of kind {group.kind + 1}"
    if group.like:
        count += (
            f"as {plural(len(group.like), 'node')} that differ, too ({shortened(group.like)}), but "
        )
        others = "these"
    said: List[str] = []
    name = folded(group.nodes)
    if len(name) > NAME - 2:
        said, name = [cut(name)], ""
    for feature, value in group.differences:
        usual = group.others[feature]
        theirs = f"{others} have none" if usual == MISSING else f"{others} {usual}"
        said += wrapped(name, f"{count}{feature}: {value}; {theirs}", 2)
        name, count = "", ""
    if len(said) > most:
        said = [*said[: most - 1], " " * NAME + f"and {len(group.differences)} differences in all"]
    return said


def shortened(names: Sequence[str]) -> str:
    name = folded(list(names))
    return name if len(name) <= 30 else name[:26] + " ..."


def alike_lines(fleet: Fleet) -> List[str]:
    parts = [
        f"{name}: {fleet.norm[name]}"
        for name in DESCRIBING
        if fleet.norm.get(name, MISSING) != MISSING
    ]
    return wrapped("most nodes", "; ".join(parts), 4)


def as_text(fleet: Fleet, every: bool) -> Iterator[str]:
    """Yields one screen: the odd nodes first."""
    yield from textwrap.wrap(headline(fleet), WIDTH)
    blocks = [*version_lines(fleet), *kind_lines(fleet, every)]
    lines = [line for block in blocks for line in block]
    room = sys.maxsize if every else HEIGHT - 6
    if len(lines) > room // 2:
        lines = [*lines[: room // 2], "  and more of this: nvpm compare --all"]
    yield from lines
    room -= len(lines)
    blocks = [*silent_lines(fleet), *missing_lines(fleet)]
    blocks += [group_lines(fleet, group, sys.maxsize if every else 5) for group in fleet.odd]
    left = len(blocks)
    for block in blocks:
        if len(block) > room:
            break
        room -= len(block)
        left -= 1
        yield from block
    if left:
        yield f"and {left} more groups: nvpm compare --all"
    if len(fleet.kinds) < 2:
        yield from alike_lines(fleet)
