# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Shows a fleet on one page for a browser: the odd nodes first, then the kinds of nodes, and the
measured rates of each kind."""

from statistics import median
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..show.page import Markup, element, escaped, heat, legend, page, row, table, tiles
from .fleet import Fleet, Kind
from .groups import MISSING, Group
from .kinds import NAMES, deciding, value_of
from .names import folded
from .text import headline, plural, silent_by_words

# The groups and the differences of a group that the page shows.
MOST_GROUPS, MOST_DIFFERENCES = 200, 3
# The cells of all matrices. A matrix has a cell for each device and each GPU, also if few of these
# pairs were measured. A node has some hundred pairs.
MOST_CELLS = 20000
GB = 1e9


def as_page(fleet: Fleet) -> Iterator[str]:
    return page(headline(fleet), body(fleet))


def body(fleet: Fleet) -> Iterator[Markup]:
    yield element("h1", headline(fleet))
    yield counts(fleet)
    yield from odd(fleet)
    yield from absent(fleet)
    yield from versions(fleet)
    yield from kinds(fleet)
    yield from rates(fleet)


def counts(fleet: Fleet) -> Markup:
    differ = sum(len(group.nodes) for group in fleet.odd)
    found: List[Tuple[object, str, str]] = [
        (differ, "! differ", "bad" if differ else "good"),
        (len(fleet.silent), "✗ gave no status", "bad" if fleet.silent else "good"),
    ]
    if fleet.expected:
        found.append((fleet.missing_count, "? missing", "bad" if fleet.missing_count else "good"))
    found += [(fleet.alike, "✓ alike", "good" if fleet.alike else "bad")]
    return tiles([*found, (fleet.total, "nodes", ""), (len(fleet.kinds), "kinds", "")])


# ---- what is wrong ----


def odd(fleet: Fleet) -> Iterator[Markup]:
    groups = fleet.odd
    if not groups:
        return
    yield element("h2", "Nodes that differ")
    shown = groups[:MOST_GROUPS]
    head = ["Nodes", "Fact", "Here", "On the others"]
    several = len(fleet.kinds) > 1
    caption = "The rarest first. Others are the other nodes" + (" of the kind." if several else ".")
    yield table(caption, head, [line for group in shown for line in lines(fleet, group)])
    if len(groups) > len(shown):
        yield element("p", f"And {len(groups) - len(shown)} more groups: nvpm compare --all")


class Row(NamedTuple):
    """A difference of a group: the fact, its value on the group, and its value on the others."""

    fact: str
    here: str
    others: str


def rows_of(group: Group) -> List[Row]:
    """Returns the differences of a group. All results of the selftest are one row, because a slow
    device is slow with each GPU."""
    found, tested = [], []  # type: List[Row], List[Row]
    for name, value in group.differences:
        others = group.others[name]
        of = tested if name.startswith("selftest, ") else found
        of.append(Row(name, value, "none" if others == MISSING else others))
    if len(tested) < 2:
        return found + tested
    pair = tested[0].fact.partition(", ")[2]
    here = f"{tested[0].here}: {pair}; and {len(tested) - 1} more"
    return [*found, Row(f"selftest, {len(tested)} results", here, tested[0].others)]


def lines(fleet: Fleet, group: Group) -> Iterator[Markup]:
    """Yields the rows of a group, one for each difference."""
    found = rows_of(group)
    shown = found[:MOST_DIFFERENCES]
    more = len(found) - len(shown)
    head = Markup(escaped(folded(group.nodes)) + notes(fleet, group))
    for at, one in enumerate(shown):
        cells = [
            element("td", one.fact, "fact"),
            element("td", one.here, "here"),
            element("td", one.others),
        ]
        if at == 0:
            yield row(head, cells, len(shown) + (more > 0))
        else:
            yield Markup(f"<tr>{''.join(cells)}</tr>\n")
    if more > 0:
        yield Markup(f'<tr><td colspan="3" class="dim">and {more} more differences</td></tr>\n')


def notes(fleet: Fleet, group: Group) -> str:
    """Returns the number of nodes, their kind, and the nodes they are compared with."""
    said = [plural(len(group.nodes), "node")] if len(group.nodes) > 1 else []
    if len(fleet.kinds) > 1:
        said.append(f"kind {group.kind + 1}")
    if group.like:
        said.append(f"compared with {folded(list(group.like))}, which differ, too")
    return f" {element('small', '; '.join(said))}" if said else ""


def absent(fleet: Fleet) -> Iterator[Markup]:
    rows = [
        row(folded(names), [element("td", "no status"), element("td", words or "no output")])
        for words, names in silent_by_words(fleet).items()
    ]
    if fleet.missing:
        words = "nothing about these nodes was read"
        rows.append(row(folded(fleet.missing), [element("td", "missing"), element("td", words)]))
    elif fleet.missing_count:
        words = "--expect with the names of the nodes says which"
        count = plural(fleet.missing_count, "node")
        rows.append(row(count, [element("td", "missing"), element("td", words)]))
    if fleet.unexpected:
        cells = [element("td", "not expected"), element("td", "compared all the same")]
        rows.append(row(folded(fleet.unexpected), cells))
    if rows:
        yield element("h2", "Dead, missing and unexpected nodes")
        yield table("The last words of each node.", ["Nodes", "State", "Words"], rows)


def versions(fleet: Fleet) -> Iterator[Markup]:
    if len(fleet.versions) > 1:
        yield element("h2", "Another nvpm")
        rows = [
            row(version or "an earlier one", [count(names), element("td", folded(names))])
            for version, names in fleet.versions.items()
        ]
        caption = "What only the words of two versions tell apart does not count as a difference."
        yield table(caption, ["Version of nvpm", "Number", "Nodes"], rows)


def count(names: List[str]) -> Markup:
    return element("td", len(names), "number")


# ---- the kinds ----


def kinds(fleet: Fleet) -> Iterator[Markup]:
    if not fleet.kinds:
        return
    yield element("h2", "Kinds of nodes")
    places = deciding([kind.key for kind in fleet.kinds]) or [0, 1, 2, 3]
    head = ["Kind", "Number", "Odd", *(NAMES[place] for place in places), "Nodes"]
    rows = []
    for at, kind in enumerate(fleet.kinds, 1):
        strange = sum(len(group.nodes) for group in kind.odd())
        cells = [
            count(kind.nodes),
            element("td", f"! {strange}" if strange else "0", "number"),
            *(element("td", value_of(kind.key, place)) for place in places),
            element("td", folded(kind.nodes)),
        ]
        rows.append(row(f"kind {at}", cells))
    yield table("The largest kind first. A node is compared with its kind.", head, rows)


# ---- the measured rates ----


class Cell(NamedTuple):
    """A pair on all nodes of a kind: the median rate, and the lowest rate with its node. A pair
    that failed on a node has no lowest rate."""

    usual: float
    lowest: Optional[float]
    node: str

    def share(self) -> Optional[float]:
        return None if self.lowest is None else self.lowest / self.usual if self.usual else 1.0


# The cells by way, then by RDMA device and GPU.
Matrix = Dict[str, Dict[Tuple[str, str], Cell]]


def rates(fleet: Fleet) -> Iterator[Markup]:
    matrices = [(at, matrix_of(fleet, kind)) for at, kind in enumerate(fleet.kinds, 1)]
    if not any(matrix for _, matrix in matrices):
        return
    yield element("h2", "Measured rates")
    yield legend("the usual rate, on the slowest node")
    left = MOST_CELLS
    for at, matrix in matrices:
        of = f"kind {at}, " if len(fleet.kinds) > 1 else ""
        for way, cells in matrix.items():
            devices = sorted({device for device, _ in cells}, key=in_order)
            gpus = sorted({gpu for _, gpu in cells}, key=in_order)
            left -= len(devices) * len(gpus)
            if left < 0:
                said = f"{of}by {way}: {len(devices)} RDMA devices and {len(gpus)} GPUs"
                yield element("p", f"{said} are too many for this page: nvpm compare --json")
                return
            yield one_matrix(f"{of}by {way}", cells, devices, gpus)


def one_matrix(
    what: str, cells: Dict[Tuple[str, str], Cell], devices: List[str], gpus: List[str]
) -> Markup:
    """Returns a table with a row for each RDMA device and a column for each GPU."""
    rows = []
    for device in devices:
        found = [cells.get((device, gpu)) for gpu in gpus]
        rows.append(row(device, [shown(cell) if cell else element("td", "-") for cell in found]))
    caption = (
        f"{what}: GB/s in the slower direction, the median of the nodes; below it the slowest "
        "node, if its rate is below 80 % of the median"
    )
    return table(caption, ["RDMA device", *(f"GPU {gpu}" for gpu in gpus)], rows, "heat")


def shown(cell: Cell) -> Markup:
    share = cell.share()
    if cell.lowest is None:
        return heat(share, f"{cell.usual / GB:.1f}", f"FAILED {cell.node}")
    below = f"{cell.lowest / GB:.1f} {cell.node}" if share is not None and share < 0.8 else ""
    return heat(share, f"{cell.usual / GB:.1f}", below)


def in_order(name: str) -> Tuple[str, int, str]:
    """Returns a key by which mlx5_10 comes after mlx5_9."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :][:9]
    return stem, int(digits) if digits.isdigit() and digits.isascii() else -1, name


def matrix_of(fleet: Fleet, kind: Kind) -> Matrix:
    """Returns the rates of a kind. The slower direction of a pair counts."""
    found: Dict[str, Dict[Tuple[str, str], List[Tuple[Optional[float], str]]]] = {}
    for node in kind.nodes:
        for (gpu, device, way), pair in fleet.measured.get(node, {}).items():
            known = [rate for rate in (pair.to_gpu, pair.from_gpu) if rate is not None]
            rate = min(known) if known and not pair.failure else None
            found.setdefault(way, {}).setdefault((device, gpu), []).append((rate, node))
    return {
        way: {place: cell_of(rated) for place, rated in cells.items()}
        for way, cells in found.items()
    }


def cell_of(rated: List[Tuple[Optional[float], str]]) -> Cell:
    good = [(rate, node) for rate, node in rated if rate is not None]
    usual = median([rate for rate, _ in good]) if good else 0.0
    failed = next((node for rate, node in rated if rate is None), None)
    if failed is not None:
        return Cell(usual, None, failed)
    return Cell(usual, *min(good))
