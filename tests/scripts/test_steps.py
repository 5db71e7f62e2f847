# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Updates and removals of the Debian package with dkms, while the power is cut at any step, or the
disk is full at any size: each kernel has a whole module afterwards, and dkms can still build other
packages. The scripts are the package's own, in the order in which dpkg calls them.

With NVPM_DKMS=FILE, the program dkms in FILE takes the place of its double."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from system import DOUBLES, NAME
from test_packages import A, B, Packages

STEPPED = ("cp", "mv", "ln", "rm", "rmdir", "mkdir", "sync", "depmod")
DKMS = os.environ.get("NVPM_DKMS", "")
# With this variable, each step and each size is tried, and otherwise some.
ALL = os.environ.get("NVPM_STEPS") == "all"
KEPT = f"var/lib/{NAME}"
TREE = f"var/lib/dkms/{NAME}"
# The program dkms itself, on a system that is made of files.
RUN_DKMS = """\
#!/bin/bash
echo "$*" >>"$NVPM_SYSROOT/calls"
exec bash "$NVPM_SYSROOT/real-dkms" "$@" --dkmstree "$NVPM_SYSROOT/var/lib/dkms" \\
    --sourcetree "$NVPM_SYSROOT/usr/src" --installtree "$NVPM_SYSROOT/lib/modules"
"""


class Node(Packages):
    """A node on which dpkg updates and removes the package."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.put("run/.keep")
        self.put("steps/number", "0\n")
        if DKMS:
            (root / "bin/dkms").unlink()
            text = Path(DKMS).read_text(encoding="utf-8")
            text = text.replace("/lib/modules", f"{root}/lib/modules")
            # dkms 2.8 would not find the doubles.
            self.put("real-dkms", text.replace('PATH="/bin:', 'PATH="$PATH:/bin:'))
            self.put("bin/dkms", RUN_DKMS, 0o755)
            self.put("var/lib/dkms/dkms_dbversion", "2.0.0\n")
            for kernel in (A, B):
                for name in (".config", "Makefile", "include/linux/version.h"):
                    self.put(f"lib/modules/{kernel}/build/{name}")
        for program in STEPPED:
            (root / "stepped").mkdir(exist_ok=True)
            (root / "stepped" / program).symlink_to(DOUBLES / "step")

    def run(self, *command: str | Path, **environment: str) -> int:
        path = f"{self.root}/stepped:{self.root}/bin:{os.environ['PATH']}"
        return super().run(*command, **{"PATH": path, **environment})

    def script_of(self, version: str, name: str, *words: str) -> int:
        text = (self.root / f"scripts/{version}/{NAME}-dkms.{name}").read_text()
        return self.script(text.replace("#ENV.NVPM_VERSION#", version), *words)

    def package(self, version: str, made_of: str) -> None:
        """Makes a package: its scripts, and its source for /usr/src."""
        scripts = self.root / f"scripts/{version}"
        scripts.mkdir(parents=True, exist_ok=True)
        for name in ("prerm", "postinst"):
            shutil.copy(DOUBLES.parents[2] / f"debian/{NAME}-dkms.{name}", scripts)
        self.made_of = made_of

    def unpack(self, old: str, new: str) -> None:
        """Replaces the files of a package as dpkg does, which also stores them on the disk."""
        if old:
            shutil.rmtree(self.root / f"usr/src/{NAME}-{old}")
        source = self.source(new, self.made_of)
        if DKMS:
            shutil.copy(DOUBLES / "module.mk", source / "Makefile")
        self.run("sync")

    def install(self, old: str, new: str, made_of: str) -> bool:
        """Installs a package over another. Returns whether dpkg succeeds."""
        self.package(new, made_of)
        revision = f"{old}-1" if old else ""
        refused = old and self.script_of(old, "prerm", "upgrade", f"{new}-1") != 0
        if refused and self.script_of(new, "prerm", "failed-upgrade", revision, f"{new}-1") != 0:
            self.script_of(old, "postinst", "abort-upgrade", f"{new}-1")
            return False
        self.unpack(old, new)
        return self.configure(old, new)

    def configure(self, old: str, new: str) -> bool:
        return self.script_of(new, "postinst", "configure", f"{old}-1" if old else "") == 0

    def go_on(self, old: str, new: str) -> bool:
        """Does what dpkg asks for after a failure: the update again if it was refused, or else the
        configuration of the new package."""
        there = self.root / f"usr/src/{NAME}-{new}/made-of"
        if there.exists() and there.read_text() == self.made_of:
            return self.configure(old, new)
        return self.install(old, new, self.made_of)

    def cut(self) -> None:
        """Leaves what a disk has after a power cut: each name, but no contents that were not
        stored."""
        lines = (self.root / "steps/stored").read_text().splitlines()
        stored = {tuple(line.split(" ", 3)) for line in lines}
        for top in ("lib", "var"):
            for file in (self.root / top).rglob("*"):
                if file.is_file() and not file.is_symlink():
                    seen = file.stat()
                    key = (
                        str(seen.st_ino),
                        str(seen.st_size),
                        f"{seen.st_mtime_ns // 10**9}.{seen.st_mtime_ns % 10**9:09}0",
                        str(file.relative_to(self.root)),
                    )
                    if key not in stored:
                        file.write_bytes(b"")
        (self.root / "steps/cut").unlink(missing_ok=True)

    def boot(self) -> None:
        """The service puts modules back."""
        for versions in self.root.glob(f"usr/src/{NAME}-*/build/dkms/versions"):
            assert self.run("dash", versions, "put-back") == 0, self.output

    def whole(self) -> dict[str, str]:
        """Returns the module of each kernel, whose files are whole and agree, or an empty text."""
        for file in (self.root / "lib/modules").rglob("nv_peer_mem*.ko"):
            assert file.stat().st_size, f"{file} is empty"
        return {kernel: self.module(kernel) for kernel in (A, B)}

    def builds_others(self) -> None:
        """dkms can build what other packages have."""
        assert self.run("dkms", "status") == 0, self.output
        assert "rror" not in self.output and "broken" not in self.output, self.output
        for link in self.root.glob(f"{TREE}/*/source"):
            assert (link / "dkms.conf").stat().st_size, link


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "root")


def first(node: Node) -> Node:
    assert node.install("", "2.0.0", "first"), node.output
    node.put("steps/stored")
    assert node.run("sync") == 0
    node.put("steps/number", "0\n")
    return node


def steps(node: Node) -> int:
    return int((node.root / "steps/number").read_text())


def all_new(node: Node, version: str) -> None:
    assert node.whole() == {A: f"{version} second", B: f"{version} second"}
    assert node.known() == {version}
    assert not (node.root / KEPT).exists()
    node.builds_others()


OLD, SAME, NEW = "1.9.0", "2.0.0", "2.0.1"


@pytest.mark.parametrize("version", [OLD, SAME, NEW])
def test_power_cut_during_an_update(tmp_path: Path, version: str) -> None:
    """At each step, the disk keeps all names, and loses all contents that were not stored."""
    node = first(Node(tmp_path / "whole"))
    assert node.install("2.0.0", version, "second"), node.output
    all_new(node, version)
    number = steps(node)
    assert number > 40
    # The contents of the last files are stored, too.
    node.cut()
    all_new(node, version)
    # A prime number does not fall into step with the loop over the kernels.
    for step in range(1, number + 1, 1 if ALL else 29):
        node = first(Node(tmp_path / f"cut-{step}"))
        node.put("steps/cut", str(step))
        node.install("2.0.0", version, "second")
        assert (node.root / "steps/cut").exists()
        node.cut()
        node.boot()
        for kernel, module in node.whole().items():
            assert module in ("2.0.0 first", f"{version} second"), (step, kernel, module)
        node.builds_others()
        assert node.go_on("2.0.0", version), (step, node.output)
        all_new(node, version)
        shutil.rmtree(node.root)


PAGES = range(100) if ALL else (0, 3, 21)


def small(place: Path, pages: int) -> None:
    """Puts a directory on a file system of its own with so many free pages."""
    place.mkdir(parents=True, exist_ok=True)
    contents = place.parent / f"{place.name}.contents"
    shutil.copytree(place, contents, symlinks=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "small", place], check=True)
    shutil.copytree(contents, place, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(contents)
    disk = os.statvfs(place)
    with (place / "filler").open("wb") as filler:
        filler.write(bytes(max(0, disk.f_bavail - pages) * disk.f_bsize))


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("where", ["var/lib/dkms", KEPT, f"lib/modules/{B}/updates"])
@pytest.mark.parametrize("version", [OLD, SAME, NEW])
def test_full_disk_during_an_update(node: Node, version: str, where: str, pages: int) -> None:
    first(node)
    place = node.root / where
    small(place, pages)
    try:
        node.install("2.0.0", version, "second")
        for kernel, module in node.whole().items():
            assert module in ("2.0.0 first", f"{version} second"), (kernel, module)
        node.builds_others()
        (place / "filler").unlink()
        assert node.go_on("2.0.0", version), node.output
        assert node.whole() == {A: f"{version} second", B: f"{version} second"}
        assert node.known() == {version}
        node.builds_others()
    finally:
        subprocess.run(["umount", place], check=True)
