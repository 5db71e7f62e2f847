# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The module: whether it is loaded, installed, and loaded again after a boot; its parameters; and the kernel for it."""
import os
import re
import zlib

from .explain import Advice
from .fact import bad, good, none, warn
from .machine import CONF, MODULE, PARAMETERS, SERVICE, STATISTICS, configuration, configured, modinfo, rust

GROUNDS = {
    "in-kernel": "in-kernel: with the kernel's own Rust crates",
    "standalone": "standalone: with a kernel crate of its own",
    "prebuilt": "prebuilt: with a kernel crate of its own, compiled before",
}
ENABLED = ("/etc/systemd/system/*.wants/nv_peer_mem.service", "/etc/rc[2345].d/S*nv_peer_mem", "/etc/rc.d/rc[2345].d/S*nv_peer_mem")


def facts(machine):
    installed = modinfo(machine).get("version", "")
    if machine.loaded(MODULE):
        yield from loaded(machine, installed)
    elif installed:
        yield bad("module", "state", "not loaded", SERVICE + " start; if that fails, it says why.")
        yield good("module", "installed", "version %s for kernel %s" % (installed, machine.kernel))
    else:
        yield bad("module", "state", "not loaded, and not installed for kernel " + machine.kernel, Advice(machine)["install"])
    if rust(machine) in GROUNDS:
        yield none("module", "rust", GROUNDS[rust(machine)])
    for file in machine.glob(PARAMETERS + "*"):
        if machine.readable(file):
            yield none("module", os.path.basename(file), machine.text(file))
    refused = [line for name, line in configuration(machine) if name == "?"]
    if refused:
        yield warn("module", "configuration", "not understood: " + "; ".join(refused), "Correct it in %s: ONBOOT= or MARKER=, and yes or no." % CONF)
    yield on_boot(machine)


def loaded(machine, installed):
    version = machine.text("/sys/module/nv_peer_mem/version") or "unknown"
    if not machine.exists(STATISTICS):
        yield warn("module", "state", "loaded, version %s, and not the one that belongs to this service" % version,
                   SERVICE + " restart; if that loads the same one again, remove the other package: modinfo nv_peer_mem says which file it is.")
    elif installed and version != installed:
        yield warn("module", "state", "loaded, version %s; version %s is installed" % (version, installed), SERVICE + " restart")
    else:
        yield good("module", "state", "loaded, version " + version)
    if not installed:
        yield bad("module", "installed", "not for kernel %s: it will be gone after a reboot" % machine.kernel, Advice(machine)["install"])


def on_boot(machine):
    wanted = configured(machine, "ONBOOT")
    if wanted == "no":
        return none("module", "on boot", "no: ONBOOT=no in " + CONF)
    if wanted != "yes":
        return warn("module", "on boot", "not loaded: no ONBOOT=yes in " + CONF, "Write ONBOOT=yes into it, or ONBOOT=no if that is meant.")
    if machine.glob(*ENABLED):
        return good("module", "on boot", "loaded")
    if machine.exists("/run/systemd/system"):
        enable = "systemctl enable nv_peer_mem"
    else:
        enable = "update-rc.d nv_peer_mem defaults" if machine.exists("/etc/debian_version") else "chkconfig --add nv_peer_mem"
    return warn("module", "on boot", "not loaded: the service is not enabled", enable)


def kernel_facts(machine):
    """Of a kernel that takes no modules, or that the module cannot be built for; of interest while the module is not loaded."""
    if machine.loaded(MODULE):
        return
    if machine.text("/proc/sys/kernel/modules_disabled") == "1":
        yield bad("machine", "modules", "turned off until the next boot (kernel.modules_disabled)",
                  "Reboot. grep -r modules_disabled /etc/sysctl.d finds who turns it off: load nv_peer_mem before that.")
    config = "" if modinfo(machine).get("version") else kernel_config(machine)
    if config and "CONFIG_MODULES=y" not in config:
        yield bad("machine", "modules", "this kernel takes none (CONFIG_MODULES)", "Boot a kernel of a distribution.")
    elif config and "CONFIG_RUST=y" not in config and re.search("CONFIG_CFI(_CLANG)?=y", config):
        yield bad("machine", "Rust", "not in this kernel (CONFIG_RUST), which checks indirect calls (CONFIG_CFI): the module cannot be built",
                  "Boot another kernel.")
    elif config and "CONFIG_RUST=y" not in config:
        yield none("machine", "Rust", "not in this kernel (CONFIG_RUST): the module is built without the kernel's crates")


def kernel_config(machine):
    """The lines of the running kernel's configuration that matter."""
    for file in ("/proc/config.gz", "/boot/config-" + machine.kernel, "/lib/modules/%s/config" % machine.kernel):
        text = machine.read(file)
        if text:
            text = (zlib.decompress(text, 31) if file.endswith(".gz") else text).decode(errors="replace")
            return "\n".join(re.findall("^(?:# )?CONFIG_(?:MODULES|RUST|CFI|CFI_CLANG)[ =].*", text, re.MULTILINE))
    return ""
