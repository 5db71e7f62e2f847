# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Decides whether another user could have written a file. nvpm runs as root in monitoring, and must
not load such a file. Trusted are root, the present user, and the owner of this program, whose
code is running already."""

import os
import pwd
import stat
from typing import Iterator

from . import program

WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def owner(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def directories(path: str) -> Iterator[str]:
    """Yields the directory of PATH and all directories above: a user who may write to any of them
    can replace the file."""
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path


def distrusted(path: str) -> str:
    """Returns why the file at PATH could be the work of another user; an empty string if it could
    not. The directories of PATH must not be links; the file must not be one either, because the
    owner of a link chooses the target. An access list shows in the rights of the group,
    so write rights of a group count as those of others. In a sticky directory, as /tmp is, only the
    owners of a file and of the directory can replace the file."""
    trusted = (0, os.geteuid(), os.stat(program()).st_uid)
    for name in (path, *directories(path)):
        try:
            found = os.lstat(name)
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found.st_uid not in trusted:
            return f"{name} belongs to {owner(found.st_uid)}"
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if found.st_mode & WRITABLE and not sticky:
            return f"{name} can be written by others (mode 0{stat.S_IMODE(found.st_mode):o})"
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return f"{path} is no regular file"
    return ""
