# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether this kernel can have the module."""

import re
import zlib

from ..read.machine import Machine, own_module
from .fact import Facts, bad, info
from .module import installed_version, of_absence

# Kernels that cannot have the module.
MODULES_OFF = "turned off until the next boot (kernel.modules_disabled)"
WHO_DISABLES = (
    "Reboot. grep -r modules_disabled /etc/sysctl.d finds who turns it off: "
    "load nv_peer_mem before that."
)
CHECKS_CALLS = (
    "not in this kernel (CONFIG_RUST), which checks indirect calls (CONFIG_CFI): "
    "the module cannot be built"
)
OTHER_KERNEL = (
    "Boot a kernel with CONFIG_RUST=y or without CONFIG_CFI, or use programs with dma-buf, which "
    "need no module."
)
WITHOUT_CRATES = "not in this kernel (CONFIG_RUST): the module is built without the kernel's crates"


def facts(machine: Machine) -> Facts:
    """Yields facts about a kernel that accepts no modules, or for which the module cannot be built.
    Yields nothing if the module is loaded, or if this machine can do without the module."""
    if own_module(machine) or of_absence(machine)[0] is info:
        return
    if machine.text("/proc/sys/kernel/modules_disabled") == "1":
        yield bad("machine", "modules", MODULES_OFF, WHO_DISABLES)
    config = "" if installed_version(machine) else kernel_config(machine)
    if not config:
        return
    if "CONFIG_MODULES=y" not in config:
        value = "this kernel takes none (CONFIG_MODULES)"
        yield bad("machine", "modules", value, "Boot a kernel of a distribution.")
    elif "CONFIG_RUST=y" not in config:
        if re.search("CONFIG_CFI(_CLANG)?=y", config):
            yield bad("machine", "Rust", CHECKS_CALLS, OTHER_KERNEL)
        else:
            yield info("machine", "Rust", WITHOUT_CRATES)


def kernel_config(machine: Machine) -> str:
    """Returns the relevant lines of the running kernel's configuration."""
    for file in (
        "/proc/config.gz",
        f"/boot/config-{machine.kernel}",
        f"/lib/modules/{machine.kernel}/config",
    ):
        data = unpacked(machine.read(file)) if file.endswith(".gz") else machine.read(file)
        if data:
            text = data.decode(errors="replace")
            wanted = "^(?:# )?CONFIG_(?:MODULES|RUST|CFI|CFI_CLANG)[ =].*"
            return "\n".join(re.findall(wanted, text, re.MULTILINE))
    return ""


def unpacked(data: bytes) -> bytes:
    """Returns the unpacked bytes of gzip data; no bytes for any other data."""
    try:
        return zlib.decompress(data, 31) if data else b""
    except zlib.error:
        return b""
