# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Builds the module for the running kernel, in a copy of the release's sources."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from .places import Places

# A build of the module needs these parts of a release.
PARTS = ("Kbuild", "Makefile", "dkms.conf", "build", "src")
# Sixteen compilers at a time need nearly the memory that daemonset.yaml allows.
JOBS = 4
# A build takes half a minute. A build that takes this many seconds hangs.
LONGEST = 900


class Failed(Exception):
    """The build has failed. The message is the line that says why."""


class Built(NamedTuple):
    """The directory of a finished build, and the driver's header that was used."""

    directory: Path
    header: Path


def build(release: Path, places: Places, kernel: str, name: str, work: Path) -> Built:
    """Builds the module NAME in the directory WORK. The output goes to the file WORK/log."""
    tree = work / "tree"
    shutil.rmtree(work, ignore_errors=True)
    tree.mkdir(parents=True)
    for part in PARTS:
        copy = shutil.copytree if (release / part).is_dir() else shutil.copy
        copy(release / part, tree / part)
    lay_links(places)
    jobs = min(len(os.sched_getaffinity(0)), JOBS)
    command = ["make", "-C", str(tree), f"-j{jobs}", *settings(places, kernel, name)]
    code = run(command, work / "log")
    log = (work / "log").read_text(encoding="utf-8", errors="replace")
    if code != 0:
        raise Failed(reason(log, code))
    return Built(tree, header(log, tree))


# TODO[COMP]: headers that name another compiler than Debian's gcc. TODO[SIGN]: a signature.
def settings(places: Places, kernel: str, name: str) -> list[str]:
    """Returns the settings of make."""
    return [
        f"KVER={kernel}",
        f"KDIR={places.headers}",
        f"NVPM_NAME={name}",
        "NVPM_RUST=prebuilt",
        places.driver,
        places.core,
    ]


def lay_links(places: Places, top: Path = Path("/usr")) -> None:
    """Makes the headers reachable at the place where their package installs them, because Debian's
    headers name other directories of /usr/src and /usr/lib by absolute paths."""
    for directory, pattern in (("src", "*"), ("lib", "linux-kbuild-*")):
        for there in (places.headers_root / "usr" / directory).glob(pattern):
            link = top / directory / there.name
            if link.is_symlink():
                link.unlink()
            if not link.exists():
                link.symlink_to(there)


def run(command: list[str], log: Path) -> int:
    """Runs a command with its output in LOG, and returns its exit code. A signal that ends this
    program also ends the command and everything that the command has started."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise Failed(f"the build has not ended after {LONGEST} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def reason(log: str, code: int) -> str:
    """Returns the line of a build's output that says why the build has failed."""
    ours = re.findall(r"^nv_peer_mem: (.+)", log, re.MULTILINE)
    errors = re.findall(r"^.*\b(?:error|ERROR|Error)\b.*", log, re.MULTILINE)
    said: list[str] = ours or errors[:1] or [f"make has ended with {code}"]
    return said[-1]


def header(log: str, tree: Path) -> Path:
    """Returns the driver's header that a build has used, as configure has printed it."""
    said = re.search(r"^NV_SRC +(/\S+)$", log, re.MULTILINE)
    directory = Path(said[1]) if said else tree / "src/include/nvidia"
    return directory / "nv-p2p.h"


def show(log: Path) -> None:
    """Prints the findings of a build, and the last lines of its output."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines[-40:]:
        print(f"  {line}", file=sys.stderr)
