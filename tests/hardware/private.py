# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The directories of runs, which only root can enter, and the private copy of the sources. Root
must not run what another user could have written, neither now nor later in the run."""

import contextlib
import os
import shutil
import stat
import time
from pathlib import Path
from typing import List, Optional, Set

import journal
import machine

STATE = "/var/lib/nv_peer_mem-hardware"
HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
# What is built from, and what runs.
SOURCES = ("Kbuild", "Makefile", "dkms.conf", "build", "src", "tests/hardware")


class Unsafe(Exception):
    """A file that another user could have written."""


def trusted_users() -> Set[int]:
    """Returns the users whose files root may run: root, and the user who has called sudo."""
    users = {0, os.geteuid()}
    if os.environ.get("SUDO_UID", "").isdigit():
        users.add(int(os.environ["SUDO_UID"]))
    return users


def check(path: Path, users: Set[int]) -> None:
    """Refuses a file or directory of another user, or one that others may write to. A group may
    write if it is root's, or the owner's own, whose number is the owner's."""
    is_what = os.lstat(str(path))
    if stat.S_ISLNK(is_what.st_mode):
        if is_what.st_uid in users:
            return
        raise Unsafe(f"{path} is a link of another user")
    if is_what.st_uid not in users:
        raise Unsafe(f"{path} belongs to another user ({is_what.st_uid})")
    sticky = stat.S_ISDIR(is_what.st_mode) and is_what.st_mode & stat.S_ISVTX
    if is_what.st_mode & stat.S_IWOTH and not sticky:
        raise Unsafe(f"every user may write to {path}")
    own_group = is_what.st_gid in (0, is_what.st_uid)
    if is_what.st_mode & stat.S_IWGRP and not own_group and not sticky:
        raise Unsafe(f"the group {is_what.st_gid} may write to {path}")


def check_all(path: Path) -> None:
    """Checks a file or directory, everything in it, and all directories above it."""
    users = trusted_users()
    path = path.resolve()
    for above in [path, *path.parents]:
        check(above, users)
    for directory, names, files in os.walk(str(path)):
        for name in names + files:
            check(Path(directory) / name, users)


def state() -> Path:
    return Path(machine.at(STATE))


def make_directory() -> Path:
    """Makes the directory of a new run."""
    above = state()
    above.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(str(above), 0o700)
    is_what = os.lstat(str(above))
    if (
        not stat.S_ISDIR(is_what.st_mode)
        or is_what.st_uid != os.geteuid()
        or is_what.st_mode & 0o77
    ):
        raise Unsafe(f"{above} is not a directory that only root can enter")
    name = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for more in range(100):
        directory = above / (name + (f"-{more}" if more else ""))
        try:
            os.mkdir(str(directory), 0o700)
        except FileExistsError:
            continue
        return directory
    raise Unsafe(f"{above / name} cannot be made")


def runs() -> List[Path]:
    """Returns the directories of all runs, the newest last."""
    return sorted(path.parent for path in state().glob("*/" + journal.NAME))


def unfinished() -> Optional[Path]:
    """Returns the newest run that has not ended, or has left something to be undone."""
    for directory in reversed(runs()):
        records = journal.read(directory)
        if not journal.first(records, "end") or journal.to_undo(records):
            return directory
    return None


def copy_sources(directory: Path) -> Path:
    """Copies the sources into the run's directory, and checks their owners before."""
    to = directory / "source"
    for name in SOURCES:
        source = TOP / name
        if not source.exists():
            continue
        check_all(source)
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(str(source), str(target), symlinks=True)
        else:
            shutil.copy2(str(source), str(target))
    return to
