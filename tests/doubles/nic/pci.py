# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The configuration space of the device: a virtual function of a ConnectX-6 with an InfiniBand
port. A virtual function has fewer capabilities than a physical function, so a driver asks for
less."""

import struct

# The vendor is Mellanox. The device is the virtual function of a ConnectX-6.
IDS = (0x15B3, 0x101C)

# The subsystem by which the lab's modules recognize this device.
SUBSYSTEM = (0x15B3, 0x1AB0)

BAR_BYTES = 32 << 20
VECTORS = 16

# The interrupt table and the pending bits lie in the first BAR, behind the initialization segment.
TABLE, PENDING = 0x4000, 0x5000

COMMAND = 0x04
EXPRESS, MSIX = 0x40, 0x80

# The lab's simulated GPU driver writes here which frames it has pinned (witness.py).
PINS = 0xC0


def space() -> bytearray:
    """Returns the configuration space after a reset."""
    config = bytearray(4096)
    struct.pack_into("<HHHH", config, 0x00, *IDS, 0, 0x10)
    # The class is InfiniBand.
    struct.pack_into("<BBBB", config, 0x08, 0, 0, 0x07, 0x02)
    # A BAR with 64 bits, which may be prefetched.
    struct.pack_into("<I", config, 0x10, 0x0C)
    struct.pack_into("<HH", config, 0x2C, *SUBSYSTEM)
    config[0x34], config[0x3D] = EXPRESS, 1
    # A PCI Express endpoint that can be reset by itself, with a link of 16 lanes at 16 GT/s.
    struct.pack_into("<BBHIHH", config, EXPRESS, 0x10, MSIX, 0x0002, 0x10008000, 0x2810, 0)
    struct.pack_into("<IHH", config, EXPRESS + 0x0C, 0x0104, 0, 0x0104)
    struct.pack_into("<BBHII", config, MSIX, 0x11, 0, VECTORS - 1, TABLE, PENDING)
    return config


def writable(offset: int) -> bool:
    """Tells whether the guest's writes are kept. QEMU itself keeps the BARs' addresses."""
    return offset in (COMMAND, COMMAND + 1) or offset >= EXPRESS
