# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""build/dkms/versions and build/dkms/kernel on systems with several kernels: no kernel loses a
module that worked, and each message says what is there."""

import os
import shutil
from pathlib import Path

import pytest
from system import ARCH, FILES, NAME, System

A, B = "6.1.0-47-amd64", "6.1.0-50-amd64"
# A version below the installed version, the installed version from another commit, and a version
# above the installed version.
VERSIONS = ["1.9.0", "2.0.0", "2.0.1"]
SKIPPED = "This kernel is skipped. When the cause is removed, run:"
KEPT = f"var/lib/{NAME}"


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path / "root", A, B)


def installed(system: System, version: str = "2.0.0", made_of: str = "first") -> System:
    """Installs a version for all kernels."""
    system.source(version, made_of)
    assert system.versions(version, "install", version) == 0, system.output
    system.calls()
    return system


def nothing_kept(system: System) -> None:
    assert not (system.root / KEPT).exists()


def test_first_installation(system: System) -> None:
    system.source("2.0.0")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert system.output == ""
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert [system.active(kernel) for kernel in (A, B)] == ["2.0.0"] * 2
    nothing_kept(system)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_version(system: System, version: str) -> None:
    installed(system)
    installed(system, version, "second")
    assert [system.module(kernel) for kernel in (A, B)] == [f"{version} second"] * 2
    assert [system.active(kernel) for kernel in (A, B)] == [version] * 2
    assert system.known() == {version}
    nothing_kept(system)


@pytest.mark.parametrize(
    "version, how, where",
    [
        *((version, how, (B,)) for version in VERSIONS for how in ("build", "install", "cut")),
        *((version, "build", (A, B)) for version in VERSIONS),
        *((version, how, (A,)) for version in VERSIONS[1:] for how in ("check", "add")),
    ],
)
def test_it_fails(system: System, version: str, how: str, where: tuple[str, ...]) -> None:
    """The other version fails for one kernel or for both: each kernel has a module afterwards. When
    the cause is fixed, the same command installs the other version everywhere."""
    installed(system)
    system.source(version, "second")
    for kernel in where:
        system.put("fails/add" if how == "add" else f"fails/{how}/{kernel}", "it has a reason")
    # A missing part is no failure of the package.
    code = system.versions(version, "install", version)
    assert code == (0 if how == "check" else 1), system.output
    for kernel in (A, B):
        kept = kernel in where or how == "add"
        assert system.module(kernel) == ("2.0.0 first" if kept else f"{version} second"), kernel
        assert system.active(kernel) in (("2.0.0", "0.earlier-2.0.0") if kept else (version,)), (
            kernel
        )
        said = f"nv_peer_mem is not built for kernel {kernel}: " in system.output
        assert said == (kept and how != "add"), system.output
        line = (
            f"Kernel {kernel} keeps its module of version 2.0.0. When the cause is removed, run: "
        )
        line += f"/usr/src/{NAME}-{version}/build/dkms/kernel {kernel}\n"
        assert (line in system.output) == (kept and how != "add"), system.output
    assert "skipped" not in system.output
    nothing_kept(system)
    shutil.rmtree(system.root / "fails")
    assert system.versions(version, "install", version) == 0, system.output
    assert [system.module(kernel) for kernel in (A, B)] == [f"{version} second"] * 2
    assert system.known() == {version}


def test_it_fails_twice_and_again_the_same(system: System) -> None:
    """Other commits of the same version are installed. The second commit fails for one kernel, and
    the third commit for both kernels. Each kernel keeps the module that it had."""
    installed(system)
    system.source("2.0.0", "second")
    system.put(f"fails/build/{A}", "x")
    assert system.versions("2.0.0", "install", "2.0.0") == 1
    shutil.rmtree(system.root / "fails")
    system.source("2.0.0", "third")
    for kernel in (A, B):
        system.put(f"fails/build/{kernel}", "x")
    assert system.versions("2.0.0", "install", "2.0.0") == 1
    assert (system.module(A), system.module(B)) == ("2.0.0 first", "2.0.0 second")
    assert [system.active(kernel) for kernel in (A, B)] == ["0.earlier-2.0.0"] * 2
    shutil.rmtree(system.root / "fails")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 third"] * 2
    assert system.known() == {"2.0.0"}


def test_the_kept_source_is_not_built(system: System) -> None:
    """dkms autoinstall takes the highest version that it may build by itself."""
    installed(system)
    system.source("2.0.0", "second")
    system.put(f"fails/build/{A}", "x")
    system.versions("2.0.0", "install", "2.0.0")
    conf = (system.root / f"var/lib/dkms/{NAME}/0.earlier-2.0.0/source/dkms.conf").read_text()
    assert "AUTOINSTALL" not in conf
    assert 'PACKAGE_VERSION="0.earlier-2.0.0"' in conf
    for name in ("nv_peer_mem", "nv_peer_mem_marker", "nv_peer_mem_callback"):
        assert f'="{name}"' in conf
    assert conf.count("DEST_MODULE_LOCATION") == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_power_fails(system: System, version: str) -> None:
    """The power fails while the module of a kernel is replaced."""
    installed(system)
    system.source(version, "second")
    system.put(f"fails/power/{A}")
    system.versions(version, "install", version)
    assert system.module(A) == "" and system.module(B) == "2.0.0 first"
    copies = system.root / KEPT
    assert copies.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(system.root / "fails")
    # The next attempt fails as well, at another place: the kernel gets its old module back.
    system.put(f"fails/build/{A}", "x")
    system.put(f"fails/build/{B}", "x")
    assert system.versions(version, "install", version) == 1
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert system.active(A) in ("2.0.0", "0.earlier-2.0.0")
    shutil.rmtree(system.root / "fails")
    assert system.versions(version, "install", version) == 0
    assert [system.module(kernel) for kernel in (A, B)] == [f"{version} second"] * 2
    nothing_kept(system)


def half_replaced(system: System) -> None:
    """The power fails after dkms has installed the first file of a new version for a kernel."""
    installed(system)
    system.source("2.0.1", "second")
    system.put(f"fails/power/{A}")
    system.versions("2.0.1", "install", "2.0.1")
    shutil.rmtree(system.root / "fails")
    system.put(f"lib/modules/{A}/updates/dkms/nv_peer_mem.ko", "2.0.1 second")


def test_power_fails_between_two_files(system: System) -> None:
    """One file of the new version is no module: the kernel gets all files of the old version."""
    half_replaced(system)
    assert system.hook("2.0.1", "6.9-without-headers") == 0
    assert system.module(A) == "2.0.0 first" and system.active(A) == "2.0.0"
    nothing_kept(system)


def test_power_fails_after_the_last_file(system: System) -> None:
    """The new version is complete, and dkms says so: the kernel keeps the new version."""
    half_replaced(system)
    for name in FILES:
        system.put(f"lib/modules/{A}/updates/dkms/{name}.ko", "2.0.1 second")
        system.put(f"var/lib/dkms/{NAME}/2.0.1/{A}/{ARCH}/module/{name}.ko", "2.0.1 second")
    link = system.root / f"var/lib/dkms/{NAME}/kernel-{A}-{ARCH}"
    link.unlink(missing_ok=True)
    link.symlink_to(f"2.0.1/{A}/{ARCH}")
    assert system.hook("2.0.1", "6.9-without-headers") == 0
    assert system.module(A) == "2.0.1 second" and system.active(A) == "2.0.1"
    nothing_kept(system)


def test_power_fails_before_the_first_file_goes(system: System) -> None:
    """A copy of files that are still in place is removed, and dkms' state stays."""
    installed(system)
    for name in FILES:
        system.put(f"{KEPT}/{A}/files/updates/dkms/{name}.ko", "2.0.0 first\n")
    system.put(f"{KEPT}/{A}/version", "1.9.0")
    assert system.hook("2.0.0", "6.9-without-headers") == 0
    assert system.module(A) == "2.0.0 first" and system.active(A) == "2.0.0"
    nothing_kept(system)


def test_power_fails_before_the_copies_are_stored(system: System) -> None:
    """Copies that a power cut has emptied are not put back, even if dkms does not know the
    module."""
    installed(system)
    (system.root / f"var/lib/dkms/{NAME}/kernel-{A}-{ARCH}").unlink()
    for name in FILES:
        system.put(f"{KEPT}/{A}/files/updates/dkms/{name}.ko")
    system.put(f"{KEPT}/{A}/version", "1.9.0")
    assert system.versions("2.0.0", "put-back") == 0
    assert system.module(A) == "2.0.0 first" and system.active(A) == ""
    nothing_kept(system)


def test_an_old_build_is_not_installed(system: System) -> None:
    """A build that could not be installed is made anew, because driver and RDMA core may have
    changed meanwhile."""
    installed(system)
    system.source("2.0.1", "second")
    system.put(f"fails/install/{A}")
    assert system.versions("2.0.1", "install", "2.0.1") == 1
    assert not (system.root / f"var/lib/dkms/{NAME}/2.0.1/{A}").exists()
    shutil.rmtree(system.root / "fails")
    stale = f"var/lib/dkms/{NAME}/2.0.1/{A}/{ARCH}/module"
    for name in FILES:
        system.put(f"{stale}/{name}.ko", "2.0.1 stale")
    assert system.hook("2.0.1", A) == 0
    assert system.module(A) == "2.0.1 second"


def test_power_fails_before_a_kernel_is_installed(system: System) -> None:
    """The hook for one kernel also puts back the lost module of another kernel, even if the hook
    builds no module."""
    installed(system)
    system.source("2.0.1", "second")
    system.put(f"fails/power/{A}")
    system.versions("2.0.1", "install", "2.0.1")
    assert system.module(A) == ""
    shutil.rmtree(system.root / "fails")
    assert system.hook("2.0.1", "6.9-without-headers") == 0
    assert system.module(A) == "2.0.0 first" and system.active(A) == "2.0.0"
    nothing_kept(system)


def test_kept_copies_of_removed_kernels_go(system: System) -> None:
    installed(system)
    system.put(f"{KEPT}/5.9-gone/files/updates/dkms/nv_peer_mem.ko", "old")
    system.put(f"{KEPT}/{A}/files/updates/dkms/nv_peer_mem.ko", "old")
    system.put(f"{KEPT}/{A}.new/files/updates/dkms/nv_peer_mem.ko", "half")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert system.module(A) == "2.0.0 first"
    nothing_kept(system)


def test_copies_keep_mode_and_place(system: System) -> None:
    """Files that are put back have the same mode and place as before, also if another package
    manager had put them there."""
    installed(system)
    directory = system.root / f"lib/modules/{A}/updates/dkms"
    directory.rename(system.root / f"lib/modules/{A}/extra")
    (system.root / f"lib/modules/{A}/extra/nv_peer_mem.ko").chmod(0o640)
    os.utime(system.root / f"lib/modules/{A}/extra/nv_peer_mem.ko", (1e9, 1e9))
    system.source("2.0.1", "second")
    system.put(f"fails/install/{A}")
    assert system.versions("2.0.1", "install", "2.0.1") == 1
    back = system.root / f"lib/modules/{A}/extra/nv_peer_mem.ko"
    assert back.read_text() == "2.0.0 first\n" and back.stat().st_mode & 0o777 == 0o640
    assert back.stat().st_mtime == 1e9
    # No part of the other version is left in another place.
    assert system.module(A) == "2.0.0 first"
    calls = system.calls()
    assert f"depmod {A}" in calls and f"depmod {B}" not in calls


LOGS = [
    ("nv_peer_mem: compiling x\nnv_peer_mem: the cause\nmake: *** [x] Error 1\n", "the cause"),
    ("nv_peer_mem: warning: no\na.c:1:2: error: e1\na.c:3:4: error: e2\n", "a.c:1:2: error: e1"),
    ("error[E0425]: not found\nmake: *** [x] Error 1\n", "error[E0425]: not found"),
    ("x.h:1: fatal error: gone\n", "x.h:1: fatal error: gone"),
    ("make: *** [x] Error 1\nmake: *** [y] Error 2\n", "make: *** [x] Error 1"),
    ("as: x.o: No space left on device\na.c:1:2: error: e\n", "as: x.o: No space left on device"),
    ("nv_peer_mem: the in-kernel build has failed\na.c:9:9: error: e\n", "a.c:9:9: error: e"),
    ("nv_peer_mem: first\nnv_peer_mem: last\n", "last"),
    ("the terror: none\n", ""),
    ("", ""),
]


def test_the_cause_is_quoted(system: System) -> None:
    for kernel in (A, B):
        system.put(f"fails/check/{kernel}")
    installed(system)
    shutil.rmtree(system.root / "fails")
    place = f"/var/lib/dkms/{NAME}/2.0.0/build/make.log"
    for log, why in LOGS:
        system.put(f"fails/build/{A}", log)
        assert system.hook("2.0.0", A) == 0
        cause = (
            f"{why} (the whole log: {place})"
            if why
            else "dkms has failed; the lines above say why."
        )
        assert f"nv_peer_mem is not built for kernel {A}: {cause}\n" in system.output, system.output


def test_an_old_log_is_not_quoted(system: System) -> None:
    """dkms could not write its log, so the log belongs to an earlier build."""
    installed(system)
    system.source("2.0.1")
    system.put(f"fails/build/{A}", "nv_peer_mem: an old cause\n")
    assert system.versions("2.0.1", "install", "2.0.1") == 1
    assert "an old cause" in system.output
    system.put(f"fails/build/{A}")
    assert system.hook("2.0.1", A) == 0
    assert "an old cause" not in system.output
    assert f"kernel {A}: dkms has failed; the lines above say why." in system.output


def test_a_full_disk_is_named(system: System) -> None:
    installed(system)
    system.source("2.0.1")
    system.put(f"fails/build/{A}")
    for free, full in ((1023, True), (1024, False)):
        text = f"#!/bin/sh\necho head\necho disk 9 9 {free} 1% /\n"
        system.put("bin/df", text, 0o755)
        system.hook("2.0.1", A)
        system.versions("2.0.1", "install", "2.0.1")
        assert (f"(the disk of /var/lib/dkms/{NAME} is full)." in system.output) == full


def test_no_room_for_copies(system: System) -> None:
    """If there is no room for a copy of the working module, nothing is replaced."""
    installed(system)
    system.source("2.0.1")
    system.put(KEPT, "a file where the directory should be")
    assert system.versions("2.0.1", "install", "2.0.1") == 1
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert f"the module that this kernel has cannot be copied to /{KEPT}" in system.output
    assert not [call for call in system.calls() if call.startswith(("install", "uninstall"))]


def test_a_missing_part_without_a_module(system: System) -> None:
    system.source("2.0.0")
    system.put(f"fails/check/{B}", "no NVIDIA driver for kernel B: install it")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert system.output == (
        f"nv_peer_mem is not built for kernel {B}: no NVIDIA driver for kernel B: install it\n"
        f"{SKIPPED} /usr/src/{NAME}-2.0.0/build/dkms/kernel {B}\n"
    )
    assert (system.module(A), system.module(B)) == ("2.0.0 first", "")


def test_builds_are_forbidden(system: System) -> None:
    """The file forbids builds for new kernels, and a kernel with a module is not new."""
    system.put("etc/dkms/no-autoinstall")
    installed(system)
    assert [system.module(kernel) for kernel in (A, B)] == ["", ""]
    assert system.known() == {"2.0.0"}
    (system.root / "etc/dkms/no-autoinstall").unlink()
    assert system.hook("2.0.0", A) == 0
    system.put("etc/dkms/no-autoinstall")
    assert system.hook("2.0.0", B) == 0
    installed(system, "2.0.1", "second")
    assert (system.module(A), system.module(B)) == ("2.0.1 second", "")
    # The file also counts for the hook. For A, the hook replaces a module that was kept.
    system.source("2.0.2", "third")
    system.put(f"fails/build/{A}", "x")
    assert system.versions("2.0.2", "install", "2.0.2") == 1
    shutil.rmtree(system.root / "fails")
    assert system.hook("2.0.2", B) == system.hook("2.0.2", A) == 0
    assert (system.module(A), system.module(B)) == ("2.0.2 third", "")


def test_a_removed_kernel_goes_from_dkms(system: System) -> None:
    installed(system)
    shutil.rmtree(system.root / f"lib/modules/{B}")
    installed(system, "2.0.1", "second")
    assert system.known() == {"2.0.1"} and system.active(B) == ""


def test_no_kernels(tmp_path: Path) -> None:
    """In an image there may be no kernel yet."""
    system = System(tmp_path / "root")
    system.source("2.0.0")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert system.output == "" and system.known() == {"2.0.0"}


def test_directories_that_are_no_kernels(system: System) -> None:
    (system.root / "lib/modules/5.9-left-over/updates").mkdir(parents=True)
    system.source("2.0.0")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert not any("5.9" in call for call in system.calls())
    assert not list(system.root.glob("lib/modules/5.9*/**/*.ko"))


# ---- a version that dkms cannot read ----


def dangling(system: System) -> System:
    """An update with a full disk has deleted the source of the installed version, and dkms has no
    copy of it."""
    installed(system)
    shutil.rmtree(system.root / f"usr/src/{NAME}-2.0.0")
    assert system.run("dkms", "status") != 0
    return system


@pytest.mark.parametrize("version", ["1.9.0", "2.0.1"])
def test_an_update_repairs(system: System, version: str) -> None:
    installed(dangling(system), version, "second")
    assert [system.module(kernel) for kernel in (A, B)] == [f"{version} second"] * 2
    assert system.known() == {version}
    assert system.run("dkms", "status") == 0


def test_the_hook_and_the_boot_repair(system: System) -> None:
    """The version stays, because kernels have its modules, and dkms can read it again."""
    for words in (["kernel", "add", "6.9-without-headers"], ["versions", "put-back"]):
        shutil.rmtree(system.root)
        dangling(System(system.root, A, B))
        source = system.source("2.0.1")
        assert system.run("dash", source / "build/dkms" / words[0], *words[1:]) == 0, system.output
        assert system.run("dkms", "status") == 0
        assert [system.active(kernel) for kernel in (A, B)] == ["2.0.0"] * 2


def test_a_removal_repairs(system: System) -> None:
    dangling(system)
    system.source("2.0.1")
    system.calls()
    assert system.versions("2.0.1", "remove") == 0
    assert system.calls() == ["remove 2.0.0 --all"]
    assert [system.module(kernel) for kernel in (A, B)] == ["", ""]
    assert system.known() == set() and not (system.root / f"var/lib/dkms/{NAME}").exists()


def test_dkms_refuses_to_remove(system: System) -> None:
    """The files and the links go without dkms. Files that dkms has not installed stay."""
    installed(system)
    own = system.put(f"lib/modules/{A}/extra/nv_peer_mem.ko", "made by hand")
    system.put("bin/broken/dkms", "#!/bin/sh\nexit 9\n", 0o755)
    path = f"{system.root}/bin/broken:{system.root}/bin:{os.environ['PATH']}"
    versions = system.root / f"usr/src/{NAME}-2.0.0/build/dkms/versions"
    assert system.run("dash", versions, "remove", PATH=path) == 0
    left = list((system.root / "lib/modules").rglob("nv_peer_mem*.ko"))
    assert left == [own] and system.known() == set()
    assert system.calls() == [f"depmod {A}", f"depmod {B}"]


def test_what_dkms_cannot_read_is_named(system: System) -> None:
    """dkms itself is asked at the end."""
    system.source("2.0.0")
    place = f"/var/lib/dkms/{NAME}/1.0/source/dkms.conf"
    text = f"#!/bin/sh\necho nvidia/550.1: added\necho File: {system.root}{place} does not exist.\n"
    system.put(
        "bin/ask/dkms", f'{text}[ "$1" = status ] || exec {system.root}/bin/dkms "$@"\n', 0o755
    )
    path = f"{system.root}/bin/ask:{system.root}/bin:{os.environ['PATH']}"
    versions = system.root / f"usr/src/{NAME}-2.0.0/build/dkms/versions"
    assert system.run("dash", versions, "install", "2.0.0", PATH=path) == 1
    assert f"File: {place} does not exist.\nnv_peer_mem: dkms cannot read" in system.output
    assert "nvidia/550.1: added\nnv_peer_mem" not in system.output


# ---- a version that dkms counts as installed ----


def delayed(system: System) -> None:
    """Another commit of the same version could not be built, because a part was missing. Then
    `dkms autoinstall` counts the file that was kept as that of the new commit."""
    installed(system)
    system.source("2.0.0", "second")
    for kernel in (A, B):
        system.put(f"fails/check/{kernel}", "make is missing")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    shutil.rmtree(system.root / "fails")
    for kernel in (A, B):
        assert system.module(kernel) == "2.0.0 first"
        for name in FILES:
            place = f"var/lib/dkms/{NAME}/2.0.0/{kernel}/{ARCH}/module/{name}.ko"
            system.put(place, "2.0.0 second\n")
        link = system.root / f"var/lib/dkms/{NAME}/kernel-{kernel}-{ARCH}"
        link.unlink()
        link.symlink_to(f"2.0.0/{kernel}/{ARCH}")


def test_a_delayed_build_arrives(system: System) -> None:
    """The printed command replaces the file that dkms counts as installed."""
    delayed(system)
    assert system.by_hand("2.0.0", A) == 0, system.output
    assert (system.module(A), system.module(B)) == ("2.0.0 second", "2.0.0 first")
    assert system.by_hand("2.0.0", B) == 0
    assert system.module(B) == "2.0.0 second" and system.known() == {"2.0.0"}
    system.calls()
    assert system.by_hand("2.0.0", A) == 0
    assert system.calls() == []


def test_by_hand(system: System) -> None:
    """A person who runs the script for a kernel is told why nothing is built."""
    assert system.source("2.0.0") and system.by_hand("2.0.0", A) == 1
    assert (
        system.output == "nv_peer_mem: version 2.0.0 is not configured yet: dpkg --configure -a\n"
    )
    installed(system)
    for name, shown in (("6.9", "6.9"), (f"{A}\r", f"{A}?"), ("", "")):
        assert system.by_hand("2.0.0", name) == 1
        assert (
            f"nv_peer_mem: kernel {shown} has no headers in /lib/modules/" in system.output
        ) == bool(name)
    assert "give the release of a kernel" in system.output
    system.put("etc/dkms/no-autoinstall")
    system.kernel("6.9")
    assert system.by_hand("2.0.0", "6.9") == 1
    assert "/etc/dkms/no-autoinstall forbids builds" in system.output
    (system.root / "etc/dkms/no-autoinstall").unlink()
    system.put("fails/build/6.9", "nv_peer_mem: a cause\n")
    assert system.by_hand("2.0.0", "6.9") == 1
    assert "nv_peer_mem is not built for kernel 6.9: a cause" in system.output


def test_one_at_a_time(system: System) -> None:
    """While another script replaces modules, the service at boot puts nothing back, and does not
    wait."""
    half_replaced(system)
    lock = system.put("run/nv_peer_mem.dkms")
    versions = system.root / f"usr/src/{NAME}-2.0.1/build/dkms/versions"
    assert system.run("flock", lock, "dash", versions, "put-back") == 0
    assert (
        system.root / f"lib/modules/{A}/updates/dkms/nv_peer_mem.ko"
    ).read_text() == "2.0.1 second"
    assert system.run("dash", versions, "put-back") == 0
    assert system.module(A) == "2.0.0 first"
    # Nobody else can hold the lock.
    assert lock.stat().st_mode & 0o777 == 0o600


def test_hooks_that_dkms_runs(system: System) -> None:
    """dkms can run the hooks for kernels after each change. A program that it leaves behind does
    not keep the lock."""
    system.source("2.0.0")
    system.put("run/.keep")
    hook = system.root / f"usr/src/{NAME}-2.0.0/build/dkms/kernel"
    text = f'#!/bin/sh\n{system.root}/bin/dkms "$@" || exit\nsleep 30 >/dev/null 2>&1 &\n'
    system.put("bin/after/dkms", f"{text}exec dash {hook} add {B}\n", 0o755)
    path = f"{system.root}/bin/after:{system.root}/bin:{os.environ['PATH']}"
    versions = system.root / f"usr/src/{NAME}-2.0.0/build/dkms/versions"
    assert system.run("dash", versions, "install", "2.0.0", PATH=path) == 0, system.output
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert system.run("flock", "-n", system.root / "run/nv_peer_mem.dkms", "true") == 0


# ---- the hook for new kernels ----


def test_hook(system: System) -> None:
    installed(system)
    new = "6.1.0-51-amd64"
    system.kernel(new)
    assert system.hook("2.0.0", new) == 0
    assert system.module(new) == "2.0.0 first" and system.active(new) == "2.0.0"
    system.calls()
    assert system.hook("2.0.0", new) == 0
    assert system.calls() == [] and system.output == ""


@pytest.mark.parametrize("longer", [f"{A}-rt", f"{A}-x86_64"])
def test_hook_for_a_shorter_name(system: System, longer: str) -> None:
    """Two kernels differ even if the name of one kernel is the beginning of the name of the other
    kernel."""
    shutil.rmtree(system.root / f"lib/modules/{A}")
    system.kernel(longer)
    installed(system)
    system.kernel(A)
    assert system.hook("2.0.0", A) == 0
    assert system.module(A) == "2.0.0 first"
    assert system.module(longer) == "2.0.0 first"


@pytest.mark.parametrize("how", ["build", "install", "cut", "check"])
def test_hook_never_fails(system: System, how: str) -> None:
    installed(system)
    new = "6.1.0-51-amd64"
    system.kernel(new)
    system.put(f"fails/{how}/{new}", "nv_peer_mem: a cause")
    assert system.hook("2.0.0", new) == 0
    assert f"nv_peer_mem is not built for kernel {new}: " in system.output
    assert ("a cause" in system.output) == (how in ("build", "check"))
    assert [system.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert f"{SKIPPED} /usr/src/{NAME}-2.0.0/build/dkms/kernel {new}\n" in system.output
    assert system.module(new) == system.active(new) == ""
    shutil.rmtree(system.root / "fails")
    assert system.hook("2.0.0", new) == 0 and system.output == ""
    assert system.module(new) == "2.0.0 first"


def test_hook_replaces_what_was_kept(system: System) -> None:
    """The command in the message installs the version for the kernel that has kept another version.
    dkms loses the kept version together with the last kernel that has it."""
    installed(system)
    system.source("1.9.0", "second")
    for kernel in (A, B):
        system.put(f"fails/build/{kernel}", "x")
    assert system.versions("1.9.0", "install", "1.9.0") == 1
    shutil.rmtree(system.root / "fails")
    assert system.hook("1.9.0", A) == 0
    assert (system.module(A), system.module(B)) == ("1.9.0 second", "2.0.0 first")
    assert system.known() == {"1.9.0", "2.0.0"}
    assert system.hook("1.9.0", B) == 0
    assert system.module(B) == "1.9.0 second" and system.known() == {"1.9.0"}


def test_hook_does_nothing(system: System) -> None:
    system.source("2.0.0")
    # The package is not configured yet.
    assert system.hook("2.0.0", A) == 0
    assert system.calls() == [] and system.output == ""
    installed(system)
    system.kernel("6.9-bare", headers=False)
    assert system.hook("2.0.0", "6.9-bare") == 0
    assert system.hook("2.0.0") == 0
    assert system.hook("2.0.0", "") == 0
    assert system.calls() == [] and system.output == ""


def test_hook_of_kernel_install(system: System) -> None:
    installed(system)
    new = "6.1.0-51-amd64"
    system.kernel(new)
    link = system.root / "41-nvidia-peer-memory.install"
    link.symlink_to(system.root / f"usr/src/{NAME}-2.0.0/build/dkms/kernel")
    for words in (["remove", new], [], ["inspect", new]):
        assert system.run("dash", link, *words) == 0
        assert system.module(new) == ""
    assert system.run("dash", link, "add", new, "/boot/entry") == 0
    assert system.module(new) == "2.0.0 first"


# ---- the other commands ----


def test_keep(system: System) -> None:
    """The package manager deletes the source, and dkms must know the module all the same."""
    installed(system)
    assert system.versions("2.0.0", "keep", "2.0.0") == 0
    assert system.versions("2.0.0", "keep", "2.0.0") == 0
    shutil.rmtree(system.root / f"usr/src/{NAME}-2.0.0")
    conf = system.root / f"var/lib/dkms/{NAME}/2.0.0/source/dkms.conf"
    assert 'PACKAGE_VERSION="2.0.0"' in conf.read_text()
    assert system.calls() == []
    installed(system, "2.0.1", "second")
    assert system.known() == {"2.0.1"}


def test_keep_after_an_interruption(system: System) -> None:
    """A copy of the source that was interrupted does not count."""
    installed(system)
    system.put(f"var/lib/dkms/{NAME}/2.0.0/old-source/half", "x")
    system.put(f"var/lib/dkms/{NAME}/2.0.0/old-source.new/half", "x")
    assert system.versions("2.0.0", "keep", "2.0.0") == 0
    source = system.root / f"var/lib/dkms/{NAME}/2.0.0/source"
    assert (source / "dkms.conf").is_file() and not (source / "half").exists()


def test_keep_what_no_kernel_has(system: System) -> None:
    for kernel in (A, B):
        system.put(f"fails/check/{kernel}", "x")
    installed(system)
    assert system.versions("2.0.0", "keep", "2.0.0") == 0
    assert system.calls() == ["remove 2.0.0 --all"]
    # dkms does not know the version any more.
    assert system.versions("2.0.0", "keep", "2.0.0") == 0
    assert system.calls() == []


def test_remove(system: System) -> None:
    installed(system)
    system.source("2.0.1", "second")
    system.put(f"fails/build/{A}", "x")
    system.versions("2.0.1", "install", "2.0.1")
    system.put(f"{KEPT}/5.9-gone/files/nv_peer_mem.ko", "old")
    assert system.versions("2.0.1", "remove") == 0
    assert [system.module(kernel) for kernel in (A, B)] == ["", ""]
    assert system.known() == set()
    nothing_kept(system)


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["note"], ["keep-all"], ["install"], ["install", ""], ["keep", ""]]
)
def test_usage(system: System, words: list[str]) -> None:
    system.source("2.0.0")
    assert system.versions("2.0.0", *words) == 2
    assert system.output.startswith("Usage: ")


def test_an_empty_file_is_no_module(system: System) -> None:
    """A full disk has left an empty file, which no message may call a module."""
    system.source("2.0.0")
    system.put(f"lib/modules/{A}/updates/dkms/nv_peer_mem.ko")
    system.put(f"fails/check/{A}", "a cause")
    assert system.versions("2.0.0", "install", "2.0.0") == 0
    assert f"{SKIPPED} /usr/src/{NAME}-2.0.0/build/dkms/kernel {A}\n" in system.output
    assert "keeps" not in system.output
