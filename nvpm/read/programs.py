# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs other programs, each with a time limit. A program that hangs in a driver of the kernel
cannot be killed. nvpm then says so and leaves the program, because that driver may never answer."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple, Optional, Sequence

# A program may run for LIMIT seconds. If it is killed, it has GRACE seconds to end.
LIMIT = 10.0
GRACE = 1.0

LEFT = (
    "{name} (process {number}) does not end, though it was killed, and is left: the kernel, or a "
    "driver in it, holds it. dmesg and /proc/{number}/stack say more; only a reboot helps if it "
    "stays."
)


class Ended(NamedTuple):
    """How a program ended. CODE is its exit code. If the program did not start, or was stopped,
    CODE is None and WHY is the reason."""

    code: Optional[int]
    output: bytes = b""
    why: str = ""


def run(
    command: Sequence[str], limit: float = LIMIT, quiet: bool = True, given: Optional[bytes] = None
) -> Ended:
    """Runs a program in a process group of its own. After LIMIT seconds, the whole group is killed,
    because the program's children may also hold the pipe open. With QUIET, the output is returned,
    and error messages are dropped. Otherwise the program writes to nvpm's own output. GIVEN is its
    standard input, which is empty without."""
    nothing = subprocess.DEVNULL
    said, messages = (subprocess.PIPE, nothing) if quiet else (None, None)
    try:
        process = subprocess.Popen(
            command,
            stdin=nothing if given is None else subprocess.PIPE,
            stdout=said,
            stderr=messages,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(None, why=f"cannot be started: {error.strerror}")
    try:
        output = process.communicate(given, timeout=limit)[0]
    except subprocess.TimeoutExpired:
        ended = stop(process.pid, command[0], group=True)
        return Ended(None, why=f"took longer than {limit:g} s and was {ended}")
    except BaseException:
        stop(process.pid, command[0], group=True)
        raise
    finally:
        if process.stdout:
            process.stdout.close()
    return Ended(process.returncode, output or b"")


def kill(number: int, grace: float, group: bool = False) -> bool:
    """Kills a child process, or its whole group. Returns whether the process has ended within GRACE
    seconds."""
    with contextlib.suppress(OSError):
        (os.killpg if group else os.kill)(number, signal.SIGKILL)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        try:
            if os.waitpid(number, os.WNOHANG)[0]:
                return True
        except ChildProcessError:  # it was waited for already
            return True
        time.sleep(0.001)
    return False


def stop(number: int, name: str, group: bool = False) -> str:
    """Kills a child process, or its whole group, and waits GRACE seconds for its end. Returns a
    text that says whether the process has ended."""
    if kill(number, GRACE, group):
        return "killed"
    said = LEFT.format(name=os.path.basename(name), number=number)
    sys.stderr.write(f"nvpm: {said}\n")
    return f"killed, but does not end: process {number} is left"
