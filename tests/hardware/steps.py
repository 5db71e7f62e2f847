# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of the steps: for each a name, its function, a time limit, and what must have held
before. The functions are in the files that are imported here. A step runs in a process of its own.
It writes a line for each thing that held, did not hold, or could not be tried. The same steps run
on hardware and in a guest of the lab; `lab` names the scenario that tries the same with injected
faults."""

from typing import Callable, List, NamedTuple, Optional, Tuple

import built
import ends
import gpus
import loading
import measure
import peer
import registrations
import transfers
from context import PERSISTENT, REVOCABLE, Context
from talk import Pair


class Step(NamedTuple):
    name: str
    act: Callable[[Context], None]
    # The seconds after which the step hangs, and about how long it takes.
    limit: int
    takes: int
    # Which scenario of the lab tries the same, with faults that only a double can make.
    lab: str = ""
    pair: Optional[Pair] = None
    mode: str = ""
    # The steps that must have held before. If one did not, this step is not tried.
    needs: Tuple[str, ...] = ()

    @property
    def last(self) -> str:
        return self.name.rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        return (self.act.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


OF_A_PAIR = (
    ("sizes", registrations.sizes, 300, 10, "straight errors"),
    ("kinds", registrations.kinds, 120, 5, "security"),
    ("across", registrations.across, 120, 5, "security"),
    ("transfers", transfers.transfers, 300, 10, "straight layouts"),
    ("atomics", transfers.atomics, 120, 3, ""),
    ("freed", ends.freed, 180, 10, "revoke freed"),
    ("freed-meanwhile", ends.freed_meanwhile, 180, 10, "revoke injected_frees"),
    ("killed", ends.killed, 180, 10, "kill"),
    ("forked", ends.forked, 120, 5, "inherit"),
    ("many", ends.many, 180, 10, "regions stress"),
    ("in-use", ends.in_use, 120, 5, "reload inherit"),
    ("dma-buf", transfers.dma_buf, 120, 5, "own_dma_bufs"),
)  # type: Tuple[Tuple[str, Callable[[Context], None], int, int, str], ...]


def plan_of_gpus(every: List[Pair], is_measured: bool) -> List[Step]:
    """Returns the steps of a run that tries only GPUs."""
    steps = [Step("build", gpus.prepare, built.CLIENT_LIMIT + 60, 10)]
    for gpu in every:
        for name, act, limit, takes in gpus.OF_A_GPU:
            if act is not gpus.measured or is_measured:
                whole = f"cuda/{gpu.name}/{name}"
                steps.append(Step(whole, act, limit, takes, "", gpu, "", ("build",)))
    return steps


def plan(pairs: List[Pair], is_measured: bool, builds: bool, has_peer: bool = False) -> List[Step]:
    """Returns the steps of a run, in order."""
    steps = [
        Step("build", loading.prepare, built.MODULE_LIMIT + 300, 120 if builds else 1),
        Step("take-out", loading.take_out, 300, 2, needs=("build",)),
    ]
    if has_peer:
        steps.append(Step("peer", peer.carry, 180, 5, needs=("build",)))
    for mode in (PERSISTENT, REVOCABLE):
        load = f"{mode}/load"
        steps.append(Step(load, loading.put_in, 300, 2, "parameters", None, mode, ("take-out",)))
        for pair in pairs:
            for name, act, limit, takes, lab in OF_A_PAIR:
                whole = f"{mode}/{pair.name}/{name}"
                steps.append(Step(whole, act, limit, takes, lab, pair, mode, (load,)))
            for name, act, limit, takes, lab in peer.OF_PEER if has_peer else ():
                if act is not peer.measured or is_measured:
                    whole = f"{mode}/{pair.name}/{name}"
                    needs = (load, "peer")
                    steps.append(Step(whole, act, limit, takes, lab, pair, mode, needs))
            if is_measured:
                whole = f"{mode}/{pair.name}/measure"
                steps.append(Step(whole, measure.ours, 600, 30, "bench", pair, mode, (load,)))
        steps.append(
            Step(f"{mode}/unload", loading.out_again, 300, 2, "reload", None, mode, (load,))
        )
    if is_measured:
        needs = ("take-out", "revocable/unload")
        theirs = "nvidia-peermem/load"
        steps.append(Step(theirs, measure.load_theirs, 300, 2, needs=needs))
        for pair in pairs:
            whole = f"nvidia-peermem/{pair.name}/measure"
            steps.append(Step(whole, measure.ours, 600, 30, "bench", pair, "", (theirs,)))
            whole = f"dma-buf/{pair.name}/measure"
            steps.append(Step(whole, measure.by_dma_buf, 600, 30, "", pair, "", ("build",)))
    return steps
