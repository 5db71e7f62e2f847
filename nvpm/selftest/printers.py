# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints each result at once as text, or all results at the end as JSON."""

import argparse
import json
import os
from typing import Dict, List, Optional

from .. import release
from ..facts.fact import Fact
from ..read.machine import Machine
from . import Absent
from .trial import Trial

SCHEMA = 1
FREED = {
    "revoked": "freed: the device was refused (revocable)",
    "pinned": "freed: pinned until deregistered (persistent)",
}


def amount(size: int) -> str:
    for unit, name in (20, "MiB"), (10, "KiB"):
        if size % (1 << unit) == 0:
            return f"{size >> unit} {name}"
    return f"{size} bytes"


def rate(size: int, seconds: float) -> float:
    """Returns bytes per second."""
    return size / max(seconds, 1e-9)


def speed(size: int, seconds: float) -> str:
    megabytes = rate(size, seconds) / 1e6
    return f"{megabytes / 1000:.1f} GB/s" if megabytes >= 1000 else f"{megabytes:.1f} MB/s"


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


class Text:
    # The number of rates that are marked; only --bandwidth judges rates.
    slow = 0

    def progress(self, trial: Trial, done: int) -> None:
        """Is called before each trial. Prints nothing here, because a trial without --bandwidth
        takes less than a second."""

    def judged(self, machine: Machine, trials: List[Trial]) -> None:
        """Is called after all trials. Prints nothing here."""

    def begin(self, options: argparse.Namespace, gpus: int, devices: int) -> None:
        print(
            f"nvpm selftest: {plural(gpus, 'GPU')}, {plural(devices, 'RDMA device')}; "
            f"{amount(options.size)} each way, seed {options.seed}",
            flush=True,
        )

    def not_tested(self, device: str, reason: str) -> None:
        print(f"      {device}: not tested: {reason}", flush=True)

    def pair(self, trial: Trial, facts: List[Fact]) -> None:
        gpu, port = trial.gpu, trial.port
        by = ", dma-buf" if trial.by_dma_buf else ""
        pair = f"GPU {gpu.index} {gpu.pci}, {port.device}/{port.number}{by}"
        if trial.failure is None:
            size = amount(trial.size)
            print(
                f"  ok  {pair}: to GPU {size}, {speed(trial.size, trial.to_gpu or 0)}; "
                f"from GPU {size}, {speed(trial.size, trial.from_gpu or 0)}; {FREED[trial.freed]}"
            )
        else:
            print(f" !!   {pair}: {trial.failure}")
        for fact in facts:
            print(f"        status: {fact.section}: {fact.name}: {fact.value}")
            if fact.advice:
                print(f"          -> {fact.advice}")
        print(end="", flush=True)

    def absent(self, missing: List[Absent]) -> None:
        for one in missing:
            print(f"nvpm selftest: nothing was tested: {one.what}\n  -> {one.advice}")

    def end(self, _code: int, passed: int, failed: int) -> None:
        if failed:
            print(f"nvpm selftest: {failed} of {plural(passed + failed, 'pair')} FAILED")
        elif passed:
            print(f"nvpm selftest: passed, {plural(passed, 'pair')}")


class Json(Text):
    """Collects the results, and prints one JSON object at the end."""

    def __init__(self) -> None:
        self.said: Dict[str, object] = {
            "schema": SCHEMA,
            "nvpm": release().partition(" ")[2],
            "host": os.uname().nodename,
        }
        self.pairs: List[Dict[str, object]] = []
        self.passed_over: List[Dict[str, str]] = []
        self.missing: List[Dict[str, str]] = []

    def begin(self, options: argparse.Namespace, _gpus: int, _devices: int) -> None:
        self.said.update(size=options.size, seed=options.seed)

    def not_tested(self, device: str, reason: str) -> None:
        self.passed_over.append({"device": device, "reason": reason})

    def pair(self, trial: Trial, facts: List[Fact]) -> None:
        self.pairs.append(
            {
                "gpu": trial.gpu.index,
                "pci": trial.gpu.pci,
                "device": trial.port.device,
                "port": trial.port.number,
                "way": "dma-buf" if trial.by_dma_buf else "pointer",
                "passed": trial.failure is None,
                "failure": trial.failure,
                "status": [self.line(fact) for fact in facts],
                **self.measured(trial),
            }
        )

    def measured(self, trial: Trial) -> Dict[str, object]:
        """Returns what the trial measured, with rates in bytes per second."""

        def bytes_in_a_second(seconds: Optional[float]) -> Optional[int]:
            return None if seconds is None else int(rate(trial.size, seconds))

        return {
            "to_gpu": bytes_in_a_second(trial.to_gpu),
            "from_gpu": bytes_in_a_second(trial.from_gpu),
            "freed": trial.freed or None,
        }

    @staticmethod
    def line(fact: Fact) -> Dict[str, str]:
        return {
            "section": fact.section,
            "name": fact.name,
            "verdict": fact.verdict,
            "value": fact.value,
            "advice": fact.advice,
        }

    def absent(self, missing: List[Absent]) -> None:
        self.missing = [{"what": one.what, "advice": one.advice} for one in missing]

    def end(self, code: int, passed: int, failed: int) -> None:
        self.said.update(pairs=self.pairs, not_tested=self.passed_over, absent=self.missing)
        self.said.update(exit_code=code, passed=passed, failed=failed)
        print(json.dumps(self.said, indent=2, sort_keys=True))
