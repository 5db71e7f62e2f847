# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures sustained transfers between a GPU and an RDMA device, in both directions, by one way."""

import contextlib
import time
from typing import Any, List, Optional

from . import Failure, abi, limits, verbs
from .trial import FROM_GPU, TO_GPU, Trial, meaning, pattern, poison

# DEPTH messages are under way at a time, which keeps the device busy. Each message has MESSAGE
# bytes.
DEPTH, MESSAGE = 32, 2 << 20


class Flow(Trial):
    """A trial of sustained transfers. Its `to_gpu` and `from_gpu` are rates in bytes per second."""

    DEPTH = DEPTH

    def run(self, library: verbs.Library) -> bool:
        """Returns whether all bytes arrived. The rates are judged after all trials."""
        self.limit_of_links = limits.limit_of(
            self.machine, self.gpu.pci, self.port.device, self.port.path
        )
        self.distance = limits.distance_of(self.machine, self.gpu.pci, self.port.device)
        self.remarks: List[str] = []
        try:
            with contextlib.ExitStack() as stack:
                try:
                    self.prepare(stack, library)
                    self.to_gpu = self.sustained_to_gpu()
                    self.from_gpu = self.sustained_from_gpu()
                except Failure as failure:
                    self.failure = str(failure)
        except Failure as failure:
            self.failure = self.failure or str(failure)
        return self.failure is None

    def sustained_to_gpu(self) -> float:
        what = TO_GPU
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "to")
        self.memory.put(poison(self.size))
        self.host[:] = data
        self.write_once(what, self.host_region, self.gpu_region)
        rate = self.sustained(what, self.host_region, self.gpu_region)
        self.compare(what, data, self.memory.get())
        return rate

    def sustained_from_gpu(self) -> float:
        what = FROM_GPU
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "from")
        self.memory.put(data)
        self.host[:] = poison(self.size)
        self.write_once(what, self.gpu_region, self.host_region)
        rate = self.sustained(what, self.gpu_region, self.host_region)
        self.compare(what, data, self.host[:])
        return rate

    def write_once(self, what: str, local: Any, remote: Any) -> None:
        """Writes the whole buffer once, so that the device is warm. This also moves the end of the
        buffer, which sustained() leaves out if it is shorter than a message."""
        for offset in range(0, self.size, self.message):
            length = min(self.message, self.size - offset)
            status = self.transfer(what, abi.IBV_WR_RDMA_WRITE, local, remote, length, offset)
            if status != "IBV_WC_SUCCESS":
                raise Failure(
                    f"{what}: the RDMA write ended with {status}{meaning(what, self.port)}"
                )

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
