# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs nvpm, as python3 -B DIRECTORY WORD... NVPM_SYSROOT= is another root directory, for tests."""

import errno
import io
import os
import signal
import sys
from typing import NoReturn, Optional

# Exit codes for "unknown", where 1 has another meaning.
NOBODY_KNOWS = {"check": 3, "status": 4}

NO_PYTHON = "nvpm: this needs all of Python 3 ({}): install the package python3.\n"


def is_of_python(module: str) -> bool:
    """Whether the module belongs to Python. A missing module of nvpm is a defect. Python before
    3.10 does not list its modules."""
    name = module.split(".")[0]
    return name in getattr(sys, "stdlib_module_names", {name}) and name != "nvpm"


def load_package(directory: str) -> None:
    """Makes DIRECTORY the package nvpm, whatever else has this name."""
    import importlib.util

    start = os.path.join(directory, "__init__.py")
    spec = importlib.util.spec_from_file_location(
        "nvpm", start, submodule_search_locations=[directory]
    )
    assert spec and spec.loader
    sys.modules["nvpm"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["nvpm"])


def run() -> int:
    try:
        if os.path.isdir(place):
            load_package(place)
        from nvpm.commands import main
        from nvpm.read.machine import Machine

        return main(Machine(os.environ.get("NVPM_SYSROOT", "")), sys.argv[1:])
    except ModuleNotFoundError as error:
        if not is_of_python(error.name or ""):
            raise
        sys.stderr.write(NO_PYTHON.format(error))
        return NOBODY_KNOWS.get("".join(sys.argv[1:2]), 3)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def can_be_written(descriptor: int) -> bool:
    """Whether the descriptor is open for writing: a program may have opened another file under the
    number of a closed standard file."""
    try:
        os.write(descriptor, b"")
    except OSError:
        return False
    return True


def ended(code: int) -> int:
    """Returns the exit code after the output has arrived: with a full disk a monitor would see no
    line, and take the machine for a good one."""
    try:
        sys.stdout.flush()
        os.fsync(sys.stdout.fileno())
    except OSError as error:
        # Terminals and pipes know no fsync.
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            cannot_print(error.strerror)
    return code


def cannot_print(why: Optional[str]) -> NoReturn:
    sys.stderr.write(f"nvpm: what it has to say cannot be written: {why}.\n")
    # Python would try to write again at its end.
    os._exit(NOBODY_KNOWS.get("".join(sys.argv[1:2]), 1))


# This directory is the package nvpm. Other users may be able to write to its parent, as in /tmp, so
# Python must look for modules in neither of these two directories. One file, nvpm.pyz, contains the
# package, and Python looks there first.
place = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(place):
    sys.path[:] = [name for name in sys.path if os.path.abspath(name or ".") != place]
# A reader that stops early (nvpm status | head) ends this program silently.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
# A file that is opened later must not get the number of a closed standard file.
for descriptor in range(3):
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
if sys.stderr is None or not can_be_written(2):
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the end)
if sys.stdout is None:
    cannot_print("standard output is closed")
# The output is UTF-8 in every locale.
sys.stdout = io.TextIOWrapper(
    sys.stdout.buffer, encoding="utf-8", errors="surrogateescape", line_buffering=True
)
try:
    sys.exit(ended(run()))
except OSError as error:
    if not isinstance(error, BlockingIOError) and error.errno in (errno.ENOSPC, errno.EIO):
        cannot_print(error.strerror)
    raise
