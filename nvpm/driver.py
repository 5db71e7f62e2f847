# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The NVIDIA driver, and NVIDIA's own module for the same purpose."""

import re

from .explain import INSTALL_DRIVER, UNLOAD_PEERMEM, Advice
from .fact import bad, first, good, warn
from .machine import PARAMETERS, SERVICE, modinfo, once, rust

UPDATE = "Install driver 535.129.03 or later (of 545: 545.29.02); until then keep persistent_api_support=1."
LOADED_ON_BOOT = ("/etc/modules-load.d/*.conf", "/usr/lib/modules-load.d/*.conf", "/etc/modules")


@once
def installed(machine):
    """The fields of NVIDIA's module; empty if it is not installed. Debian's files have other names than the module."""
    paths = re.findall(
        "^([^:]*):", machine.all_text(f"/lib/modules/{machine.kernel}/modules.dep"), re.MULTILINE
    )
    names = sorted(
        name for path in paths for name in re.findall(r"(?:^|/)(nvidia[^/]*)\.ko[^/]*$", path)
    )
    found = (modinfo(machine, name) for name in names)
    return modinfo(machine, "nvidia") or next(
        (fields for fields in found if fields.get("name") == "nvidia"), {}
    )


@once
def flavour(machine):
    """open or proprietary; empty if there is no driver."""
    if machine.loaded("nvidia"):
        # The kernel marks modules that are not under a free licence.
        return "proprietary" if "P" in machine.text("/sys/module/nvidia/taint") else "open"
    return installed(machine) and (
        "open" if "GPL" in installed(machine).get("license", "") else "proprietary"
    )


def frees_twice(version):
    """Whether nvidia_p2p_get_pages() frees some of its memory twice if the GPU memory is freed while it runs (docs/support.md)."""
    number = tuple(int(part) for part in re.findall(r"\d+", version))
    if number[:1] == (535,):
        # The developers' beta was mended on its own.
        return number < (535, 129) and not (535, 43, 24) <= number < (535, 44)
    return number[:1] == (545,) and number < (545, 29)


def facts(machine):
    loads = [
        file
        for file in machine.glob(*LOADED_ON_BOOT)
        if re.search("^[ \t]*nvidia[-_]peermem", machine.all_text(file), re.MULTILINE)
    ]
    # Not looked for while one is loaded: the list of all modules is long.
    found = {} if machine.loaded("nvidia") else installed(machine)
    version = (
        machine.text("/sys/module/nvidia/version")
        if machine.loaded("nvidia")
        else found.get("version", "")
    )
    yield from first(
        "driver",
        "nvidia",
        [
            (machine.loaded("nvidia"), good, "loaded, version " + (version or "unknown")),
            (
                found,
                warn,
                f"not loaded; version {version} is installed",
                "modprobe nvidia; if there is no GPU that it supports, the kernel's log says so.",
            ),
            (True, bad, "none for kernel " + machine.kernel, INSTALL_DRIVER),
        ],
    )
    revocable = machine.text(PARAMETERS + "persistent_api_support") == "0"
    yield from first(
        "driver",
        "double_free",
        [
            (
                frees_twice(version) and revocable,
                bad,
                f"{version} frees memory of the kernel twice if a program frees GPU memory while it registers it",
                UPDATE,
            ),
            (
                frees_twice(version),
                warn,
                f"{version} frees memory of the kernel twice in revocable registrations (MIG, vGPU), if GPU memory is freed meanwhile",
                UPDATE,
            ),
        ],
    )
    yield from first(
        "driver",
        "flavour",
        [
            (
                (flavour(machine), rust(machine)) == ("proprietary", "in-kernel"),
                bad,
                "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules out",
                lambda: Advice(machine)["rebuild"],
            ),
            (flavour(machine), good, flavour(machine)),
        ],
    )
    # It registers the same memory, and only one module can.
    yield from first(
        "driver",
        "nvidia_peermem",
        [
            (
                machine.exists("/sys/module/nv_peer_mem/holders/nvidia_peermem"),
                good,
                "a name only, for programs that look for it: it belongs to nv_peer_mem",
            ),
            (
                machine.loaded("nvidia_peermem"),
                bad,
                "loaded: it serves the same memory, and only one module can",
                f"{UNLOAD_PEERMEM} && {SERVICE} restart",
            ),
            (
                loads,
                warn,
                "not loaded now, but {} loads it on boot".format("".join(loads[:1])),
                "Remove nvidia-peermem from that file: only one module can serve GPU memory.",
            ),
            (True, good, "not loaded, so it does not compete"),
        ],
    )
