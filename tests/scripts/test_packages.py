# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The scripts and the lists of files of the Debian and rpm packages. The scripts run on a system
that is made of files; the packages themselves are installed by tests/packages."""

import re
import shutil
from pathlib import Path

import pytest
from system import NAME, TOP, System

A, B = "6.1.0-47-amd64", "6.1.0-50-amd64"
SPEC = (TOP / "rpm/nvidia_peer_memory.spec").read_text(encoding="utf-8")
MACROS = {
    "dkms_name": NAME,
    "version": "2.0.0",
    "tools_dir": f"/usr/lib/{NAME}",
    "_sbindir": "/usr/sbin",
    "_initddir": "/etc/init.d",
    "_sysconfdir": "/etc",
    "_usrsrc": "/usr/src",
    "kernel_version": A,
}


def scriptlet(name: str) -> str:
    """Returns the text of a scriptlet of the spec, with its macros expanded."""
    section = r"%(?:pre|post|preun|postun|files|triggerun|if|endif|changelog)\b"
    match = re.search(rf"^%{re.escape(name)}\n((?:(?!{section}).*\n)*)", SPEC, re.MULTILINE)
    assert match, name
    text = match[1]
    return re.sub(r"%\{(\w+)\}", lambda macro: MACROS[macro[1]], text)


class Packages(System):
    """A system on which the scripts of packages run. Each program that they call is a double, which
    writes its call to the file `calls` and ends with the status in `fails/PROGRAM`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, A, B)
        for program in ("systemctl", "update-rc.d", "deb-systemd-helper", "nvpm"):
            self.double(f"bin/{program}")
        self.double(f"usr/lib/{NAME}/openibd-hook")
        self.double("usr/sbin/nvpm")
        self.put("etc/init.d/nv_peer_mem")
        shutil.copy(TOP / "init.d/conf.sh", root / f"usr/lib/{NAME}/conf.sh")
        self.put("etc/infiniband/nv_peer_mem.conf", "ONBOOT=yes\n")

    def double(self, name: str) -> None:
        program = Path(name).name
        self.put(
            name,
            f'#!/bin/sh\necho "{program} $*" >>"$NVPM_SYSROOT/calls"\n'
            f'fails=$NVPM_SYSROOT/fails/{program}\n[ ! -e "$fails" ] || exit "$(cat "$fails")"\n',
            0o755,
        )

    def double_of_versions(self) -> None:
        self.double(f"usr/src/{NAME}-2.0.0/build/dkms/versions")

    def script(self, text: str, *words: str, shell: str = "dash") -> int:
        text = text.replace("#ENV.NVPM_VERSION#", "2.0.0").replace("#DEBHELPER#\n", "")
        text = re.sub(r"(?<![\w/}.])/(etc|usr|lib/modules|var/lib)/", rf"{self.root}/\1/", text)
        file = self.put("script", text)
        return self.run(shell, file, *words)

    def debian(self, name: str, *words: str) -> int:
        return self.script((TOP / "debian" / name).read_text(encoding="utf-8"), *words)

    def rpm(self, name: str, number: int) -> int:
        return self.script(scriptlet(name), str(number))

    def installs(self) -> list[str]:
        """Returns the calls, without the system's root."""
        return [call.replace(str(self.root), "") for call in self.calls()]


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    return Packages(tmp_path / "root")


# ---- the service's Debian package ----

FORGOTTEN = """\
nv_peer_mem is loaded at each boot from now on. Whether the service of {} was disabled is not
known: its package has removed that setting. If it was: systemctl disable nv_peer_mem
"""
DISABLED = "deb-systemd-helper disable nv_peer_mem.service"


@pytest.mark.parametrize(
    "old, links, said, disabled",
    [
        ("", [], False, False),  # the first installation
        ("", ["K01"], False, False),
        ("1.3-0", ["S95"], False, False),
        ("1.3-0", ["K01"], False, True),
        ("1.3-0", ["K01", "S95"], False, False),
        ("1.3-0", [], True, False),
        ("1.4", [], False, False),
        ("1.4", ["K01"], False, False),
        ("2.0.0-1", [], False, False),
        ("2.0.0-1", ["K01"], False, False),
    ],
)
def test_service_postinst(
    packages: Packages, old: str, links: list[str], said: bool, disabled: bool
) -> None:
    """A service of 1.3 that was disabled stays disabled. If the package cannot know whether it was,
    a message says so."""
    for level, link in enumerate(links, 2):
        directory = packages.root / f"etc/rc{level}.d"
        directory.mkdir(parents=True)
        (directory / f"{link}nv_peer_mem").symlink_to("../init.d/nv_peer_mem")
    assert packages.debian("nvidia-peer-memory.postinst", "configure", old) == 0
    assert packages.output == (FORGOTTEN.format(old) if said else "")
    assert packages.calls() == ["openibd-hook install", *([DISABLED] if disabled else [])]


def test_service_postinst_otherwise(packages: Packages) -> None:
    for words in (["abort-upgrade", "1.3"], ["triggered", "x"]):
        assert packages.debian("nvidia-peer-memory.postinst", *words) == 0
    assert packages.calls() == [] and packages.output == ""


@pytest.mark.parametrize("status", [0, 1, 75])
def test_service_prerm(packages: Packages, status: int) -> None:
    """Only registered memory keeps the package from being removed."""
    packages.put("fails/nvpm", str(status))
    code = packages.debian("nvidia-peer-memory.prerm", "remove")
    assert code == (1 if status == 75 else 0)
    stays = "nv_peer_mem: the module, if it is loaded, stays so until the next boot.\n"
    assert packages.output == (stays if status == 1 else "")
    assert packages.installs() == [
        "nvpm leave /etc/init.d/nv_peer_mem",
        *(["openibd-hook remove"] if status != 75 else []),
    ]
    for word in ("upgrade", "deconfigure", "failed-upgrade"):
        assert packages.debian("nvidia-peer-memory.prerm", word) == 0
        assert packages.installs() == []


# ---- the Debian package with the source ----


def with_source(packages: Packages, *broken: str) -> None:
    packages.source("2.0.0")
    for kernel in broken:
        packages.put(f"fails/build/{kernel}", "nv_peer_mem: a cause\n")


LOAD = (
    "to load it now: systemctl start nv_peer_mem\n"
    "To see whether GPUDirect RDMA works: nvpm status\n"
)


@pytest.mark.parametrize(
    "conf, said",
    [
        (
            "ONBOOT=yes",
            "nv_peer_mem is installed, and loaded at each boot of a kernel that has the module; ",
        ),
        (
            "ONBOOT=no",
            "nv_peer_mem is installed. /etc/infiniband/nv_peer_mem.conf does not say ONBOOT=yes, "
            "so no boot loads the module; ",
        ),
    ],
)
def test_dkms_postinst(packages: Packages, conf: str, said: str) -> None:
    """A first installation prints a text, and an update prints nothing."""
    with_source(packages)
    packages.put("etc/infiniband/nv_peer_mem.conf", conf + "\n")
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 0
    assert packages.output == said + LOAD
    assert [packages.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "1.9.0-1") == 0
    assert packages.output == ""
    packages.calls()
    assert packages.debian(f"{NAME}-dkms.postinst", "abort-upgrade", "1.9.0-1") == 0
    assert packages.output == "" and packages.calls() == []


def test_dkms_postinst_without_the_service(packages: Packages) -> None:
    with_source(packages)
    (packages.root / f"usr/lib/{NAME}/conf.sh").unlink()
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 0
    assert "does not say ONBOOT=yes" in packages.output


def test_dkms_postinst_passes_a_kernel_over(packages: Packages) -> None:
    with_source(packages)
    packages.put(f"fails/check/{B}", "no NVIDIA driver")
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 0
    assert f"nv_peer_mem is not built for kernel {B}: no NVIDIA driver\n" in packages.output
    assert (
        f"nv_peer_mem is not built for these kernels: {B}; the lines above say why. When"
        in packages.output
    )
    assert (
        "cause is fixed: /usr/src/nvidia-peer-memory-2.0.0/build/dkms/kernel KERNEL, then"
        in packages.output
    )


def test_dkms_postinst_fails(packages: Packages) -> None:
    """Without an older module, the message names the kernels without a module. With an older
    module, the message says that each kernel has a module."""
    with_source(packages, A, B)
    (packages.root / "lib/modules/5.9-left-over").mkdir()
    end = (
        "nv_peer_mem 2.0.0 is not installed for each kernel; the lines above say why. When the\n"
        "cause is fixed: dpkg --configure -a. If this package is the cause: dpkg -i "
        "ANOTHER_PACKAGE.deb\n"
    )
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 1
    assert packages.output.endswith(f"{end}Kernels that have no nv_peer_mem now: {A} {B}\n")
    assert f"nv_peer_mem is not built for kernel {A}: a cause (the whole log" in packages.output
    shutil.rmtree(packages.root / "fails")
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 0
    with_source(packages, B)
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "2.0.0-1") == 1
    assert packages.output.endswith(
        f"{end}Each kernel has a module, which may be that of an earlier version.\n"
    )
    assert packages.module(B) == "2.0.0 first"


@pytest.mark.parametrize(
    "new, does",
    [
        *((new, "keep 2.0.0") for new in ("1.4", "1.9.0-1", "2.0.0-1", "2.0.1-1")),
        *((new, "remove") for new in ("1.3-0", "1.3.9")),
    ],
)
def test_dkms_prerm_of_an_update(packages: Packages, new: str, does: str) -> None:
    """An update removes no module, unless the new version is 1.3, which does not know of the
    modules."""
    packages.double_of_versions()
    assert packages.debian(f"{NAME}-dkms.prerm", "upgrade", new) == 0
    assert packages.calls() == [f"versions {does}"]


@pytest.mark.parametrize("status", [0, 1, 75])
def test_dkms_prerm_of_a_removal(packages: Packages, status: int) -> None:
    packages.double_of_versions()
    packages.put("fails/nvpm", str(status))
    assert packages.debian(f"{NAME}-dkms.prerm", "remove") == (1 if status == 75 else 0)
    assert packages.installs() == [
        "nvpm leave /etc/init.d/nv_peer_mem",
        *(["versions remove"] if status != 75 else []),
    ]
    for word in ("deconfigure", "failed-upgrade"):
        assert packages.debian(f"{NAME}-dkms.prerm", word) == 0
        assert packages.calls() == []


def test_dkms_prerm_of_a_failed_update(packages: Packages) -> None:
    """The installed version stays if the prerm of that version could not keep its source."""
    for old in ("2.0.0-1", "1.9.0-1"):
        source = packages.root / f"var/lib/dkms/{NAME}/{old[:-2]}/source"
        assert packages.debian(f"{NAME}-dkms.prerm", "failed-upgrade", old, "2.0.1-1") == 0
        source.parent.mkdir(parents=True)
        source.symlink_to(packages.root / f"usr/src/{NAME}-{old[:-2]}")
        # A source that is gone already is no reason to refuse.
        assert packages.debian(f"{NAME}-dkms.prerm", "failed-upgrade", old, "2.0.1-1") == 0
        packages.source(old[:-2])
        assert packages.debian(f"{NAME}-dkms.prerm", "failed-upgrade", old, "2.0.1-1") == 1
        assert packages.output == (
            f"nv_peer_mem: version {old} stays as it is, because its source cannot be kept for "
            "dkms; the lines above say why.\n"
        )
        source.unlink()
        source.symlink_to(source.parent / "old-source")
        packages.put(str((source.parent / "old-source/dkms.conf").relative_to(packages.root)))
        assert packages.debian(f"{NAME}-dkms.prerm", "failed-upgrade", old, "2.0.1-1") == 0


@pytest.mark.parametrize(
    "words",
    [["abort-upgrade", "2.0.1-1"], ["abort-remove"], ["abort-remove", "in-favour", "x", "1"]],
)
def test_dkms_postinst_after_an_aborted_change(packages: Packages, words: list[str]) -> None:
    """dpkg gives up after the prerm has run. Modules that the prerm has removed come back."""
    with_source(packages)
    assert packages.debian(f"{NAME}-dkms.postinst", "configure", "") == 0
    versions = packages.root / f"usr/src/{NAME}-2.0.0/build/dkms/versions"
    for done in (["keep", "2.0.0"], ["remove"], None):
        assert not done or packages.run("dash", versions, *done) == 0
        packages.calls()
        assert packages.debian(f"{NAME}-dkms.postinst", *words) == 0, packages.output
        assert [packages.module(kernel) for kernel in (A, B)] == ["2.0.0 first"] * 2
        source = packages.root / f"var/lib/dkms/{NAME}/2.0.0/source"
        assert source.readlink() == packages.root / f"usr/src/{NAME}-2.0.0"
        assert not (source.parent / "old-source").exists()
        assert bool(packages.calls()) == (done == ["remove"])


# ---- the hooks for kernels ----


def test_kernel_hook(packages: Packages) -> None:
    """The hook runs only a file of root's, and no link."""
    hook = (TOP / "debian/postinst.d/nvidia-peer-memory").read_text(encoding="utf-8")
    place = f"usr/src/{NAME}-2.0.0/build/dkms/kernel"
    assert packages.script(hook, "6.9") == 0
    packages.double(place)
    packages.put("fails/kernel", "1")
    assert packages.script(hook, "6.9") == 0
    assert packages.calls() == ["kernel add 6.9"]
    (packages.root / place).chmod(0o644)
    assert packages.script(hook, "6.9") == 0
    (packages.root / place).chmod(0o755)
    (packages.root / place).rename(packages.root / "elsewhere")
    (packages.root / place).symlink_to(packages.root / "elsewhere")
    assert packages.script(hook, "6.9") == 0
    assert packages.calls() == [] and packages.output == ""


def test_kernel_hook_runs_no_other_users_file(packages: Packages) -> None:
    hook = (TOP / "debian/postinst.d/nvidia-peer-memory").read_text(encoding="utf-8")
    assert '[ ! -O "$builder" ]' in hook


def test_kernel_removal_hook(packages: Packages) -> None:
    hook = (TOP / "debian/postrm.d/nvidia-peer-memory").read_text(encoding="utf-8")
    assert packages.script(hook, "6.9") == 0
    packages.double(f"usr/lib/{NAME}/rust-metadata")
    assert packages.script(hook, "6.9") == 0
    assert packages.calls() == ["rust-metadata --remove 6.9"]


# ---- rpm's scriptlets ----


@pytest.mark.parametrize("enabled", [True, False])
def test_rpm_post(packages: Packages, enabled: bool) -> None:
    packages.put(
        "bin/systemctl",
        '#!/bin/sh\necho "systemctl $*" >>"$NVPM_SYSROOT/calls"\n'
        f'[ "$1" != is-enabled ] || exit {int(not enabled)}\n',
        0o755,
    )
    text = scriptlet("post").replace("%systemd_post nv_peer_mem.service", "")
    assert packages.script(text, "1") == 0
    if enabled:
        said = (
            "nv_peer_mem is loaded at each boot, on kernels that have the module; "
            "to load it now: systemctl start nv_peer_mem\n"
        )
    else:
        said = (
            "nv_peer_mem is not loaded at boot, as this system's presets say; "
            "to change that: systemctl enable --now nv_peer_mem\n"
        )
    assert packages.output == f"{said}To see whether GPUDirect RDMA works: nvpm status\n"
    query = "systemctl is-enabled --quiet nv_peer_mem.service"
    assert packages.calls() == ["openibd-hook install", query]
    assert packages.script(text, "2") == 0
    again = ["systemctl reenable nv_peer_mem.service"] if enabled else []
    assert packages.output == "" and packages.calls() == ["openibd-hook install", query, *again]


@pytest.mark.parametrize("name", ["preun", "preun dkms"])
@pytest.mark.parametrize("status", [0, 1, 75])
def test_rpm_preun(packages: Packages, name: str, status: int) -> None:
    """An update (1) removes nothing. An erasure (0) removes the module, unless memory is
    registered."""
    packages.double_of_versions()
    packages.put("fails/nvpm", str(status))
    text = scriptlet(name).replace("%systemd_preun nv_peer_mem.service\n", "")
    assert packages.script(text, "1") == 0
    assert packages.calls() == []
    assert packages.script(text, "0") == (1 if status == 75 else 0)
    last = "versions remove" if name == "preun dkms" else "openibd-hook remove"
    assert packages.installs() == [
        "nvpm leave /etc/init.d/nv_peer_mem",
        *([last] if status != 75 else []),
    ]


def test_rpm_preun_dkms_without_the_service(packages: Packages) -> None:
    packages.double_of_versions()
    (packages.root / "usr/sbin/nvpm").unlink()
    assert packages.script(scriptlet("preun dkms"), "0") == 0
    assert packages.calls() == ["versions remove"]


def test_rpm_post_dkms(packages: Packages) -> None:
    """A failure does not fail the transaction, and keeps the working module. A message reports the
    failure."""
    with_source(packages)
    assert packages.rpm("post dkms", 1) == 0
    assert packages.output == ""
    with_source(packages, B)
    assert packages.rpm("post dkms", 2) == 0
    assert (packages.module(A), packages.module(B)) == ("2.0.0 first",) * 2
    assert packages.output.endswith(
        "nv_peer_mem 2.0.0 is not installed for each kernel; the lines above say why. When the "
        f"cause is fixed: /usr/src/{NAME}-2.0.0/build/dkms/versions install 2.0.0\n"
    )
    assert f"Kernel {B} keeps its module of version 2.0.0." in packages.output


def test_rpm_removes_nothing_before() -> None:
    """No scriptlet that runs before the new files are there touches dkms' modules."""
    assert not re.search(r"^%(pre|pretrans|triggerun) dkms", SPEC, re.MULTILINE)
    assert "common.postinst" not in SPEC


@pytest.mark.parametrize("modules_order", [True, False])
@pytest.mark.parametrize("running", [A, "6.9"])
def test_rpm_post_kmod(packages: Packages, running: str, modules_order: bool) -> None:
    packages.put("bin/uname", f"#!/bin/sh\necho {running}\n", 0o755)
    if modules_order:
        packages.put(f"lib/modules/{A}/modules.order")
    assert packages.rpm("post kmod-%{kernel_version}", 1) == 0
    another = f"This nv_peer_mem is for kernel {A}; running is 6.9.\n"
    assert packages.output == ("" if running == A else another)
    assert packages.calls() == ([f"depmod {A}"] if modules_order else [])


@pytest.mark.parametrize("status", [0, 1, 75])
def test_rpm_preun_kmod(packages: Packages, status: int) -> None:
    """Only the package for the running kernel unloads the module, and only when the package is
    erased."""
    packages.put("fails/nvpm", str(status))
    for running, number in ((A, 1), ("6.9", 0), ("6.9", 1)):
        packages.put("bin/uname", f"#!/bin/sh\necho {running}\n", 0o755)
        assert packages.rpm("preun kmod-%{kernel_version}", number) == 0
        assert packages.calls() == []
    packages.put("bin/uname", f"#!/bin/sh\necho {A}\n", 0o755)
    assert packages.rpm("preun kmod-%{kernel_version}", 0) == (1 if status == 75 else 0)
    assert packages.installs() == ["nvpm leave /etc/init.d/nv_peer_mem"]
    (packages.root / "usr/sbin/nvpm").unlink()
    assert packages.rpm("preun kmod-%{kernel_version}", 0) == 0


# ---- lists of files ----


def installs(name: str) -> set[tuple[str, str]]:
    """Returns the pairs (FILE, DIRECTORY) of a debian/*.install."""
    lines = (TOP / "debian" / name).read_text(encoding="utf-8").splitlines()
    return {(file, line.split()[-1]) for line in lines for file in line.split()[:-1]}


# The programs beside the service.
TOOLS = (
    "init.d/conf.sh init.d/module-event init.d/openibd-hook "
    "init.d/ofed-container-pre-stop init.d/ofed-container-post-start"
)


def test_debian_lists() -> None:
    source = "usr/src/nvidia-peer-memory-${env:NVPM_VERSION}"
    hook = "debian/postinst.d/nvidia-peer-memory"
    assert installs(f"{NAME}-dkms.install") == {
        *((file, source) for file in ("Kbuild", "Makefile", "build", "dkms.conf", "src")),
        ("debian/rust-metadata", f"usr/lib/{NAME}"),
        ("debian/postrm.d/nvidia-peer-memory", "etc/kernel/postrm.d"),
        (hook, "etc/kernel/postinst.d"),
        (hook, "etc/kernel/header_postinst.d"),
    }
    assert installs(f"{NAME}.install") == {
        *((file, f"usr/lib/{NAME}") for file in TOOLS.split()),
        ("init.d/90-nv_peer_mem.rules", "usr/lib/udev/rules.d"),
        ("nv_peer_mem.conf", "etc/infiniband"),
    }
    assert installs(f"{NAME}-preload.install") == {
        ("preload/libnvpm_preload.so", f"usr/lib/{NAME}")
    }
    for name in ("init", "service"):
        link = TOP / f"debian/{NAME}.nv_peer_mem.{name}"
        ending = "" if name == "init" else ".service"
        assert link.resolve() == TOP / f"init.d/nv_peer_mem{ending}"
    rules = (TOP / "debian/rules").read_text(encoding="utf-8")
    for program in ("dh_installinit", "dh_installsystemd"):
        assert f"\t{program} --name=nv_peer_mem --no-start --no-stop-on-upgrade\n" in rules
    programs = ("debian/rules", "debian/rust-metadata", hook, "debian/postrm.d/nvidia-peer-memory")
    scripts = [TOP / "build/dkms" / name for name in ("kernel", "versions", "prepare", "assembly")]
    for file in (*(TOP / name for name in programs), *scripts):
        assert file.stat().st_mode & 0o111 == 0o111, file


def test_rpm_lists() -> None:
    files = dict(re.findall(r"^%files *(.*)\n((?:(?!%files|%changelog).*\n)*)", SPEC, re.MULTILINE))
    service = files["-f program.files"].split("\n")
    assert "\necho %{_sbindir}/nvpm >program.files\n" in SPEC
    for line in (
        "%config(noreplace) %{_sysconfdir}/infiniband/nv_peer_mem.conf",
        "%{_initddir}/nv_peer_mem",
        "%{tools_dir}",
        "%{_unitdir}/nv_peer_mem.service",
        "%{_presetdir}/90-nv_peer_mem.preset",
        "%{_udevrulesdir}/90-nv_peer_mem.rules",
    ):
        assert line in service, line
    assert "%{kernel_install_dir}/41-%{dkms_name}.install" in files["dkms"]
    assert "%{_usrsrc}/%{dkms_name}-%{version}" in files["dkms"]
    hook = "ln -s ../../..%{_usrsrc}/%{dkms_name}-%{version}/build/dkms/kernel %{buildroot}"
    assert f"{hook}%{{kernel_install_dir}}/41-%{{dkms_name}}.install\n" in SPEC
    assert '\ncp -a Kbuild Makefile dkms.conf build src "$source/"\n' in SPEC
    assert f"\ncp -a {TOOLS} %{{buildroot}}%{{tools_dir}}/\n" in SPEC


def settings(file: str) -> dict[str, list[str]]:
    """Returns the settings of a unit, each with its words."""
    text = (TOP / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    assert len({line.partition("=")[0] for line in lines}) == len(lines)
    return {name: value.split() for name, _, value in (line.partition("=") for line in lines)}


def test_unit() -> None:
    """The unit has the right order, and the right units start and stop it."""
    unit = settings("init.d/nv_peer_mem.service")
    before = {"systemd-modules-load.service", "openibd.service", "nvidia-persistenced.service"}
    before.add("dkms.service")
    assert set(unit["After"]) == before
    assert set(unit["Before"]) == {"slurmd.service", "kubelet.service", "containerd.service"}
    assert unit["PartOf"] == ["openibd.service"]
    assert set(unit["WantedBy"]) == {"multi-user.target", "openibd.service"}
    assert (unit["Type"], unit["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert unit["StartLimitIntervalSec"] == ["0"] and unit["NotifyAccess"] == ["all"]
    script = "/etc/init.d/nv_peer_mem"
    assert unit["ExecCondition"] == [script, "may-start"]
    # The line before the start may write where the unit must not, and cannot make the start fail.
    assert unit["ExecStartPre"] == [f"-+{script}", "put-back"]
    assert (unit["ExecStart"], unit["ExecStop"]) == ([script, "start"], [script, "stop"])
    assert "NoNewPrivileges" not in unit and "ProtectKernelModules" not in unit
    preset = (TOP / "init.d/90-nv_peer_mem.preset").read_text(encoding="utf-8")
    assert preset.endswith("\nenable nv_peer_mem.service\n")


def test_init_header() -> None:
    text = (TOP / "init.d/nv_peer_mem").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^# ([A-Z][\w-]+): +(.*)$", text, re.MULTILINE))
    for side in ("Start", "Stop"):
        assert fields[f"Required-{side}"] == "$local_fs"
        assert fields[f"Should-{side}"] == "openibd nvidia-persistenced"
    assert (fields["Default-Start"], fields["Default-Stop"]) == ("2 3 4 5", "0 1 6")
    assert fields["Provides"] == "nv_peer_mem"
    # SysV init starts the service late, and stops it early.
    assert "\n# chkconfig: 2345 95 05\n" in text


def test_udev_rules() -> None:
    """The rules match the modules that the service needs, and nv_peer_mem itself."""
    lines = (TOP / "init.d/90-nv_peer_mem.rules").read_text(encoding="utf-8").splitlines()
    event = f'RUN+="/usr/lib/{NAME}/module-event'
    assert [line for line in lines if line and not line.startswith("#")] == [
        'SUBSYSTEM!="module", GOTO="nv_peer_mem_end"',
        f'ACTION=="add", KERNEL=="nvidia|ib_core|ib_uverbs", {event} arrived"',
        f'ACTION=="remove", KERNEL=="nv_peer_mem", {event} gone"',
        'LABEL="nv_peer_mem_end"',
    ]


def test_configuration_file() -> None:
    text = (TOP / "nv_peer_mem.conf").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        "ONBOOT=yes",
        "MARKER=no",
    ]


def test_versions_agree() -> None:
    """The version is in four files."""
    conf = (TOP / "dkms.conf").read_text(encoding="utf-8")
    version = re.search(r'^PACKAGE_VERSION="(.*)"$', conf, re.MULTILINE)
    assert version
    changelog = (TOP / "debian/changelog").read_text(encoding="utf-8")
    assert changelog.startswith(f"nvidia-peer-memory ({version[1]}-")
