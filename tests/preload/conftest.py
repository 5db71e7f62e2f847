# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The preloaded library, the doubles of its neighbours and their client, built once; and how a
client is run. $PRELOAD_CRATE is another copy of preload/, for the mutants; $PRELOAD_LIBRARY one
that was built otherwise than by cargo; $PRELOAD_EMULATOR runs the programs of another processor,
for which $CC compiles then."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CRATE = Path(os.environ.get("PRELOAD_CRATE", HERE.parents[1] / "preload"))
BUILT = os.environ.get("PRELOAD_LIBRARY")
EMULATOR = os.environ.get("PRELOAD_EMULATOR", "").split()


def command(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


class Ran:
    """What a client printed, what its neighbours saw, and what the library said."""

    def __init__(self, done, events):
        self.printed = done.stdout.splitlines()
        self.said = done.stderr.splitlines()
        self.events = events.splitlines()
        self.calls = [event.split()[0] for event in self.events]

    def of(self, name):
        """The words behind `name` in each such event."""
        return [e.split()[1:] for e in self.events if e.split()[0] == name]

    @property
    def cuda(self):
        return [call for call in self.calls if call.startswith("cu")]


class Bed:
    """A directory with all that was built: bed.run(WORD..., NAME=VALUE) runs the client."""

    def __init__(self, where):
        self.where = where
        self.library = Path(BUILT) if BUILT else self.by_cargo()
        # As Debian links libibverbs, as Ubuntu does, and both libraries from before dma-bufs.
        self.verbs("new")
        self.verbs("symbolic", "-Wl,-Bsymbolic-functions")
        self.verbs("old", "-DOLD")
        self.cuda("cuda")
        self.cuda("old_cuda", "-DOLD")
        self.compile("client", where / "client")
        self.compile("client", where / "linked", "-DLINKED", where / "new/libibverbs.so.1")

    def by_cargo(self):
        environment = dict(os.environ, CARGO_TARGET_DIR=str(self.where / "target"))
        command("cargo", "build", "--release", "--offline", cwd=CRATE, env=environment)
        return self.where / "target/release/libnvpm_preload.so"

    def compile(self, name, to, *flags):
        source = HERE / f"doubles/{name}.c"
        command(
            os.environ.get("CC", "cc"),
            "-Wall",
            "-Werror",
            "-O1",
            "-pthread",
            "-o",
            to,
            source,
            *flags,
        )

    def double(self, name, to, *flags):
        self.compile(name, to, "-shared", "-fPIC", f"-Wl,-soname,{to.name}", *flags)

    def verbs(self, kind, *flags):
        (self.where / kind).mkdir()
        script = f"-Wl,--version-script={HERE}/doubles/ibverbs.map"
        self.double("ibverbs", self.where / kind / "libibverbs.so.1", script, *flags)

    def cuda(self, kind, *flags):
        (self.where / kind).mkdir()
        self.double("cuda", self.where / kind / "libcuda.so.1", *flags)

    def run(self, *words, client="client", verbs="new", cuda="cuda", events=True, **variables):
        seen = self.where / "events"
        seen.write_text("")
        paths = f"{self.where / verbs}:{self.where / cuda}"
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": paths}
        environment["LD_PRELOAD"] = str(self.library)
        environment.update({name: str(value) for name, value in variables.items()})
        if events:
            environment["EVENTS"] = str(seen)
        words = [self.where / client, *" ".join(words).split()]
        if EMULATOR:
            # What is for the program must not be for what runs it.
            for setting in environment.items():
                words = ["-E", "=".join(setting), *words]
            words, environment = [*EMULATOR, *words], {}
        done = subprocess.run(
            words,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert not done.returncode, (done.returncode, done.stdout, done.stderr)
        return Ran(done, seen.read_text())


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """For the lab, which counts lines that begin with `ok`."""
    for report in terminalreporter.getreports("passed"):
        if report.when == "call":
            terminalreporter.write_line(f"ok {report.nodeid.partition('::')[2]}")


@pytest.fixture(scope="session")
def bed(tmp_path_factory):
    return Bed(tmp_path_factory.mktemp("bed"))
