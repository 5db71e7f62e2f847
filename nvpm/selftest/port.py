# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds ports of RDMA devices, and their addresses."""

import os
from typing import Optional, Tuple

from ..read.machine import Machine
from . import Failure


class Port:
    def __init__(self, machine: Machine, path: str) -> None:
        self.machine, self.path = machine, path
        self.device, self.number = path.split("/")[-3], int(os.path.basename(path))
        self.state = self.now()
        self.needs_gid = self.text("link_layer") != "InfiniBand"

    def text(self, name: str) -> str:
        return self.machine.text(f"{self.path}/{name}")

    def now(self) -> str:
        """Returns the present state. The file contains a text like "4: ACTIVE"."""
        return self.text("state").split(" ")[-1] or "unknown"

    def gid(self) -> Tuple[int, bytes]:
        """Returns index and bytes of the GID that programs also choose. RoCE v2 comes before v1.
        Then IPv4 comes before IPv6. Then other addresses come before link-local addresses."""
        found = []
        for index in range(256):  # an address handle has 8 bits for the index
            text = self.text(f"gids/{index}").replace(":", "")
            if text.strip("0"):  # an unused GID is zero, or cannot be read
                raw = bytes.fromhex(text)
                not_v2 = "v2" not in self.text(f"gid_attrs/types/{index}")
                not_ipv4 = raw[:12] != bytes(10) + b"\xff\xff"
                link_local = raw[:2] == b"\xfe\x80"
                found.append(((not_v2, not_ipv4, link_local), index, raw))
        if not found:
            raise Failure(
                f"port {self.number} has no GID: "
                "give its network interface an address, or set it up"
            )
        _, index, raw = min(found)
        return index, raw


def usable_port(machine: Machine, device: str) -> Tuple[Optional[Port], str]:
    """Returns the first active port of the device, or None with the reason."""
    directory = f"/sys/class/infiniband/{device}"
    # Devices for InfiniBand and for RoCE have the kind "1: CA".
    kind = machine.text(f"{directory}/node_type")
    if not kind.startswith("1"):
        return None, (
            f"its kind ({kind or 'unknown'}) has no queue pairs that connect "
            "without a connection manager"
        )
    ports = [Port(machine, path) for path in machine.glob(f"{directory}/ports/*")]
    ports.sort(key=lambda port: port.number)
    states = ", ".join(f"port {port.number} is {port.state}" for port in ports) or "it has none"
    active = next((port for port in ports if port.state == "ACTIVE"), None)
    return active, f"no active port ({states})"
