# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs nvpm. The call is python3 -B DIRECTORY WORD... Tests set the variable NVPM_SYSROOT, and nvpm
then reads the files of that directory in place of the root directory."""

import errno
import io
import os
import signal
import sys
from typing import NoReturn, Optional

# Exit codes that mean "unknown", for the commands in which exit code 1 has another meaning.
NOBODY_KNOWS = {"check": 3, "status": 4}

# The exit code of the other commands after a defect of nvpm: EX_SOFTWARE of sysexits.h.
DEFECT = 70

NO_PYTHON = "nvpm: this needs all of Python 3 ({}): install the package python3.\n"


def is_of_python(module: str) -> bool:
    """Returns whether MODULE is one of Python's own modules. If such a module is missing, Python is
    incomplete; if a module of nvpm is missing, nvpm has a defect. Python before 3.10 has no list of
    its modules, so every module except nvpm then counts as Python's."""
    name = module.split(".")[0]
    return name in getattr(sys, "stdlib_module_names", {name}) and name != "nvpm"


def load_package(directory: str) -> None:
    """Imports the package nvpm from DIRECTORY, even if Python would find another package with this
    name."""
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
            return defect()
        sys.stderr.write(NO_PYTHON.format(error))
        if sys.argv[1:2] == ["check"]:
            # A monitor reads only the standard output.
            print(f"NVPM UNKNOWN - this needs all of Python 3 ({error}): install python3")
        return NOBODY_KNOWS.get("".join(sys.argv[1:2]), 3)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError:
        raise
    except Exception:
        return defect()


def defect() -> int:
    """Prints the exception, and returns an exit code. Python's own exit code, 1, has another
    meaning in most commands."""
    import traceback

    traceback.print_exc()
    return NOBODY_KNOWS.get("".join(sys.argv[1:2]), DEFECT)


def can_be_written(descriptor: int) -> bool:
    """Returns whether DESCRIPTOR is open for writing. The program that started nvpm may have closed
    a standard file, and then opened another file, which got the same number."""
    try:
        os.write(descriptor, b"")
    except OSError:
        return False
    return True


def ended(code: int) -> int:
    """Returns CODE after all output has arrived. If the output cannot be written, the process ends
    with another code, because a monitor that gets no line must not take the machine for a good
    one."""
    try:
        sys.stdout.flush()
        os.fsync(sys.stdout.fileno())
    except OSError as error:
        # Terminals and pipes know no fsync.
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            cannot_print(error.strerror)
    return code


def end_by_signal(number: int, _frame: object) -> NoReturn:
    """Ends nvpm by an exception, so that the programs that it has started end, too."""
    sys.exit(128 + number)


def cannot_print(why: Optional[str]) -> NoReturn:
    sys.stderr.write(f"nvpm: what it has to say cannot be written: {why}.\n")
    # os._exit() prevents that Python tries to write the same output again at its end.
    os._exit(NOBODY_KNOWS.get("".join(sys.argv[1:2]), 1))


# Python must look for modules neither in this directory, which is the package nvpm, nor in its
# parent, because other users may be able to write to the parent, as in /tmp. So load_package()
# loads the package by its path. If nvpm is a single file, nvpm.pyz, the package is in that file,
# and Python looks into that file first.
place = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(place):
    sys.path[:] = [name for name in sys.path if os.path.abspath(name or ".") != place]
# If the reader of the output stops early, as in `nvpm status | head`, SIGPIPE ends this program
# without a message.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
for hangup_or_end in (signal.SIGHUP, signal.SIGTERM):
    # A signal that nohup lets nvpm ignore stays ignored.
    if signal.getsignal(hangup_or_end) == signal.SIG_DFL:
        signal.signal(hangup_or_end, end_by_signal)
# /dev/null takes the number of each closed standard file, so that no file that is opened later gets
# this number.
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
