# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Small scripts of the build and of the packages: build/dkms/prepare and assembly, build/has/ask,
preload/build, and the preinst of an update from 1.3."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from system import TOP, System

A, B, C = "5.10.0-46-amd64", "6.1.0-47-amd64", "6.1.0-50-amd64"


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path / "root", A, B, C)


# ---- build/dkms/prepare ----


@pytest.mark.parametrize("fails", [True, False])
def test_prepare(system: System, fails: bool) -> None:
    """If a part is missing, the status is 77, by which dkms passes the kernel over. Any other
    status would stop dkms' installation."""
    source = system.root / "source/build"
    shutil.copytree(TOP / "build/dkms", source / "dkms")
    code = 1 if fails else 0
    system.put("source/build/configure", f'echo "$* KVER=$KVER KDIR=${{KDIR-}}"; exit {code}\n')
    for words, said in (([A], ""), ([A, "/headers"], "/headers")):
        assert system.run("dash", source / "dkms/prepare", *words) == (77 if fails else 0)
        assert system.output == f"--check KVER={A} KDIR={said}\n"


# ---- build/dkms/assembly ----


def assembly(system: System, *words: str, makes: bool = True) -> int:
    """Runs the script. A file is current if it contains `current`. build/make makes the file
    current, unless there is no Rust."""
    build = system.root / "source/build"
    shutil.copytree(TOP / "build/dkms", build / "dkms", dirs_exist_ok=True)
    system.put(
        "source/build/rust-assembly",
        '[ "$1 $2" = "module --is-current" ] && grep -q current "$3" 2>/dev/null && exit\n'
        '[ -e "$3" ] && echo " was compiled from other sources" || echo ", is missing"\nexit 1\n',
    )
    done = f"mkdir -p {build}/prebuilt; echo current >{build}/prebuilt/$NVPM_ARCH.S"
    system.put(
        "source/build/make",
        f'echo "made $1 $NVPM_ARCH"\n{done if makes else "exit 1"}\n',
    )
    return system.run("dash", build / "dkms/assembly", *words)


def test_assembly(system: System) -> None:
    assert assembly(system) == 0
    assert system.output == "made prebuilt x86_64\nmade prebuilt aarch64\n"
    assert assembly(system) == 0
    assert system.output == ""
    system.put("source/build/prebuilt/aarch64.S", "old")
    assert assembly(system) == 0
    assert system.output == "made prebuilt aarch64\n"


@pytest.mark.parametrize("words", [[], ["--as-it-is"]])
def test_assembly_without_rust(system: System, words: list[str]) -> None:
    """A missing file is reported. A file of other sources is an error."""
    assert assembly(system, *words, makes=False) == 0
    for arch in ("x86_64", "aarch64"):
        line = (
            f"nvidia-peer-memory-dkms: without build/prebuilt/{arch}.S it builds only on machines"
        )
        assert f"{line} with Rust.\n" in system.output
    assert ("made" in system.output) == (not words)
    for arch, other in (("x86_64", "aarch64"), ("aarch64", "x86_64")):
        system.put(f"source/build/prebuilt/{arch}.S", "old")
        system.put(f"source/build/prebuilt/{other}.S", "current")
        assert assembly(system, *words, makes=False) == 1
        assert (
            f"build/prebuilt/{arch}.S was compiled from other sources, and was not made anew here."
            in system.output
        )
        assert f"{other}.S" not in system.output


# ---- build/has/ask ----

HEADER = "/* What kernel 6.9 has, as build/has/ask found it. */\n"


def ask(system: System, compiler: str) -> int:
    """Asks two questions with a compiler, which is a shell script that gets the file's name in
    $question."""
    for name in ("first", "second", "control"):
        system.put(f"has/{name}.c")
    shutil.copy(TOP / "build/has/ask", system.root / "has/ask")
    name = "for word; do question=$word; done; question=${question##*/}\n"
    system.put(
        "bin/cc-6.9",
        f'#!/bin/sh\n{name}echo "$question" >>"$NVPM_SYSROOT/calls"\n{compiler}\n',
        0o755,
    )
    answers = system.root / "has/answers.h"
    return system.run("dash", system.root / "has/ask", answers, "6.9", "cc-6.9", "-x")


def answers(system: System) -> str:
    file = system.root / "has/answers.h"
    return (
        file.read_text(encoding="utf-8").replace("#define NVPM_HAS_", "") if file.exists() else ""
    )


def test_ask(system: System) -> None:
    assert ask(system, "exit 0") == 0
    assert answers(system) == f"{HEADER}FIRST\nSECOND\n"
    # control.c comes last, so that make sees all headers of the questions.
    assert system.calls() == ["first.c", "second.c", "control.c"]
    error = '[ "$question" != first.c ] || { echo "has/first.c:1:2: error: no member"; exit 1; }'
    assert ask(system, error) == 0
    assert answers(system) == f"{HEADER}SECOND\n"
    assert "no member" in (system.root / "has/answers.log").read_text()


@pytest.mark.parametrize(
    "lack",
    [
        "gcc: fatal error: Killed signal terminated program cc1",
        "has/second.c:1:2: internal compiler error: x",
        "/tmp/x.s: No space left on device",
        "cc1: cannot allocate 4 bytes",
        "cc1: out of memory",
    ],
)
def test_a_lack_is_no_answer(system: System, lack: str) -> None:
    assert ask(system, f'[ "$question" != second.c ] || {{ echo "{lack}"; exit 1; }}') == 1
    assert answers(system) == ""
    assert lack in system.output
    assert (
        "the compiler failed at build/has/second.c without naming an error in that" in system.output
    )


def test_nothing_compiles(system: System) -> None:
    assert ask(system, "echo 'cc1: error: unknown option'; exit 1") == 1
    assert answers(system) == ""
    assert (
        "not even build/has/control.c compiles against kernel 6.9 (see the lines above)"
        in system.output
    )
    assert "cc1: error: unknown option\n" in system.output
    # Each question fails by an error in a file, and so does control.c.
    assert ask(system, 'echo "x.h:1:2: error: y"; exit 1') == 1
    assert "not even build/has/control.c compiles" in system.output
    # A failure without a reason is not an answer either, if the compiler works.
    assert ask(system, '[ "$question" = control.c ]') == 1
    assert "the compiler failed at build/has/first.c" in system.output


def test_no_compiler(system: System) -> None:
    assert ask(system, "exit 1") == 1
    (system.root / "bin/cc-6.9").unlink()
    answers_file = system.root / "has/answers.h"
    assert system.run("dash", system.root / "has/ask", answers_file, "6.9", "cc-6.9", "-x") == 1
    assert "nv_peer_mem: the compiler cc-6.9 is missing: install it (the package" in system.output


# ---- the preinst of an update from 1.3 ----


def preinst(system: System, *words: str, old: str = "", **environment: str) -> int:
    """Runs the preinst. The installed package has the version OLD. `modinfo -k KVER -F version`
    prints the text of the file version.KVER, and configure fails for a kernel with fails/check."""
    text = (TOP / "debian/preinst.in").read_text(encoding="utf-8")
    configure = (TOP / "tests/doubles/commands/configure").read_text(encoding="utf-8")
    files = f"\tput build/configure <<'END_OF_FILE'\n{configure}END_OF_FILE\n"
    text = (
        text.replace("#FILES#\n", files).replace("#DEBHELPER#\n", "").replace("#READY#", "x86_64")
    )
    text = text.replace("/lib/modules/", f"{system.root}/lib/modules/")
    system.put("bin/dpkg-query", f"#!/bin/sh\n[ '{old}' ] && echo '{old}'\n", 0o755)
    (system.root / "bin/modinfo").unlink(missing_ok=True)
    version = '#!/bin/sh\n[ "$1 $3" = "-k -F" ] && cat "$NVPM_SYSROOT/version.$2" 2>/dev/null\n'
    system.put("bin/modinfo", version, 0o755)
    return system.run("dash", system.put("preinst", text), *words, **environment)


def test_preinst(system: System) -> None:
    """An update from 1.3 is refused if a kernel would lose its module. Only kernels with a module
    of 1.3 count."""
    for kernel, version in ((A, "1.3-0"), (B, "1.3.5")):
        system.put(f"version.{kernel}", version)
    for kernel in (A, B, C):
        system.put(f"fails/check/{kernel}", f"no core for {kernel}")
    for word in ("install", "upgrade"):
        assert preinst(system, word, old="1.3-0") == 1
        assert system.output == (
            "nv_peer_mem: version 1.3-0 stays as it is, with its modules. This one could not be "
            "built for\neach kernel that has one; left without any would be:\n"
            f"  kernel {A}: no core for {A}\n  kernel {B}: no core for {B}\n"
            "When the cause is removed, or such a kernel, try again. To install nevertheless, "
            "without\na module for them: NVPM_UPGRADE=anyway in the environment "
            "(sudo NVPM_UPGRADE=anyway apt ...).\n"
        )
    (system.root / f"fails/check/{A}").unlink()
    assert preinst(system, "upgrade", old="1.3-0") == 1
    assert f"kernel {A}:" not in system.output and f"kernel {B}:" in system.output
    (system.root / f"fails/check/{B}").unlink()
    assert preinst(system, "upgrade", old="1.3-0") == 0
    assert system.output == ""


@pytest.mark.parametrize(
    "words, old, environment",
    [
        (["upgrade"], "1.3-0", {"NVPM_UPGRADE": "anyway"}),
        (["upgrade"], "1.4-0", {}),
        (["upgrade"], "2.0.0-1", {}),
        (["install"], "", {}),
        (["abort-upgrade"], "1.3-0", {}),
    ],
)
def test_preinst_checks_nothing(
    system: System, words: list[str], old: str, environment: dict[str, str]
) -> None:
    system.put(f"version.{A}", "1.3-0")
    system.put(f"fails/check/{A}", "no core")
    assert preinst(system, *words, old=old, **environment) == 0
    assert system.output == ""


def test_preinst_leaves_modules_of_later_versions_alone(system: System) -> None:
    system.put(f"version.{A}", "1.4")
    system.put(f"fails/check/{A}", "no core")
    assert preinst(system, "upgrade", old="1.3-0") == 0


# ---- preload/build ----


def output(*words: object, **settings: str) -> str:
    """Runs a command of this machine, and returns what it prints."""
    command = [str(word) for word in words]
    return subprocess.check_output(command, text=True, env={**os.environ, **settings})


def test_library_for_an_older_glibc(tmp_path: Path) -> None:
    """A program does not start if a preloaded library needs a version of a symbol that the
    program's glibc lacks. pthread_mutex_trylock() has a version of glibc 2.34."""
    for name in ("preload", "build", "src/kernel", "dkms.conf"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        if name == "dkms.conf":
            shutil.copy(TOP / name, place)
        else:
            shutil.copytree(TOP / name, place, ignore=shutil.ignore_patterns("target", "prebuilt"))
    sources = output("sh", tmp_path / "build/rust-assembly", "preload", "--sources")
    jump = "b" if platform.machine() == "aarch64" else "jmp"
    assembly = tmp_path / f"preload/prebuilt/{platform.machine()}.S"
    assembly.parent.mkdir()
    assembly.write_text(
        f"/* {sources.strip()} */\n.text\n.globl ioctl\n.type ioctl, @function\nioctl:\n"
        f"{jump} pthread_mutex_trylock{'@PLT' if jump == 'jmp' else ''}\n"
        "/* end of the assembly */\n"
    )
    compiler = shutil.which("cc") or "gcc-14"
    output("sh", tmp_path / "preload/build", "library", CC=compiler)
    library = tmp_path / "preload/libnvpm_preload.so"
    described = output("readelf", "-dVW", "--dyn-syms", library)
    assert "pthread_mutex_trylock\n" in described
    assert "Version needs" not in described
    for name in ("libc.so.6", "libdl.so.2", "libpthread.so.0"):
        assert f"[{name}]" in described
    output("/bin/true", LD_PRELOAD=str(library), LD_BIND_NOW="1")
