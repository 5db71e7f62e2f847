# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""`serve`: keeps the module loaded, built for the driver and the RDMA core that run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import FrameType

from . import build, hooks, kernel, metrics, places, report
from .cache import Cache
from .decide import Step, decide, wait
from .node import Node
from .owners import owners, who
from .settings import RELEASE, Settings

# Seconds between two looks at the node, and between two attempts after a failure: at first, and at
# most.
PAUSE, FIRST, LATEST = 1, 15, 600
# Seconds between two questions for the owners of registrations.
OWNERS = 60
# Seconds after which the module is loaded again if somebody else has unloaded it, and nothing more
# has changed.
TAKEN = 300
WAS_TAKEN = (
    "somebody else has unloaded the module, and may replace the driver or the RDMA core next. This "
    f"pod waits until one of them changes, or {TAKEN // 60} minutes. Restart the pod to load the "
    "module at once"
)


class Stop(Exception):
    """The container is to end."""


# What a module was built for, and the times when the operators' containers became ready.
Neighbours = tuple[dict[str, str], tuple[int, ...]]


class Keeper:
    def __init__(self, node: Node, settings: Settings, cache: Cache, told: report.Report) -> None:
        self.node, self.settings, self.cache, self.told = node, settings, cache, told
        # The node for which an attempt has failed, with the state and the reason, the number of
        # failures, and the time of the next attempt.
        self.failed: dict[str, str] = {}
        self.why, self.failures, self.again = ("", ""), 0, 0.0
        self.unwritten = ""
        # The owners of registrations, and the time of the question for them.
        self.owners, self.asked_at = "", float("-inf")
        # The node while the module was loaded, and the time when somebody else had unloaded it.
        self.served: Neighbours | None = None
        self.taken_at = 0.0
        # The node for which the kernel has refused the module of the cache.
        self.doubted: dict[str, str] = {}

    def tell(self, state: str, reason: str) -> None:
        self.told.write(state, reason, self.settings.name)

    def key(self) -> dict[str, str]:
        return self.cache.key(self.node, self.settings.name, self.settings.version)

    def look(self) -> Step:
        """Looks at the node once, and takes the next step."""
        if self.settings.name == "nv_peer_mem":
            self.write_hook()
        asked = report.asked(self.told.file.parent).exists()
        step = decide(self.node, self.settings.name, self.settings.version, asked)
        if self.was_taken() and step.do == "load":
            self.tell("waiting", WAS_TAKEN)
        elif step.do == "load":
            self.load()
        elif step.do == "unload":
            self.tell(step.state, step.reason)
            self.unload()
        elif step.state == "held":
            self.hold(step.reason)
        else:
            self.tell(step.state, step.reason)
        return step

    def was_taken(self) -> bool:
        """Returns whether somebody else has unloaded the module, and nothing has changed since. The
        older OFED container unloads the module minutes before it removes the file of a ready OFED
        that an earlier container has left."""
        own = self.node.own()
        now = (self.key(), self.node.became_ready())
        if own and own.name == self.settings.name:
            self.served, self.taken_at = now, time.monotonic()
        elif now != self.served or time.monotonic() >= self.taken_at + TAKEN:
            self.served = None
        return self.served is not None and not own

    def hold(self, reason: str) -> None:
        """Tells who keeps the module, and asks for the names once a minute: the kernel holds the
        module's lock while it writes the list, and each change of the list is a line of the log."""
        if time.monotonic() >= self.asked_at + OWNERS:
            own = self.node.own()
            self.owners = who(own.references if own else 0, owners(self.node.root))
            self.asked_at = time.monotonic()
        self.tell("held", f"{reason}: {self.owners}")

    def write_hook(self) -> None:
        """Writes the hook for the OFED container, and tells a failure once."""
        failed = ""
        try:
            hooks.write(self.node)
        except OSError as error:
            failed = f"the hook for the OFED container could not be written: {error}"
        if failed and failed != self.unwritten:
            report.say(failed)
        self.unwritten = failed

    # ---- loading ----

    def load(self) -> None:
        """Loads the module from the cache. If the cache lacks the module, builds it, and the next
        look loads it."""
        key = self.key()
        if key == self.failed and time.monotonic() < self.again:
            self.tell(*self.why)
            return
        files = self.cache.modules(key)
        try:
            if not files or key == self.doubted:
                self.doubted = {}
                self.build(key)
                return
            self.tell("loading", f"{self.settings.name} {self.settings.version}, from the cache")
            kernel.load(files, self.settings.parameters)
        except places.Missing as missing:
            self.fail(key, "waiting", str(missing))
        except build.Failed as failed:
            self.fail(key, "failed", f"the build: {failed} (all of its output: {self.log})")
        except OSError as error:
            self.fail(key, "failed", f"a file cannot be read or written: {error}")
        except kernel.Refused as refused:
            # The entry of the cache may be wrong, so the next attempt builds the module again. The
            # entry stays until then, because the node may lack the parts of a build by now.
            self.doubted = key
            self.fail(key, "failed", f"{refused}. {advice(self.settings.name, str(refused))}")
        else:
            self.failed, self.failures = {}, 0
            self.check()

    def check(self) -> None:
        """Unloads the module if a container has begun to end while the module was being loaded. The
        container's script has looked for the module before, and does not look again."""
        reason = wait(self.node)
        if reason:
            self.tell("unloading", reason)
            self.unload()

    @property
    def log(self) -> Path:
        return self.cache.directory / "build.log"

    def build(self, key: dict[str, str]) -> None:
        found = places.find(self.node, self.cache)
        driver, name = self.node.module("nvidia"), self.settings.name
        self.tell(
            "building",
            f"{name} {self.settings.version} for kernel {key['kernel']}, with {found.driver}, "
            f"{found.core} and the headers in {found.headers}",
        )
        with tempfile.TemporaryDirectory() as work:
            try:
                built = build.build(RELEASE, found, key["kernel"], name, Path(work))
            finally:
                if Path(work, "log").exists():
                    shutil.copyfile(Path(work, "log"), self.log)
            if key != self.key():
                # A neighbour was replaced during the build, so the module may be for either one.
                return
            self.cache.store(key, built.directory)
            symbols = built.directory / "nvidia.symvers"
            if driver and symbols.exists():
                self.cache.store_driver(driver.identity, symbols, built.header)

    def fail(self, key: dict[str, str], state: str, reason: str) -> None:
        """Tells a failure, and puts the next attempt off. A change of the node ends the wait."""
        self.failures = self.failures + 1 if key == self.failed else 1
        longest = FIRST if state == "waiting" else LATEST
        self.again = time.monotonic() + min(FIRST << (self.failures - 1), longest)
        self.failed, self.why = key, (state, reason)
        self.tell(state, reason)

    # ---- unloading ----

    def unload(self) -> bool:
        """Unloads the module unless programs use it, and names these programs."""
        own = self.node.own()
        if not own or own.name != self.settings.name:
            return True
        self.served = None
        try:
            kernel.unload(own.name)
        except kernel.Refused as refused:
            self.tell("held", f"{refused}: {who(own.references, owners())}")
            return False
        self.tell("unloaded", f"{own.name} {own.version}")
        return True


def advice(name: str, said: str) -> str:
    """Returns nvpm's advice about a module that could not be loaded."""
    ended = subprocess.run(
        ["timeout", "60", "nvpm", "advise", name, said], capture_output=True, text=True, check=False
    )
    return ended.stdout.strip()


def start_metrics(port: int) -> None:
    """Serves the metrics. The module is kept also without them."""
    try:
        metrics.start(port)
    except OSError as error:
        report.say(f"no metrics on port {port}: {error}")


def serve(settings: Settings, node: Node, cache: Cache, told: report.Report) -> int:
    """Keeps the module until a signal comes, and then unloads the module."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        # A second signal must not interrupt the unloading.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Stop

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    keeper = Keeper(node, settings, cache, told)
    if settings.port:
        start_metrics(settings.port)
    try:
        while True:
            keeper.look()
            time.sleep(PAUSE)
    except Stop:
        keeper.unload()
    return 0
