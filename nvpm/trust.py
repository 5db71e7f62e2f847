# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Decides whether another user could have written a file. nvpm must not load such a file, because
monitoring may run nvpm as root. The trusted users are root, the present user, and the owner of this
program, because the owner's code is running already."""

import os
import stat
from typing import Iterator

from . import program

WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def directories(path: str) -> Iterator[str]:
    """Yields the directory of PATH, and all directories above it. A user who may write to one of
    these directories can replace the file."""
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path


def distrusted(path: str) -> str:
    """Returns why another user could have written the file at PATH; an empty string if no other
    user could. Neither the file nor a directory of PATH may be a link, because the owner of a link
    chooses the target. Write rights of the group count like those of others, because the rights of
    an access list appear as rights of the group. A sticky directory, such as /tmp, may be writable,
    because only the owners of a file and of the directory can replace the file."""
    trusted = (0, os.geteuid(), os.stat(program()).st_uid)
    for name in (path, *directories(path)):
        try:
            found = os.lstat(name)
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found.st_uid not in trusted:
            return f"{name} belongs to user {found.st_uid}"
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if found.st_mode & WRITABLE and not sticky:
            return f"{name} can be written by others (mode 0{stat.S_IMODE(found.st_mode):o})"
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return f"{path} is no regular file"
    return ""
