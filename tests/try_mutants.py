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
import atexit
import functools
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests/sweep"))
from areas import AREAS, copied  # noqa: E402


class Mutant(NamedTuple):
    """A mistake. `mistake` replaces the words `stands` of the file, and the test must fail then."""

    test: str
    file: str
    stands: str
    mistake: str


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


@functools.cache
def copy_of_nvpm() -> Path:
    """Returns a copy of nvpm for all mistakes, because compiling the crates takes minutes."""
    directory = Path(tempfile.mkdtemp(prefix="mutants."))
    atexit.register(shutil.rmtree, directory)
    copied(AREAS["nvpm"].needs, directory)
    return directory


ONE_AT_A_TIME = threading.Lock()


def in_nvpm(mutant: Mutant, _copy: Path) -> bool:
    """Returns whether the test passes with the mistake in nvpm."""
    with ONE_AT_A_TIME:
        copy = copy_of_nvpm()
        path = copy / "nvpm/src" / mutant.file
        good = path.read_text(encoding="utf-8")
        put_in(mutant, path)
        options, _, name = mutant.test.partition(" -- ")
        words = [*options.split(), *(["--", *name.split(" ", 1)] if name else [])]
        ran = subprocess.run(
            ["cargo", "test", "--quiet", "--locked", "--offline", *words],
            cwd=copy / "nvpm",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        path.write_text(good, encoding="utf-8")
    # Otherwise the mistake was not compiled, or there is no such test.
    assert re.search("[1-9][0-9]* (passed|failed|cases)", ran.stdout), ran.stdout + ran.stderr
    return ran.returncode == 0


def in_scripts(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes in COPY with the mistake in a script."""
    copied(AREAS["scripts"].needs, copy)
    put_in(mutant, copy / mutant.file)
    return passes(f"tests/scripts/{mutant.test}", copy)


def in_container(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the test passes in COPY with the mistake in the image's program."""
    copied(AREAS["keeper"].needs, copy)
    put_in(mutant, copy / "nvpm/keeper/src" / mutant.file)
    command = ["cargo", "test", "--quiet", "--locked", "--offline", "--package", "nvpm-keeper"]
    ran = subprocess.run(
        [*command, "--", "--exact", mutant.test],
        cwd=copy / "nvpm",
        # Copies that share objects would run each other's tests, because cargo gives them the same
        # names.
        env={**os.environ, "CARGO_TARGET_DIR": str(copy / "target")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    # Otherwise the mistake was not compiled, or there is no such test.
    assert re.search("^test result: .* [01] passed; [01] failed;", ran.stdout, re.MULTILINE), (
        ran.stdout + ran.stderr
    )
    assert " 0 passed; 0 failed" not in ran.stdout, ran.stdout
    return ran.returncode == 0


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
