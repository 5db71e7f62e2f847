# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the files that name modules which are loaded at each boot."""

from typing import List, NamedTuple

from .machine import Machine, once

FILES = (
    "/etc/modules-load.d/*.conf",
    "/run/modules-load.d/*.conf",
    "/usr/lib/modules-load.d/*.conf",
    "/lib/modules-load.d/*.conf",
    "/etc/modules",
)


class Line(NamedTuple):
    """A line of such a file. `module` has underscores in place of dashes, as the kernel does."""

    file: str
    module: str


@once
def loaded_on_boot(machine: Machine) -> List[Line]:
    """Returns the lines that name a module. A file in /etc hides a file of the same name in the
    other directories, also if the file in /etc is empty."""
    found: List[Line] = []
    names = set()
    for file in machine.glob(*FILES):
        name = file.rpartition("/")[2]
        # Debian has a link to /etc/modules in /etc/modules-load.d.
        if name in names or machine.link(file) == "../modules":
            continue
        names.add(name)
        for line in machine.lines(file):
            words = line.split()
            if words and words[0][0] not in "#;":
                found.append(Line(file, words[0].replace("-", "_")))
    return found


def file_that_loads(machine: Machine, module: str) -> str:
    """Returns the file that names this module; an empty string if none does."""
    lines = loaded_on_boot(machine)
    return next((line.file for line in lines if line.module == module), "")
