#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Emulates ConnectX network cards for guests of QEMU. README.md explains the parts."""

import argparse
import contextlib
import selectors
import socket
from pathlib import Path

import control
from card import Card
from device import TICK, Device
from vfio_user import Connection, Gone
from wire import Wire
from witness import Witness


def words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--control", type=Path, help="a socket for the lab's questions")
    parser.add_argument(
        "guests",
        nargs="+",
        metavar="GPU,SOCKET...",
        help="for each guest the file with the memory of its GPU, and a socket for each card",
    )
    return parser.parse_args()


def listener(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen(8)
    return made


def main() -> None:
    told = words()
    wire = Wire[Card]()
    devices: control.Devices = {}
    selector = selectors.DefaultSelector()
    if told.control:
        selector.register(listener(told.control), selectors.EVENT_READ, control.accept)
    lid = 0
    for guest in told.guests:
        gpu, *sockets = guest.split(",")
        witness = Witness(Path(gpu))
        for path in sockets:
            lid += 1
            devices[lid] = Device(wire, witness, lid)
            selector.register(listener(Path(path)), selectors.EVENT_READ, devices[lid])
    print("ready", flush=True)
    serve(selector, devices)


def serve(selector: selectors.BaseSelector, devices: control.Devices) -> None:
    """Answers QEMU and the lab, until the lab ends this program."""
    while True:
        waits = any(device.waits() for device in devices.values())
        for key, _ in selector.select(TICK if waits else None):
            if isinstance(key.data, Device):
                assert isinstance(key.fileobj, socket.socket)
                key.data.plugged()
                connection = Connection(key.fileobj.accept()[0], key.data)
                selector.register(connection.socket, selectors.EVENT_READ, connection)
            elif isinstance(key.data, Connection):
                try:
                    key.data.serve()
                except (Gone, ConnectionError):
                    selector.unregister(key.data.socket)
                    key.data.socket.close()
                    key.data.device.unplugged()
            else:
                key.data(selector, key.fileobj, devices)
        for device in devices.values():
            device.tick()


if __name__ == "__main__":
    main()
