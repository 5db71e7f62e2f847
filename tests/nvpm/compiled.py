# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compiles the doubles that are libraries."""

import os
import shutil
import subprocess
from pathlib import Path


def library(file: Path, *words: str | Path) -> str:
    """Compiles a library from sources and options, and returns its path."""
    compiler = (os.environ.get("CC") or shutil.which("gcc-14") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", file, *words], check=True)
    return str(file)
