# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ports of RDMA devices, and the addresses that they have."""
import os

from . import Failure


class Gid:
    def __init__(self, index, text, kind):
        self.index, self.kind, self.raw = index, kind, bytes.fromhex(text.replace(":", ""))

    def rank(self):
        """Those first that programs use, too: RoCE v2 with an address of IPv4, of IPv6; link-local ones last."""
        return ("v2" not in self.kind, self.raw[:12] != bytes(10) + b"\xff\xff", self.raw[:2] == b"\xfe\x80", self.index)


class Port:
    def __init__(self, machine, path):
        self.machine, self.path, self.device, self.number = machine, path, path.split("/")[-3], int(os.path.basename(path))
        # As in "4: ACTIVE".
        self.state = self.text("state").split(" ")[-1] or "unknown"
        self.link_layer = self.text("link_layer") or "unknown"
        self.needs_gid = self.link_layer != "InfiniBand"

    def text(self, name):
        return self.machine.text("%s/%s" % (self.path, name))

    def gid(self):
        # An address handle has 8 bits for the index. Unused ones are zeros, or cannot be read.
        texts = ((index, self.text("gids/%d" % index)) for index in range(256))
        found = [Gid(index, text, self.text("gid_attrs/types/%d" % index)) for index, text in texts if text.replace(":", "").strip("0")]
        if not found:
            raise Failure("port %d has no GID: give its network interface an address, or set it up" % self.number)
        return min(found, key=Gid.rank)


def usable_port(machine, device):
    """Its first active port, or None and why there is none to test."""
    directory = "/sys/class/infiniband/" + device
    # "1: CA" is InfiniBand and RoCE.
    kind = machine.text(directory + "/node_type")
    if not kind.startswith("1"):
        return None, "its kind (%s) has no queue pairs that connect without a connection manager" % (kind or "unknown")
    ports = sorted((Port(machine, path) for path in machine.glob(directory + "/ports/*")), key=lambda port: port.number)
    for port in ports:
        if port.state == "ACTIVE":
            return port, ""
    states = ", ".join("port %d is %s" % (port.number, port.state) for port in ports)
    return None, "no active port (%s)" % (states or "it has none")
