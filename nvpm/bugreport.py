# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Collects the parts of a bug report in one archive. nvpm never sends the archive."""

import contextlib
import io
import json
import os
import re
import sys
import tarfile
import time
import traceback
from typing import Callable, Dict, List, Optional, Tuple

from . import program, release
from .facts.status import Status, status_of
from .read import programs, ways
from .read.kernel_log import kernel_log
from .read.machine import PEERMEM, Machine, clean, decoded, loaded_version, modinfo, own_module
from .read.pci import nics
from .read.reader import NVIDIA_DRIVER
from .read.regions import TO_JUDGE, Unreadable
from .redact.redactor import Redactor
from .show import printers, regions, text
from .show.screen import Screen

DIRECTORY = "nvpm-report"
# The selftest is ended after this number of seconds, because a machine may have many devices to
# test.
SELFTEST_LIMIT = 300

MODULES = ("nv_peer_mem", "nv_peer_mem_callback", "nvidia", "nvidia_peermem", "ib_core")
OTHER_MODULES = ("ib_uverbs", "mlx5_core", "mlx5_ib", "irdma", "bnxt_re", "efa", "mana_ib")
FIELDS = ("filename", "description", "version", "vermagic", "rust", "srcversion", "signer")

NVIDIA_SMI = "nvidia-smi"
HANGS = "not run, because the NVIDIA driver does not answer: see status.txt"

PROGRAMS = (
    # With these options, uname does not print the name of the host.
    ("uname", "-srvm"),
    ("ofed_info", "-s"),
    ("dkms", "status"),
    (
        NVIDIA_SMI,
        "--query-gpu=index,name,pci.bus_id,driver_version,vbios_version",
        "--format=csv",
    ),
    (NVIDIA_SMI, "topo", "-m"),
    ("lspci", "-tnn"),
)

FILES = (
    "/etc/os-release",
    "/proc/version",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/etc/infiniband/nv_peer_mem.conf",
)

# Matches words of the kernel's command line that concern GPUs and RDMA devices. Other words are
# left out, because they may be private.
WORDS = re.compile(
    r"(\w+_)?iommu|pci|nvidia|rdma|mlx|ib_|mod(ule|probe)|lockdown|intremap|swiotlb|hugepages|memmap"
)
OPTIONS = re.compile(r"nvidia|nv_peer_mem|mlx|ib_|rdma", re.IGNORECASE)


def versions(machine: Machine) -> str:
    said = ["# this program", release(), ""]
    for command in PROGRAMS:
        if command[0] == NVIDIA_SMI and NVIDIA_DRIVER in machine.reader.silences:
            said += [f"# {' '.join(command)}", f"({HANGS})", ""]
            continue
        ended = machine.ended(*command)
        lines = decoded(ended.output).strip("\n").split("\n")
        if ended.code != 0:
            lines = [f"({ended.why or f'it failed: exit code {ended.code}'})"]
        said += [f"# {' '.join(command)}", *lines, ""]
    for module in MODULES + OTHER_MODULES:
        fields = modinfo(machine, module)
        known = [f"{name}: {fields[name]}" for name in FIELDS if fields.get(name)]
        said += [
            f"# module {module}, {loaded(machine, module)}",
            *(known or ["(not installed)"]),
            "",
        ]
    return "\n".join(said)


def loaded(machine: Machine, module: str) -> str:
    """Returns whether the module is loaded. Three modules have the name nvidia_peermem, so the text
    also says which of them is loaded."""
    if not machine.loaded(module):
        return "not loaded"
    if module != PEERMEM:
        return "loaded"
    if own_module(machine) == PEERMEM:
        return f"loaded: this is nv_peer_mem {loaded_version(machine, PEERMEM)}"
    return "loaded: NVIDIA's" if ways.peermem_loaded(machine) else "loaded: nv_peer_mem's marker"


def files(machine: Machine) -> str:
    said = []
    for name in FILES:
        said += [f"# {name}", machine.all_text(name).rstrip("\n") or "(not there)", ""]
    words = machine.text("/proc/cmdline").split()
    spoken = [word for word in words if WORDS.match(word)]
    said += ["# /proc/cmdline, of which others are left out", " ".join(spoken), ""]
    said.append("# lines of /etc/modprobe.d and /etc/modules-load.d about these modules")
    for name in machine.glob("/etc/modprobe.d/*.conf", "/etc/modules-load.d/*.conf"):
        # Comments are left out, because they may name people and tickets.
        lines = (line.partition("#")[0].rstrip() for line in machine.lines(name))
        said += [f"{name}: {line}" for line in lines if OPTIONS.search(line)]
    return "\n".join(said) + "\n"


def listed(machine: Machine) -> str:
    try:
        return "\n".join(regions.as_json(machine, TO_JUDGE)) + "\n"
    except Unreadable as reason:
        return f"(not read: {reason})\n"


def tested(machine: Machine) -> str:
    """Returns the output of nvpm selftest. The selftest changes nothing on the machine, because it
    uses only memory that it has allocated itself. It runs in another process, because foreign
    libraries do the work, and these may crash or hang."""
    if NVIDIA_DRIVER in machine.reader.silences:
        return f"({HANGS})\n"
    command = [sys.executable, "-B", program(), "selftest", "--json"]
    ended = programs.run(command, SELFTEST_LIMIT)
    if ended.why:
        return f"(nvpm selftest {ended.why})\n"
    output = ended.output.decode(errors="replace")
    # The exit code is a part of the JSON object. If a library has crashed, the output has no such
    # object, so the exit code is appended.
    return output if 0 <= (ended.code or 0) <= 3 else f"{output}\n# exit code {ended.code}\n"


def versions_of(machine: Machine) -> List[str]:
    """Returns the versions of the devices' firmware. The report must keep these versions, although
    they look like network addresses."""
    return [machine.text(f"{nic.directory}/fw_ver") for nic in nics(machine)]


Part = Tuple[str, Callable[[], str]]


def parts(machine: Machine) -> List[Part]:
    """Returns the files of the archive that come after the status, the most useful first. Each file
    is a pair: its name, and a function that returns its text."""
    return [
        ("versions.txt", lambda: versions(machine)),
        ("files.txt", lambda: files(machine)),
        ("kernel.log", lambda: kernel_log(machine)),
        ("regions.json", lambda: listed(machine)),
        ("selftest.json", lambda: tested(machine)),
    ]


def of_status(status: Status) -> List[Part]:
    return [
        ("status.txt", lambda: "\n".join(text.everything(status, Screen())) + "\n"),
        ("status.json", lambda: "\n".join(printers.as_json(status)) + "\n"),
    ]


def made(make: Callable[[], str]) -> str:
    """Returns the text of a file. If making the text fails, Python's traceback takes its place,
    because the other texts are useful all the same."""
    try:
        said = make()
    except Exception:  # every failure belongs into the report
        said = traceback.format_exc()
    # Processes choose their own names, and these names are in the list of registrations and in the
    # kernel's log. A name may have characters that would steer a terminal, so such characters are
    # replaced.
    return "\n".join(clean(line.expandtabs()) for line in said.split("\n"))


def learn(redactor: Redactor, status: Optional[Status], texts: Dict[str, str]) -> None:
    """Lets REDACTOR find the names that one place of the report gives away, so that they are
    replaced in all others."""
    for fact in status.facts if status else ():
        redactor.learn_fact(fact)
    for name, said in texts.items():
        redactor.learn(said)
        if name.endswith(".json"):
            with contextlib.suppress(ValueError, RecursionError):
                redactor.learn_json(json.loads(said))


def redacted(redactor: Redactor, name: str, said: str) -> str:
    if name.endswith(".json"):
        return redactor.json(said)
    return redactor.patterns(said) if name == "status.txt" else redactor.text(said)


README = """\
A report of {}, for a bug report of nv_peer_mem.
Taken out: {}.
{}Kept: models and versions, PCI addresses, addresses within the kernel, options of modules, numbers
of processes and users, and names of programs that belong to the system. A name that is also an
ordinary word is replaced only where the kernel or nvpm names a process, a user or a host by it.
Read it before you give it to anybody: no program knows all of your secrets.
"""
NO_NAMES = (
    "Perhaps not taken out: names of users, because the name service of this machine does not "
    "answer. Only names in /etc/passwd and /home are known.\n"
)


def collected(machine: Machine, as_it_is: bool, selftest: bool) -> Dict[str, str]:
    """Returns the text of each file in the archive, by the name of the file. All texts are made
    before any is redacted, because a name that the last one gives away may stand in the first."""
    redactor = None if as_it_is else Redactor(machine, versions_of(machine))
    tell("status.txt")
    status, failed = None, ""
    try:
        status = status_of(machine)
    except Exception:
        failed = traceback.format_exc()
    texts = {}
    for name, make in parts(machine):
        if name != "selftest.json" or selftest:
            tell(name)
            texts[name] = made(make)
    if redactor:
        learn(redactor, status, texts)
    if redactor and status:
        # In the status, only the values and the advice of facts are redacted, because all other
        # words are nvpm's own.
        status = status._replace(facts=list(map(redactor.fact, status.facts)))
    first = of_status(status) if status else [("status.txt", lambda: failed)]
    texts = {**{name: made(make) for name, make in first}, **texts}
    if redactor:
        texts = {name: redacted(redactor, name, said) for name, said in texts.items()}
    out = redactor.counted() if redactor else "nothing, as asked (--as-it-is)"
    unasked = NO_NAMES if machine.reader.nameless else ""
    return {**texts, "README.txt": README.format(release(), out, unasked)}


def tell(name: str) -> None:
    sys.stderr.write(f"nvpm report: {name}\n")


def shown(texts: Dict[str, str]) -> List[str]:
    return [f"==== {name} ====\n{said.rstrip()}\n" for name, said in texts.items()]


class Archive:
    """The archive, which is a new file that only its owner can read. The constructor makes the file
    before the texts are collected, because collecting takes minutes, and the user must see an error
    at once. An existing file is not overwritten. If an error occurs before the archive is complete,
    the file is deleted."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind:
            os.unlink(self.path)

    def write(self, texts: Dict[str, str]) -> None:
        with open(self.descriptor, "wb") as file, tarfile.open(
            fileobj=file, mode="w:gz"
        ) as archive:
            for name, said in texts.items():
                data = said.encode("utf-8", "surrogateescape")
                entry = tarfile.TarInfo(f"{DIRECTORY}/{name}")
                entry.size, entry.mtime = len(data), int(time.time())
                archive.addfile(entry, io.BytesIO(data))
