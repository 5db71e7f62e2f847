#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""try_mutants.py nvpm|preload|scripts|container [WORD]: puts one mistake at a time into a copy of
nvpm, of the preloaded library, of the scripts of service, build and packages, or of the container
image. The test that is named with
the mistake must fail. With WORD, tries only the mistakes whose test or file has WORD in its name.

The file mutants.py in the directory of the tests lists the mistakes. Each mistake has the test, the
file, the words that are replaced, and the wrong words. tests/host/mutants has the mistakes in the
module's own files, which need other tools."""

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
# The files that the tests of nvpm need.
NVPM = ["nvpm", "init.d", "completions", "docs", "src", "build", "tests/nvpm"]
NVPM += ["nvpm.sh", ".gitattributes", "tests/lab/cuda"]
# The files that the tests of the scripts need.
SCRIPTS = ["init.d", "build", "debian", "rpm", "src", "nvpm.sh", "Makefile", "dkms.conf"]
SCRIPTS += ["nv_peer_mem.conf", "preload", "nvpm-rs", "tests/scripts"]
# The files that the tests of the container image need.
CONTAINER = ["container", "nvpm", "init.d", "dkms.conf", "tests/container", "tests/guest/operators"]


class Mutant(NamedTuple):
    """A mistake. `mistake` replaces the words `stands` of the file, and the test must fail then."""

    test: str
    file: str
    stands: str
    mistake: str


def copied(names: list[str], to: Path) -> None:
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "target")
            shutil.copytree(TOP / name, to / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy(TOP / name, to / name)


def put_in(mutant: Mutant, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.stands) == 1, f"{mutant.file} must have {mutant.stands!r} exactly once"
    path.write_text(text.replace(mutant.stands, mutant.mistake), encoding="utf-8")


def passes(test: str, cwd: Path, **environment: str) -> bool:
    words = ["-q", "-x", "-p", "no:cacheprovider", test]
    ran = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *words],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    # Other codes, and errors, mean that the test did not run, for example because it does not
    # exist.
    summary = ran.stdout.rstrip().rpartition("\n")[2]
    assert ran.returncode in (0, 1) and " error" not in summary, ran.stdout + ran.stderr
    return ran.returncode == 0


def in_nvpm(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes in COPY with the mistake in nvpm."""
    copied(NVPM, copy)
    put_in(mutant, copy / "nvpm" / mutant.file)
    return passes(f"tests/nvpm/{mutant.test}", copy)


def in_scripts(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes in COPY with the mistake in a script."""
    copied(SCRIPTS, copy)
    put_in(mutant, copy / mutant.file)
    return passes(f"tests/scripts/{mutant.test}", copy)


def in_container(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes in COPY with the mistake in the image's program."""
    copied(CONTAINER, copy)
    put_in(mutant, copy / "container/keeper" / mutant.file)
    return passes(f"tests/container/{mutant.test}", copy)


def in_preload(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes with a library that is built in COPY with the mistake."""
    copied(["preload"], copy)
    crate = copy / "preload"
    put_in(mutant, crate / mutant.file if "/" in mutant.file else crate / "src" / mutant.file)
    built = ["cargo", "build", "--release", "--offline", "--quiet"]
    subprocess.run(built, cwd=crate, check=True, stderr=subprocess.DEVNULL)
    tests = sorted((TOP / "tests/preload").glob("test_*.py"))
    file = next(file for file in tests if f"def {mutant.test}(" in file.read_text("utf-8"))
    library = crate / "target/release/libnvpm_preload.so"
    return passes(f"{file}::{mutant.test}", TOP, PRELOAD_LIBRARY=str(library))


def survives(passes_with: Callable[[Mutant, Path], bool], mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        return passes_with(mutant, Path(directory))


PARTS = {
    "nvpm": in_nvpm,
    "preload": in_preload,
    "scripts": in_scripts,
    "container": in_container,
}


def try_all(part: str, mutants: list[Mutant]) -> int:
    """Tries the mistakes, several at a time. Returns how many were not noticed."""
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as several:
        survived = several.map(lambda mutant: survives(PARTS[part], mutant), mutants)
        for mutant, unnoticed in zip(mutants, survived, strict=True):
            survivors += unnoticed
            said = f"{mutant.file}: {mutant.stands!r} -> {mutant.mistake!r}"
            print("not ok" if unnoticed else "ok", mutant.test, said, flush=True)
    return survivors


def main() -> str | None:
    parser = argparse.ArgumentParser(usage=f"%(prog)s {'|'.join(PARTS)} [WORD]")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("word", nargs="?", default="")
    wanted = parser.parse_args()
    listed = runpy.run_path(str(TOP / f"tests/{wanted.part}/mutants.py"))["MUTANTS"]
    mutants = [Mutant(*words) for words in listed]
    chosen = [one for one in mutants if wanted.word in one.test or wanted.word in one.file]
    if not chosen:
        return f"no mistake has '{wanted.word}' in its test or file"
    survivors = try_all(wanted.part, chosen)
    return f"not noticed: {survivors} of {len(chosen)} mistakes" if survivors else None


if __name__ == "__main__":
    sys.exit(main())
