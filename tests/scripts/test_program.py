# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm/compile and nvpm-missing: which nvpm-bin is taken and made, and the message where
there is none. The check `nvpm_program` compiles the real program."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from system import TOP

ARCH = os.uname().machine
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}[ARCH]

# A cargo of this version, whose program is the file `true` with the arguments at its end.
CARGO = """#!/bin/sh
case $1 in
--version) echo "cargo 1.{minor}.0 (of a test)" ;;
build)
	printf '%s ' "$@" >>{calls}
	while [ "$1" != --target-dir ]; do shift; done
	mkdir -p "$2/{arch}-unknown-linux-gnu/release"
	cp /bin/true "$2/{arch}-unknown-linux-gnu/release/nvpm-bin"
	cp /bin/true "$2/{arch}-unknown-linux-gnu/release/nv-peer-mem"
	;;
esac
"""
RUSTC = """#!/bin/sh
case $* in
--version) echo "rustc 1.{minor}.0 (of a test)" ;;
*) echo {sysroot} ;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout, and the directory bin with a cargo and a rustc of 1.85."""
    tree = tmp_path / "tree"
    (tree / "nvpm").mkdir(parents=True)
    for name in ("build", "data", "foreign", "keeper", "src"):
        shutil.copytree(TOP / "nvpm" / name, tree / "nvpm" / name)
    for name in ("Cargo.toml", "Cargo.lock", "compile", "sysroots"):
        shutil.copy(TOP / "nvpm" / name, tree / "nvpm")
    put_cargo(tmp_path, 85, 85)
    return tree


def put_cargo(where: Path, cargo: int, rustc: int) -> None:
    library = where / f"rust/lib/rustlib/{ARCH}-unknown-linux-gnu/lib"
    library.mkdir(parents=True, exist_ok=True)
    (library / "libstd-1.rlib").touch()
    (where / "bin").mkdir(exist_ok=True)
    for name, text, minor in (("cargo", CARGO, cargo), ("rustc", RUSTC, rustc)):
        script = where / "bin" / name
        sysroot = where / "rust"
        script.write_text(
            text.format(minor=minor, calls=where / "calls", arch=ARCH, sysroot=sysroot)
        )
        script.chmod(0o755)


def compile_(tree: Path, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    where = tree.parent
    environment = {"PATH": f"{where}/bin:{os.environ['PATH']}", "HOME": str(where), **settings}
    command = ["dash", str(tree / "nvpm/compile"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def release(tree: Path, name: str = ARCH) -> Path:
    """Puts a program into the tree as a release has it. Returns its file."""
    sources = (
        "cd {} && find Cargo.lock Cargo.toml build compile data foreign keeper src sysroots -type f"
        " | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1"
    )
    listed = subprocess.check_output(["sh", "-c", sources.format(tree / "nvpm")], text=True)
    program = tree / "nvpm/prebuilt" / name
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(Path("/bin/true").read_bytes() + b"of the release")
    summed = subprocess.check_output(["sha256sum", program], text=True).split()[0]
    (program.parent / f"{name}.made").write_text(f"sha256  {summed}\nsources {listed}")
    return program


def test_the_program_of_a_release(tree: Path) -> None:
    program = release(tree)
    assert compile_(tree, "here", CARGO="/none").returncode == 0
    assert (tree / "nvpm-bin").read_bytes() == program.read_bytes()
    assert compile_(tree, "possible", CARGO="/none").returncode == 0
    assert not (tree.parent / "calls").exists()


def damage(program: Path) -> None:
    program.write_bytes(program.read_bytes()[:-1])


def change(program: Path) -> None:
    (program.parent.parent / "data/causes.table").write_text("# other\n")


def rename(program: Path) -> None:
    data = program.parent.parent / "data"
    (data / "kinds.table").rename(data / "kinds.old")


@pytest.mark.parametrize(
    "what, said",
    [
        (damage, " is damaged (unpack the release again)"),
        (change, " was compiled from other sources than these"),
        (rename, " was compiled from other sources than these"),
        (Path.unlink, ", which a release contains, is missing"),
    ],
)
def test_another_program_is_compiled_anew(
    tree: Path, what: Callable[[Path], None], said: str
) -> None:
    program = release(tree)
    what(program)
    lacking = compile_(tree, "here", CARGO="/none")
    assert lacking.returncode == 1
    assert f"nvpm-bin: nvpm/prebuilt/{ARCH}{said}; and to compile it, /none" in lacking.stderr
    assert "1.85 or later are missing" in lacking.stderr
    assert compile_(tree, "possible", CARGO="/none").stderr == lacking.stderr
    assert compile_(tree, "is-current", ARCH).stdout == f"{said}\n"
    assert not (tree / "nvpm-bin").exists()
    assert compile_(tree, "here").returncode == 0
    assert (tree / "nvpm-bin").read_bytes() == Path("/bin/true").read_bytes()
    assert "--locked" in (tree.parent / "calls").read_text()


def test_with_the_crates_of_a_release_cargo_needs_no_network(tree: Path) -> None:
    program = release(tree)
    program.unlink()
    (tree.parent / "crates").mkdir()
    archive = program.parent / "crates.tar.xz"
    subprocess.run(["tar", "-cJf", archive, "-C", tree.parent, "crates"], check=True)
    assert compile_(tree, "here").returncode == 0
    called = (tree.parent / "calls").read_text()
    assert "--frozen" in called and f'directory="{tree}/nvpm/target/crates"' in called


@pytest.mark.parametrize("cargo, rustc", [(84, 85), (85, 84)])
def test_an_old_cargo_is_none(tree: Path, cargo: int, rustc: int) -> None:
    put_cargo(tree.parent, cargo, rustc)
    path = tree.parent / "bin"
    for name in (
        "sh",
        "dash",
        "sed",
        "seq",
        "uname",
        "dirname",
        "find",
        "sort",
        "xargs",
        "sha256sum",
        "cut",
        "ls",
        "grep",
        "tr",
    ):
        (path / name).symlink_to(shutil.which(name) or name)
    done = compile_(tree, "possible", PATH=str(path))
    assert done.returncode == 1
    assert "to compile it, cargo and rustc 1.85 or later are missing (packages cargo" in done.stderr
    put_cargo(tree.parent, 85, 85)
    assert "there is no C compiler" in compile_(tree, "possible", PATH=str(path)).stderr


def test_no_program_for_other_processors(tree: Path) -> None:
    done = compile_(tree, "here", NVPM_ARCH="riscv64")
    assert done.returncode == 1
    assert "there is no NVIDIA driver for riscv64." in done.stderr


def test_what_a_release_lacks_is_said_before(tree: Path) -> None:
    def lacking(**settings: str) -> str:
        return compile_(tree, "lacking", ARCH, **settings).stdout

    assert lacking(CARGO="/none").startswith("/none and rustc 1.85 or later are missing")
    assert "has no C library of Debian 11" in lacking(NVPM_SYSROOTS="/none")
    sysroot = tree.parent / f"sys/{ARCH}/usr/lib/{ARCH}-linux-gnu"
    sysroot.mkdir(parents=True)
    (sysroot / "libc_nonshared.a").touch()
    assert lacking(NVPM_SYSROOTS=str(tree.parent / "sys")) == ""
    (tree.parent / f"rust/lib/rustlib/{ARCH}-unknown-linux-gnu/lib/libstd-1.rlib").unlink()
    assert f"Rust's library for {ARCH} is missing" in lacking()


def test_kept_programs_are_taken_if_they_are_of_these_sources(tree: Path) -> None:
    """Both programs are taken, or neither."""
    programs = [release(tree, name) for name in (OTHER, f"keeper-{OTHER}")]
    prebuilt, kept = programs[0].parent, tree.parent / "kept"
    prebuilt.rename(kept)

    def release_of_kept(code: int) -> None:
        settings = {"NVPM_PROGRAMS": str(kept), "CARGO": "/none"}
        assert compile_(tree, "lacking", OTHER, **settings).returncode == code
        assert compile_(tree, "release", OTHER, **settings).returncode == code

    release_of_kept(0)
    for program in programs:
        assert program.read_bytes() == (kept / program.name).read_bytes()
    shutil.rmtree(prebuilt)
    away = kept / f"keeper-{OTHER}"
    away.rename(kept / "away")
    release_of_kept(1)
    assert not prebuilt.exists()
    (kept / "away").rename(away)
    (tree / "nvpm/keeper/src/main.rs").write_text("other")
    release_of_kept(1)
    assert not prebuilt.exists()


# ---- a package without the program ----


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [("explain", 127, ""), ("status", 4, ""), ("leave", 0, ""), ("check", 3, "NVPM UNKNOWN - ")],
)
def test_a_package_without_the_program(command: str, code: int, said: str) -> None:
    """A monitor reads only the standard output, and a package can be removed."""
    script = str(TOP / "init.d/nvpm-missing")
    done = subprocess.run(["dash", script, command], capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stdout)) == (code, bool(said))
    assert done.stdout.startswith(said)
    assert "made without the program nvpm-bin" in done.stderr
    assert f"nvpm-VERSION-{ARCH}" in done.stderr
