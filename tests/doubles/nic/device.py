# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The device as its driver sees it: the configuration space, registers and doorbells."""

import functools
import os

import commands
import completions
import pci
import requests
from card import FIRST_UAR, Card
from firmware import Firmware
from layout import C, View
from wire import Wire
from witness import Witness

UAR = 4096
EQ_DOORBELLS = (0x40, 0x48)

# Seconds between two looks at requests that wait.
TICK = 0.002


class Device(Card):
    """One network card. The class has the functions that vfio_user.py calls."""

    def __init__(self, wire: Wire[Card], witness: Witness, lid: int) -> None:
        self.firmware = Firmware(self)
        super().__init__(wire, witness, lid)
        self.config = pci.space()

    def end_faults(self) -> None:
        super().end_faults()
        self.firmware.end_faults()

    def plugged(self) -> None:
        """Starts the device anew, for a guest that starts."""
        if self is self.witness.cards[0]:
            self.witness.pinned.clear()
        self.memory.clear()
        for descriptor in self.interrupts.values():
            os.close(descriptor)
        self.interrupts.clear()
        self.firmware.come_back()
        self.reset()

    def unplugged(self) -> None:
        """Stops the device when its guest ends. The device's link goes down."""
        self.alive = False

    def reset(self) -> None:
        """Resets the function. A driver that uses the device must have ended its objects."""
        if self.alive:
            commands.report_left(self)
        self.config = pci.space()
        self.firmware.reset()
        self.forget()

    # ---- configuration space ----------------------------------------------------------

    def read_config(self, offset: int, length: int) -> bytes:
        return bytes(self.config[offset : offset + length])

    def write_config(self, offset: int, data: bytes) -> None:
        if offset == pci.PINS and len(data) == 4:
            self.witness.pins(int.from_bytes(data, "little"))
        elif pci.writable(offset):
            self.config[offset : offset + len(data)] = data
            # If the guest sets this bit, the function is reset.
            control = pci.EXPRESS + 8
            if offset <= control + 1 < offset + len(data) and self.config[control + 1] & 0x80:
                self.reset()

    # ---- registers -----------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        return self.firmware.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        if offset < FIRST_UAR * UAR:
            self.guarded(lambda: self.firmware.write(offset, data))
        elif self.alive:
            self.guarded(lambda: self.doorbell(offset % UAR, data))

    def doorbell(self, offset: int, data: bytes) -> None:
        """Handles a write to a page of doorbells. A doorbell for a queue pair begins with the first
        words of the request. A driver may also write the whole request there."""
        if offset in EQ_DOORBELLS or len(data) < 8:
            return
        if offset == C.CQ_DOORBELL:
            self.arm(int.from_bytes(data[:4]), int.from_bytes(data[4:8]) & 0xFFFFFF)
        elif offset >= C.BF_OFFSET:
            number = View("mlx5_wqe_ctrl_seg", data)["qpn_ds"] >> 8
            if qp := self.queue_pairs.get(number):
                requests.progress(self, qp)

    def unmapped(self, start: int, length: int) -> None:
        self.witness.unmapped(self, start, length)

    def waits(self) -> bool:
        """Tells whether a request must be tried again without a doorbell."""
        errors = (qp.state == C.QP_STATE_ERR for qp in self.queue_pairs.values())
        return self.alive and (bool(self.waiting) or any(errors))

    def tick(self) -> None:
        """Continues requests that wait, and ends receive requests of queue pairs in error."""
        if not self.alive:
            return
        for qp in list(self.queue_pairs.values()):
            if qp.number in self.waiting:
                self.guarded(functools.partial(requests.progress, self, qp))
            if qp.state == C.QP_STATE_ERR:
                self.guarded(functools.partial(completions.flush_receives, self, qp))
        self.waiting &= self.queue_pairs.keys()
