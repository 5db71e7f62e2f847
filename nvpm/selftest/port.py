# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ports of RDMA devices, and the addresses that they have."""

import os

from . import Failure


class Port:
    def __init__(self, machine, path):
        self.machine, self.path, self.device, self.number = (
            machine,
            path,
            path.split("/")[-3],
            int(os.path.basename(path)),
        )
        # As in "4: ACTIVE".
        self.state = self.text("state").split(" ")[-1] or "unknown"
        self.needs_gid = self.text("link_layer") != "InfiniBand"

    def text(self, name):
        return self.machine.text(self.path + "/" + name)

    def gid(self):
        """Index and bytes of the GID that programs choose, too: one of RoCE v2 with an address of IPv4, then of IPv6; link-local ones last."""
        found = []
        for index in range(256):  # an address handle has 8 bits for it
            text = self.text("gids/%d" % index).replace(":", "")
            if text.strip("0"):  # unused ones are zeros, or cannot be read
                raw = bytes.fromhex(text)
                later = (
                    "v2" not in self.text("gid_attrs/types/%d" % index),
                    raw[:12] != bytes(10) + b"\xff\xff",
                    raw[:2] == b"\xfe\x80",
                )
                found.append((later, index, raw))
        if not found:
            raise Failure(
                "port %d has no GID: give its network interface an address, or set it up"
                % self.number
            )
        return min(found)[1:]


def usable_port(machine, device):
    """Its first active port, or None; and why there is none to test."""
    directory = "/sys/class/infiniband/" + device
    # "1: CA" is InfiniBand and RoCE.
    kind = machine.text(directory + "/node_type")
    if not kind.startswith("1"):
        return (
            None,
            "its kind (%s) has no queue pairs that connect without a connection manager"
            % (kind or "unknown"),
        )
    ports = sorted(
        (Port(machine, path) for path in machine.glob(directory + "/ports/*")),
        key=lambda port: port.number,
    )
    states = (
        ", ".join("port %d is %s" % (port.number, port.state) for port in ports) or "it has none"
    )
    return next(
        (port for port in ports if port.state == "ACTIVE"), None
    ), f"no active port ({states})"
