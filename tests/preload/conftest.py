# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Builds the preloaded library, the doubles of the kernel, of libibverbs and of libcuda, and a
client, once, and runs the client for each test. If $PRELOAD_LIBRARY names a library, this library
is tested and none is built. $PRELOAD_EMULATOR is a command that runs programs of another processor.
In that case, $CC must compile for that processor."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CRATE = HERE.parents[1] / "preload"
# The lab's libcuda.
CUDA = HERE.parent / "doubles/cuda"
# The doubles of the kernel and of libibverbs.
DOUBLES = HERE.parent / "doubles/preload"
# The programs that register memory.
CLIENTS = HERE / "clients"
BUILT = os.environ.get("PRELOAD_LIBRARY")
EMULATOR = os.environ.get("PRELOAD_EMULATOR", "").split()
# The name of a copy of libibverbs in a Python wheel, in the form that auditwheel uses.
BUNDLED = "libibverbs-1de1263b.so.1"

# An option of the compiler that gives the functions of libibverbs their versions.
VERSIONS = f"-Wl,--version-script={DOUBLES}/ibverbs.map"


def command(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def environment(library, audit):
    """Returns the environment with the variables that `nvpm run` sets."""
    added = {"LD_PRELOAD": library}
    if audit:
        added.update(LD_AUDIT=library, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=24576")
    joined = {name: f"{os.environ.get(name, '')}:{one}".lstrip(":") for name, one in added.items()}
    return {**os.environ, **joined}


class Ran:
    """The result of a client. It has the client's output, the events that the doubles have
    recorded, and the library's messages."""

    def __init__(self, done, events):
        self.printed = done.stdout.splitlines()
        self.said = (done.stderr or "").splitlines()
        # The calls with which the client allocates memory do not count.
        self.events = events.rpartition("allocated\n")[2].splitlines()
        self.calls = [event.split()[0] for event in self.events]

    def of(self, name):
        """Returns the words after `name` in each event of this name."""
        return [e.split()[1:] for e in self.events if e.split()[0] == name]

    @property
    def cuda(self):
        return [call for call in self.calls if call.startswith("cu")]

    @property
    def kept(self):
        """Returns how many contexts were pushed and not popped, and how many primary contexts were
        retained and not released."""
        count = [event for event in self.events if not event.endswith(" refused")].count
        return (
            count("cuCtxPushCurrent_v2") - count("cuCtxPopCurrent_v2"),
            count("cuDevicePrimaryCtxRetain") - count("cuDevicePrimaryCtxRelease_v2"),
        )


class Bed:
    """A test bed, which is a directory with everything that was built. bed.run(WORD..., NAME=VALUE)
    runs the client."""

    def __init__(self, where):
        self.where = where
        self.library = Path(BUILT) if BUILT else self.by_cargo()
        # "new" is linked like Debian's libibverbs, and "symbolic" like Ubuntu's. The functions of
        # "unversioned" have no versions.
        self.verbs("new")
        self.verbs("symbolic", "-Wl,-Bsymbolic-functions")
        # The calls of this copy go by another table of the dynamic linker.
        self.verbs("noplt", "-fno-plt")
        self.verbs("bundle", name=BUNDLED)
        self.verbs("unversioned", script="")
        self.cuda("cuda")
        # The libcuda of a driver before 515 cannot export memory.
        self.cuda("old_cuda", "-DcuMemGetHandleForAddressRange=nothing")
        # The functions of this libcuda are only in the old hash table.
        self.cuda("old_hash", "-Wl,--hash-style=sysv")
        self.compile(CLIENTS / "client", where / "client")
        self.compile(
            CLIENTS / "client", where / "linked", "-DLINKED", where / "new/libibverbs.so.1"
        )
        self.compile(CLIENTS / "client", where / "own_list", "-DOWN_LIST", "-Wl,--export-dynamic")
        bundled = where / "bundle" / BUNDLED
        self.compile(CLIENTS / "client", where / "linked_with_bundled", "-DLINKED", bundled)
        self.compile(CLIENTS / "client", where / "static_verbs", "-DLINKED", DOUBLES / "ibverbs.c")
        for kind, name in (("new", "libibverbs.so.1"), ("bundle", BUNDLED)):
            self.double(CLIENTS / "plugin", where / kind / "plugin.so", where / kind / name)
        for name in ("kernel", "shim", "walk", "system"):
            self.double(name, where / f"{name}.so")

    def by_cargo(self):
        environment = dict(os.environ, CARGO_TARGET_DIR=str(self.where / "target"))
        command("cargo", "build", "--release", "--offline", cwd=CRATE, env=environment)
        return self.where / "target/release/libnvpm_preload.so"

    def compile(self, name, to, *flags):
        source = DOUBLES / f"{name}.c"
        command(
            os.environ.get("CC", "cc"),
            "-Wall",
            "-Werror",
            "-O1",
            "-pthread",
            f"-I{DOUBLES}",
            f"-I{CUDA}",
            f"-I{CUDA}/include",
            "-o",
            to,
            source,
            *flags,
            # Before glibc 2.34, dlopen() is in a library of its own.
            "-ldl",
        )

    def double(self, name, to, *flags):
        self.compile(name, to, "-shared", "-fPIC", f"-Wl,-soname,{to.name}", *flags)

    def verbs(self, kind, *flags, name="libibverbs.so.1", script=VERSIONS):
        (self.where / kind).mkdir()
        self.double("ibverbs", self.where / kind / name, *flags, *filter(None, [script]))

    def cuda(self, kind, *flags):
        (self.where / kind).mkdir()
        more = [CUDA / "vmm.c", CUDA / "gpu_host.c"]
        self.double(CUDA / "cuda", self.where / kind / "libcuda.so.1", *more, *flags)

    def run(
        self,
        *words,
        client="client",
        verbs="new",
        cuda="cuda",
        events=True,
        stderr=subprocess.PIPE,
        **variables,
    ):
        seen = self.where / "events"
        seen.write_text("")
        paths = f"{self.where / verbs}:{self.where / cuda}"
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": paths, "GPUS": "2"}
        environment["LD_PRELOAD"] = str(self.library)
        environment.update({name: str(value) for name, value in variables.items()})
        # The kernel comes after all other preloaded libraries.
        preloaded = [*filter(None, [environment["LD_PRELOAD"]]), str(self.where / "kernel.so")]
        environment["LD_PRELOAD"] = ":".join(preloaded)
        if events:
            environment["EVENTS"] = str(seen)
        words = [self.where / client, *" ".join(words).split()]
        if EMULATOR:
            # The variables must be set for the client and not for the emulator. The emulator
            # therefore gets them as options.
            for setting in environment.items():
                words = ["-E", "=".join(setting), *words]
            words, environment = [*EMULATOR, *words], {}
        done = subprocess.run(
            words,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=100,
        )
        assert not done.returncode, (done.returncode, done.stdout, done.stderr)
        return Ran(done, seen.read_text())


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """Prints a line that begins with `ok` for each test that has passed, because the lab counts
    such lines."""
    for report in terminalreporter.getreports("passed"):
        if report.when == "call":
            terminalreporter.write_line(f"ok {report.nodeid.partition('::')[2]}")


@pytest.fixture(scope="session")
def bed(tmp_path_factory):
    return Bed(tmp_path_factory.mktemp("bed"))
