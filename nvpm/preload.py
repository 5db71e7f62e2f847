# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Starts a program that registers GPU memory by pointer, on a machine without peer memory. A
preloaded library registers the memory as a dma-buf for the program."""

import os
import re
import signal
import sys
from typing import Dict, List, NamedTuple, NoReturn

from . import VERSION, loader, program
from .facts import need
from .read import reader, ways
from .read.machine import Machine
from .read.ways import DMA_BUF
from .trust import distrusted

LIBRARY = "libnvpm_preload.so"
VARIABLE = "LD_PRELOAD"
# The same file is also an auditor, which finds the calls of libraries that were opened with
# RTLD_DEEPBIND.
AUDITOR = "LD_AUDIT"
# With an auditor, glibc reserves the memory of thread-local variables before it knows the program's
# libraries. Without this tunable, programs with much of such memory do not start. glibc takes the
# memory out of the stack of each thread, so with more, threads with a small stack do not start:
# Node has one of 32 KiB. rustc needs 23 KiB.
TUNABLES = "GLIBC_TUNABLES"
ROOM, ENOUGH = "glibc.rtld.optional_static_tls", 24 << 10
LOG = "NVPM_PRELOAD_LOG"
GET_IT = (
    "install the package nvidia-peer-memory-preload (RPM: nvidia_peer_memory-preload), or name the "
    "file with --library."
)

# The exit codes of a shell for a program that cannot be executed, and for a program that does not
# exist.
NOT_EXECUTABLE, NOT_FOUND = 126, 127

# The numbers of the processors in an ELF file (e_machine).
PROCESSORS = {62: "x86_64", 183: "aarch64"}


class Decision(NamedTuple):
    """Says whether the program gets the library. If not, `said` is the reason, and `needless` says
    whether the program works without the library."""

    preload: bool
    said: str = ""
    needless: bool = False


def decision(machine: Machine) -> Decision:
    """Decides whether to preload the library. The library helps if some pair of a GPU and an RDMA
    device has dma-buf. Perhaps no module serves ibv_reg_mr there; a module that serves it refuses
    some memory, and the driver exports this memory as a dma-buf. If the module serves all pairs and
    revokes registrations, the library is left out, because nothing revokes a dma-buf."""
    found = ways.of_pairs(machine).values()
    served = " and ".join(ways.pointer_ways(machine))
    revokes = ways.revokes(machine)
    if any(pair == [DMA_BUF] for pair in found) or (
        not revokes and ways.there_are(machine, DMA_BUF)
    ):
        return Decision(True)
    if served and revokes:
        return Decision(
            False, f"{served} revokes registrations, and nothing revokes a dma-buf", True
        )
    if served:
        return Decision(False, f"not needed here: {served} serves ibv_reg_mr of GPU memory", True)
    lacks = need.dma_buf_lacks(machine)
    why = f"there is no dma-buf: {lacks}" if lacks else ways.in_the_way(machine)
    return Decision(False, f"cannot help here: {why}")


def places() -> List[str]:
    """Returns the paths where the library may be. If nvpm is a single file, only the name that a
    release gives the library counts, because other users may be able to write to the directory of
    nvpm. A library that another user could have written is left out, because the library runs with
    the rights of this user."""
    released = f"libnvpm_preload-{VERSION}-{os.uname().machine}.so"
    names = [released]
    if os.path.isdir(program()):
        names = [LIBRARY, released, f"preload/{LIBRARY}", f"preload/target/release/{LIBRARY}"]
    found = []
    for name in names:
        directory, file = os.path.split(os.path.join(os.path.dirname(program()), name))
        path = os.path.join(os.path.realpath(directory), file)
        why = distrusted(path) if os.path.lexists(path) else ""
        if why:
            tell(f"{path} is passed over: {why}. If you trust it: --library {path}")
        else:
            found.append(path)
    return found


def environment(library: str, audit: bool) -> Dict[str, str]:
    """Returns this process's environment with our library, which comes after the libraries that are
    preloaded already. If such a library replaces ioctl() and calls the next ioctl(), which
    RTLD_NEXT finds, this is the function of our library."""
    added = {VARIABLE: f":{library}"}
    if audit:
        added[AUDITOR] = f":{library}"
    if audit and ROOM not in os.environ.get(TUNABLES, ""):
        added[TUNABLES] = f":{ROOM}={ENOUGH}"
    return {
        **os.environ,
        **{name: (os.environ.get(name, "") + one).lstrip(":") for name, one in added.items()},
    }


def misfit(library: str) -> str:
    """Returns why the dynamic linker could not load the library; an empty string if it could. nvpm
    checks this first, because the linker would only print a warning, and then run the program
    without the library."""
    try:
        with open(library, "rb") as file:
            header = file.read(20)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if len(header) < 20 or not header.startswith(loader.ELF):
        return "is not a library for 64-bit programs"
    number, here = int.from_bytes(header[18:20], "little"), os.uname().machine
    there = PROCESSORS.get(number, f"another processor (ELF machine {number})")
    return "" if there == here else f"is for {there}, but this machine is {here}"


def run(machine: Machine, library: str, words: List[str], audit: bool) -> int:
    """Replaces this process by the program WORDS. LIBRARY is the library to preload; if empty,
    places() are searched. AUDIT says whether the library is also an auditor. Returns 1 if the
    library is needed, but is missing or does not fit."""
    decided = decision(machine)
    outside = loader.unreachable(words[0]) if decided.preload else ""
    if outside:
        decided = Decision(False, f"cannot help here: {outside}")
    there = [os.path.abspath(library)] if library else places()
    found = next(filter(os.path.exists, there), "")
    if not decided.preload:
        # If the library is not needed, nothing is printed, because each process of a job would
        # print the same line.
        if not decided.needless or os.environ.get(LOG) == "1":
            tell(f"{decided.said}. {words[0]} runs as it is.")
        return become(words, dict(os.environ))
    if not found:
        tell(f"there is no {LIBRARY} ({', '.join(there)}): {GET_IT}")
        return 1
    if re.search(r"[\s:]", found):
        tell(f"no library can be preloaded whose name has a blank or a colon: {found}. Copy it.")
        return 1
    wrong = misfit(found)
    if wrong:
        tell(f"{words[0]} was not started: {found} {wrong}. Name the right file with --library.")
        return 1
    if not loader.has_verbs():
        tell(f"there is no {loader.VERBS} here: {words[0]} needs one of its own to use RDMA.")
    if audit and not loader.takes_auditors():
        tell("--audit needs glibc 2.35 or later, and is left out.")
        audit = False
    return become(words, environment(found, audit))


def become(words: List[str], variables: Dict[str, str]) -> NoReturn:
    sys.stdout.flush()
    # The program must have no child that it did not start, except one that the kernel holds.
    reader.stop()
    # Python ignores SIGXFSZ. The program would inherit this setting, so the default is restored.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvpe(words[0], words, variables)
    except OSError as error:
        tell(f"{words[0]}: {error.strerror}")
        missing = isinstance(error, FileNotFoundError)
        sys.exit(NOT_FOUND if missing else NOT_EXECUTABLE)


def tell(text: str) -> None:
    sys.stderr.write(f"nvpm run: {text}\n")
    sys.stderr.flush()
