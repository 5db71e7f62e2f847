# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Looks at the node before anything is done: what is there, and why a run must be refused."""

import os
import re
from typing import Any, Dict, List, NamedTuple, Tuple

import machine
import private

Facts = Dict[str, Any]

CAP_SYS_MODULE = 16
# Daemons of the driver that have a GPU open at all times, and register nothing. The kernel cuts
# names to 15 characters.
DAEMONS = (
    "nvidia-persiste",
    "nv-hostengine",
    "nv-fabricmanage",
    "dcgm-exporter",
    "nvidia-device-p",
    "nvidia-smi",
)
GPU_FILE = re.compile(r"/dev/nvidia(\d+|-lab)$")


class Refusal(NamedTuple):
    """Why a run does not begin, and what helps. The user can overrule some reasons."""

    why: str
    advice: str
    can_be_overruled: bool = False


def facts() -> Facts:
    """Returns what is known of the node."""
    release = machine.text("/proc/sys/kernel/osrelease")
    return {
        "kernel": release,
        "arch": os.uname().machine,
        "driver": machine.text("/sys/module/nvidia/version"),
        "driver_licence": licence("nvidia"),
        "core": core(),
        "gpus": gpus(),
        "devices": devices(),
        "modules": {
            name: {
                "version": machine.text(f"/sys/module/{name}/version"),
                "refcnt": machine.number(f"/sys/module/{name}/refcnt"),
            }
            for name in ("nvidia_peermem", "nv_peer_mem", "nv_peer_mem_callback", "gdrdrv")
            if machine.there(f"/sys/module/{name}")
        },
        "registrations": registrations(),
        "programs": [list(program) for program in programs()],
        "headers": machine.there(f"/lib/modules/{release}/build"),
        "verbs_header": machine.there("/usr/include/infiniband/verbs.h"),
        "tools": {name: which(name) for name in ("make", "cc", "gcc", "clang", "nvidia-smi")},
        "boot": machine.boot(),
    }  # type: Facts


def licence(module: str) -> str:
    done = machine.run(["modinfo", "-F", "license", module])
    return done.output if done.code == 0 else ""


def which(name: str) -> str:
    for directory in os.environ["PATH"].split(":"):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def core() -> str:
    """Returns the kind of the RDMA core: `peer memory`, `none` or nothing if none is loaded."""
    if machine.there("/sys/kernel/mm/memory_peers"):
        return "peer memory"
    try:
        with open(machine.at("/proc/kallsyms"), encoding="utf-8", errors="replace") as file:
            if any(" ib_register_peer_memory_client\t" in line for line in file):
                return "peer memory"
    except OSError:
        pass
    return "none" if machine.there("/sys/module/ib_core") else ""


def gpus() -> List[Dict[str, str]]:
    """Returns the GPUs of the driver's own list, which may be empty in a container that has no GPU.
    A driver without such a list, as the simulated one, gives its GPUs no names."""
    pattern = "/sys/bus/pci/drivers/nvidia/*:*:*.*"
    if machine.there("/proc/driver/nvidia/gpus"):
        pattern = "/proc/driver/nvidia/gpus/*"
    return [{"pci": os.path.basename(path), "name": model(path)} for path in machine.paths(pattern)]


def model(directory: str) -> str:
    for line in machine.text(directory + "/information").splitlines():
        if line.startswith("Model:"):
            return line.partition(":")[2].strip()
    return ""


def devices() -> List[Dict[str, Any]]:
    """Returns each RDMA device with its first active port."""
    found = []
    for path in machine.paths("/sys/class/infiniband/*"):
        ports = [
            int(os.path.basename(port))
            for port in machine.paths(path + "/ports/*")
            if machine.text(port + "/state").endswith("ACTIVE")
        ]
        found.append(
            {
                "name": os.path.basename(path),
                "port": min(ports) if ports else 0,
                "type": machine.text(path + "/hca_type"),
                "firmware": machine.text(path + "/fw_ver"),
            }
        )
    return found


def registrations() -> int:
    """Returns how many registrations of GPU memory exist, by the core's counters of each client,
    and by the module's own."""
    count = 0
    for path in machine.paths("/sys/kernel/mm/memory_peers/*"):
        made, ended = path + "/num_alloc_mrs", path + "/num_dealloc_mrs"
        count += max(0, machine.number(made) - machine.number(ended))
    return max(count, machine.number("/sys/module/nv_peer_mem/statistics/reachable_regions"))


def programs() -> List[Tuple[int, str]]:
    """Returns the processes that have a GPU open, without the driver's daemons and this one."""
    found = []
    for directory in machine.paths("/proc/[0-9]*"):
        name = machine.text(directory + "/comm")
        if name in DAEMONS or int(os.path.basename(directory)) == os.getpid():
            continue
        try:
            files = os.listdir(machine.at(directory + "/fd"))
        except OSError:
            continue
        for file in files:
            try:
                target = os.readlink(machine.at(f"{directory}/fd/{file}"))
            except OSError:
                continue
            if GPU_FILE.search(target):
                found.append((int(os.path.basename(directory)), name))
                break
    return found


def may_load_modules() -> bool:
    """Tells whether this process may load modules, which root of a container may not."""
    for line in machine.text("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_SYS_MODULE & 1)
    return False


def takes_only_signed() -> bool:
    return machine.text("/sys/module/module/parameters/sig_enforce") == "Y" or any(
        f"[{word}]" in machine.text("/sys/kernel/security/lockdown")
        for word in ("integrity", "confidentiality")
    )


def refusals(found: Facts, built: bool, only_gpus: bool = False) -> List[Refusal]:
    """Returns why a run must not begin. BUILT says that the user brings what is built."""
    rows = reasons_of_gpus(found, built)
    if not only_gpus:
        rows += reasons_of_modules(found, built) + reasons_of_devices(found, built)
    every = [Refusal(why, advice) for is_so, why, advice in rows if is_so]
    count = found["registrations"]
    if count and not only_gpus:
        why = "{} registration{} of GPU memory exist{}".format(
            count, "s"[: count != 1], "s" if count == 1 else ""
        )
        advice = "end the programs that made them (nvpm regions); a module in use is not unloaded"
        every.append(Refusal(why, advice, True))
    if found["programs"]:
        names = ", ".join(f"{name} ({pid})" for pid, name in found["programs"][:5])
        why = f"other programs use the GPUs: {names}"
        advice = "end them; otherwise their work suffers and the figures are wrong"
        every.append(Refusal(why, advice, True))
    return every


# A fact that refuses a run, why, and what helps.
Reason = Tuple[bool, str, str]


def reasons_of_gpus(found: Facts, built: bool) -> List[Reason]:
    has_compiler = any(found["tools"][name] for name in ("cc", "gcc", "clang"))
    return [
        (os.geteuid() != 0, "this user is not root", "run it by sudo"),
        (not found["driver"], "no NVIDIA driver is loaded", "load it: nvidia-smi"),
        (not built and not has_compiler, "a C compiler is missing", "install gcc"),
    ]


def reasons_of_modules(found: Facts, built: bool) -> List[Reason]:
    kernel = found["kernel"]
    return [
        (
            not may_load_modules(),
            "this process may not load modules (no CAP_SYS_MODULE)",
            "run it on the node itself, not in a container; --gpus loads none",
        ),
        (
            takes_only_signed() and not built,
            "this kernel takes only signed modules (Secure Boot)",
            "sign a built module yourself and give it by --built DIRECTORY (docs/installing.md)",
        ),
        (
            not built and not found["headers"],
            f"the headers of kernel {kernel} are missing",
            f"install linux-headers-{kernel} or kernel-devel-{kernel}",
        ),
        (not built and not found["tools"]["make"], "make is missing", "install make"),
    ]


def reasons_of_devices(found: Facts, built: bool) -> List[Reason]:
    return [
        (
            not found["core"],
            "no RDMA core is loaded (ib_core)",
            "load the driver of the RDMA device; --gpus tries the GPUs alone",
        ),
        (
            found["core"] == "none",
            "the loaded RDMA core has no peer memory",
            "install DOCA-OFED, or a kernel whose core has it (docs/support.md)",
        ),
        (
            not any(device["port"] for device in found["devices"]),
            "no RDMA device has an active port",
            "see rdma link, or ibv_devinfo; --gpus tries the GPUs alone",
        ),
        (
            not built and not found["verbs_header"],
            "the header of libibverbs is missing",
            "install libibverbs-dev or rdma-core-devel",
        ),
    ]


def nvpm() -> str:
    """Returns the file of nvpm: the installed one, or the one of this checkout or release, if root
    may run it."""
    for path in (private.TOP / "nvpm-bin", private.TOP / "nvpm/prebuilt" / os.uname().machine):
        if not which("nvpm") and os.access(str(path), os.X_OK):
            try:
                private.check_all(path)
            except (private.Unsafe, OSError):
                continue
            return str(path)
    return which("nvpm")


def said_by(program: str, *words: str) -> str:
    """Returns what nvpm says about the node, or why there is nothing."""
    if not program:
        return "(nvpm is not installed here: its report is missing)"
    done = machine.run([program, *words], 120)
    return done.output or f"(nvpm ended with {done.code} and said nothing)"
