# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What sysfs says of RDMA devices and of the module. NVPM_SYSROOT= is another root
directory, for tests."""
import os

from failure import Failure

ROOT = os.environ.get("NVPM_SYSROOT", "")
DEVICES = ROOT + "/sys/class/infiniband"
MODULE = ROOT + "/sys/module/nv_peer_mem"


def text_of(*path):
    """The first line of a file; empty where it cannot be read, as unused GIDs cannot."""
    try:
        with open(os.path.join(*path), errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def module_loaded():
    return os.path.isdir(MODULE)


def may_stay_pinned():
    """Whether memory that is freed stays pinned while it is registered."""
    return text_of(MODULE, "parameters/persistent_api_support") != "0"


class Gid:
    def __init__(self, index, text, kind):
        self.index, self.kind = index, kind
        self.raw = bytes.fromhex(text.replace(":", ""))

    def rank(self):
        """Those first that programs use, too: RoCE v2 with an address of IPv4, of IPv6; link-local ones last."""
        return ("v2" not in self.kind, self.raw[:12] != bytes(10) + b"\xff\xff", self.raw[:2] == b"\xfe\x80", self.index)


class Port:
    def __init__(self, device, number):
        self.device, self.number = device, number
        self.path = os.path.join(DEVICES, device, "ports", str(number))
        # As in "4: ACTIVE".
        self.state = text_of(self.path, "state").split(" ")[-1] or "unknown"
        self.link_layer = text_of(self.path, "link_layer") or "unknown"
        self.needs_gid = self.link_layer != "InfiniBand"

    def gids(self):
        # An address handle has 8 bits for the index.
        for index in range(256):
            text = text_of(self.path, "gids", str(index))
            if text.replace(":", "").strip("0"):
                yield Gid(index, text, text_of(self.path, "gid_attrs/types", str(index)))

    def gid(self):
        found = sorted(self.gids(), key=Gid.rank)
        if not found:
            raise Failure("port %d has no GID: give its network interface an address, or set it up" % self.number)
        return found[0]


def usable_port(device):
    """Its first active port, or None and why there is none to test."""
    # "1: CA" is InfiniBand and RoCE.
    kind = text_of(DEVICES, device, "node_type")
    if not kind.startswith("1"):
        return None, "its kind (%s) has no queue pairs that connect without a connection manager" % (kind or "unknown")
    try:
        numbers = sorted(int(name) for name in os.listdir(os.path.join(DEVICES, device, "ports")))
    except (OSError, ValueError):
        numbers = []
    ports = [Port(device, number) for number in numbers]
    for port in ports:
        if port.state == "ACTIVE":
            return port, ""
    states = ", ".join("port %d is %s" % (port.number, port.state) for port in ports)
    return None, "no active port (%s)" % (states or "it has none")
