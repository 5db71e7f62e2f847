# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Layers: directories that overlayfs stacks to one root file system, each the result of one
script run inside the layers below it.

A layer's name ends in a hash of everything it was made from (its script, its inputs, the layer
below it). A directory appears under that name only when it is complete, by a rename; so what is
there can be trusted, what is not is made, and an interrupted build leaves nothing that anyone
would use.
"""

import contextlib
import fcntl
import functools
import hashlib
import inspect
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

LAB = Path(__file__).resolve().parent
TOP = LAB.parent.parent
CACHE = Path(os.environ.get("LAB_CACHE", "/var/cache/nv-peer-mem-lab"))

# The release whose programs most guests run (kernels has the others).
RELEASE = "trixie"

printing = threading.Lock()


class Wrong(Exception):
    """Something that the user should read, and no trace of Python."""


def say(who, text):
    with printing:
        print(f"[{who}] {text}", flush=True)


def killed_with_us(*command):
    """The command, which ends when the thread that starts it does."""
    return ["setpriv", "--pdeathsig", "KILL", *map(str, command)]


# ---- the cache ------------------------------------------------------------------


def new_dir(kind, name):
    """A directory of the cache, locked while this process lives."""
    path = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=CACHE / kind))
    lock = os.open(path / "lock", os.O_CREAT | os.O_WRONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return path, lock


@contextlib.contextmanager
def scratch(name):
    path, lock = new_dir("tmp", name)
    try:
        yield path
    finally:
        # By a program that is fast where a kernel's tree was copied; once the lock is gone another run may
        # take what is left for a leftover.
        subprocess.run(["rm", "-rf", path], check=False)
        os.close(lock)


@contextlib.contextmanager
def locked(path):
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare_cache():
    # What a container may lack though its user is root.
    mounts = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if subprocess.run(mounts, capture_output=True, check=False).returncode:
        raise Wrong("mounting is not allowed here, though this is root: in a container it wants --privileged "
                    "(or CAP_SYS_ADMIN, and no seccomp or AppArmor profile that forbids it).")
    try:
        for name in ("layers", "log", "tmp", "run", "results", "cargo"):
            (CACHE / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Wrong(f"cannot write to {CACHE}: choose another directory with LAB_CACHE=DIR.") from error
    # Enough for a run when the layers are there, for a build when not.
    need, free = 3 if any(CACHE.glob("layers/base-*")) else 8, shutil.disk_usage(CACHE).free >> 30
    if free < need:
        raise Wrong(f"the lab needs {need} GB free in {CACHE}, only {free} GB are: make room or set LAB_CACHE=DIR.")
    # Of builds and runs that died: each holds a lock while it lives.
    for path in [*CACHE.glob("tmp/*/"), *CACHE.glob("run/*/")]:
        with contextlib.suppress(OSError), open(path / "lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
    # What nobody has used for a week goes.
    for path in [*CACHE.glob("layers/*"), *CACHE.glob("cargo/*")]:
        if path.stat().st_mtime < time.time() - 7 * 86400:
            shutil.rmtree(path, ignore_errors=True)


# ---- the archive ------------------------------------------------------------------


@functools.cache
def mirror():
    """LAB_MIRROR, or the one this machine's own apt uses for Debian."""
    def known():
        targets = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
        lines = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.splitlines()
        return next((line[14:] for line in lines if line.startswith("Debian|Debian|")), None)

    found = os.environ.get("LAB_MIRROR") or known()
    if not found:
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        found = known()
    if not found:
        raise Wrong("apt on this machine knows no Debian mirror: give one with LAB_MIRROR=URL.")
    return found.rstrip("/")


def write_sources(where, *suites):
    """WHERE/sources.list for apt. The first suite has to be there: a clear sentence before any long
    step if it is not. An old one may have left the archive: its kernels are missing then, no others."""
    def answers(suite):
        url = f"{mirror()}/dists/{suite}/Release"
        return not subprocess.run(["/usr/lib/apt/apt-helper", "download-file", url, where / "probe"], capture_output=True, check=False).returncode

    there = [suite for suite in suites if answers(suite)]
    if suites[0] not in there:
        raise Wrong(f"the Debian mirror {mirror()} cannot be reached, and the cache in {CACHE} lacks what this needs: "
                    "check the network, or set LAB_MIRROR=URL.")
    (where / "sources.list").write_text("".join(f"deb {mirror()} {suite} main contrib non-free\n" for suite in there), encoding="utf-8")


# ---- commands in layers --------------------------------------------------------------

# The mounts live in a namespace of their own and die with it; so do the processes,
# whatever happens to this program.
ENTER = r"""
upper=$1 lower=$2 binds=$3
shift 3
mount -t overlay -o "lowerdir=$lower,upperdir=$upper/root,workdir=$upper/work,redirect_dir=off,metacopy=off" lab "$upper/mnt"
mount -t proc proc "$upper/mnt/proc"
mount --rbind /dev "$upper/mnt/dev"
mount -t tmpfs tmpfs "$upper/mnt/run"
mount -t tmpfs tmpfs "$upper/mnt/tmp"
for bind in $binds; do
	IFS=: read -r from to mode <<<"$bind"
	if [ -d "$from" ]; then mkdir -p "$upper/mnt$to"; else : >>"$upper/mnt$to"; fi
	mount --bind "$from" "$upper/mnt$to"
	[ -z "$mode" ] || mount -o "remount,bind,$mode" "$upper/mnt$to"
done
[ ! -e /etc/resolv.conf ] || cat /etc/resolv.conf >"$upper/mnt/run/resolv.conf"
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	DEBIAN_FRONTEND=noninteractive chroot "$upper/mnt" "$@"
"""


def run_below(upper, stack, *command, binds=(), **options):
    """Runs it in a chroot made of the layers in STACK (topmost first, colon-separated) with UPPER's
    root/ on top to write to. Directories to share are in BINDS, as FROM:TO[:ro]."""
    for name in ("root", "work", "mnt"):
        (upper / name).mkdir(exist_ok=True)
    lower = ":".join(f"layers/{name}/root" for name in stack.split(":"))
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    return subprocess.run(killed_with_us(*own, "bash", "-euc", ENTER, "in_layers", upper, lower, " ".join(binds), *command),
                          cwd=CACHE, stdin=subprocess.DEVNULL, check=False, **options)


def in_layers(stack, *command, **options):
    """The same, and nothing is kept."""
    with scratch("scratch") as upper:
        return run_below(upper, stack, *command, **options)


# ---- how they are made -----------------------------------------------------------------


@functools.cache
def hash_of(*paths):
    """Of the files' names, contents, modes and links; directories whole."""
    found = hashlib.sha256()
    for top in map(Path, paths):
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(top.parent)
            if "target" not in name.parts and (path.is_symlink() or path.is_file()):
                content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                found.update(f"{name} {path.lstat().st_mode:o} {len(content)} ".encode() + content)
    return found.hexdigest()


def named(name, *words):
    return f"{name}-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"


def finish(where, full):
    """The finished root/ of WHERE becomes a layer."""
    (where / "layer").mkdir()
    (where / "root").rename(where / "layer/root")
    shutil.rmtree(where / "layer/root/in", ignore_errors=True)
    subprocess.run(["sync", "-f", where / "layer"], check=True)
    (where / "layer").rename(CACHE / "layers" / full)


def unless_there(full, make):
    """Has MAKE fill the root/ of a directory, unless the layer FULL is there. Where two want the same
    one, one makes it, and the other waits and looks again."""
    path, waiting = CACHE / "layers" / full, CACHE / "tmp" / f"{full}.building"
    if not path.is_dir():
        with locked(waiting):
            if not path.is_dir():
                with scratch(full) as where:
                    make(where)
                    finish(where, full)
        waiting.unlink(missing_ok=True)
    os.utime(path)
    return full


def logged(name, what, run, hint=""):
    """RUN(stdout=..., stderr=...) with its output in the log NAME, whose end is shown if it fails."""
    log = CACHE / "log" / f"{name}.log"
    with open(log, "w", encoding="utf-8") as out:
        failed = run(stdout=out, stderr=subprocess.STDOUT).returncode
    if not failed:
        return
    text = log.read_text(errors="replace")
    if "No space left on device" in text:
        hint = f" There is no space left: make room in {CACHE}, in memory (/tmp of a build is there), or set LAB_CACHE=DIR."
    say(name, "\n".join(["--- last lines of the log ---", *text.splitlines()[-40:], f"--- whole log: {log} ---"]))
    raise Wrong(f"{what} failed; nothing of it is kept.{hint}")


def build(where, name, log, stack, inputs, words, suites):
    """Runs build/NAME.sh inside STACK, with the directory /in holding the INPUTS, and with apt for SUITES."""
    (where / "in").mkdir()
    for source in (*inputs, LAB / f"build/{name}.sh"):
        subprocess.run(["cp", "-a", source, where / "in/"], check=True)
    binds, hint = [f"{where}/in:/in:ro"], ""
    if suites:
        write_sources(where, *suites)
        binds.append(f"{where}/sources.list:/etc/apt/sources.list:ro")
        hint = " If the archive has dropped what this wants, tests/run update looks again."
    run = functools.partial(run_below, where, stack, "bash", "-eu", f"/in/{name}.sh", *words, binds=binds)
    logged(log, f"building the layer '{name}'", run, hint)


MECHANISM = ENTER + inspect.getsource(build) + inspect.getsource(finish)


def layer_name(name, stack, inputs, words):
    return named(name, stack, words, hash_of(LAB / f"build/{name}.sh", *inputs), MECHANISM)
