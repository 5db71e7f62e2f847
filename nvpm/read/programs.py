# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs other programs, never without a limit. A program that a driver keeps in the kernel cannot be
killed: nvpm says so and leaves the program, instead of waiting for a driver that may never
answer."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple, Optional, Sequence

# Seconds that a program may take; and seconds that a killed one gets to end.
LIMIT = 10.0
GRACE = 1.0

LEFT = (
    "{name} (process {number}) does not end, though it was killed, and is left: the kernel, or a "
    "driver in it, holds it. dmesg and /proc/{number}/stack say more; only a reboot helps if it "
    "stays."
)


class Ended(NamedTuple):
    """How a program ended. CODE is None if the program did not start, or was stopped; WHY says the
    reason."""

    code: Optional[int]
    output: bytes = b""
    why: str = ""


def run(command: Sequence[str], limit: float = LIMIT, quiet: bool = True) -> Ended:
    """Runs a program in a process group of its own. At the limit the whole group is killed, because
    the program's children may hold the pipe also. With QUIET the output is returned and messages
    are dropped; otherwise the program writes to the same files as nvpm."""
    nothing = subprocess.DEVNULL
    said, messages = (subprocess.PIPE, nothing) if quiet else (None, None)
    try:
        process = subprocess.Popen(
            command, stdin=nothing, stdout=said, stderr=messages, start_new_session=True
        )
    except OSError as error:
        return Ended(None, why=f"cannot be started: {error.strerror}")
    try:
        output = process.communicate(timeout=limit)[0]
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


def stop(number: int, name: str, group: bool = False) -> str:
    """Kills a child process, or its whole group, and waits for a moment. Returns what became of
    it."""
    with contextlib.suppress(OSError):
        (os.killpg if group else os.kill)(number, signal.SIGKILL)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        try:
            if os.waitpid(number, os.WNOHANG)[0]:
                return "killed"
        except ChildProcessError:  # it was waited for already
            return "killed"
        time.sleep(0.01)
    said = LEFT.format(name=os.path.basename(name), number=number)
    sys.stderr.write(f"nvpm: {said}\n")
    return f"killed, but does not end: process {number} is left"
