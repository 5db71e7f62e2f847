# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The NVIDIA driver, and NVIDIA's own module for the same purpose."""
import re

from .explain import INSTALL_DRIVER, UNLOAD_PEERMEM, Advice
from .fact import bad, good, warn
from .machine import SERVICE, modinfo, once, rust


@once
def installed(machine):
    """The fields of NVIDIA's module; empty if it is not installed. Debian's files have other names than the module."""
    paths = re.findall("^([^:]*):", machine.all_text("/lib/modules/%s/modules.dep" % machine.kernel), re.MULTILINE)
    names = sorted(name for path in paths for name in re.findall(r"(?:^|/)(nvidia[^/]*)\.ko[^/]*$", path))
    found = (modinfo(machine, name) for name in names)
    return modinfo(machine, "nvidia") or next((fields for fields in found if fields.get("name") == "nvidia"), {})


@once
def flavour(machine):
    """open or proprietary; empty if there is no driver."""
    if machine.loaded("nvidia"):
        # The kernel marks modules that are not under a free licence.
        return "proprietary" if "P" in machine.text("/sys/module/nvidia/taint") else "open"
    return installed(machine) and ("open" if "GPL" in installed(machine).get("license", "") else "proprietary")


def facts(machine):
    if machine.loaded("nvidia"):
        yield good("driver", "nvidia", "loaded, version " + (machine.text("/sys/module/nvidia/version") or "unknown"))
    elif installed(machine):
        yield warn("driver", "nvidia", "not loaded; version %s is installed" % installed(machine).get("version", ""),
                   "modprobe nvidia; if there is no GPU that it supports, the kernel's log says so.")
    else:
        yield bad("driver", "nvidia", "none for kernel " + machine.kernel, INSTALL_DRIVER)
    if (flavour(machine), rust(machine)) == ("proprietary", "in-kernel"):
        yield bad("driver", "flavour", "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules out", Advice(machine)["rebuild"])
    elif flavour(machine):
        yield good("driver", "flavour", flavour(machine))
    yield peermem(machine)


def peermem(machine):
    """nvidia_peermem registers the same memory, and only one module can."""
    if machine.exists("/sys/module/nv_peer_mem/holders/nvidia_peermem"):
        return good("driver", "nvidia_peermem", "a name only, for programs that look for it: it belongs to nv_peer_mem")
    if machine.loaded("nvidia_peermem"):
        return bad("driver", "nvidia_peermem", "loaded: it serves the same memory, and only one module can", "%s && %s restart" % (UNLOAD_PEERMEM, SERVICE))
    for file in machine.glob("/etc/modules-load.d/*.conf", "/usr/lib/modules-load.d/*.conf", "/etc/modules"):
        if any(re.match(r"\s*nvidia[-_]peermem", line) for line in machine.lines(file)):
            return warn("driver", "nvidia_peermem", "not loaded now, but %s loads it on boot" % file,
                        "Remove nvidia-peermem from that file: only one module can serve GPU memory.")
    return good("driver", "nvidia_peermem", "not loaded, so it does not compete")
