# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The fabric between devices: which device has an address."""

from typing import Generic, Protocol, TypeVar

# The first half of each address of InfiniBand, and the unique second half of the first device.
PREFIX = 0xFE80 << 48
GUID = 0x0002C90300AA0000


def guid_of(lid: int) -> int:
    """Returns the unique number of the port of the device with a local identifier."""
    return GUID + lid


class End(Protocol):
    """What the fabric needs to know of a device."""

    lid: int
    alive: bool


Device = TypeVar("Device", bound=End)


class Wire(Generic[Device]):
    """Devices that reach each other. The devices may be in different guests."""

    def __init__(self) -> None:
        self.devices: dict[int, Device] = {}

    def connect(self, device: Device) -> None:
        self.devices[device.lid] = device

    def find(self, lid: int) -> Device | None:
        """Returns the device with a local identifier, if its link is up."""
        device = self.devices.get(lid)
        return device if device and device.alive else None
