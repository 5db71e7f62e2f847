# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The NVIDIA driver, and NVIDIA's own module for the same purpose."""

import re
from typing import Dict, Optional

from .explain import INSTALL_DRIVER, UNLOAD_PEERMEM, Advice
from .fact import Fact, Facts, bad, good, warn
from .machine import PARAMETERS, SERVICE, Machine, modinfo, once, rust

LOADED_ON_BOOT = (
    "/etc/modules-load.d/*.conf",
    "/usr/lib/modules-load.d/*.conf",
    "/etc/modules",
)

LOAD = "modprobe nvidia; if there is no GPU that it supports, the kernel's log says so."
UPDATE = (
    "Install driver 535.129.03 or later (of 545: 545.29.02); "
    "until then keep persistent_api_support=1."
)
BUILT_IN_KERNEL = (
    "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules out"
)
ONLY_ONE = "Remove nvidia-peermem from that file: only one module can serve GPU memory."


@once
def installed(machine: Machine) -> Dict[str, str]:
    """The fields of NVIDIA's module; empty if it is not installed. Debian's files have other names
    than the module."""
    dependencies = machine.all_text(f"/lib/modules/{machine.kernel}/modules.dep")
    paths = re.findall("^([^:]*):", dependencies, re.MULTILINE)
    named = r"(?:^|/)(nvidia[^/]*)\.ko[^/]*$"
    names = sorted(name for path in paths for name in re.findall(named, path))
    fields = modinfo(machine, "nvidia")
    if fields:
        return fields
    found = (modinfo(machine, name) for name in names)
    return next((fields for fields in found if fields.get("name") == "nvidia"), {})


@once
def flavour(machine: Machine) -> str:
    """open or proprietary; empty if there is no driver."""
    if machine.loaded("nvidia"):
        # The kernel marks modules that are not under a free licence.
        return "proprietary" if "P" in machine.text("/sys/module/nvidia/taint") else "open"
    fields = installed(machine)
    if not fields:
        return ""
    return "open" if "GPL" in fields.get("license", "") else "proprietary"


def frees_twice(version: str) -> bool:
    """Whether nvidia_p2p_get_pages() frees some of its memory twice if the GPU memory is freed while
    it runs (docs/support.md)."""
    number = tuple(int(part) for part in re.findall(r"\d+", version))
    if number[:1] == (535,):
        # The developers' beta was mended on its own.
        return number < (535, 129) and not (535, 43, 24) <= number < (535, 44)
    return number[:1] == (545,) and number < (545, 29)


def facts(machine: Machine) -> Facts:
    # What is installed is not looked for while one is loaded: the list of all modules is long.
    if machine.loaded("nvidia"):
        version = machine.text("/sys/module/nvidia/version")
        yield good("driver", "nvidia", f"loaded, version {version or 'unknown'}")
    else:
        version = installed(machine).get("version", "")
        yield not_loaded(machine, version)
    yield double_free(machine, version)
    yield its_flavour(machine)
    yield nvidia_peermem(machine)


def not_loaded(machine: Machine, version: str) -> Fact:
    if installed(machine):
        return warn("driver", "nvidia", f"not loaded; version {version} is installed", LOAD)
    return bad("driver", "nvidia", f"none for kernel {machine.kernel}", INSTALL_DRIVER)


def double_free(machine: Machine, version: str) -> Optional[Fact]:
    if not frees_twice(version):
        return None
    frees = f"{version} frees memory of the kernel twice"
    if machine.text(PARAMETERS + "persistent_api_support") == "0":
        value = f"{frees} if a program frees GPU memory while it registers it"
        return bad("driver", "double_free", value, UPDATE)
    value = f"{frees} in revocable registrations (MIG, vGPU), if GPU memory is freed meanwhile"
    return warn("driver", "double_free", value, UPDATE)


def its_flavour(machine: Machine) -> Optional[Fact]:
    found = flavour(machine)
    if found == "proprietary" and rust(machine) == "in-kernel":
        return bad("driver", "flavour", BUILT_IN_KERNEL, Advice(machine)["rebuild"])
    return good("driver", "flavour", found) if found else None


def nvidia_peermem(machine: Machine) -> Fact:
    """It registers the same memory, and only one module can."""
    if machine.exists("/sys/module/nv_peer_mem/holders/nvidia_peermem"):
        value = "a name only, for programs that look for it: it belongs to nv_peer_mem"
        return good("driver", "nvidia_peermem", value)
    if machine.loaded("nvidia_peermem"):
        value = "loaded: it serves the same memory, and only one module can"
        return bad("driver", "nvidia_peermem", value, f"{UNLOAD_PEERMEM} && {SERVICE} restart")
    for file in machine.glob(*LOADED_ON_BOOT):
        if re.search("^[ \t]*nvidia[-_]peermem", machine.all_text(file), re.MULTILINE):
            value = f"not loaded now, but {file} loads it on boot"
            return warn("driver", "nvidia_peermem", value, ONLY_ONE)
    return good("driver", "nvidia_peermem", "not loaded, so it does not compete")
