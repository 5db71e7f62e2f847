# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Shows the rates of `nvpm selftest --bandwidth` on one page for a browser, as a heat map of the
GPUs and RDMA devices."""

from typing import Iterator, List, Optional, Sequence, Tuple

from ..show.page import Markup, element, heat, legend, page, row, table, tiles
from .bandwidth import Flow
from .judge import gigabytes
from .matrix import FAILED, LOADS, SOFTWARE, allowed
from .printers import plural


def as_page(
    host: str, flows: Sequence[Flow], not_tested: Sequence[Tuple[str, str]], software: bool
) -> Iterator[str]:
    failed = sum(flow.failure is not None for flow in flows)
    slow = sum(len(flow.remarks) for flow in flows)
    title = f"{host}: {plural(len(flows), 'pair')} of GPU and RDMA device: "
    title += f"{failed} failed, {plural(slow, 'rate')} marked" if failed or slow else "all passed"
    return page(title, body(title, flows, not_tested, software, failed, slow))


def body(
    title: str,
    flows: Sequence[Flow],
    not_tested: Sequence[Tuple[str, str]],
    software: bool,
    failed: int,
    slow: int,
) -> Iterator[Markup]:
    yield element("h1", title)
    yield tiles(
        [
            (failed, "✗ failed", "bad" if failed else "good"),
            (slow, "! rates marked", "bad" if slow else "good"),
            (len(flows) - failed, "✓ passed", "good" if failed < len(flows) else "bad"),
        ]
    )
    yield from remarks(flows, not_tested)
    yield element("h2", "Measured rates")
    if software:
        yield element("p", SOFTWARE)
    yield legend("the rate that the links allow, or of the best pair if that is not known")
    for by_dma_buf in (False, True):
        chosen = [flow for flow in flows if flow.by_dma_buf == by_dma_buf]
        if chosen:
            yield matrix("dma-buf" if by_dma_buf else "pointer", chosen)


def remarks(flows: Sequence[Flow], not_tested: Sequence[Tuple[str, str]]) -> Iterator[Markup]:
    """Yields a table of what failed, is slow, or was not tested."""
    rows = []
    for flow in flows:
        name = f"GPU {flow.gpu.index} with {flow.port.device}" + ", dma-buf" * flow.by_dma_buf
        if flow.failure is not None:
            rows.append(row(name, [element("td", "✗ failed"), element("td", flow.failure)]))
        rows += [
            row(name, [element("td", "! slow"), element("td", remark)]) for remark in flow.remarks
        ]
    for device, reason in not_tested:
        rows.append(row(device, [element("td", "not tested"), element("td", reason)]))
    if rows:
        yield element("h2", "What needs attention")
        yield table("The likely cause is a guess.", ["Pair", "Result", "What was found"], rows)


def matrix(way: str, flows: Sequence[Flow]) -> Markup:
    """Returns a table with a row for each RDMA device and a column for each GPU."""
    best = max((rate or 0 for flow in flows for rate in flow.rates()), default=0)
    columns = sorted({flow.gpu.index for flow in flows})
    rows = []
    for device in dict.fromkeys(flow.port.device for flow in flows):
        there = {flow.gpu.index: flow for flow in flows if flow.port.device == device}
        cells = [cell(there.get(index), best) for index in columns]
        cells.append(element("td", allowed(list(there.values()))))
        rows.append(row(device, cells))
    head = ["RDMA device", *(f"GPU {index}" for index in columns), "links allow"]
    caption = f"by {way}: GB/s to the GPU / from the GPU. {LOADS}"
    return table(caption, head, rows, "heat")


def cell(flow: Optional[Flow], best: float) -> Markup:
    if not flow:
        return element("td", "-")
    if flow.failure is not None:
        return heat(None, FAILED)
    rates: List[float] = [rate or 0 for rate in flow.rates()]
    most = flow.limit_of_links.rate if flow.limit_of_links else best
    share = min(rates) / most if most else 1.0
    return heat(share, " / ".join(map(gigabytes, rates)), "! slow" if flow.remarks else "")
