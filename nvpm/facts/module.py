# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about the module: whether it is loaded, whether it is installed, whether it will be loaded
after a boot, and its parameters."""

import os
from typing import Callable, Optional, Tuple

from ..read import ways
from ..read.conf import REFUSED, configuration, configured
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import (
    CALLBACK,
    CONF,
    MODULE,
    SERVICE,
    Machine,
    loaded_version,
    module_wanted,
    own_file,
    own_module,
    parameters,
    rust,
    statistics,
)
from ..read.modules_load import file_that_loads
from ..read.pci import gpus, nics
from ..read.peers import none_asks
from ..read.place import driver_in_container, loads_modules
from . import peermem, pod
from .advice import Advice, service
from .fact import Fact, Facts, bad, good, info, warn

COMPILED = {
    "in-kernel": "in-kernel: with the kernel's own Rust crates",
    "prebuilt": "prebuilt: with a kernel crate of its own, compiled before",
}
ENABLED = (
    "/etc/systemd/system/*.wants/nv_peer_mem.service",
    "/etc/rc[2345].d/S*nv_peer_mem",
    "/etc/rc.d/rc[2345].d/S*nv_peer_mem",
)

OTHER_PACKAGE = (
    "{restart_service}; if that loads the same one again, remove the other package: "
    "modinfo nv_peer_mem says which file it is."
)
CALLBACK_STAYS = (
    "it stays loaded until the next boot, because the NVIDIA driver may call it late; "
    "nv_peer_mem can be unloaded and updated meanwhile"
)
CALLBACK_LEFT = (
    "is still loaded and stays until the next boot, because the NVIDIA driver may call it late; "
    "it needs neither driver nor RDMA core"
)
CORRECT = f"Correct it in {CONF}: ONBOOT= or MARKER=, and yes or no."
NO_SERVICE = f"not loaded: there is no {SERVICE}"
LOAD_ON_BOOT = (
    "echo nv_peer_mem >/etc/modules-load.d/nv_peer_mem.conf, or install the package with the "
    "service: docs/installing.md."
)
POD_HAS_FILE = (
    "not on this system: the pod that has loaded the module has its file, and loads it again after "
    "a boot"
)
NODE_HAS_FILE = "not here: the files of the node's modules are on the node"
POD_LOADS = f"loaded by the pod of {pod.DAEMON_SET}"
NOT_BOTH = "only one of the two can be loaded"
NOT_BY_SERVICE = f"Write ONBOOT=no into {CONF}."
SET_ONBOOT = "Write ONBOOT=yes into it, or ONBOOT=no if that is meant."

# Reasons for which a machine can do without the module.
NOT_NEEDED = "programs that register GPU memory as dma-buf do without it"
NO_PEER_MEMORY = "it could not be used with this RDMA core, which has no peer memory"
PEERMEM_SERVES = "nvidia_peermem serves the same programs"
NO_GPU = "this machine has no NVIDIA GPU"
GIVEN_AWAY = "the GPUs are given to virtual machines, and the module belongs there"
NO_GPU_GIVEN = "this container was given no GPU"
EXCLUDED = "it serves none of the GPUs here"
NONE_ASKS = "it serves none of the RDMA devices here"
PEERMEM_IS_HERE = "nvidia_peermem is installed, and would serve the same programs"
START = f"{SERVICE} start; if that fails, it says why."
LOAD = "modprobe nv_peer_mem; if that fails, dmesg | grep nv_peer_mem says why."


def facts(machine: Machine) -> Facts:
    yield state(machine)
    yield installed(machine)
    yield callback(machine)
    if rust(machine) in COMPILED:
        yield info("module", "rust", COMPILED[rust(machine)])
    for file in machine.glob(parameters(machine) + "*"):
        if machine.readable(file):
            yield info("module", os.path.basename(file), machine.text(file))
    if module_wanted(machine):
        yield unclear(machine)
        yield on_boot(machine)


def installed_version(machine: Machine) -> str:
    return own_file(machine).get("version", "")


def state(machine: Machine) -> Fact:
    on_disk, name = installed_version(machine), own_module(machine)
    if name:
        version = loaded_version(machine, name)
        if name != MODULE:
            version = f"{version}, under the name {name}"
        if not machine.exists(statistics(machine)):
            value = f"loaded, version {version}, and not the one that belongs to this service"
            return warn("module", "state", value, Advice(machine).filled(OTHER_PACKAGE))
        if on_disk not in ("", loaded_version(machine, name)):
            value = f"loaded, version {version}; version {on_disk} is installed"
            return warn("module", "state", value, service(machine, "restart"))
        return good("module", "state", f"loaded, version {version}")
    judge, without = of_absence(machine)
    missed = judge is bad or (module_wanted(machine) and bool(gpus(machine)))
    if on_disk:
        advice = to_load(machine)
        return judge("module", "state", f"not loaded{without}", advice if missed else "")
    value = f"not loaded, and not installed for kernel {machine.kernel}{without}"
    return judge("module", "state", value, Advice(machine)["install"] if missed else "")


def to_load(machine: Machine) -> str:
    """Returns how to load an installed module. A module of the host is not for a driver that is in
    the GPU Operator's container, and would keep the operator from replacing that driver."""
    if driver_in_container(machine):
        return pod.USE_IMAGE
    return START if machine.exists(SERVICE) else LOAD


def of_absence(machine: Machine) -> Tuple[Callable[..., Fact], str]:
    """Returns the verdict if the module is not loaded. Also returns the reason, if this is no
    defect."""
    if not gpus(machine):
        return info, f"; {NO_GPU}"
    if ways.given_away(machine):
        return info, f"; {GIVEN_AWAY}"
    if ways.excluded_gpus(machine):
        return info, f"; {EXCLUDED}"
    if ways.given_no_gpu(machine):
        return info, f"; {NO_GPU_GIVEN}"
    if nics(machine) and none_asks(machine):
        return info, f"; {NONE_ASKS}"
    if not module_wanted(machine) and ways.peer_memory_by(machine):
        return info, f"; {PEERMEM_SERVES}"
    if peermem.missed(machine):
        return info, f"; {PEERMEM_IS_HERE}"
    if not ways.dma_buf_serves(machine):
        if module_wanted(machine) or peer_memory_in(machine) or not machine.loaded("ib_core"):
            return bad, ""
        # The RDMA core without peer memory is the defect here. The absence of the module is no
        # further defect.
        return info, f"; {NO_PEER_MEMORY}"
    # A module that is installed, and that the RDMA core can use, was installed for a purpose. So
    # its absence from the kernel gets a warning.
    expected = module_wanted(machine) and peer_memory_in(machine)
    return warn if expected else info, f"; {NOT_NEEDED}"


def installed(machine: Machine) -> Optional[Fact]:
    """Returns a fact about the installed module, because the fact `state` is only about the loaded
    module."""
    loaded, on_disk, kernel = own_module(machine), installed_version(machine), machine.kernel
    if pod.keeps_module(machine) and not on_disk:
        return info("module", "installed", POD_HAS_FILE)
    if loaded and not on_disk and loads_modules(machine):
        return info("module", "installed", NODE_HAS_FILE)
    if loaded and not on_disk:
        value = f"not for kernel {kernel}: it will be gone after a reboot"
        return bad("module", "installed", value, Advice(machine)["install"])
    if on_disk and not loaded:
        return good("module", "installed", f"version {on_disk} for kernel {kernel}")
    return None


def callback(machine: Machine) -> Optional[Fact]:
    """Returns a fact about the callback module, which stays loaded because it cannot be unloaded.
    The fact says that this is right, so that nobody takes the module for a leftover."""
    if not machine.loaded(CALLBACK):
        return None
    name = f"{CALLBACK}, version {loaded_version(machine, CALLBACK)}"
    if own_module(machine):
        return good("module", "callback module", f"{name}: {CALLBACK_STAYS}")
    return good("module", "callback module", f"{name}, {CALLBACK_LEFT}")


def unclear(machine: Machine) -> Optional[Fact]:
    """Returns a fact with the lines of the configuration that are not understood."""
    refused = "; ".join(line for name, line in configuration(machine) if name == REFUSED)
    if not refused:
        return None
    return warn("module", "configuration", f"not understood: {refused}", CORRECT)


def on_boot(machine: Machine) -> Optional[Fact]:
    if pod.keeps_module(machine):
        return beside_pod(machine)
    if loads_modules(machine):
        return None
    if not machine.exists(SERVICE):
        file = file_that_loads(machine, MODULE)
        if file:
            return good("module", "on boot", f"loaded, by {file}")
        return warn("module", "on boot", NO_SERVICE, LOAD_ON_BOOT)
    wanted = configured(machine, "ONBOOT")
    if wanted == "no":
        return info("module", "on boot", f"no: ONBOOT=no in {CONF}")
    if wanted == "unclear":
        value = f"not loaded: ONBOOT= in {CONF} is neither yes nor no"
        return warn("module", "on boot", value, SET_ONBOOT)
    if wanted != "yes":
        return warn("module", "on boot", f"not loaded: no ONBOOT=yes in {CONF}", SET_ONBOOT)
    if machine.glob(*ENABLED):
        return good("module", "on boot", "loaded")
    value = "not loaded: the service is not enabled"
    return warn("module", "on boot", value, to_enable(machine))


def beside_pod(machine: Machine) -> Fact:
    """Judges what a boot loads on a node whose module belongs to a pod. The node's own service
    would load a second one, and the kernel refuses whichever comes later."""
    file = file_that_loads(machine, MODULE)
    if file:
        value = f"{POD_LOADS}, and {file} loads {MODULE}: {NOT_BOTH}"
        return warn("module", "on boot", value, f"Remove {MODULE} from {file}.")
    if machine.glob(*ENABLED) and configured(machine, "ONBOOT") == "yes":
        value = f"{POD_LOADS}, and the service loads {MODULE}: {NOT_BOTH}"
        return warn("module", "on boot", value, NOT_BY_SERVICE)
    return good("module", "on boot", POD_LOADS)


def to_enable(machine: Machine) -> str:
    if machine.exists("/run/systemd/system"):
        return "systemctl enable nv_peer_mem"
    if machine.exists("/etc/debian_version"):
        return "update-rc.d nv_peer_mem defaults"
    return "chkconfig --add nv_peer_mem"


# ---- the kernel ----
