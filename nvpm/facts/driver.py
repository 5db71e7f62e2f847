# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The NVIDIA driver, and NVIDIA's own module for the same purpose."""

import re
from typing import Dict, Optional

from ..read import ways
from ..read.machine import PARAMETERS, SERVICE, Machine, modinfo, module_wanted, once, rust
from ..read.pci import gpus
from .advice import INSTALL_DRIVER, UNLOAD_PEERMEM, Advice
from .fact import Fact, Facts, bad, good, info, warn

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
CDMM = (
    "the driver keeps the memory of coherent GPUs to itself (NVreg_CoherentGPUMemoryMode=driver); "
    "nothing was tried with it: docs/choosing.md"
)
ONLY_ONE = "Remove nvidia-peermem from that file: only one module can serve GPU memory."


@once
def installed(machine: Machine) -> Dict[str, str]:
    """Returns the fields of NVIDIA's module, if the module is installed. Debian's files have other
    names than the module."""
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
    """Returns "open" or "proprietary"; an empty string without a driver."""
    if machine.loaded("nvidia"):
        # The kernel marks modules that are not under a free licence.
        return "proprietary" if "P" in machine.text("/sys/module/nvidia/taint") else "open"
    fields = installed(machine)
    if not fields:
        return ""
    return "open" if "GPL" in fields.get("license", "") else "proprietary"


@once
def version(machine: Machine) -> str:
    """Returns the version of the loaded driver, or else of the installed driver. The installed
    driver is not looked for while one is loaded, because the list of all modules is long."""
    if machine.loaded("nvidia"):
        return machine.text("/sys/module/nvidia/version")
    return installed(machine).get("version", "")


def frees_twice(version: str) -> bool:
    """Whether nvidia_p2p_get_pages() frees some of its memory twice if the GPU memory is freed
    while it runs (docs/support.md)."""
    number = tuple(int(part) for part in re.findall(r"\d+", version))
    if number[:1] == (535,):
        # The developers' beta got the repair in a version of its own.
        return number < (535, 129) and not (535, 43, 24) <= number < (535, 44)
    return number[:1] == (545,) and number < (545, 29)


def facts(machine: Machine) -> Facts:
    if machine.loaded("nvidia"):
        yield good("driver", "nvidia", f"loaded, version {version(machine) or 'unknown'}")
    else:
        yield not_loaded(machine)
    yield double_free(machine, version(machine))
    yield its_flavour(machine)
    yield coherent_mode(machine)
    yield static_bar1(machine)
    yield nvidia_peermem(machine)


def not_loaded(machine: Machine) -> Fact:
    if not gpus(machine):
        return info("driver", "nvidia", "not loaded; this machine has no NVIDIA GPU")
    if installed(machine):
        value = f"not loaded; version {version(machine)} is installed"
        return warn("driver", "nvidia", value, LOAD)
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


def options(machine: Machine) -> str:
    """Returns the options for the next time the driver is loaded."""
    return machine.all_text(*machine.glob("/etc/modprobe.d/*.conf", "/usr/lib/modprobe.d/*.conf"))


def coherent_mode(machine: Machine) -> Optional[Fact]:
    """On Grace the driver can keep the GPU's memory for itself (CDMM), in place of giving the
    memory to the kernel as a NUMA node. Only the driver's option shows the mode."""
    if not re.search(
        r"^\s*options\s+nvidia\s.*NVreg_CoherentGPUMemoryMode=driver", options(machine), re.M
    ):
        return None
    return info("driver", "CDMM", CDMM)


def static_bar1(machine: Machine) -> Optional[Fact]:
    """Returns a fact if all memory of a GPU is always in BAR1: then pinning takes no part of
    BAR1."""
    params = machine.all_text("/proc/driver/nvidia/params")
    found = re.search(r"^RegistryDwords: .*ForceStaticBar1=(0x)?0*1", params, re.MULTILINE)
    return info("driver", "static BAR1", "asked for (RMForceStaticBar1)") if found else None


def nvidia_peermem(machine: Machine) -> Fact:
    """Judges NVIDIA's own module, because only one module can register GPU memory."""
    if machine.exists(ways.MARKER):
        value = "a name only, for programs that look for it: it belongs to nv_peer_mem"
        return good("driver", "nvidia_peermem", value)
    if not module_wanted(machine):
        there = "loaded" if machine.loaded("nvidia_peermem") else "not loaded"
        return info("driver", "nvidia_peermem", there)
    if machine.loaded("nvidia_peermem"):
        value = "loaded: it serves the same memory, and only one module can"
        return bad("driver", "nvidia_peermem", value, f"{UNLOAD_PEERMEM} && {SERVICE} restart")
    for file in machine.glob(*LOADED_ON_BOOT):
        if re.search("^[ \t]*nvidia[-_]peermem", machine.all_text(file), re.MULTILINE):
            value = f"not loaded now, but {file} loads it on boot"
            return warn("driver", "nvidia_peermem", value, ONLY_ONE)
    return good("driver", "nvidia_peermem", "not loaded, so it does not compete")
