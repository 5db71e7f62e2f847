# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The device's firmware: the initialization segment, by which a driver finds its commands, the
execution of commands, and the firmware's health."""

import struct
from collections import Counter

import commands
from card import Card
from layout import C, View, byte_of, full_name, named, new, of, size

# The queue for commands has 1 << 5 entries of 1 << 6 bytes.
LOG_COMMANDS, LOG_STRIDE = 5, 6
COMMAND_INTERFACE, FIRMWARE_MAJOR, FIRMWARE_MINOR, FIRMWARE_SUBMINOR = 5, 20, 43, 1014

# The state of the interface in the initialization segment, when a driver may not use it.
DISABLED = 1

# The first bytes of a command's input and output are in its entry. The rest is in blocks.
IN_ENTRY = 16

NAMES = named("MLX5_CMD_OP_")


class Firmware:
    def __init__(self, device: Card) -> None:
        self.device = device
        self.syndrome = 0
        self.beats = 0
        self.reset()

    def end_faults(self) -> None:
        # The numbers of the next commands that fail, and of the next commands that get no answer,
        # by opcode.
        self.failing: Counter[int] = Counter()
        self.silent: Counter[int] = Counter()
        if not self.device.alive:
            self.come_back()

    def reset(self) -> None:
        self.queue = 0

    def die(self, syndrome: int) -> None:
        """Ends the firmware. The driver sees that its health counter stands still."""
        self.device.alive, self.syndrome = False, syndrome

    def come_back(self) -> None:
        self.device.alive, self.syndrome = True, 0
        self.reset()
        self.device.forget()

    # ---- the initialization segment --------------------------------------------------------

    def segment(self) -> bytes:
        """Returns the initialization segment."""
        seg = new("mlx5_init_seg")
        seg["fw_rev"] = FIRMWARE_MINOR << 16 | FIRMWARE_MAJOR
        seg["cmdif_rev_fw_sub"] = COMMAND_INTERFACE << 16 | FIRMWARE_SUBMINOR
        state = 0 if self.device.alive else DISABLED
        seg["cmdq_addr_h"] = self.queue >> 32
        seg["cmdq_addr_l_sz"] = (
            self.queue & 0xFFFFF000 | state << C.NIC_IFC_OFFSET | LOG_COMMANDS << 4 | LOG_STRIDE
        )
        if self.device.alive:
            self.beats += 1
        seg["health_counter"] = self.beats
        seg["health.synd"] = self.syndrome
        seg["health.fw_ver"] = FIRMWARE_SUBMINOR
        assert isinstance(seg.data, bytearray)
        return bytes(seg.data)

    def read(self, offset: int, length: int) -> bytes:
        return self.segment()[offset : offset + length].ljust(length, b"\0")

    def write(self, offset: int, data: bytes) -> None:
        value = int.from_bytes(data[:4])
        if offset == byte_of("mlx5_init_seg", "cmdq_addr_h"):
            self.queue = value << 32 | self.queue & 0xFFFFFFFF
        elif offset == byte_of("mlx5_init_seg", "cmdq_addr_l_sz"):
            self.queue = self.queue >> 32 << 32 | value & 0xFFFFF000
        elif offset == byte_of("mlx5_init_seg", "cmd_dbell") and self.device.alive:
            for slot in range(1 << LOG_COMMANDS):
                if value >> slot & 1:
                    self.execute(slot)

    # ---- commands ------------------------------------------------------------------------------

    def execute(self, slot: int) -> None:
        """Executes the command in an entry of the queue."""
        memory = self.device.memory
        address = self.queue + (slot << LOG_STRIDE)
        entry = View("mlx5_cmd_layout", bytearray(memory.read(address, 1 << LOG_STRIDE)))
        inside = byte_of("mlx5_cmd_layout", "in")
        given = bytes(entry.data[inside : inside + IN_ENTRY])
        given = given + self.read_blocks(entry["in_ptr"], entry["inlen"] - IN_ENTRY)
        given = given[: entry["inlen"]]
        opcode = struct.unpack_from(">H", given)[0]
        self.device.counts["commands"] += 1
        if self.silent[opcode]:
            self.silent[opcode] -= 1
            return
        # The command that creates a queue of events raises no event there.
        subscribed = self.device.subscribed(C.EVENT_TYPE_CMD)
        answer = self.answer(opcode, given, max(entry["outlen"], IN_ENTRY))
        self.write_blocks(entry["out_ptr"], answer[IN_ENTRY : entry["outlen"]])
        place = address + byte_of("mlx5_cmd_layout", "out")
        memory.write(place, answer[:IN_ENTRY])
        # The driver owns the entry again, once the lowest bit of its last byte is 0.
        memory.write(address + byte_of("mlx5_cmd_layout", "status_own"), b"\0")
        self.device.event(C.EVENT_TYPE_CMD, {"data.cmd.vector": 1 << slot}, subscribed)

    def answer(self, opcode: int, given: bytes, length: int) -> bytes:
        """Returns the output of a command."""
        name = NAMES.get(opcode, "")
        if self.failing[opcode]:
            self.failing[opcode] -= 1
            return status(C.CMD_STAT_BAD_RES_STATE_ERR, length)
        out = output(name, length)
        try:
            commands.run(self.device, name, given, out)
        except commands.Refused as refused:
            self.device.refused(name, refused.status)
            return status(refused.status, length)
        except Exception as error:
            self.device.broken(error)
            return status(C.CMD_STAT_INT_ERR, length)
        return bytes(out.data[:length])

    def read_blocks(self, address: int, length: int) -> bytes:
        """Reads a chain of blocks, in which long input lies."""
        data = b""
        while length > 0 and address:
            block = View("mlx5_cmd_prot_block", self.device.memory.read(address, BLOCK))
            data += block.data[: min(length, C.CMD_DATA_BLOCK_SIZE)]
            address, length = block["next"], length - C.CMD_DATA_BLOCK_SIZE
        return data

    def write_blocks(self, address: int, data: bytes) -> None:
        while data and address:
            block = View("mlx5_cmd_prot_block", self.device.memory.read(address, BLOCK))
            self.device.memory.write(address, data[: C.CMD_DATA_BLOCK_SIZE])
            address, data = block["next"], data[C.CMD_DATA_BLOCK_SIZE :]


BLOCK = size("mlx5_cmd_prot_block")


def output(name: str, length: int) -> View:
    """Returns an empty output, with room for all fields that the command can have."""
    struct_name = f"{name.lower()}_out"
    try:
        known = of(full_name(struct_name))[0] // 8
    except KeyError:
        struct_name, known = "query_issi_out", 0
    return View(struct_name, bytearray(max(length, known)))


def status(code: int, length: int) -> bytes:
    """Returns the output of a command that has failed."""
    return bytes([code]).ljust(length, b"\0")
