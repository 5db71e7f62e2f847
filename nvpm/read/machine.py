# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the machine, which means its files and the output of its programs. In tests, the files lie
below another root directory."""

import functools
import glob
import os
import re
import sys
from typing import Dict, List, Optional, Tuple

from . import programs
from .reader import USER, USERS, Reader, directly

MODULE = "nv_peer_mem"
# The name of NVIDIA's own module. A pod can load nv_peer_mem under this name, because the programs
# of NVIDIA's operators know this name alone, and unload the module before they need its neighbours.
PEERMEM = "nvidia_peermem"
# The description of nv_peer_mem in its file, whatever the name of the file.
DESCRIPTION = "GPUDirect RDMA: NVIDIA GPU memory for the RDMA core"
# The callback module, which the NVIDIA driver calls. It is installed and loaded together with
# nv_peer_mem, but it stays loaded until the next boot.
CALLBACK = "nv_peer_mem_callback"
SERVICE = "/etc/init.d/nv_peer_mem"
CONF = "/etc/infiniband/nv_peer_mem.conf"
PEERS = "/sys/kernel/mm/memory_peers"

# Characters that could steer a terminal or end a line. These are control characters, Unicode's line
# ends, invisible marks and marks of direction. Bytes that are not UTF-8 also belong to them; Python
# reads such bytes as surrogates.
HARMFUL = re.compile(
    "[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\udc80-\udcff]"
)

# Makes a function of the machine compute its result only once, because a process looks at only one
# machine.
once = functools.lru_cache(maxsize=1)


def clean(text: str) -> str:
    """Makes a text safe to print, because users choose some texts, such as names of processes. Each
    byte of a harmful character becomes a question mark."""
    return HARMFUL.sub(lambda found: "?" * len(found[0].encode(errors="surrogateescape")), text)


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Machine:
    def __init__(self, root: str = "") -> None:
        self.root = root
        self.debug, self.reader = False, Reader()
        self.kernel = clean(self.text("/proc/sys/kernel/osrelease")) or os.uname().release
        self.host = clean(self.text("/proc/sys/kernel/hostname")) or os.uname().nodename
        self.processor = self.text("/proc/sys/kernel/arch") or os.uname().machine

    def tell(self, what: str, found: object) -> None:
        """With --debug, prints WHAT, which is a file or a program, and the beginning of its text
        FOUND."""
        if self.debug:
            sys.stderr.write(f"nvpm: {clean(what)}: {clean(str(found))[:200]}\n")

    # ---- files ----

    def exists(self, name: str) -> bool:
        there = os.path.exists(self.root + name)
        self.tell(name, "is there" if there else "is not there")
        return there

    def readable(self, name: str) -> bool:
        may = os.access(self.root + name, os.R_OK)
        self.tell(name, "can be read" if may else "cannot be read")
        return may

    def loaded(self, module: str) -> bool:
        return self.exists(f"/sys/module/{module}")

    def glob(self, *patterns: str) -> List[str]:
        """Returns the names of the files that match PATTERNS. The names of each pattern are
        sorted."""
        below = glob.escape(self.root)
        names = [name for pattern in patterns for name in sorted(glob.glob(below + pattern))]
        found = [name[len(self.root) :] for name in names]
        self.tell(" ".join(patterns), " ".join(found) or "no such file")
        return found

    def target(self, name: str) -> str:
        """Returns the directory to which NAME leads, with the root directory before it; an empty
        string if NAME leads to no directory."""
        path = os.path.realpath(self.root + name)
        found = path if os.path.isdir(path) else ""
        self.tell(name, f"leads to {found}" if found else "leads to no directory")
        return found

    def link(self, name: str) -> str:
        """Returns the target of a link; an empty string for other files."""
        try:
            found = os.readlink(self.root + name)
        except OSError as error:
            self.tell(name, error.strerror)
            return ""
        self.tell(name, f"-> {found}")
        return found

    def mode(self, name: str) -> Optional[int]:
        """Returns the access rights of a file; None if the file does not exist any more."""
        try:
            return os.stat(self.root + name).st_mode & 0o7777
        except OSError as error:
            self.tell(name, error.strerror)
            return None

    def owner(self, name: str) -> Optional[int]:
        """Returns the number of the user who owns a file; None if the file does not exist any
        more."""
        try:
            return os.stat(self.root + name).st_uid
        except OSError as error:
            self.tell(name, error.strerror)
            return None

    def read(self, name: str, size: int = -1) -> bytes:
        """Returns the bytes of a file; no bytes if the file cannot be read."""
        try:
            if name.startswith(("/proc/", "/sys/")):
                data = self.reader.read(self.root, name, size)
            else:
                data = directly(self.root + name, size)
        except OSError as error:
            self.tell(name, error.strerror)
            return b""
        self.tell(name, decoded(data[:200].strip()))
        return data

    def all_text(self, *names: str) -> str:
        """Returns the text of some files, one after the other."""
        return decoded(b"".join(map(self.read, names)))

    def lines(self, name: str) -> List[str]:
        text = self.all_text(name).rstrip("\n")
        return text.split("\n") if text else []

    def text(self, name: str) -> str:
        """Returns the first line of a file, stripped; an empty string if the file cannot be
        read."""
        return decoded(self.read(name, 65536).split(b"\n")[0]).strip(" \t\0")

    # ---- users ----

    def user(self, number: str) -> str:
        """Returns the name of a user. If the user has no name, or the name service does not answer,
        returns the number."""
        try:
            name = decoded(self.reader.users(USER + number)).partition(":")[0]
        except OSError as error:
            self.tell(f"user {number}", error.strerror)
            return number
        self.tell(f"user {number}", name or "has no name")
        return clean(name) or number

    def users(self) -> List[Tuple[str, int]]:
        """Returns the names and numbers of all users. If the name service does not answer, returns
        those in /etc/passwd."""
        try:
            text = decoded(self.reader.users(USERS))
        except OSError:
            text = self.all_text("/etc/passwd")
        found = re.findall(r"^([^:\n]+):[^:\n]*:([0-9]{1,10})(?=[:\n])", text, re.MULTILINE)
        return [(name, int(number)) for name, number in found]

    # ---- programs ----

    def ended(self, *command: str) -> programs.Ended:
        """Runs a program. With --debug, also prints how the program ended."""
        ended = programs.run(command)
        how = ended.why or f"exit code {ended.code}"
        self.tell(f"{' '.join(command)} ({how})", decoded(ended.output).strip("\n"))
        return ended

    def run(self, *command: str) -> Tuple[bool, str]:
        """Runs a program. Returns whether the program succeeded, and its output. A program that
        hangs, as rpm can, is stopped, and has not succeeded."""
        ended = self.ended(*command)
        return ended.code == 0, decoded(ended.output).strip("\n")


# ---- what several parts of a report ask ----


def own_module(machine: Machine) -> str:
    """Returns the name under which nv_peer_mem is loaded, MODULE or PEERMEM; an empty string if
    nv_peer_mem is not loaded. NVIDIA's own module and the marker have no statistics."""
    if machine.loaded(MODULE):
        return MODULE
    return PEERMEM if machine.exists(f"/sys/module/{PEERMEM}/statistics") else ""


def statistics(machine: Machine) -> str:
    """Returns the directory of the module's statistics, with a slash at the end."""
    return f"/sys/module/{own_module(machine) or MODULE}/statistics/"


def parameters(machine: Machine) -> str:
    """Returns the directory of the module's parameters, with a slash at the end."""
    return f"/sys/module/{own_module(machine) or MODULE}/parameters/"


def loaded_version(machine: Machine, module: str) -> str:
    return machine.text(f"/sys/module/{module}/version") or "unknown"


def own_file(machine: Machine) -> Dict[str, str]:
    """Returns the fields of the installed file of nv_peer_mem with the name under which the module
    is loaded; none if there is no such file. A file nvidia_peermem.ko may be NVIDIA's."""
    if own_module(machine) != PEERMEM:
        return modinfo(machine)
    fields = modinfo(machine, PEERMEM)
    return fields if fields.get("description") == DESCRIPTION else {}


def modinfo(machine: Machine, module: str = MODULE) -> Dict[str, str]:
    """Returns the fields of an installed module; none if the running kernel has no such module."""
    return fields_of(machine, module)


@functools.lru_cache(maxsize=32)
def fields_of(machine: Machine, module: str) -> Dict[str, str]:
    lines = reversed(machine.run("modinfo", module)[1].splitlines())
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@once
def rust(machine: Machine) -> str:
    """Returns how the Rust of the loaded module was compiled. If no module is loaded, returns how
    the Rust of the installed module was compiled."""
    return machine.text(statistics(machine) + "rust") or modinfo(machine).get("rust", "")


@once
def module_wanted(machine: Machine) -> bool:
    """Returns whether this machine is meant to have the module. This is so if the module is loaded
    or is installed for this kernel, or if the service is installed. Otherwise the absence of the
    module is no defect."""
    return bool(own_module(machine) or machine.exists(CONF) or modinfo(machine))
