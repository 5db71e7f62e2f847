# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The state of a card, which commands and requests read and change: objects, memory, and the queues
for completions and events. device.py has what the card's driver sees."""

import itertools
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

from held import Held, Spans
from keys import Key, Keys
from layout import C, View, new
from memory import Memory, Unreachable
from queues import Buffer, CompletionQueue, EventQueue, QueuePair, SharedQueue
from wire import Wire
from witness import Witness

# Pages of doorbells follow the initialization segment. Their numbers begin here.
FIRST_UAR = 16


class Card:
    """One network card."""

    def __init__(self, wire: Wire["Card"], witness: Witness, lid: int) -> None:
        self.wire, self.witness, self.lid = wire, witness, lid
        # The firmware answers. Otherwise the card's link is down, and the card holds nothing.
        self.alive = True
        self.memory = Memory()
        self.interrupts: dict[int, int] = {}
        self.keys = Keys()
        self.counts: Counter[str] = Counter()
        self.end_faults()
        self.forget()
        witness.cards.append(self)
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

    # ---- mistakes ------------------------------------------------------------------------------

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
        if self.alive:
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
