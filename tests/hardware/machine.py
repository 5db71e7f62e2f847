# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads files of the machine and runs its programs. With NVPM_SYSROOT, the files are below another
directory, as in the tests of nvpm; programs come from PATH."""

import contextlib
import ctypes
import glob
import os
import signal
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

ROOT = os.environ.get("NVPM_SYSROOT", "").rstrip("/")

# The PATH of root may lack the directories of insmod and dmesg, for example after `su`.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
# Messages of programs must not depend on the user's language.
os.environ["LC_ALL"] = "C"

TIMEOUT = 124
MISSING = 127
PR_SET_PDEATHSIG = 1


class Ended(NamedTuple):
    """How a program ended. The code is TIMEOUT if the program took too long, and MISSING if there
    is no such program."""

    code: int
    output: str


def at(path: str) -> str:
    return ROOT + path


def text(path: str) -> str:
    """Returns the text of a file without the space around it, or nothing if the file cannot be
    read."""
    try:
        with open(at(path), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def there(path: str) -> bool:
    return os.path.exists(at(path))


def paths(pattern: str) -> List[str]:
    return sorted(found[len(ROOT) :] for found in glob.glob(at(pattern)))


def number(path: str) -> int:
    found = text(path)
    return int(found) if found.lstrip("-").isdigit() else 0


def die_with_parent() -> None:
    """Makes the kernel kill this process when its parent ends. Otherwise a client would keep memory
    registered after the supervisor was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def run(
    command: Sequence[str],
    limit: float = 30,
    directory: Optional[Path] = None,
    environment: Optional[Dict[str, str]] = None,
) -> Ended:
    """Runs a program without a shell, and kills its whole process group after the limit."""
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=str(directory) if directory else None,
            env=dict(os.environ, **(environment or {})),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    except OSError as error:
        return Ended(MISSING, f"{command[0]}: {error.strerror}")
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            output = b""
        return Ended(TIMEOUT, f"{command[0]} took more than {limit:g} s")
    except BaseException:
        # The step is being interrupted, and its programs must not go on.
        kill_group(process.pid)
        raise
    return Ended(process.returncode, output.decode(errors="replace").strip())


def kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def born(pid: int) -> str:
    """Returns the start time of a process, by which the process is known again. Returns nothing if
    the process does not exist, or is a zombie. Processes are always real, also in tests."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[-1].split()
    except OSError:
        return ""
    return words[19] if len(words) > 19 and words[0] != "Z" else ""


def boot() -> str:
    return text("/proc/sys/kernel/random/boot_id")
