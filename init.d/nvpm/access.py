# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether users other than root may use RDMA: the modes of the device files, and how much memory the jobs of a service may lock, which GPU memory
counts for."""
import os
import re

from .fact import bad, good, none, warn

DAEMONS = ("slurmd", "kubelet", "containerd")
UNITS = [directory + "/systemd/system/%s.service" + more for directory in ("/lib", "/usr/lib", "/etc") for more in ("", ".d/*.conf")]
OPEN = 0o666
OPEN_THEM = "Install the udev rules of rdma-core, which give 0666; until the next boot: chmod 0666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm"


def facts(machine):
    if machine.glob("/sys/class/infiniband/*"):
        yield modes_fact(machine)
    for daemon in DAEMONS:
        name, limit = "memory lock " + daemon, memory_limit(machine, daemon)
        if limit and daemon == "kubelet":
            yield none("access", name, limit + "; containers have that of their runtime")
        elif limit.startswith(("unlimited", "infinity")):
            yield good("access", name, limit)
        elif limit:
            yield warn("access", name, "%s%s: its jobs cannot register more" % (limit, " bytes" if limit.isdigit() else ""),
                       "systemctl edit {0}, write [Service] and LimitMEMLOCK=infinity, then systemctl restart {0}.".format(daemon))


def modes_fact(machine):
    files = machine.glob("/dev/infiniband/uverbs*")
    if not files:
        return bad("access", "/dev/infiniband", "there is no uverbs device", "modprobe ib_uverbs; in a container, give it the devices (--device /dev/infiniband).")
    modes = [(os.path.basename(file), os.stat(machine.root + file).st_mode & 0o7777) for file in files + machine.glob("/dev/infiniband/rdma_cm")]
    closed = ["%s has mode 0%o" % (name, mode) for name, mode in modes if mode & OPEN != OPEN]
    if closed:
        return warn("access", "/dev/infiniband", "not open to all users: " + ", ".join(closed), OPEN_THEM)
    return good("access", "/dev/infiniband", "open to all users")


def memory_limit(machine, daemon):
    """How much memory the daemon may lock; what its unit says, if it does not run; empty if it is not there."""
    for comm in machine.glob("/proc/[0-9]*/comm"):
        if machine.text(comm) == daemon:
            return "".join(re.findall(r"^Max locked memory\s+(\S+)", machine.all_text(os.path.dirname(comm) + "/limits"), re.MULTILINE))
    files = machine.glob(*(file % daemon for file in UNITS))
    said = re.findall(r"^\s*LimitMEMLOCK\s*=\s*(?:.*:)?(.*)", machine.all_text(*files), re.MULTILINE) or [""]
    return (said[-1] or "the default of systemd (DefaultLimitMEMLOCK)") + ", by its unit" if files else ""
