# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that commands run in many layers, that a failure of this machine is not reported as a
failure of the guest, and that a killed guest has gone off. The tests run in a layer of Debian 13,
whose mount uses the kernel's new interface, which limits the length of options."""

import os
import socket
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

# The cache is imported after the variable is set.
os.environ["LAB_CACHE"] = tempfile.mkdtemp()

from layers import cache
from layers.cache import CACHE, Wrong, prepare_cache
from layers.making import run_below
from run import guest

# The names are as long as the mount options of a guest with all extra layers.
NAMES = [f"a-layer-with-a-long-name-{number:012}" for number in range(24)]


def many_layers() -> None:
    for name in NAMES:
        (CACHE / "layers" / name / "root").mkdir(parents=True)
    (CACHE / "layers" / NAMES[0] / "root/found").write_text("in the topmost layer\n")
    (CACHE / "layers" / "system").mkdir()
    (CACHE / "layers/system/root").symlink_to("/")
    upper = CACHE / "upper"
    upper.mkdir()
    stack = ":".join([*NAMES, "system"])
    done = run_below(upper, stack, "cat", "/found", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "in the topmost layer\n"), done


def cache_on_an_overlay() -> None:
    """Checks that a cache on the file system of a container is refused, with advice."""
    cache.CACHE = Path(tempfile.mkdtemp(dir="/var/tmp"))
    try:
        prepare_cache()
    except Wrong as wrong:
        assert "cannot hold the lab's layers" in str(wrong) and "LAB_CACHE" in str(wrong), wrong
    else:
        raise AssertionError(f"{cache.CACHE} was taken, though it lies on an overlay")
    finally:
        cache.CACHE = CACHE


def failure_of_this_machine() -> None:
    """Checks that the run ends with a message when the host's own command for a guest fails."""
    refused = subprocess.CompletedProcess([], 32, b"", b"mount: wrong fs type")
    guest.in_layers = lambda *_, **__: refused  # type: ignore[attr-defined]
    made_up = SimpleNamespace(who="guest", layers=SimpleNamespace(stack=""), run=Path("/none"))
    try:
        answer = guest.Guest.pattern(made_up, "0", "4096", "7")  # type: ignore[arg-type]
    except Wrong as wrong:
        assert "this machine could not" in str(wrong) and "wrong fs type" in str(wrong), wrong
    else:
        raise AssertionError(f"the guest was told '{answer}'")


def killed_guest() -> None:
    """Checks that a guest whose QEMU is killed with an unread answer has gone off. The kernel then
    resets the connection."""
    ours, theirs = socket.socketpair()
    process = SimpleNamespace(kill=theirs.close, wait=lambda: 0)
    ktap = SimpleNamespace(complete=False, failures=[], results=[], hear=lambda _: "")
    made_up = SimpleNamespace(timeout=9, process=process, ktap=ktap, start=lambda _: ours)
    made_up.converse = lambda *_: guest.Guest.converse(made_up, *_)  # type: ignore[arg-type]
    ours.sendall(b"an answer\n")
    theirs.close()
    said = guest.Guest.boot(made_up, "")  # type: ignore[arg-type]
    assert said == guest.WENT_OFF, said


if __name__ == "__main__":
    for test in (many_layers, cache_on_an_overlay, failure_of_this_machine, killed_guest):
        test()
        print("ok", test.__name__)
