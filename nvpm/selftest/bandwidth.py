# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures sustained transfers between a GPU and an RDMA device, in both directions, by one way."""

import time
from typing import Any, List, Optional

from . import Failure, abi, limits
from .trial import Trial, meaning

# DEPTH messages are under way at a time, which keeps the device busy. Each message has MESSAGE
# bytes.
DEPTH, MESSAGE = 32, 2 << 20


class Flow(Trial):
    """A trial of sustained transfers. Its `to_gpu` and `from_gpu` are rates in bytes per second."""

    DEPTH = DEPTH

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.limit_of_links = limits.limit_of(
            self.machine, self.gpu.pci, self.port.device, self.port.path
        )
        self.distance = limits.distance_of(self.machine, self.gpu.pci, self.port.device)
        # The rates are judged after all trials.
        self.remarks: List[str] = []

    def steps(self) -> None:
        self.to_gpu = self.move_to_gpu()
        self.from_gpu = self.move_from_gpu()

    def write(self, what: str, local: Any, remote: Any) -> float:
        """Returns the sustained rate, in bytes per second. Writes the whole buffer once before, so
        that the device is warm. This also moves the end of the buffer, which sustained() leaves out
        if it is shorter than a message."""
        self.write_once(what, local, remote)
        return self.sustained(what, local, remote)

    def sustained(self, what: str, local: Any, remote: Any) -> float:
        """Keeps the queue full for `seconds` seconds. Returns the rate in bytes per second."""
        length = min(self.message, MESSAGE)
        offsets = range(0, self.size - length + 1, length)
        found = (abi.ibv_wc * DEPTH)()
        posted = done = 0
        begun = now = time.monotonic()
        silent_since = begun
        while True:
            filling = now < begun + self.seconds or posted == 0
            while filling and posted - done < DEPTH:
                offset = offsets[posted % len(offsets)]
                self.queue.post(abi.IBV_WR_RDMA_WRITE, local, remote, length, offset)
                posted += 1
            statuses = self.device.completed(found)
            now = time.monotonic()
            if statuses:
                done, silent_since = done + len(statuses), now
            bad = next((status for status in statuses if status != "IBV_WC_SUCCESS"), None)
            if bad:
                raise Failure(
                    f"{what}: one of {done} messages ended with {bad}{meaning(what, self.port)}"
                )
            if not filling and done == posted:
                return done * length / max(now - begun, 1e-9)
            if now > silent_since + self.limit:
                raise Failure(f"{what}: no completion within {self.limit} s")

    def rates(self) -> List[Optional[float]]:
        return [self.to_gpu, self.from_gpu]
