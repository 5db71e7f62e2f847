# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Root runs nvpm in a directory that all users may write to. nvpm must not run or load a file that
another user has put there. The tests run as root."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from installed import SERVICE
from machine import Machine

from nvpm import VERSION, trust

NOBODY = 65534
RELEASED = f"libnvpm_preload-{VERSION}-{os.uname().machine}.so"
# The beginning of an ELF file for this machine, up to the number of the processor.
LIBRARY = Path(sys.executable).read_bytes()[:20]
DMA_BUF_ONLY = [
    r"/proc/kallsyms = 0 T ib_umem_dmabuf_get\t[ib_uverbs]\n"
    r"0 t mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]",
    "- /sys/module/nv_peer_mem /sys/module/nvidia_peermem",
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Makes a directory that all users may write to, like /tmp. pytest's own directory would not
    do, because it is closed to other users."""
    directory = tmp_path / "world"
    directory.mkdir()
    directory.chmod(0o1777)
    return directory


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Makes a machine without peer memory, with the module installed and configured."""
    root = tmp_path / "machine"
    machine = Machine(str(root))
    for line in DMA_BUF_ONLY:
        machine.change(line)
    return root


def one_file(directory: Path) -> Path:
    """Packs nvpm into a single file, as build_release.sh does, and returns the file."""
    file = directory / "nvpm.pyz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.write(SERVICE / "nvpm/__main__.py", "__main__.py")
        for path in (SERVICE / "nvpm").rglob("*.py"):
            archive.write(path, path.relative_to(SERVICE))
    return file


def of_nobody(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.chown(path, NOBODY, NOBODY)
    return path


def called(node: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {"NVPM_SYSROOT": str(node), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [*map(str, words)], env=environment, capture_output=True, text=True, check=False, cwd="/"
    )


@pytest.mark.parametrize("name", ["conf.sh", "init.d/conf.sh"])
def test_shell_file_beside_one_file(world: Path, node: Path, name: str) -> None:
    noted = world / "noted"
    of_nobody(world / name, f"id >{noted}; conf_lines() {{ :; }}")
    said = called(node, sys.executable, one_file(world), "status", "--all")
    assert "Traceback" not in said.stderr and "on boot" in said.stdout
    assert not noted.exists()


@pytest.mark.parametrize(
    "name",
    ["argparse.py", "select.py", "_nothing.py", "sysconfig.py", "nvpm.py", "sitecustomize.py"],
)
@pytest.mark.parametrize("way", ["nvpm.sh", "nvpm", "nvpm.pyz"])
def test_python_module_beside(world: Path, node: Path, name: str, way: str) -> None:
    shutil.copytree(SERVICE / "nvpm", world / "nvpm")
    shutil.copy(SERVICE / "nvpm.sh", world)
    one_file(world)
    # The program imports a module that does not exist. Python would also look for this module next
    # to the program.
    with (world / "nvpm/read/machine.py").open("a") as file:
        file.write("\ntry:\n    import _nothing\nexcept ImportError:\n    pass\n")
    noted = world / "noted"
    of_nobody(world / name, f"open({str(noted)!r}, 'w')")
    words = ["sh"] if way == "nvpm.sh" else [sys.executable, "-B"]
    said = called(node, *words, world / way, "--version")
    assert said.stdout.startswith(f"nvpm {VERSION}"), said
    assert not noted.exists()


Put = Callable[[Path], object]


def as_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def writable(path: Path) -> None:
    path.touch()
    path.chmod(0o646)


def writable_by_group(path: Path) -> None:
    path.touch()
    path.chmod(0o664)
    os.chown(path, 0, 5)


@pytest.mark.parametrize("put", [of_nobody, as_link, writable, writable_by_group, Path.mkdir])
@pytest.mark.parametrize("way", ["nvpm.pyz", "nvpm"])
def test_library_of_others(world: Path, node: Path, put: Put, way: str) -> None:
    one_file(world)
    shutil.copytree(SERVICE / "nvpm", world / "nvpm")
    put(world / RELEASED)
    said = called(node, sys.executable, "-B", world / way, "run", "printenv", "LD_PRELOAD")
    assert said.returncode == 1 and "there is no" in said.stderr and not said.stdout
    assert f"{world / RELEASED} is passed over: " in said.stderr


def test_own_library(world: Path, node: Path) -> None:
    """If nvpm is a single file, it may use only a library with the name that a release has. The
    other names count only for the installed program."""
    file = one_file(world)
    of_nobody(world / "libnvpm_preload.so")
    for name in ("libnvpm_preload.so", "preload/libnvpm_preload.so"):
        (world / name).parent.mkdir(exist_ok=True)
        (world / name).touch()
    said = called(node, sys.executable, file, "run", "printenv", "LD_PRELOAD")
    assert said.returncode == 1 and "passed over" not in said.stderr
    (world / RELEASED).write_bytes(LIBRARY)
    (world / RELEASED).chmod(0o644)
    said = called(node, sys.executable, file, "run", "printenv", "LD_PRELOAD")
    assert said.stdout == f"{world / RELEASED}\n"


def test_directories_of_others(tmp_path: Path) -> None:
    """If a user owns a directory, or may write to it, the user can replace a file in it. nvpm must
    not trust such a file."""
    outer = tmp_path / "outer"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    file = inner / "file"
    file.touch()
    file.chmod(0o644)
    assert trust.distrusted(str(file)) == ""
    for directory in (inner, outer):
        for mode, why in (0o777, "by others"), (0o775, "by others"), (0o1777, ""), (0o755, ""):
            directory.chmod(mode)
            said = trust.distrusted(str(file))
            assert why in said and bool(why) == (str(directory) in said), said
        os.chown(directory, NOBODY, 0)
        assert f"{directory} belongs to user" in trust.distrusted(str(file))
        os.chown(directory, 0, 0)
    # The sticky bit of a directory protects the files in it. On a file, the sticky bit has no
    # effect.
    file.chmod(0o1666)
    assert "by others" in trust.distrusted(str(file))
    file.unlink()
    assert "No such file" in trust.distrusted(str(file))


def test_whom_one_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvpm trusts files of root and of the user who runs it, but not of other users."""
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    assert trust.distrusted(str(file)) == ""
    os.chown(file, NOBODY, NOBODY)
    assert trust.distrusted(str(file)) == ""
    os.chown(file, 4711, 4711)
    assert trust.distrusted(str(file)) == f"{file} belongs to user 4711"


def test_in_the_checkout(tmp_path: Path, node: Path) -> None:
    """nvpm in a directory finds the library next to itself, and where a build puts it."""
    shutil.copytree(SERVICE / "nvpm", tmp_path / "top/nvpm")
    for name in ("preload/target/release/", "preload/", ""):
        library = tmp_path / "top" / name / "libnvpm_preload.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(LIBRARY)
        library.chmod(0o755)
        said = called(
            node, sys.executable, "-B", tmp_path / "top/nvpm", "run", "printenv", "LD_PRELOAD"
        )
        assert said.stdout == f"{library}\n", said
