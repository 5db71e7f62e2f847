# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a bug report needs, in one archive; nothing of it leaves the machine by itself."""

import functools
import io
import os
import re
import sys
import tarfile
import time
import traceback
from typing import Callable, Dict, List, Tuple

from . import printers, programs, regions, text
from .machine import Machine, clean, decoded, modinfo, program
from .pci import nics
from .redact import Redactor
from .report import report
from .screen import Screen

DIRECTORY = "nvpm-report"
# Seconds that a selftest may take: on many devices it takes some.
SELFTEST_LIMIT = 300

MODULES = ("nv_peer_mem", "nv_peer_mem_callback", "nvidia", "nvidia_peermem", "ib_core")
OTHER_MODULES = ("ib_uverbs", "mlx5_core", "mlx5_ib", "irdma", "bnxt_re", "efa", "mana_ib")
FIELDS = ("filename", "version", "vermagic", "rust", "srcversion", "signer")

PROGRAMS = (
    ("uname", "-a"),
    ("ofed_info", "-s"),
    ("dkms", "status"),
    (
        "nvidia-smi",
        "--query-gpu=index,name,pci.bus_id,driver_version,vbios_version",
        "--format=csv",
    ),
    ("nvidia-smi", "topo", "-m"),
    ("lspci", "-tnn"),
)

FILES = (
    "/etc/os-release",
    "/proc/version",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/etc/infiniband/nv_peer_mem.conf",
)

# What is kept of the kernel's log.
SPOKEN = re.compile(
    r"nv_peer_mem|nvidia|NVRM|peer_mem|\bib_|infiniband|rdma|mlx|irdma|bnxt|\befa\b|\bmana_"
    r"|iommu|dmar|aer:|BUG:|WARNING:|Call Trace",
    re.IGNORECASE,
)
LAST_LINES = 2000

# What of the kernel's command line: the rest is nobody's business.
WORDS = re.compile(
    r"(\w+_)?iommu|pci|nvidia|rdma|mlx|ib_|mod(ule|probe)|lockdown|intremap|swiotlb|hugepages|memmap"
)
OPTIONS = re.compile(r"nvidia|nv_peer_mem|mlx|ib_|rdma", re.IGNORECASE)


def versions(machine: Machine) -> str:
    said = []
    for command in PROGRAMS:
        ended = machine.ended(*command)
        lines = decoded(ended.output).strip("\n").split("\n")
        if ended.code != 0:
            lines = [f"({ended.why or f'it failed: exit code {ended.code}'})"]
        said += [f"# {' '.join(command)}", *lines, ""]
    for module in MODULES + OTHER_MODULES:
        fields = modinfo(machine, module)
        known = [f"{name}: {fields[name]}" for name in FIELDS if fields.get(name)]
        loaded = "loaded" if machine.loaded(module) else "not loaded"
        said += [f"# module {module}, {loaded}", *(known or ["(not installed)"]), ""]
    return "\n".join(said)


def files(machine: Machine) -> str:
    said = []
    for name in FILES:
        said += [f"# {name}", machine.all_text(name).rstrip("\n") or "(not there)", ""]
    words = machine.text("/proc/cmdline").split()
    spoken = [word for word in words if WORDS.match(word)]
    said += ["# /proc/cmdline, of which others are left out", " ".join(spoken), ""]
    said.append("# lines of /etc/modprobe.d and /etc/modules-load.d about these modules")
    for name in machine.glob("/etc/modprobe.d/*.conf", "/etc/modules-load.d/*.conf"):
        said += [f"{name}: {line}" for line in machine.lines(name) if OPTIONS.search(line)]
    return "\n".join(said) + "\n"


def is_wanted(line: str) -> bool:
    """Whether a line of the kernel is about these devices. Some repeat its command line, most of
    which is left out of a report."""
    return bool(SPOKEN.search(line)) and "ommand line" not in line


def kernel_log(machine: Machine) -> str:
    """The lines of this boot that are about these devices."""
    for command in ("journalctl", "-k", "-b", "--no-pager", "-o", "short-monotonic"), ("dmesg",):
        well, printed = machine.run(*command)
        if well and printed:
            wanted = [line for line in printed.split("\n") if is_wanted(line)]
            return "\n".join(wanted[-LAST_LINES:]) + "\n"
    return "(the kernel's log cannot be read: run this as root)\n"


def listed(machine: Machine) -> str:
    try:
        return "\n".join(regions.as_json(machine)) + "\n"
    except regions.Unreadable as reason:
        return f"(not read: {reason})\n"


def tested() -> str:
    """Returns the output of nvpm selftest, which allocates memory of its own and changes nothing.
    Libraries of others do the work, and may crash or hang, so the selftest is another process."""
    command = [sys.executable, "-B", program(), "selftest", "--json"]
    ended = programs.run(command, SELFTEST_LIMIT)
    if ended.why:
        return f"(nvpm selftest {ended.why})\n"
    return f"{ended.output.decode(errors='replace')}\n# exit code {ended.code}\n"


def versions_of(machine: Machine) -> List[str]:
    """Numbers that look like addresses."""
    return [machine.text(f"{nic.directory}/fw_ver") for nic in nics(machine)]


def parts(machine: Machine) -> List[Tuple[str, Callable[[], str]]]:
    """The files of the archive, in the order in which a reader wants them."""
    status = functools.lru_cache(maxsize=1)(report)
    return [
        ("status.txt", lambda: "\n".join(text.everything(status(machine), Screen())) + "\n"),
        ("status.json", lambda: "\n".join(printers.as_json(status(machine))) + "\n"),
        ("versions.txt", lambda: versions(machine)),
        ("files.txt", lambda: files(machine)),
        ("kernel.log", lambda: kernel_log(machine)),
        ("regions.json", lambda: listed(machine)),
        ("selftest.json", tested),
    ]


def collected(machine: Machine, as_it_is: bool, selftest: bool) -> Dict[str, str]:
    """The texts of the archive. One that cannot be had says why: the others are of use without."""
    redactor, texts = Redactor(machine, versions_of(machine)), {}
    for name, make in parts(machine):
        if name == "selftest.json" and not selftest:
            continue
        sys.stderr.write(f"nvpm report: {name}\n")
        try:
            said = make()
        except Exception:  # whatever it is, it belongs into the report
            said = traceback.format_exc()
        # Processes choose their names, and the kernel's log repeats these.
        said = "\n".join(clean(line.expandtabs()) for line in said.split("\n"))
        texts[name] = said if as_it_is else redactor.text(said)
    redacted = "nothing, as asked (--as-it-is)" if as_it_is else redactor.counted()
    texts["README.txt"] = (
        "A report of nvpm, for a bug report of nv_peer_mem.\n"
        f"Taken out: {redacted}.\n"
        "Read it before you give it to anybody: no program knows what is a secret of yours.\n"
    )
    return texts


def shown(texts: Dict[str, str]) -> List[str]:
    return [f"==== {name} ====\n{said.rstrip()}\n" for name, said in texts.items()]


def write(texts: Dict[str, str], path: str) -> None:
    """PATH is there with everything in it, for its owner alone, or not at all. A file that is there
    is not overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, said in texts.items():
                data = said.encode("utf-8", "surrogateescape")
                entry = tarfile.TarInfo(f"{DIRECTORY}/{name}")
                entry.size, entry.mtime = len(data), int(time.time())
                archive.addfile(entry, io.BytesIO(data))
    except BaseException:
        os.unlink(path)
        raise
