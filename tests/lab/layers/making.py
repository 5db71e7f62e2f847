# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes layers. A layer is a directory that overlayfs stacks with others to one root file system.
It has the files that a script has made inside the layers below.

A layer's name ends in a hash of all that it was made from: its script, its inputs, the layer below
it, and this whole file. An edit of this file makes every layer again, also the checker kernel. The
mirror is not part of the hash, since all mirrors have the same packages.

A directory appears under its name only when it is complete, by a rename. So every layer that is
there can be trusted, and an interrupted build leaves no layer.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from layers.cache import CACHE, LAB, Wrong, hash_of, killed_with_us, locked, logged, named, scratch

Done = subprocess.CompletedProcess[Any]

# ---- the archive ------------------------------------------------------------------


def known_to_apt() -> str | None:
    """Returns the mirror that this machine's own apt uses for Debian."""
    format_of_lines = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    targets = ["apt-get", "indextargets", "--format", format_of_lines, "Created-By: Packages"]
    listed = subprocess.run(targets, capture_output=True, text=True, check=False).stdout
    ours = "Debian|Debian|"
    return next((line[len(ours) :] for line in listed.splitlines() if line.startswith(ours)), None)


@functools.cache
def mirror() -> str:
    """Returns LAB_MIRROR, or the mirror that this machine's own apt uses for Debian."""
    found = os.environ.get("LAB_MIRROR") or known_to_apt()
    if not found:
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        found = known_to_apt()
    if not found:
        raise Wrong("apt on this machine knows no Debian mirror: give one with LAB_MIRROR=URL.")
    return found.rstrip("/")


def write_sources(where: Path, *suites: str) -> None:
    """Writes WHERE/sources.list for apt. If the first suite is missing, ends with a clear message
    before any long step. If another suite has left the archive, only its kernels are missing."""

    def answers(suite: str) -> bool:
        url = f"{mirror()}/dists/{suite}/Release"
        ask = ["/usr/lib/apt/apt-helper", "download-file", url, f"{where}/probe"]
        return not subprocess.run(ask, capture_output=True, check=False).returncode

    there = [suite for suite in suites if answers(suite)]
    if suites[0] not in there:
        raise Wrong(
            f"the Debian mirror {mirror()} cannot be reached, and the cache in {CACHE} lacks what "
            "this needs: check the network, or set LAB_MIRROR=URL."
        )
    lines = [f"deb {mirror()} {suite} main contrib non-free\n" for suite in there]
    (where / "sources.list").write_text("".join(lines), encoding="utf-8")


def debian(where: Path, options: list[str], release: str, packages: list[str], **more: Any) -> Done:
    """Makes a root of these packages. The root keeps the archive's lists, which would be more than
    half of the download for a layer with a few packages: apt then only asks whether they are
    current."""
    unpack = [
        "force-unsafe-io",
        *(f"path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale")),
    ]
    apt = ['APT::Install-Recommends "false"', 'Acquire::Languages "none"']
    return subprocess.run(
        killed_with_us(
            "mmdebstrap",
            "--mode=root",
            "--skip=cleanup/apt/lists",
            f"--include={','.join(packages)}",
            *(f"--aptopt={option}" for option in apt),
            *(f"--dpkgopt={option}" for option in unpack),
            *options,
            release,
            where / "root",
            where / "sources.list",
        ),
        check=False,
        **more,
    )


# ---- commands in layers --------------------------------------------------------------

# The mounts and the processes live in namespaces of their own and end with them, even if this
# program is killed.
ENTER = r"""
upper=$1 lower=$2 binds=$3
shift 3
dirs="lowerdir=$lower,upperdir=$upper/root,workdir=$upper/work"
# The kernel's new interface for mounting takes no option of more than 256 bytes, and mount uses
# that interface since util-linux 2.39.
export LIBMOUNT_FORCE_MOUNT2=always
mount -t overlay -o "$dirs,redirect_dir=off,metacopy=off" lab "$upper/mnt"
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


def run_below(
    upper: Path, stack: str, *command: object, binds: Iterable[str] = (), **options: Any
) -> Done:
    """Runs COMMAND in a chroot made of the layers in STACK (topmost first, colon-separated), with
    UPPER's root/ on top for writing. BINDS has directories to share, as FROM:TO[:ro]."""
    for name in ("root", "work", "mnt"):
        (upper / name).mkdir(exist_ok=True)
    lower = ":".join(f"layers/{name}/root" for name in stack.split(":"))
    namespace = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    enter = ["bash", "-euc", ENTER, "in_layers", upper, lower, " ".join(binds)]
    return subprocess.run(
        killed_with_us("unshare", *namespace, *enter, *command),
        cwd=CACHE,
        stdin=subprocess.DEVNULL,
        check=False,
        **options,
    )


def in_layers(stack: str, *command: object, **options: Any) -> Done:
    """Runs COMMAND in layers, and keeps no file that it writes."""
    with scratch("scratch") as upper:
        return run_below(upper, stack, *command, **options)


# ---- one layer ---------------------------------------------------------------------------


def layer_name(name: str, *words: object) -> str:
    """Returns the name of a layer that is made from WORDS."""
    return named(name, *words, hash_of(Path(__file__)))


def built_name(name: str, stack: str, inputs: Iterable[Path], words: object) -> str:
    """Returns the name of a layer that build() makes."""
    return layer_name(name, stack, words, hash_of(LAB / f"layers/build/{name}.sh", *inputs))


def build(
    where: Path,
    name: str,
    log: str,
    stack: str,
    inputs: Iterable[Path],
    words: Sequence[str],
    suites: list[str],
) -> None:
    """Runs build/NAME.sh inside STACK, with the directory /in holding the INPUTS, and with apt for
    SUITES."""
    (where / "in").mkdir()
    for source in (*inputs, LAB / f"layers/build/{name}.sh"):
        subprocess.run(["cp", "-a", source, where / "in/"], check=True)
    binds, hint = [f"{where}/in:/in:ro"], ""
    if suites:
        write_sources(where, *suites)
        binds.append(f"{where}/sources.list:/etc/apt/sources.list:ro")
        hint = " If the archive has dropped what this wants, tests/run update looks again."
    script = ["bash", "-eu", f"/in/{name}.sh", *words]
    run = functools.partial(run_below, where, stack, *script, binds=binds)
    logged(log, f"building the layer '{name}'", run, hint)


def finish(where: Path, full: str) -> None:
    """Makes the finished root/ of WHERE the layer FULL."""
    (where / "layer").mkdir()
    (where / "root").rename(where / "layer/root")
    shutil.rmtree(where / "layer/root/in", ignore_errors=True)
    subprocess.run(["sync", "-f", where / "layer"], check=True)
    (where / "layer").rename(CACHE / "layers" / full)


def unless_there(full: str, make: Callable[[Path], None]) -> str:
    """Lets MAKE fill the root/ of a directory, unless the layer FULL exists. If two threads want
    the same layer, one makes the layer, and the other waits and looks again."""
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
