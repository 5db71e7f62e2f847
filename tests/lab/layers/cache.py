# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's cache: it contains the files that stay between runs, and the files of each run."""

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LAB = Path(__file__).resolve().parents[1]
TOP = LAB.parent.parent
DOUBLES = TOP / "tests/doubles"
CACHE = Path(os.environ.get("LAB_CACHE", "/var/cache/nv-peer-mem-lab"))

printing = threading.Lock()


class Wrong(Exception):
    """An error whose message is printed for the user without Python's traceback."""


def say(who: str, text: str) -> None:
    with printing:
        print(f"[{who}] {text}", flush=True)


def killed_with_us(*command: object) -> list[str]:
    """Returns the command with a prefix, by which the command ends together with the thread that
    starts it."""
    return ["setpriv", "--pdeathsig", "KILL", *map(str, command)]


# ---- the cache ------------------------------------------------------------------


def new_dir(kind: str, name: str) -> tuple[Path, int]:
    """Makes a directory in the cache, and locks the directory until this process ends. Returns the
    directory and the descriptor of the lock."""
    path = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=CACHE / kind))
    lock = os.open(path / "lock", os.O_CREAT | os.O_WRONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return path, lock


@contextlib.contextmanager
def scratch(name: str) -> Iterator[Path]:
    path, lock = new_dir("tmp", name)
    try:
        yield path
    finally:
        # rm is faster than Python on a copied kernel tree. The lock is released last, because
        # another run removes a directory that has no lock.
        subprocess.run(["rm", "-rf", path], check=False)
        os.close(lock)


@contextlib.contextmanager
def locked(path: Path, busy: str = "") -> Iterator[None]:
    """Takes the lock. If the lock is not free, waits or, if BUSY is given, raises BUSY as a
    message."""
    with open(path, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError as error:
            raise Wrong(busy) from error
        yield


def check_overlay() -> None:
    """Checks that layers can be stacked in the cache, before minutes are spent on making layers.
    The file system of a container is often an overlay, above which no other overlay can be
    mounted."""
    with tempfile.TemporaryDirectory(dir=CACHE / "tmp") as where:
        for name in ("lower", "upper", "work", "mnt"):
            os.mkdir(f"{where}/{name}")
        dirs = f"lowerdir={where}/lower,upperdir={where}/upper,workdir={where}/work"
        mount = ["unshare", "--mount", "mount", "-t", "overlay", "-o", dirs, "lab", f"{where}/mnt"]
        environment = {**os.environ, "LIBMOUNT_FORCE_MOUNT2": "always"}
        done = subprocess.run(mount, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise Wrong(
            f"{CACHE} cannot hold the lab's layers ({done.stderr.strip()}). In a container, mount "
            "a directory of the host's disk as a volume, and set LAB_CACHE to that directory."
        )


def prepare_cache() -> None:
    try:
        for name in ("layers", "log", "tmp", "run", "results", "cargo"):
            (CACHE / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Wrong(
            f"cannot write to {CACHE}: choose another directory with LAB_CACHE=DIR."
        ) from error
    check_overlay()
    # A run needs less space if the layers exist already.
    need, free = 3 if any(CACHE.glob("layers/base-*")) else 8, shutil.disk_usage(CACHE).free >> 30
    if free < need:
        raise Wrong(
            f"the lab needs {need} GB free in {CACHE}, only {free} GB are: make room or set "
            "LAB_CACHE=DIR."
        )
    # Removes the directories of builds and runs that have ended. A build or run that is in progress
    # has a lock on its directory.
    for path in [*CACHE.glob("tmp/*/"), *CACHE.glob("run/*/")]:
        with contextlib.suppress(OSError), open(path / "lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
    # Removes layers that were not used for a week.
    for path in [*CACHE.glob("layers/*"), *CACHE.glob("cargo/*")]:
        if path.stat().st_mtime < time.time() - 7 * 86400:
            shutil.rmtree(path, ignore_errors=True)


# ---- names, and the log ----------------------------------------------------------------


@functools.cache
def hash_of(*paths: Path) -> str:
    """Returns a hash of the names, contents, modes and links of the files, including files in
    directories."""
    found = hashlib.sha256()
    for top in paths:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(top.parent)
            if "target" not in name.parts and (path.is_symlink() or path.is_file()):
                content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                found.update(f"{name} {path.lstat().st_mode:o} {len(content)} ".encode() + content)
    return found.hexdigest()


def named(name: str, *words: object) -> str:
    return f"{name}-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"


def logged(name: str, what: str, run: Callable[..., Any], hint: str = "") -> None:
    """Calls RUN(stdout=..., stderr=...), and writes its output to the log NAME. If RUN fails, shows
    the end of the log."""
    log = CACHE / "log" / f"{name}.log"
    with open(log, "w", encoding="utf-8") as out:
        failed = run(stdout=out, stderr=subprocess.STDOUT).returncode
    if not failed:
        return
    text = log.read_text(errors="replace")
    if "No space left on device" in text:
        hint = (
            f" There is no space left: make room in {CACHE}, in memory (/tmp of a build is there), "
            "or set LAB_CACHE=DIR."
        )
    end = text.splitlines()[-40:]
    say(name, "\n".join(["--- last lines of the log ---", *end, f"--- whole log: {log} ---"]))
    raise Wrong(f"{what} failed; nothing of it is kept.{hint}")
