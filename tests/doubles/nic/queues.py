# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The queues that a driver and the device share, in the guest's memory."""

from dataclasses import dataclass, field

from layout import C, View, new, size
from memory import Memory

CQE, EQE, BLOCK = size("mlx5_cqe64"), size("mlx5_eqe"), 64


@dataclass
class Buffer:
    """A queue's memory: pages of one size at any addresses. The queue begins OFFSET bytes into the
    first page."""

    memory: Memory
    pages: list[int]
    shift: int
    offset: int = 0

    def address(self, position: int) -> int:
        page, inside = divmod(position + self.offset, 1 << self.shift)
        return self.pages[page] + inside

    def spans(self, length: int) -> list[tuple[int, int]]:
        """Returns the bus addresses of the first LENGTH bytes, from a first address to an end."""
        found, position = [], 0
        while position < length:
            room = (1 << self.shift) - (position + self.offset) % (1 << self.shift)
            start = self.address(position)
            found.append((start, start + min(room, length - position)))
            position += room
        return found

    def read(self, position: int, length: int) -> bytes:
        data = b""
        while length:
            room = (1 << self.shift) - (position + self.offset) % (1 << self.shift)
            data += self.memory.read(self.address(position), min(length, room))
            position, length = position + room, max(0, length - room)
        return data

    def write_owned(self, position: int, data: bytes | bytearray) -> None:
        """Writes an entry that does not cross a page. The last byte of the entry tells the driver
        that the entry is complete, so this byte is written last."""
        address = self.address(position)
        self.memory.write(address, bytes(data[:-1]))
        self.memory.write(address + len(data) - 1, bytes(data[-1:]))


@dataclass
class EventQueue:
    number: int
    buffer: Buffer
    log_size: int
    vector: int
    events: int
    produced: int = 0

    def put(self, event: View) -> None:
        event["owner"] = self.produced >> self.log_size & 1
        place = self.produced % (1 << self.log_size)
        assert isinstance(event.data, bytearray)
        self.buffer.write_owned(place * EQE, event.data)
        self.produced += 1


@dataclass
class CompletionQueue:
    number: int
    buffer: Buffer
    log_size: int
    entry: int
    event_queue: int
    doorbell: int
    produced: int = 0
    armed: bool = False
    # Only a completion of a request that asks for an event raises an event.
    solicited_only: bool = False
    # Whether a completion that the driver has not seen is an error, or asks for an event.
    solicited: bool = False

    def consumed(self) -> int:
        return self.buffer.memory.read_number(self.doorbell, 4) & 0xFFFFFF

    def is_full(self) -> bool:
        return (self.produced - self.consumed()) & 0xFFFFFF >= 1 << self.log_size

    def put(self, completion: View) -> None:
        """Writes a completion. An entry of 128 bytes has the completion in its second half."""
        completion["op_own"] |= self.produced >> self.log_size & 1
        place = self.produced % (1 << self.log_size)
        assert isinstance(completion.data, bytearray)
        self.buffer.write_owned(place * self.entry + self.entry - CQE, completion.data)
        self.produced += 1

    def resize(self, buffer: Buffer, log_size: int, entry: int) -> None:
        """Continues in a new buffer. The last completion in the old buffer tells the driver so."""
        last = new("mlx5_cqe64")
        last["op_own"] = C.CQE_RESIZE_CQ << 4
        self.put(last)
        self.buffer, self.log_size, self.entry = buffer, log_size, entry


@dataclass
class ReceiveQueue:
    """The receive requests of a single queue pair, one after another in a ring."""

    buffer: Buffer
    log_size: int
    stride: int
    doorbell: int
    taken: int = 0

    def posted(self) -> int:
        return self.buffer.memory.read_number(self.doorbell + 4 * C.RCV_DBR, 4) & 0xFFFF

    def take(self) -> tuple[int, bytes] | None:
        """Takes the next request. Returns the request's number and its list of memory, or None."""
        if self.taken & 0xFFFF == self.posted():
            return None
        number = self.taken & 0xFFFF
        self.taken += 1
        place = number % (1 << self.log_size)
        return number, self.buffer.read(place * self.stride, self.stride)


@dataclass
class SharedQueue(ReceiveQueue):
    """The receive requests of many queue pairs. Each request names the request after it."""

    number: int = 0
    # The protection domain of the memory in which messages are stored.
    domain: int = 0
    head: int = 0
    # The completion queue and the user's number of a queue of XRC, in place of those of the queue
    # pair.
    completions: int | None = None
    user_index: int = 0
    # The device raises an event when fewer requests than LIMIT are left.
    limit: int = 0

    def left(self) -> int:
        return (self.posted() - self.taken) & 0xFFFF

    def take(self) -> tuple[int, bytes] | None:
        if not self.left():
            return None
        number = self.head
        request = self.buffer.read(number * self.stride, self.stride)
        self.head = View("mlx5_wqe_srq_next_seg", request)["next_wqe_index"]
        self.taken += 1
        return number, request[size("mlx5_wqe_srq_next_seg") :]


@dataclass
class QueuePair:
    number: int
    # The context as the driver has written it. Commands that ask for the context answer with it.
    context: View
    buffer: Buffer
    # Distance of the send queue from the buffer's beginning.
    send_offset: int
    receives: ReceiveQueue | None
    doorbell: int
    state: int = C.QP_STATE_RST
    # Send requests that were executed, and blocks of 64 bytes that they took.
    sent: int = 0
    # The time in seconds at which a request that cannot be delivered fails; None if there is no
    # such request.
    deadline: float | None = None
    # The place after the last block of a request that is executed at this moment.
    following: int = field(default=0, repr=False)

    def posted(self) -> int:
        return self.buffer.memory.read_number(self.doorbell + 4 * C.SND_DBR, 4) & 0xFFFF

    def block(self, number: int) -> bytes:
        place = number % (1 << self.context["log_sq_size"])
        return self.buffer.read(self.send_offset + place * BLOCK, BLOCK)

    def request(self) -> bytes:
        """Returns the next send request, which may go on at the queue's beginning."""
        first = self.block(self.sent)
        length = 16 * (View("mlx5_wqe_ctrl_seg", first)["qpn_ds"] & 0x3F)
        blocks = max(1, -(-length // BLOCK))
        self.following = self.sent + blocks
        rest = [self.block(self.sent + number) for number in range(1, blocks)]
        return b"".join([first, *rest])[: max(length, 16)]
