# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether the dynamic linker loads a preloaded library into a program, and whether the linker
takes an auditor."""

import ctypes
import os
import shutil
import stat
import struct
from typing import Optional

# The beginning of a 64-bit little-endian ELF file.
ELF = b"\x7fELF\x02\x01"
# The type of the segment that names the dynamic linker.
INTERPRETER = 3
# A script can name a script.
MOST_SCRIPTS = 4
# Headers and the linker's name stand in this number of bytes at the beginning of a file.
BEGINNING = 4096
VERBS = "libibverbs.so.1"
# From this version on, glibc shows all symbols to an auditor, and calls are not slower.
AUDITS = (2, 35)


def unreachable(program: str) -> str:
    """Returns why no library can be preloaded into a program; an empty text if a library can, or if
    the program cannot be read."""
    path = shutil.which(program)
    for _ in range(MOST_SCRIPTS):
        try:
            with open(path or "", "rb") as file:
                start, status = file.read(BEGINNING), os.fstat(file.fileno())
        except OSError:
            return ""
        if start.startswith(ELF):
            return of_elf(path or "", start, status)
        path = of_script(start)
    return ""


def of_script(start: bytes) -> Optional[str]:
    """Returns the program that runs a script. `env` runs the program that its first argument
    names."""
    words = os.fsdecode(start.partition(b"\n")[0]).split()
    if not words or not words[0].startswith("#!"):
        return None
    words = [words[0][2:], *words[1:]] if words[0] != "#!" else words[1:]
    if words and os.path.basename(words[0]) == "env":
        words = [one for one in words[1:] if not one.startswith("-") and "=" not in one]
    return shutil.which(words[0]) if words else None


def of_elf(path: str, start: bytes, status: os.stat_result) -> str:
    """Returns why no library can be preloaded into an ELF file."""
    try:
        linker = interpreter(start)
    except struct.error:
        return ""
    if linker is None and os.path.basename(path).startswith("ld-linux"):
        return ""
    if linker is None:
        return (
            f"{path} is linked statically, and has no dynamic linker that could preload a library"
        )
    if os.path.basename(linker).startswith("ld-musl"):
        return f"{path} is linked with musl, and CUDA and the library are for glibc"
    changes_user = status.st_mode & stat.S_ISUID and status.st_uid != os.getuid()
    changes_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getgid()
    if changes_user or changes_group or has_capabilities(path):
        return f"{path} runs with more rights than yours, so the dynamic linker preloads nothing"
    return ""


def has_capabilities(path: str) -> bool:
    """Returns whether a program gets capabilities that this user does not have."""
    try:
        return os.getuid() != 0 and bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def interpreter(start: bytes) -> Optional[str]:
    """Returns the dynamic linker that an ELF file names; None if the file names none."""
    (table,) = struct.unpack_from("<Q", start, 32)
    size, number = struct.unpack_from("<HH", start, 54)
    for place in range(table, table + size * number, size or 1):
        kind, _, offset = struct.unpack_from("<IIQ", start, place)
        if kind == INTERPRETER:
            return os.fsdecode(start[offset:].partition(b"\0")[0])
    return None


def has_verbs() -> bool:
    """Returns whether the dynamic linker finds a libibverbs."""
    try:
        ctypes.CDLL(VERBS)
    except OSError:
        return False
    return True


def takes_auditors() -> bool:
    """Returns whether the C library of this process is a glibc that takes an auditor."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return name == "glibc" and tuple(map(int, version.split(".")[:2])) >= AUDITS
    except (ValueError, OSError):
        return False
