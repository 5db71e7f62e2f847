# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The protocol vfio-user, by which QEMU uses a device in another process.

QEMU connects to a socket, and sends messages with a header: accesses to the device's registers,
memory that the device may reach, and descriptors by which the device raises interrupts.
The protocol's specification (docs/interop/vfio-user.rst of QEMU) and linux/vfio.h give the
numbers."""

import array
import json
import os
import socket
import struct
from typing import Protocol

import pci
from memory import Memory

HEADER = struct.Struct("<HHIII")
REPLY, NO_REPLY = 1, 0x10

VERSION, DMA_MAP, DMA_UNMAP = 1, 2, 3
GET_INFO, GET_REGION_INFO, GET_IRQ_INFO, SET_IRQS = 4, 5, 7, 8
REGION_READ, REGION_WRITE, RESET = 9, 10, 13

BAR0, CONFIG, REGIONS = 0, 7, 9
INTX, MSIX, INTERRUPTS = 0, 2, 5

# The flag of DMA_UNMAP for all ranges.
UNMAP_ALL = 2

# A message of QEMU may have this many descriptors.
MAX_DESCRIPTORS = 16


class Device(Protocol):
    """The functions that a device offers to this protocol."""

    memory: Memory
    interrupts: dict[int, int]

    def read(self, offset: int, length: int) -> bytes: ...
    def write(self, offset: int, data: bytes) -> None: ...
    def read_config(self, offset: int, length: int) -> bytes: ...
    def write_config(self, offset: int, data: bytes) -> None: ...
    def unmapped(self, start: int, length: int) -> None: ...
    def reset(self) -> None: ...
    def unplugged(self) -> None: ...


class Gone(Exception):
    """QEMU has ended."""


class Connection:
    """The connection of a device with QEMU."""

    def __init__(self, connected: socket.socket, device: Device) -> None:
        self.socket, self.device = connected, device
        self.descriptors: list[int] = []

    def receive(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            room = socket.CMSG_SPACE(4 * MAX_DESCRIPTORS)
            part, ancillary, _, _ = self.socket.recvmsg(length - len(data), room)
            if not part:
                raise Gone
            data += part
            for _, kind, contents in ancillary:
                if kind == socket.SCM_RIGHTS:
                    found = array.array("i")
                    found.frombytes(contents[: len(contents) // 4 * 4])
                    self.descriptors.extend(found)
        return data

    def serve(self) -> None:
        """Answers one message."""
        number, command, length, flags, _ = HEADER.unpack(self.receive(HEADER.size))
        body = self.receive(length - HEADER.size)
        given, self.descriptors = self.descriptors, []
        answer = self.answer(command, body, given)
        if not flags & NO_REPLY:
            size = HEADER.size + len(answer)
            self.socket.sendall(HEADER.pack(number, command, size, REPLY, 0) + answer)

    def answer(self, command: int, body: bytes, given: list[int]) -> bytes:
        """Carries out one command. Returns the contents of the reply."""
        if command == REGION_WRITE:
            return self.region_write(body)
        if command == REGION_READ:
            return self.region_read(body)
        if command == DMA_MAP:
            return self.dma_map(body, given)
        if command == DMA_UNMAP:
            return self.dma_unmap(body)
        if command == SET_IRQS:
            return self.set_irqs(body, given)
        if command == RESET:
            self.device.reset()
            return b""
        return describe(command, body)

    def region_write(self, body: bytes) -> bytes:
        offset, region, length = struct.unpack_from("<QII", body)
        data = body[16 : 16 + length]
        if region == CONFIG:
            self.device.write_config(offset, data)
        else:
            self.device.write(offset, data)
        return body[:16]

    def region_read(self, body: bytes) -> bytes:
        offset, region, length = struct.unpack_from("<QII", body)
        read = self.device.read_config if region == CONFIG else self.device.read
        return body[:16] + read(offset, length)

    def dma_map(self, body: bytes, given: list[int]) -> bytes:
        _, _, offset, address, length = struct.unpack_from("<IIQQQ", body)
        # A range without a file has registers of another device, which no test reaches by DMA.
        for descriptor in given[:1]:
            self.device.memory.map(address, length, descriptor, offset)
        for descriptor in given:
            os.close(descriptor)
        return b""

    def dma_unmap(self, body: bytes) -> bytes:
        _, flags, address, length = struct.unpack_from("<IIQQ", body)
        if flags & UNMAP_ALL:
            address, length = 0, 1 << 64
        self.device.memory.unmap(address, length)
        self.device.unmapped(address, length)
        return body[:24]

    def set_irqs(self, body: bytes, given: list[int]) -> bytes:
        _, _, index, first, count = struct.unpack_from("<IIIII", body)
        if index == MSIX:
            interrupts = self.device.interrupts
            if not count:
                for descriptor in interrupts.values():
                    os.close(descriptor)
                interrupts.clear()
            for number, descriptor in enumerate(given, first):
                if number in interrupts:
                    os.close(interrupts[number])
                interrupts[number] = descriptor
        return b""


def describe(command: int, body: bytes) -> bytes:
    """Returns the reply to a question about the device."""
    index = struct.unpack_from("<I", body, 8)[0] if len(body) >= 12 else 0
    if command == VERSION:
        can = {"max_msg_fds": MAX_DESCRIPTORS, "max_data_xfer_size": 1 << 20, "pgsizes": 4096}
        # QEMU wants version 0.0.
        return struct.pack("<HH", 0, 0) + json.dumps({"capabilities": can}).encode() + b"\0"
    if command == GET_INFO:
        # A PCI device that can be reset.
        return struct.pack("<IIII", 16, 3, REGIONS, INTERRUPTS)
    if command == GET_REGION_INFO:
        size = {BAR0: pci.BAR_BYTES, CONFIG: 4096}.get(index, 0)
        # Regions can be read and written.
        return struct.pack("<IIIIQQ", 32, 3 if size else 0, index, 0, size, 0)
    if command == GET_IRQ_INFO:
        count = {INTX: 1, MSIX: pci.VECTORS}.get(index, 0)
        return struct.pack("<IIII", 16, 1 if count else 0, index, count)
    raise ValueError(f"QEMU sent the command {command} of vfio-user, which the lab does not know")
