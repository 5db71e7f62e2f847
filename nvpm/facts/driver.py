# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about the NVIDIA driver, and about nvidia_peermem, NVIDIA's own module for the same
purpose."""

import re
from typing import Dict, Optional

from ..read import ways
from ..read.doubts import driver_keeps_memory
from ..read.machine import PEERMEM, Machine, loaded_version, modinfo, module_wanted, once, rust
from ..read.modules_load import file_that_loads
from ..read.pci import gpus
from ..read.place import driver_in_container
from . import on_boot, peermem, pod
from .advice import INSTALL_DRIVER, UNLOAD_PEERMEM, Advice, service
from .bad_versions import DEFECTS, numbers
from .fact import Fact, Facts, bad, good, info, judged, warn
from .security import because, refused

LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
)
UPDATED = (
    "The driver was updated while it was loaded: reboot, or unload the old one (nvpm status --all, "
    "driver, in use by: what has to end before). In a container: restart the container, "
    "which got the library of the driver that was loaded then."
)

LOAD = "modprobe nvidia; if there is no GPU that it supports, the kernel's log says so."
BUILT_IN_KERNEL = (
    "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules out"
)
CDMM = (
    "the driver keeps the memory of coherent GPUs to itself (NVreg_CoherentGPUMemoryMode=driver); "
    "nothing was tried with it: docs/choosing.md"
)
# The order in which modules have to go before nvidia can.
USERS = (
    "nv_peer_mem",
    "nvidia_peermem",
    "efa_nv_peermem",
    "nvidia_fs",
    "gdrdrv",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
)
PERSISTENCED = "/run/nvidia-persistenced/*.pid"
UNITS = [
    f"{directory}/systemd/system/nvidia-persistenced.service"
    for directory in ("/etc", "/usr/lib", "/lib")
]
BEFORE_UNLOAD = (
    "Only to load another driver without a reboot: end the programs that use a GPU (fuser -v "
    "/dev/nvidia*), {stop}then modprobe -r {modules} nvidia."
)
HOLDS_BAR1 = "gdrdrv pins GPU memory and uses BAR1, as registrations do"
OF_OPERATOR = "it belongs to the GPU Operator, and the packages of nv_peer_mem here are of no use"
ONLY_WAY = "nothing else here serves GPU memory"
ONLY_ONE = "Remove nvidia-peermem from that file: only one module can serve GPU memory."


@once
def installed(machine: Machine) -> Dict[str, str]:
    """Returns the fields of NVIDIA's module if the module is installed. The file is looked for in
    the list of all modules, because Debian's files do not have the name of the module."""
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
        # The kernel marks a module with P if the module's licence is not a free one.
        return "proprietary" if "P" in machine.text("/sys/module/nvidia/taint") else "open"
    fields = installed(machine)
    if not fields:
        return ""
    return "open" if "GPL" in fields.get("license", "") else "proprietary"


@once
def version(machine: Machine) -> str:
    """Returns the version of the loaded driver. If no driver is loaded, returns the version of the
    installed driver. Only then is the list of all modules read, because it is long."""
    if machine.loaded("nvidia"):
        return machine.text("/sys/module/nvidia/version")
    return installed(machine).get("version", "")


def facts(machine: Machine) -> Facts:
    if machine.loaded("nvidia"):
        yield good("driver", "nvidia", f"loaded, version {version(machine) or 'unknown'}")
        yield library(machine)
    else:
        yield not_loaded(machine)
    yield from defects(machine)
    yield its_flavour(machine)
    yield coherent_mode(machine)
    yield static_bar1(machine)
    yield nvidia_peermem(machine)
    yield on_boot.fact(machine)
    yield in_use(machine)


def not_loaded(machine: Machine) -> Fact:
    if not gpus(machine):
        return info("driver", "nvidia", "not loaded; this machine has no NVIDIA GPU")
    if ways.given_away(machine):
        return info("driver", "nvidia", "not loaded; all GPUs are given to virtual machines")
    reason = refused(machine, "nvidia")
    if reason:
        value = f"not loaded; {reason}{because(machine)}"
        return bad("driver", "nvidia", value, Advice(machine, "nvidia")["to_enrol"])
    if installed(machine):
        value = f"not loaded; version {version(machine)} is installed"
        return warn("driver", "nvidia", value, LOAD)
    return bad("driver", "nvidia", f"none for kernel {machine.kernel}", INSTALL_DRIVER)


def library(machine: Machine) -> Optional[Fact]:
    """Judges whether libcuda has the version of the loaded driver. After an update without a
    reboot, CUDA refuses to start. Directories with libraries for forward compatibility are not
    looked at, because those libraries may be newer."""
    loaded = version(machine)
    for link in machine.glob(*LIBRARIES):
        found = re.search(r"libcuda\.so\.(\d+\.[\d.]+)$", machine.link(link))
        if found and numbers(loaded) and found[1] != loaded:
            value = f"{found[1]}, but the loaded driver is {loaded}: CUDA does not start"
            return bad("driver", "libcuda", value, UPDATED)
    return None


def defects(machine: Machine) -> Facts:
    """Yields the known defects of this version that this machine can meet."""
    number = numbers(version(machine))
    for defect in DEFECTS:
        if number and defect.first <= number < defect.repaired:
            verdict = defect.meets(machine)
            if verdict:
                value = f"{version(machine)} {defect.effect} ({defect.source})"
                yield judged(verdict, "driver", defect.name, value, defect.advice)


def its_flavour(machine: Machine) -> Optional[Fact]:
    found = flavour(machine)
    if found == "proprietary" and rust(machine) == "in-kernel":
        return bad("driver", "flavour", BUILT_IN_KERNEL, Advice(machine)["rebuild"])
    return good("driver", "flavour", found) if found else None


def coherent_mode(machine: Machine) -> Optional[Fact]:
    return info("driver", "CDMM", CDMM) if driver_keeps_memory(machine) else None


def static_bar1(machine: Machine) -> Optional[Fact]:
    """Returns a fact if the driver was told to keep all memory of a GPU in BAR1. Pinning then takes
    no additional part of BAR1."""
    params = machine.all_text("/proc/driver/nvidia/params")
    found = re.search(r"^RegistryDwords: .*ForceStaticBar1=(0x)?0*1", params, re.MULTILINE)
    return info("driver", "static BAR1", "asked for (RMForceStaticBar1)") if found else None


def nvidia_peermem(machine: Machine) -> Fact:
    """Judges nvidia_peermem, NVIDIA's own module. Only one module can register GPU memory, so
    nvidia_peermem may be in the way of nv_peer_mem. The module of this name may also be nv_peer_mem
    itself, or its marker."""
    if pod.keeps_module(machine):
        return under_this_name(machine)
    if machine.exists(ways.MARKER):
        value = "a name only, for programs that look for it: it belongs to nv_peer_mem"
        return good("driver", "nvidia_peermem", value)
    if not module_wanted(machine):
        return unrivalled(machine)
    if machine.loaded("nvidia_peermem"):
        value = "loaded: it serves the same memory, and only one module can"
        if driver_in_container(machine):
            return warn("driver", PEERMEM, f"{value}; {OF_OPERATOR}", pod.IN_ITS_PLACE)
        advice = f"{UNLOAD_PEERMEM} && {service(machine, 'restart')}"
        return bad("driver", "nvidia_peermem", value, advice)
    file = file_that_loads(machine, "nvidia_peermem")
    if file:
        value = f"not loaded now, but {file} loads it on boot"
        return warn("driver", "nvidia_peermem", value, ONLY_ONE)
    return good("driver", "nvidia_peermem", "not loaded, so it does not compete")


def under_this_name(machine: Machine) -> Fact:
    """Returns the fact if nv_peer_mem itself is loaded under the name nvidia_peermem."""
    value = f"nv_peer_mem {loaded_version(machine, PEERMEM)} under this name, and not NVIDIA's"
    file = file_that_loads(machine, PEERMEM)
    if file and peermem.on_disk(machine):
        return warn("driver", PEERMEM, f"{value}; {file} loads NVIDIA's on boot", ONLY_ONE)
    return good("driver", PEERMEM, f"{value} module")


def unrivalled(machine: Machine) -> Fact:
    """Judges nvidia_peermem on a node that is not meant to have nv_peer_mem."""
    if machine.loaded("nvidia_peermem"):
        return info("driver", "nvidia_peermem", "loaded")
    if not peermem.on_disk(machine):
        return info("driver", "nvidia_peermem", "not loaded")
    value = "not loaded, and installed"
    if not peermem.fits(machine):
        value = f"{value} for driver {peermem.on_disk(machine)['version']}, which is not loaded"
    if peermem.missed(machine):
        return bad("driver", "nvidia_peermem", f"{value}: {ONLY_WAY}", peermem.LOAD)
    return info("driver", "nvidia_peermem", value)


def in_use(machine: Machine) -> Optional[Fact]:
    """Returns which modules and which service keep the driver from being unloaded."""
    if not machine.loaded("nvidia"):
        return None
    modules = [name for name in USERS if machine.loaded(name) and holds(machine, name)]
    service = "nvidia-persistenced" if machine.glob(PERSISTENCED) else ""
    if not modules and not service:
        return None
    value = ", ".join(filter(None, [*modules, service]))
    if "gdrdrv" in modules:
        value = f"{value}; {HOLDS_BAR1}"
    how = "systemctl stop" if machine.glob(*UNITS) else "end"
    stop = f"{how} {service}, " if service else ""
    if pod.keeps_module(machine):
        stop += pod.STOP
    advice = BEFORE_UNLOAD.format(stop=stop, modules=" ".join(modules)).replace("  ", " ")
    return info("driver", "in use by", value, advice)


def holds(machine: Machine, name: str) -> bool:
    """Returns whether the module uses nvidia, directly or by another of its modules. The marker of
    nv_peer_mem has the name nvidia_peermem, and goes with nv_peer_mem."""
    if name == "nvidia_peermem" and machine.exists(ways.MARKER):
        return False
    holders = machine.glob("/sys/module/nvidia/holders/*", "/sys/module/nvidia_*/holders/*")
    return name in {holder.rpartition("/")[2] for holder in holders}
