# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The device as its driver sees it: registers, doorbells, interrupts and events."""

import functools
import itertools
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

import commands
import completions
import pci
import requests
from firmware import Firmware
from keys import Key, Keys
from layout import C, View, new
from memory import Memory, Unreachable
from queues import Buffer, CompletionQueue, EventQueue, QueuePair, SharedQueue
from wire import Wire
from witness import Held, Spans, Witness

# Pages of doorbells follow the initialization segment. Their numbers begin here.
FIRST_UAR = 16
UAR = 4096
EQ_DOORBELLS = (0x40, 0x48)

# Seconds between two looks at requests that wait.
TICK = 0.002


class Device:
    """One network card. The class has the functions that vfio_user.py calls."""

    def __init__(self, wire: Wire, witness: Witness, lid: int) -> None:
        self.wire, self.witness, self.lid = wire, witness, lid
        self.memory = Memory()
        self.interrupts: dict[int, int] = {}
        self.firmware = Firmware(self)
        self.keys = Keys()
        self.counts: Counter[str] = Counter()
        self.end_faults()
        self.config = pci.space()
        self.forget()
        witness.devices.append(self)
        wire.connect(self)

    def end_faults(self) -> None:
        """Ends the faults that a test has asked for."""
        # Paging on demand, without which newer drivers take no dma-buf. A driver asks for this
        # ability when it takes the device.
        self.odp = True
        # Seconds that each request takes. All devices wait meanwhile.
        self.delay = 0.0
        # The first value is the number of the next requests of type UMR that fail. The second value
        # says whether such requests wait for ever.
        self.failing_umr, self.losing_umr = 0, False
        self.firmware.end_faults()

    def plugged(self) -> None:
        """Starts the device anew, for a guest that starts."""
        if self is self.witness.devices[0]:
            self.witness.pinned.clear()
        self.memory.clear()
        for descriptor in self.interrupts.values():
            os.close(descriptor)
        self.interrupts.clear()
        self.firmware.come_back()
        self.reset()

    def unplugged(self) -> None:
        """Stops the device when its guest ends. The device's link goes down."""
        self.firmware.alive = False

    def reset(self) -> None:
        """Resets the function. A driver that uses the device must have ended its objects."""
        if self.firmware.alive:
            commands.report_left(self)
        self.config = pci.space()
        self.firmware.reset()
        self.forget()

    def forget(self) -> None:
        """Removes all objects that the driver has made."""
        self.keys.clear()
        self.numbers = itertools.count(0x40)
        self.uars = itertools.count(FIRST_UAR)
        # The number of a queue of events has eight bits.
        self.event_numbers = itertools.count(1)
        self.event_queues: dict[int, EventQueue] = {}
        self.completion_queues: dict[int, CompletionQueue] = {}
        self.queue_pairs: dict[int, QueuePair] = {}
        self.shared_queues: dict[int, SharedQueue] = {}
        # Memory of users for queues (DevX), by number.
        self.memories: dict[int, Buffer] = {}
        # Addresses that queues and memory for queues hold, by the kind of object and its number.
        self.held: dict[tuple[str, int], Held] = {}
        self.waiting: set[int] = set()

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
        elif self.firmware.alive:
            self.guarded(lambda: self.doorbell(offset % UAR, data))

    def guarded(self, act: Callable[[], None]) -> None:
        """Calls ACT. A failure is recorded, because the test must fail, and not the guest."""
        try:
            act()
        except Unreachable as at:
            self.witness.violation("queue_unmapped", f"a queue of the driver at {at}")
        except Exception as error:
            self.broken(error)

    def broken(self, error: Exception) -> None:
        """Records a mistake of this program, which must fail the test, and not end the guest."""
        traceback.print_exc()
        self.witness.violation("broken", repr(error))

    def refused(self, command: str, status: int) -> None:
        """Records that the firmware has refused a command."""
        self.counts["refused"] += 1
        self.log(f"the command {command} was refused with the status {status}")

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
        return self.firmware.alive and (bool(self.waiting) or any(errors))

    def tick(self) -> None:
        """Continues requests that wait, and ends receive requests of queue pairs in error."""
        if not self.firmware.alive:
            return
        for qp in list(self.queue_pairs.values()):
            if qp.number in self.waiting:
                self.guarded(functools.partial(requests.progress, self, qp))
            if qp.state == C.QP_STATE_ERR:
                self.guarded(functools.partial(completions.flush_receives, self, qp))
        self.waiting &= self.queue_pairs.keys()

    # ---- memory --------------------------------------------------------------------------------

    def read_key(self, number: int, address: int, length: int, right: str, domain: int) -> bytes:
        """Reads memory through a key. Raises Denied or Unreachable."""
        data = b""
        for key, bus, piece in self.keys.translate(number, address, length, right, domain):
            self.witness.access(key.held.name, bus, piece, self.memory)
            data += self.memory.read(bus, piece)
        return data

    def write_key(self, number: int, address: int, data: bytes, right: str, domain: int) -> None:
        done = 0
        for key, bus, piece in self.keys.translate(number, address, len(data), right, domain):
            self.witness.access(key.held.name, bus, piece, self.memory)
            self.memory.write(bus, data[done : done + piece])
            done += piece

    def log(self, text: str) -> None:
        print(f"{self.lid}: {text}", file=sys.stderr, flush=True)

    def filled(self, key: Key) -> None:
        self.witness.filled(key, self.memory)

    def hold(self, kind: str, number: int, spans: Spans) -> None:
        """Records the addresses that an object other than a key holds."""
        held = self.held.setdefault((kind, number), Held(f"{kind} {number:#x}"))
        self.witness.holds(held, spans, self.memory)

    def holders(self) -> Iterator[Held]:
        """Yields all objects that hold addresses, unless the firmware has died."""
        if self.firmware.alive:
            yield from (key.held for key in self.keys.live())
            yield from self.held.values()

    # ---- completions and events -----------------------------------------------------------------

    def arm(self, word: int, number: int) -> None:
        """Handles the doorbell by which a driver asks for an event at the next completion."""
        if not (cq := self.completion_queues.get(number)):
            return
        cq.armed, cq.solicited_only = True, bool(word & C.CQ_DB_REQ_NOT_SOL)
        seen = word & 0xFFFFFF
        if (cq.produced - seen) & 0xFFFFFF and (not cq.solicited_only or cq.solicited):
            self.completion_event(cq)

    def complete(self, number: int, completion: View, solicited: bool) -> None:
        """Adds a completion to a queue, and raises an event if the driver asked for one."""
        if not (cq := self.completion_queues.get(number)):
            return
        if cq.is_full():
            self.event(C.EVENT_TYPE_CQ_ERROR, {"data.cq_err.cqn": number})
            return
        self.guarded(lambda: cq.put(completion))
        cq.solicited = cq.solicited or solicited
        if cq.armed and (solicited or not cq.solicited_only):
            self.completion_event(cq)

    def completion_event(self, cq: CompletionQueue) -> None:
        cq.armed = cq.solicited = False
        if queue := self.event_queues.get(cq.event_queue):
            event = new("mlx5_eqe")
            event["type"], event["data.comp.cqn"] = C.EVENT_TYPE_COMP, cq.number
            self.put_event(queue, event)

    def subscribed(self, kind: int) -> list[EventQueue]:
        """Returns the queues that have subscribed to a kind of event."""
        return [queue for queue in self.event_queues.values() if queue.events >> kind & 1]

    def event(
        self, kind: int, fields: dict[str, int], queues: list[EventQueue] | None = None
    ) -> None:
        """Raises an event on QUEUES, or on each queue that has subscribed to its kind."""
        for queue in self.subscribed(kind) if queues is None else queues:
            event = new("mlx5_eqe")
            event["type"] = kind
            event.update(**fields)
            self.put_event(queue, event)

    def put_event(self, queue: EventQueue, event: View) -> None:
        self.guarded(lambda: queue.put(event))
        if descriptor := self.interrupts.get(queue.vector):
            os.eventfd_write(descriptor, 1)
