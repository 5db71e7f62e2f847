# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm-rs/compile and nvpm.sh: which nvpm-bin is taken, made and started, and the message where
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
    (tree / "nvpm-rs").mkdir(parents=True)
    for name in ("build", "src", "data"):
        shutil.copytree(TOP / "nvpm-rs" / name, tree / "nvpm-rs" / name)
    for name in ("Cargo.toml", "Cargo.lock", "compile", "sysroots"):
        shutil.copy(TOP / "nvpm-rs" / name, tree / "nvpm-rs")
    shutil.copy(TOP / "nvpm.sh", tree)
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
    command = ["dash", str(tree / "nvpm-rs/compile"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def release(tree: Path, arch: str = ARCH) -> Path:
    """Puts a program into the tree as a release has it. Returns its file."""
    sources = (
        "cd {} && find Cargo.lock Cargo.toml build compile data src sysroots -type f | "
        "LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1"
    )
    listed = subprocess.check_output(["sh", "-c", sources.format(tree / "nvpm-rs")], text=True)
    program = tree / "nvpm-rs/prebuilt" / arch
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(Path("/bin/true").read_bytes() + b"of the release")
    summed = subprocess.check_output(["sha256sum", program], text=True).split()[0]
    (program.parent / f"{arch}.made").write_text(f"sha256  {summed}\nsources {listed}")
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
    assert f"nvpm-bin: nvpm-rs/prebuilt/{ARCH}{said}; and to compile it, /none" in lacking.stderr
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
    assert "--frozen" in called and f'directory="{tree}/nvpm-rs/target/crates"' in called


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


def test_a_kept_program_is_taken_if_it_is_of_these_sources(tree: Path) -> None:
    program = release(tree, OTHER)
    kept = tree.parent / "kept"
    program.parent.rename(kept)
    assert compile_(tree, "release", OTHER, NVPM_PROGRAMS=str(kept), CARGO="/none").returncode == 0
    assert program.read_bytes() == (kept / OTHER).read_bytes()
    shutil.rmtree(program.parent)
    (tree / "nvpm-rs/src/main.rs").write_text("other")
    done = compile_(tree, "release", OTHER, NVPM_PROGRAMS=str(kept), CARGO="/none")
    assert done.returncode == 1 and not program.exists()


# ---- nvpm.sh ----


def explain(tree: Path) -> "subprocess.CompletedProcess[str]":
    command = ["dash", str(tree / "nvpm.sh"), "explain", "log"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_explain_is_the_program(tree: Path) -> None:
    (tree / "nvpm").mkdir()
    shutil.copy("/bin/echo", tree / "nvpm-bin")
    assert explain(tree).stdout == "explain log\n"


def test_explain_without_the_program(tree: Path) -> None:
    (tree / "nvpm").mkdir()
    done = explain(tree)
    assert (done.returncode, done.stdout) == (127, "")
    assert f"there is no {tree}/nvpm-bin" in done.stderr
    assert f"nvpm-VERSION-{ARCH}" in done.stderr and "make nvpm" in done.stderr


@pytest.mark.parametrize("name", [OTHER, "no processor"])
def test_explain_of_another_processor(tree: Path, name: str) -> None:
    (tree / "nvpm").mkdir()
    program = bytearray(Path("/bin/echo").read_bytes())
    program[18] = {"aarch64": 0xB7, "x86_64": 0x3E}.get(name, 0xF3)
    (tree / "nvpm-bin").write_bytes(program)
    (tree / "nvpm-bin").chmod(0o755)
    done = explain(tree)
    assert (done.returncode, done.stdout) == (126, "")
    assert (
        f"needs the program nvpm-bin for {ARCH}, and {tree}/nvpm-bin is for {name}" in done.stderr
    )
