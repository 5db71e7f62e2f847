# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's side of the devices: questions of a test, and faults that a test wants.

A question is a line of words, of which the first is the number of a device, beginning with 1. The
answer is a line."""

import selectors
import socket

from device import Device
from layout import C, constants
from witness import Witness

Devices = dict[int, Device]


def accept(selector: selectors.BaseSelector, listener: socket.socket, devices: Devices) -> None:
    del devices
    connection = listener.accept()[0]
    selector.register(connection, selectors.EVENT_READ, answer_one)


def answer_one(
    selector: selectors.BaseSelector, connection: socket.socket, devices: Devices
) -> None:
    """Reads one question, and answers."""
    words = connection.recv(4096).decode().split()
    if not words:
        selector.unregister(connection)
        connection.close()
        return
    try:
        said = answer(devices, words)
    except (KeyError, ValueError, IndexError) as why:
        said = f"no: {why}"
    connection.sendall(f"{said}\n".encode())


def answer(devices: Devices, words: list[str]) -> str:
    device = devices[int(words[0])]
    word, *rest = words[1:]
    if word == "violations":
        return violations(device.witness)
    if word == "count":
        return str(figure(device, rest[0]))
    if word == "clear":
        device.witness.violations.clear()
        for each in devices.values():
            if each.witness is device.witness:
                each.end_faults()
    elif word == "fail_umr":
        device.failing_umr = int(rest[0])
    elif word == "lose_umr":
        device.losing_umr = bool(int(rest[0]))
    elif word == "fail_command":
        device.firmware.failing[constants()[f"MLX5_CMD_OP_{rest[0]}"]] = int(rest[1])
    elif word == "lose_command":
        device.firmware.silent[constants()[f"MLX5_CMD_OP_{rest[0]}"]] = int(rest[1])
    elif word == "die":
        device.firmware.die(C.INITIAL_SEG_HEALTH_SYNDROME_FW_INTERNAL_ERR)
    elif word == "come_back":
        device.firmware.come_back()
    elif word == "odp":
        device.odp = {"on": True, "off": False}[rest[0]]
    elif word == "delay":
        device.delay = float(rest[0]) / 1000
    else:
        raise ValueError(f"the device knows no question {word!r}")
    return "done"


# Figures of the devices and of the witness that a test may ask for.
FIGURES = ("umr", "refused", "commands", "entries", "gpu_accesses")


def figure(device: Device, name: str) -> int:
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}")
    return device.counts[name] + device.witness.counts[name]


def violations(witness: Witness) -> str:
    """Returns the violations, or an empty line."""
    witness.rest()
    return "; ".join(f"{kind} {count} {text}" for kind, (count, text) in witness.violations.items())
