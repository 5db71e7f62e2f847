# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""python3 -B DIRECTORY WORD...: what `nvpm` runs. NVPM_SYSROOT= is another root directory, for
tests."""

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
    """Whether it is for Python to bring that module along; one of ours that is missing is a defect.
    Python lists its modules since 3.10."""
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
        from nvpm.machine import Machine

        return main(Machine(os.environ.get("NVPM_SYSROOT", "")), sys.argv[1:])
    except ModuleNotFoundError as error:
        if not is_of_python(error.name or ""):
            raise
        sys.stderr.write(NO_PYTHON.format(error))
        return NOBODY_KNOWS.get("".join(sys.argv[1:2]), 3)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def can_be_written(descriptor: int) -> bool:
    """Not what a program opened for itself where a standard file was closed."""
    try:
        os.write(descriptor, b"")
    except OSError:
        return False
    return True


def ended(code: int) -> int:
    """What was printed must have arrived: a monitor would take a full disk for a good machine."""
    try:
        sys.stdout.flush()
        os.fsync(sys.stdout.fileno())
    except OSError as error:
        # Of a terminal or a pipe nobody can ask that.
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            cannot_print(error.strerror)
    return code


def cannot_print(why: Optional[str]) -> NoReturn:
    sys.stderr.write(f"nvpm: what it has to say cannot be written: {why}.\n")
    # Python would try once more when it ends.
    os._exit(NOBODY_KNOWS.get("".join(sys.argv[1:2]), 1))


# This directory is the package nvpm. Its parent, where Python would look for a package, may be one
# in which others can write, as /tmp; so neither directory is a place to look for modules. One file,
# nvpm.pyz, has the package within, and Python looks there first.
place = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(place):
    sys.path[:] = [name for name in sys.path if os.path.abspath(name or ".") != place]
# Who has seen enough (nvpm status | head) ends this without a word.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
# Whatever is opened must not take the place of a standard file that is closed.
for descriptor in range(3):
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
if sys.stderr is None or not can_be_written(2):
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the end)
if sys.stdout is None:
    cannot_print("standard output is closed")
# Whatever the locale is.
sys.stdout = io.TextIOWrapper(
    sys.stdout.buffer, encoding="utf-8", errors="surrogateescape", line_buffering=True
)
try:
    sys.exit(ended(run()))
except OSError as error:
    if not isinstance(error, BlockingIOError) and error.errno in (errno.ENOSPC, errno.EIO):
        cannot_print(error.strerror)
    raise
