# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the rates of `nvpm selftest --bandwidth` as a matrix, and as JSON."""

import argparse
import sys
from typing import Dict, List, Optional, Sequence, cast

from ..facts.fact import Fact
from ..read.machine import Machine
from . import judge, printers
from .bandwidth import DEPTH, Flow
from .judge import gigabytes
from .printers import amount, plural
from .trial import Trial

CELL, NAME = 13, 12
SOFTWARE = (
    "All devices are made of software: the figures show that data moves, and nothing about "
    "hardware."
)
FAILED = "FAILED"
LOADS = "Each pair is loaded alone; other jobs get less from these devices meanwhile."


class Text(printers.Text):
    # All trials of the test, for the page.
    flows: Sequence[Flow] = ()

    def begin(self, options: argparse.Namespace, gpus: int, devices: int) -> None:
        print(
            f"nvpm selftest --bandwidth: {plural(gpus, 'GPU')}, {plural(devices, 'RDMA device')}; "
            f"{options.seconds} s each way, {DEPTH} messages at a time, {amount(options.size)} of "
            f"memory\n{LOADS}",
            flush=True,
        )
        self.total = gpus * devices

    def progress(self, trial: Trial, done: int) -> None:
        """On a terminal, prints the pair that is being tried. `total` is the number of pairs,
        because the number of ways is known only after all ways are tried."""
        if sys.stderr.isatty():
            by = "dma-buf" if trial.by_dma_buf else "pointer"
            pair = f"GPU {trial.gpu.index}, {trial.port.device}, by {by}"
            sys.stderr.write(f"\r{pair} ({done} done of {self.total} by each way)\033[K")
            sys.stderr.flush()

    def pair(self, trial: Trial, facts: List[Fact]) -> None:
        if trial.failure is not None:
            self.clear()
            super().pair(trial, facts)

    def clear(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def judged(self, machine: Machine, trials: List[Trial]) -> None:
        self.clear()
        self.flows = flows = cast(List[Flow], trials)
        judge.judge(flows)
        for by_dma_buf in (False, True):
            chosen = [flow for flow in flows if flow.by_dma_buf == by_dma_buf]
            if chosen:
                print_matrix(chosen)
        if judge.all_software(machine, flows):
            print(SOFTWARE)
        for flow in flows:
            for remark in flow.remarks:
                self.slow += 1
                by = ", dma-buf" if flow.by_dma_buf else ""
                print(
                    f"  !   GPU {flow.gpu.index} {flow.gpu.pci}, {flow.port.device}{by}: {remark}"
                )

    def end(self, _code: int, passed: int, failed: int) -> None:
        super().end(_code, passed, failed)
        if self.slow:
            print(f"nvpm selftest: {plural(self.slow, 'rate')} marked")


def print_matrix(flows: Sequence[Flow]) -> None:
    """Prints a row for each device and a column for each GPU. A cell has the rate to the GPU and
    the rate from the GPU. The last column has the rate that the links of the device allow."""
    way = "dma-buf" if flows[0].by_dma_buf else "pointer"
    print(f"by {way}, GB/s to the GPU / from the GPU:")
    columns = sorted({flow.gpu.index for flow in flows})
    print(" " * NAME + "".join(f"GPU {index}".rjust(CELL) for index in columns) + "   links allow")
    for device in dict.fromkeys(flow.port.device for flow in flows):
        row = {flow.gpu.index: flow for flow in flows if flow.port.device == device}
        cells = "".join(cell(row.get(index)).rjust(CELL) for index in columns)
        print(f"{device:<{NAME}}{cells}   {allowed(list(row.values()))}")


def cell(flow: Optional[Flow]) -> str:
    if not flow:
        return "-"
    if flow.failure is not None:
        return FAILED
    rates = "/".join(gigabytes(rate or 0) for rate in flow.rates())
    return rates + ("!" if flow.remarks else "")


def allowed(flows: Sequence[Flow]) -> str:
    limits = [flow.limit_of_links for flow in flows if flow.limit_of_links]
    if not limits:
        return "unknown"
    best = max(limits, key=lambda limit: limit.rate)
    return f"{gigabytes(best.rate)} ({best.what})"


class Json(printers.Json):
    """Prints one JSON object."""

    flows: Sequence[Flow] = ()

    def measured(self, trial: Trial) -> Dict[str, object]:
        flow = cast(Flow, trial)
        limit = flow.limit_of_links
        return {
            "to_gpu": None if trial.to_gpu is None else int(trial.to_gpu),
            "from_gpu": None if trial.from_gpu is None else int(trial.from_gpu),
            "links_allow": int(limit.rate) if limit else None,
            "limit": limit.what if limit else None,
            "distance": flow.distance or None,
        }

    def judged(self, machine: Machine, trials: List[Trial]) -> None:
        self.flows = flows = cast(List[Flow], trials)
        judge.judge(flows)
        for flow, said in zip(flows, self.pairs):
            said["slow"] = flow.remarks
            self.slow += len(flow.remarks)
        self.said["software_only"] = judge.all_software(machine, flows)

    def end(self, code: int, passed: int, failed: int) -> None:
        self.said["bandwidth"] = True
        super().end(code, passed, failed)
