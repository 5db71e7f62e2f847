# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges whether the commands in a piece of advice would do anything on the machine for which the
advice was given. Such a command needs something that exists there: a module, a service, a source
that dkms builds, a device or a file.

tables.py judges each piece of advice of each machine. A rule has a pattern of commands, and a
function that says whether the command does something. New kinds of commands need a new rule."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from installed import TOP

from nvpm.commands import COMMANDS

# Modules that belong to the kernel of a distribution or to an OFED. The advice with modprobe for
# such a module also says what to install if the module is missing.
OF_KERNELS = frozenset(
    (
        *("ib_core", "ib_uverbs", "rdma_cm", "mlx5_core", "mlx5_ib", "efa"),
        *("ice", "irdma", "bnxt_en", "bnxt_re", "mana", "mana_ib"),
    )
)
# Directories into which an administrator may write a new file, and files of each system.
FOR_NEW_FILES = (
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/security/limits.d",
    "/etc/sysctl.d",
    "/etc/docker",
)
ANYWHERE = (
    *FOR_NEW_FILES,
    "/etc/sysctl.conf",
    "/etc/nv_peer_mem-build.conf",
    "/usr/bin/false",
    "/dev/null",
    "/usr/bin/true",
    "/etc/infiniband/nv_peer_mem.conf",
    "/proc/PID",
    "/sys/kernel/mm/memory_peers",
    "/sys/firmware/efi/efivars",
    "/usr/lib/modules-load.d",
    "/run/modules-load.d",
    "/lib/modules",
    "/var/lib/dkms/mok.pub",
    "/dev/infiniband",
    "/dev/nvidia",
    "/var",
    "/lib",
    "/sys",
)
# Files below these paths are made by the kernel, or were judged with the command that names them.
AT_LEAST = ("/proc/PID", "/dev/nvidia", "/etc/init.d/openibd")
# A service of systemd itself.
OF_SYSTEMD = "systemd-modules-load"
PATH = re.compile(r"(?<![\w./=*-])(/(?:etc|sys|proc|dev|usr|var|lib|run)(?:/[\w.+*:@-]+)*)")


class Judge:
    """Judges commands for the machine whose files lie below ROOT."""

    def __init__(self, root: str, advice: str) -> None:
        self.root, self.advice = Path(root), advice

    def has(self, path: str) -> bool:
        pattern = path.strip("/.")
        return any(self.root.glob(pattern)) if "*" in path else (self.root / pattern).exists()

    def text(self, path: str) -> str:
        file = self.root / path.lstrip("/")
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def loaded(self, module: str) -> bool:
        return self.has(f"/sys/module/{module.replace('-', '_')}")

    def known(self, module: str) -> bool:
        """Returns whether the module is loaded, or modprobe finds its file."""
        name = module.replace("-", "_")
        listed = any(
            re.search(rf"\b{re.escape(name)}\.ko", file.read_text().replace("-", "_"))
            for file in self.root.glob("lib/modules/*/modules.dep")
        )
        # Debian's modules have other names, for which modprobe has aliases.
        files = [file.read_text() for file in self.root.glob("modinfo/*")]
        found = self.has(f"/modinfo/{name}") or any(f"name={name}\n" in text for text in files)
        return self.loaded(name) or found or listed or name in OF_KERNELS

    def removed(self, module: str) -> bool:
        return self.loaded(module)

    def service(self, name: str) -> bool:
        units = (
            f"{place}/systemd/system/{name}.service*" for place in ("/lib", "/usr/lib", "/etc")
        )
        running = (file.read_text().strip() for file in self.root.glob("proc/[0-9]*/comm"))
        names = {"docker": "dockerd", "ssh": "sshd"}
        return (
            self.has(f"/etc/init.d/{name}")
            or any(map(self.has, units))
            or names.get(name, name) in running
            or name == OF_SYSTEMD
        )

    def script(self, name: str) -> bool:
        if name == "openibd":
            return bool(self.text("ofed_info")) or "Install MLNX_OFED" in self.advice
        return self.has(f"/etc/init.d/{name}")

    def source(self, _: str) -> bool:
        places = ("/var/lib/dkms/nvidia-peer-memory*", "/usr/src/nvidia-peer-memory-*")
        return any(map(self.has, places))

    def dkms_tree(self, _: str) -> bool:
        return self.has("/var/lib/dkms/*")

    def by_make(self, _: str) -> bool:
        return "/extra/" in self.text("modinfo/nv_peer_mem")

    def by_rpm(self, _: str) -> bool:
        return "/nvidia_peer_memory/" in self.text("modinfo/nv_peer_mem") or self.has("/rpm")

    def key(self, path: str) -> bool:
        return self.has(path) or f"There is no key {path} yet" in self.advice

    def device(self, address: str) -> bool:
        return self.has(f"/sys/bus/pci/devices/{address}")

    def file(self, path: str) -> bool:
        """Returns whether the file exists, is the file of a module, or lies beside such a file. A
        file below the kernel's headers exists after the headers were installed."""
        beside = path.rpartition("/")[0] if "*" in path else path
        of_modules = any(beside in file.read_text() for file in self.root.glob("modinfo/*"))
        of_headers = "/build/" in path and "headers" in self.advice
        return self.has(path) or of_modules or of_headers or self.key(path)

    def page(self, name: str) -> bool:
        return (TOP / name).is_file()

    def command(self, name: str) -> bool:
        return name in COMMANDS

    def modules(self, names: str) -> bool:
        return all(map(self.known, names.split()))


RULES: tuple[tuple[str, Callable[[Judge, str], bool]], ...] = (
    (r"modprobe -r ([\w-]+)", Judge.removed),
    (r"modprobe (?!-)([\w-]+)", Judge.known),
    (r"modinfo (?:-n|-p|-F \w+) ([a-z]\w*(?: ib_\w+)*)", Judge.modules),
    (r"/etc/init\.d/([\w-]+) (?:re)?start", Judge.script),
    (
        r"systemctl (?:(?:enable|disable|stop|start|restart|edit)(?: --now)?) ([\w-]+)",
        Judge.service,
    ),
    (r"(?:update-rc\.d|chkconfig --add) ([\w-]+)", Judge.script),
    (r"dkms (?:build|install) [^;]*?(nvidia-peer-memory)", Judge.source),
    (r"dkms (autoinstall|status)", Judge.dkms_tree),
    (r"(make && make install)", Judge.by_make),
    (r"(rpmbuild --rebuild)", Judge.by_rpm),
    (r"mokutil --import ([^\s,;]+)", Judge.key),
    (r"(?:setpci -s|mlxconfig -d) ([\da-f:.]+)", Judge.device),
    (r"\brm (?!-)(/\S+)", Judge.file),
    (r"\b(docs/[\w-]+\.md)", Judge.page),
    (r"(?<![\w/])nvpm ([a-z]{3,})(?= |$|[:.,;])", Judge.command),
)
# Words that follow "nvpm" in sentences, and are no commands.
NO_COMMANDS = frozenset({"says", "status", "help"})


def useless(root: str, advice: str) -> Iterator[str]:
    """Yields the parts of the advice that would do nothing on this machine."""
    judge = Judge(root, advice)
    for pattern, does_something in RULES:
        for found in re.finditer(pattern, advice):
            if found[1] not in NO_COMMANDS and not does_something(judge, found[1]):
                yield found[0]
    for path in PATH.findall(advice):
        path = path.rstrip(".:")
        new = path.rpartition("/")[0] in FOR_NEW_FILES
        allowed = new or path in ANYWHERE or path.startswith(AT_LEAST)
        if not allowed and not judge.file(path):
            yield path
