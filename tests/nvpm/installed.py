# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Installs nvpm and the service's scripts for the tests."""

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/explain"))

from program import PROGRAM  # noqa: E402


def installed() -> Path:
    """Makes a directory with the files of the packages, in the packages' layout, and returns the
    directory. It exists until the tests end."""
    directory = tempfile.mkdtemp(prefix="nvpm.")
    atexit.register(shutil.rmtree, directory)
    shutil.copytree(TOP / "init.d", directory, dirs_exist_ok=True)
    for name in ("nvpm", "completions"):
        shutil.copytree(
            TOP / name, Path(directory, name), ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(TOP / "nvpm.sh", directory)
    shutil.copy(PROGRAM, Path(directory, "nvpm-bin"))
    return Path(directory)


SERVICE = installed()
