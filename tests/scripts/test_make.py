# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""build/make with a double of configure and of make: what a second kernel, another user and a
failed build leave, and what an installation puts where."""

import os
import re
import shutil
from pathlib import Path

import pytest
from system import DOUBLES, TOP, System

A, B = "6.1.0-47-amd64", "6.1.0-50-amd64"
# The directories in which the kernel's build system leaves its .cmd files, as `make clean` lists
# them.
makefile = (TOP / "Makefile").read_text(encoding="utf-8")
dirs = re.search(r"\$\(foreach dir,(.*?),", makefile)
assert dirs
DIRS = [name for name in dirs[1].split() if name != "src/marker"]

SETTINGS = """\
KVER='{kver}'
KDIR='{root}/lib/modules/{kver}/build'
NVPM_COMPILER=''
NVPM_TARGET='x'
NVPM_INCLUDES='i'
NVPM_CORE='EX'
NVPM_DRIVER='open'
NVPM_SYMBOLS='s'
NVPM_RUST='{rust}'
NVPM_ASSEMBLE=''
RUSTC='rustc'
NVPM_LIBRARY=''
BINDGEN='bindgen'
"""


class Checkout(System):
    """A source tree with build/make, and two kernels."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, A, B)
        self.top = root / "tree"
        for name in ("build", "src"):
            shutil.copytree(
                TOP / name,
                self.top / name,
                ignore=shutil.ignore_patterns("*.o", ".*.cmd", "answers.*"),
            )
        self.rust("prebuilt")
        # make notes its words, and leaves an object and a .cmd file in each directory. make fails
        # for a way to compile Rust, if the file fails/make.WAY exists.
        words = '#!/bin/sh\necho "make $*" >>"$NVPM_SYSROOT/calls"\n'
        words += 'case "$*" in *clean*) exit ;; esac\n'
        words += "for word; do case $word in NVPM_RUST=*) way=${word#*=} ;; esac; done\n"
        words += 'case "$*" in *modules_install*) exit ;; esac\n'
        for name in DIRS:
            place = f"{self.top}/{name}"
            words += f'mkdir -p "{place}"; : >"{place}/.x.o.cmd"; : >"{place}/x.o"\n'
        words += f': >"{self.top}/nv_peer_mem.ko"; [ ! -e "$NVPM_SYSROOT/fails/make.${{way-}}" ]\n'
        self.put("bin/make", words, 0o755)

    def rust(self, way: str) -> None:
        """Makes configure choose this way, unless the caller names another way."""
        text = SETTINGS.replace("{root}", str(self.root)).replace("{kver}", "$KVER")
        text = text.replace("{rust}", f"${{NVPM_RUST:-{way}}}")
        self.put("tree/build/configure", f"cat <<END\n{text}END\n")

    def build(self, target: str, kernel: str, **environment: str) -> int:
        environment["KVER"] = kernel
        return self.run("dash", self.top / "build/make", target, **environment)

    def commands(self) -> set[str]:
        """Returns the directories that have .cmd files."""
        return {str(file.parent.relative_to(self.top)) for file in self.top.rglob(".x.o.cmd")}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "root")


def test_a_second_kernel(checkout: Checkout) -> None:
    """Without its .cmd file, make compiles an object again. Each object has to be compiled again
    for another kernel, and no object for the same kernel."""
    assert checkout.build("modules", A) == 0
    assert checkout.commands() == set(DIRS)
    checkout.put("bin/make", "#!/bin/sh\n", 0o755)
    assert checkout.build("modules", A) == 0
    assert checkout.commands() == set(DIRS)
    assert checkout.build("modules", B) == 0
    assert checkout.commands() == set()
    assert (checkout.top / "build/has/answers.kernel").read_text().split()[0] == B


def test_other_headers_of_the_same_kernel(checkout: Checkout) -> None:
    assert checkout.build("modules", A) == 0
    text = (checkout.top / "build/configure").read_text()
    (checkout.top / "build/configure").write_text(text.replace("/build'", "/other'"))
    checkout.put("bin/make", "#!/bin/sh\n", 0o755)
    assert checkout.build("modules", A) == 0
    assert checkout.commands() == set()


@pytest.mark.parametrize("target", ["modules_install", "marker_install"])
def test_modules_of_another_kernel_are_not_installed(checkout: Checkout, target: str) -> None:
    place = {"INSTALL_MOD_PATH": str(checkout.root / "dest")}
    if target == "modules_install":
        assert checkout.build(target, A, **place) == 1
        assert "there is no nv_peer_mem.ko to install: run make first." in checkout.output
    assert checkout.build("modules", A) == 0
    checkout.put("tree/src/marker/nvidia_peermem.ko", "marker")
    assert checkout.build(target, B, **place) == 1
    said = f"the modules here are built for kernel {A}, and not for {B}: run make KVER={B} first"
    assert f"{said}, or give KVER={A}." in checkout.output
    assert checkout.build(target, A, **place) == 0


def test_install_and_uninstall(checkout: Checkout) -> None:
    """depmod lists the modules, unless a package is being made. root's PATH may have no sbin."""
    sbin = checkout.root / "sbin"
    sbin.mkdir()
    (checkout.root / "bin/depmod").unlink()
    (sbin / "depmod").symlink_to(DOUBLES / "depmod")
    make = checkout.top / "build/make"
    text = make.read_text()
    assert "\nPATH=$PATH:/usr/sbin:/sbin\n" in text
    make.write_text(text.replace("/usr/sbin:/sbin\n", f"{sbin}\n"))
    dest = checkout.root / "dest"
    extra = f"dest/lib/modules/{A}/extra"
    place = {"INSTALL_MOD_PATH": str(dest), "PATH": f"{checkout.root}/bin:/usr/bin:/bin"}
    assert checkout.build("modules", A) == 0
    checkout.put("tree/src/marker/nvidia_peermem.ko", "marker")
    checkout.calls()
    assert checkout.build("modules_install", A, **place) == 0, checkout.output
    assert not any(call.startswith("depmod") for call in checkout.calls())
    # The kernel's make makes this directory.
    (checkout.root / extra).mkdir(parents=True, exist_ok=True)
    checkout.put(f"dest/lib/modules/{A}/modules.order")
    for target in ("modules_install", "marker_install"):
        assert checkout.build(target, A, **place) == 0, checkout.output
        calls = checkout.calls()
        assert calls[-1] == f"depmod -b {dest} {A}"
        if target == "modules_install":
            assert (
                f"INSTALL_MOD_PATH={dest} INSTALL_MOD_DIR=extra CONFIG_MODULE_SIG_ALL= " in calls[0]
            )
    marker = checkout.root / extra / "nv_peer_mem_marker.ko"
    assert marker.read_text() == "marker" and marker.stat().st_mode & 0o777 == 0o644
    for name in (
        "nv_peer_mem.ko",
        "nv_peer_mem_callback.ko.xz",
        "nv_peer_mem_other.ko",
        "nvidia-peermem.ko",
    ):
        checkout.put(f"{extra}/{name}")
    assert checkout.build("uninstall", A, **place) == 0
    left = sorted(file.name for file in (checkout.root / extra).iterdir())
    assert left == ["nv_peer_mem_other.ko", "nvidia-peermem.ko"]
    assert checkout.calls() == [f"depmod -b {dest} {A}"]
    assert checkout.build("uninstall", A, **place) == 0
    assert checkout.output == f"nv_peer_mem: make install has put nothing into /{extra}.\n"
    assert checkout.calls() == []


NVIDIAS = {"NVPM_NAME": "nvidia_peermem"}


def test_the_name_of_nvidias_module(checkout: Checkout) -> None:
    """A module with the name of NVIDIA's module is for images. It is not installed on this machine,
    because it would replace NVIDIA's module here."""
    assert checkout.build("modules", A) == 0
    assert checkout.build("modules_install", A, INSTALL_MOD_PATH="/x", **NVIDIAS) == 1
    assert "there is no nvidia_peermem.ko to install" in checkout.output
    checkout.put("tree/nvidia_peermem.ko")
    assert checkout.build("modules", A, **NVIDIAS) == 0
    assert "NVPM_NAME=nvidia_peermem" in checkout.calls()[-1]
    for place in ({}, {"INSTALL_MOD_PATH": "/"}):
        for target in ("modules_install", "uninstall"):
            assert checkout.build(target, A, **NVIDIAS, **place) == 1
            assert "would take the place of NVIDIA's nvidia-peermem" in checkout.output
    dest = checkout.root / "dest"
    dest.mkdir()
    place = {"INSTALL_MOD_PATH": str(dest)}
    for target in ("marker", "marker_install"):
        assert checkout.build(target, A, **NVIDIAS, **place) == 1
        assert "there is no marker" in checkout.output
    checkout.calls()
    assert checkout.build("modules_install", A, **NVIDIAS, **place) == 0
    assert "NVPM_NAME=nvidia_peermem" in checkout.calls()[0]
    extra = f"dest/lib/modules/{A}/extra"
    for name in ("nvidia_peermem.ko.xz", "nv_peer_mem.ko", "nv_peer_mem_callback.ko"):
        checkout.put(f"{extra}/{name}")
    assert checkout.build("uninstall", A, **NVIDIAS, **place) == 0
    assert [file.name for file in (checkout.root / extra).iterdir()] == ["nv_peer_mem.ko"]


def test_another_name(checkout: Checkout) -> None:
    assert checkout.build("modules", A, NVPM_NAME="nvidia-peermem") == 1
    assert "the module is called nv_peer_mem or nvidia_peermem" in checkout.output


def test_a_relative_place(checkout: Checkout) -> None:
    assert checkout.build("modules", A) == 0
    checkout.calls()
    assert checkout.build("modules_install", A, INSTALL_MOD_PATH="below") == 0
    assert f" INSTALL_MOD_PATH={os.getcwd()}/below " in checkout.calls()[0]


def test_the_crates_do_not_do(checkout: Checkout) -> None:
    """A failed in-kernel build is tried as prebuilt, unless the user has chosen the way."""
    checkout.rust("in-kernel")
    checkout.put("fails/make.in-kernel")
    assert checkout.build("modules", A) == 0
    assert f"nv_peer_mem: the in-kernel build for kernel {A} has failed" in checkout.output
    ways = [re.findall(r"NVPM_RUST=(\S+)|(clean)$", call) for call in checkout.calls()]
    assert ways == [[("in-kernel", "")], [("", "clean")], [("prebuilt", "")]]
    assert checkout.build("modules", A, NVPM_RUST="in-kernel") != 0
    checkout.put("fails/make.prebuilt")
    assert checkout.build("modules", A) != 0
    checkout.rust("prebuilt")
    checkout.calls()
    assert checkout.build("modules", A) != 0
    assert len(checkout.calls()) == 1


@pytest.mark.parametrize("character", [" ", ":", "'", "$", "#", ",", "(", "`", "&"])
def test_paths_that_the_kernels_build_cannot_take(checkout: Checkout, character: str) -> None:
    place = {"INSTALL_MOD_PATH": f"/tmp/a{character}b"}
    assert checkout.build("modules_install", A, **place) == 1
    assert "contains a blank, a colon, a quote or another character" in checkout.output
    assert checkout.calls() == []


def as_nobody(checkout: Checkout, target: str, **environment: str) -> int:
    return checkout.run(
        *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "dash"),
        checkout.top / "build/make",
        target,
        KVER=A,
        **environment,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_what_root_has_left(checkout: Checkout) -> None:
    """Runs `sudo make`, and then `make` as the tree's owner."""
    for directory in [checkout.root, *checkout.root.parents][:4]:
        directory.chmod(0o755)
    assert checkout.build("modules", A) == 0
    assert as_nobody(checkout, "modules") == 1
    assert re.search(
        r"nobody cannot write to /tree, where the build puts its files: copy the tree",
        checkout.output,
    )
    for directory in (checkout.top, *(path for path in checkout.top.rglob("*") if path.is_dir())):
        os.chown(directory, 65534, 65534)
    assert as_nobody(checkout, "modules") == 1
    assert re.search(
        r"nv_peer_mem: nobody cannot write to /tree/\S+, which an earlier build of another user "
        r"has left: run make clean, and then make again\.",
        checkout.output,
    )
    assert as_nobody(checkout, "modules_install", INSTALL_MOD_PATH=str(checkout.root / "dest")) == 1
    assert (
        "cannot write to" in checkout.output
        and "install as root (sudo make install)" in checkout.output
    )
