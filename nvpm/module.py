# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module: whether it is loaded, installed, and loaded again after a boot; its parameters; and the kernel for it."""

import os
import re
import zlib

from .explain import Advice
from .fact import bad, first, good, none, warn
from .machine import (
    CALLBACK,
    CONF,
    MODULE,
    PARAMETERS,
    SERVICE,
    STATISTICS,
    configuration,
    configured,
    modinfo,
    rust,
)

GROUNDS = {
    "in-kernel": "in-kernel: with the kernel's own Rust crates",
    "prebuilt": "prebuilt: with a kernel crate of its own, compiled before",
}
ENABLED = (
    "/etc/systemd/system/*.wants/nv_peer_mem.service",
    "/etc/rc[2345].d/S*nv_peer_mem",
    "/etc/rc.d/rc[2345].d/S*nv_peer_mem",
)


def facts(machine):
    loaded, installed, kernel = (
        machine.loaded(MODULE),
        modinfo(machine).get("version", ""),
        machine.kernel,
    )
    version = machine.text("/sys/module/nv_peer_mem/version") or "unknown"

    def install():
        return Advice(machine)["install"]

    yield from first(
        "module",
        "state",
        [
            (
                loaded and not machine.exists(STATISTICS),
                warn,
                f"loaded, version {version}, and not the one that belongs to this service",
                SERVICE
                + " restart; if that loads the same one again, remove the other package: modinfo nv_peer_mem says which file it is.",
            ),
            (
                loaded and installed not in ("", version),
                warn,
                f"loaded, version {version}; version {installed} is installed",
                SERVICE + " restart",
            ),
            (loaded, good, "loaded, version " + version),
            (installed, bad, "not loaded", SERVICE + " start; if that fails, it says why."),
            (True, bad, "not loaded, and not installed for kernel " + kernel, install),
        ],
    )
    yield from first(
        "module",
        "installed",
        [
            (
                loaded and not installed,
                bad,
                f"not for kernel {kernel}: it will be gone after a reboot",
                install,
            ),
            (installed and not loaded, good, f"version {installed} for kernel {kernel}"),
        ],
    )
    yield from callback_facts(machine)
    yield from first(
        "module", "rust", [(rust(machine) in GROUNDS, none, GROUNDS.get(rust(machine)))]
    )
    for file in machine.glob(PARAMETERS + "*"):
        yield from first(
            "module", os.path.basename(file), [(machine.readable(file), none, machine.text(file))]
        )
    yield from boot_facts(machine)


def callback_facts(machine):
    """Of the module that cannot be unloaded. It is no remnant, and in nobody's way."""
    resident, loaded = machine.loaded(CALLBACK), machine.loaded(MODULE)
    version = machine.text(f"/sys/module/{CALLBACK}/version") or "unknown"
    yield from first(
        "module",
        "callback module",
        [
            (
                resident and loaded,
                good,
                f"{CALLBACK}, version {version}: it stays loaded until the next boot, because the NVIDIA driver may call "
                "it late; nv_peer_mem can be unloaded and updated meanwhile",
            ),
            (
                resident,
                good,
                f"{CALLBACK}, version {version}, is still loaded and stays until the next boot, because the NVIDIA driver "
                "may call it late; it needs neither driver nor RDMA core",
            ),
        ],
    )


def boot_facts(machine):
    refused, wanted = (
        "; ".join(line for name, line in configuration(machine) if name == "?"),
        configured(machine, "ONBOOT"),
    )
    yield from first(
        "module",
        "configuration",
        [
            (
                refused,
                warn,
                "not understood: " + refused,
                f"Correct it in {CONF}: ONBOOT= or MARKER=, and yes or no.",
            )
        ],
    )
    not_enabled = "not loaded: the service is not enabled"
    yield from first(
        "module",
        "on boot",
        [
            (wanted == "no", none, "no: ONBOOT=no in " + CONF),
            (
                wanted != "yes",
                warn,
                "not loaded: no ONBOOT=yes in " + CONF,
                "Write ONBOOT=yes into it, or ONBOOT=no if that is meant.",
            ),
            (machine.glob(*ENABLED), good, "loaded"),
            (
                machine.exists("/run/systemd/system"),
                warn,
                not_enabled,
                "systemctl enable nv_peer_mem",
            ),
            (
                machine.exists("/etc/debian_version"),
                warn,
                not_enabled,
                "update-rc.d nv_peer_mem defaults",
            ),
            (True, warn, not_enabled, "chkconfig --add nv_peer_mem"),
        ],
    )


def kernel_facts(machine):
    """Of a kernel that takes no modules, or that the module cannot be built for; of interest while the module is not loaded."""
    if machine.loaded(MODULE):
        return
    disabled = machine.text("/proc/sys/kernel/modules_disabled") == "1"
    config = "" if modinfo(machine).get("version") else kernel_config(machine)
    no_modules, no_rust = (
        config and "CONFIG_MODULES=y" not in config,
        config and "CONFIG_RUST=y" not in config,
    )
    yield from first(
        "machine",
        "modules",
        [
            (
                disabled,
                bad,
                "turned off until the next boot (kernel.modules_disabled)",
                "Reboot. grep -r modules_disabled /etc/sysctl.d finds who turns it off: load nv_peer_mem before that.",
            )
        ],
    )
    yield from first(
        "machine",
        "modules",
        [
            (
                no_modules,
                bad,
                "this kernel takes none (CONFIG_MODULES)",
                "Boot a kernel of a distribution.",
            )
        ],
    )
    yield from first(
        "machine",
        "Rust",
        [
            (
                no_rust and not no_modules and re.search("CONFIG_CFI(_CLANG)?=y", config),
                bad,
                "not in this kernel (CONFIG_RUST), which checks indirect calls (CONFIG_CFI): the module cannot be built",
                "Boot another kernel.",
            ),
            (
                no_rust and not no_modules,
                none,
                "not in this kernel (CONFIG_RUST): the module is built without the kernel's crates",
            ),
        ],
    )


def kernel_config(machine):
    """The lines of the running kernel's configuration that matter."""
    for file in (
        "/proc/config.gz",
        "/boot/config-" + machine.kernel,
        f"/lib/modules/{machine.kernel}/config",
    ):
        text = machine.read(file)
        if text:
            text = (zlib.decompress(text, 31) if file.endswith(".gz") else text).decode(
                errors="replace"
            )
            return "\n".join(
                re.findall(
                    "^(?:# )?CONFIG_(?:MODULES|RUST|CFI|CFI_CLANG)[ =].*", text, re.MULTILINE
                )
            )
    return ""
