# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether users other than root may use RDMA: the modes of the device files, and how much memory the jobs of a service may lock, which GPU memory
counts for."""

import os
import re

from .fact import bad, first, good, none, warn
from .machine import once

DAEMONS = ("slurmd", "kubelet", "containerd")
UNITS = [
    directory + "/systemd/system/%s.service" + more
    for directory in ("/lib", "/usr/lib", "/etc")
    for more in ("", ".d/*.conf")
]
OPEN = 0o666


def facts(machine):
    files = machine.glob("/dev/infiniband/uverbs*")
    modes = [
        (os.path.basename(file), os.stat(machine.root + file).st_mode & 0o7777)
        for file in files + machine.glob("/dev/infiniband/rdma_cm")
    ]
    closed = [f"{name} has mode 0{mode:o}" for name, mode in modes if mode & OPEN != OPEN]
    if machine.glob("/sys/class/infiniband/*"):
        yield from first(
            "access",
            "/dev/infiniband",
            [
                (
                    not files,
                    bad,
                    "there is no uverbs device",
                    "modprobe ib_uverbs; in a container, give it the devices (--device /dev/infiniband).",
                ),
                (
                    closed,
                    warn,
                    "not open to all users: " + ", ".join(closed),
                    "Install the udev rules of rdma-core, which give 0666; until the next boot: chmod 0666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm",
                ),
                (True, good, "open to all users"),
            ],
        )
    for daemon in DAEMONS:
        limit = memory_limit(machine, daemon)
        yield from first(
            "access",
            "memory lock " + daemon,
            [
                (
                    limit and daemon == "kubelet",
                    none,
                    limit + "; containers have that of their runtime",
                ),
                (limit.startswith(("unlimited", "infinity")), good, limit),
                (
                    limit,
                    warn,
                    "{}{}: its jobs cannot register more".format(
                        limit, " bytes" if limit.isdigit() else ""
                    ),
                    f"systemctl edit {daemon}, write [Service] and LimitMEMLOCK=infinity, then systemctl restart {daemon}.",
                ),
            ],
        )


@once
def processes(machine):
    """The first process of each name."""
    return {
        machine.text(process + "/comm"): process
        for process in reversed(machine.glob("/proc/[0-9]*"))
    }


def memory_limit(machine, daemon):
    """How much memory the daemon may lock; what its unit says, if it does not run; empty if it is not there."""
    if daemon in processes(machine):
        return "".join(
            re.findall(
                r"^Max locked memory\s+(\S+)",
                machine.all_text(processes(machine)[daemon] + "/limits"),
                re.MULTILINE,
            )
        )
    files = machine.glob(*(file % daemon for file in UNITS))
    said = re.findall(
        r"^\s*LimitMEMLOCK\s*=\s*(?:.*:)?(.*)", machine.all_text(*files), re.MULTILINE
    ) or [""]
    return (
        (said[-1] or "the default of systemd (DefaultLimitMEMLOCK)") + ", by its unit"
        if files
        else ""
    )
