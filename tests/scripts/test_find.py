# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""build/configure and build/find on systems that are made of files: which kernel, core, driver and
way to compile Rust are chosen, in each order, and what is said about a missing part."""

import os
import re
import shutil
from pathlib import Path

import pytest
from system import ARCH, DOUBLES, TOP, System

K, OTHER = "6.1.0-47-amd64", "6.1.0-50-amd64"
MADE_FOR = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
REGISTER = "ib_register_peer_memory_client"
EX = "ib_umem_stop_invalidation_notifier"
CORE = f"name=ib_core\nsrcversion=C\nexport {REGISTER} 11111111\nexport {EX} 22222222\n"
CORE += "export ib_unregister_peer_memory_client 44444444\n"
PIN = "export nvidia_p2p_get_pages 33333333\n"


def driver(version: str = "550.163.01", licence: str = "NVIDIA", source: str = "D") -> str:
    return f"name=nvidia\nversion={version}\nlicense={licence}\nsrcversion={source}\n{PIN}"


CLOSED, OPEN = driver(), driver(licence="Dual MIT/GPL", source="O")


class Tree(System):
    """A source tree on a system with the kernel K, its headers, a core and a driver. The scripts
    are copies, in which the directories of the system are replaced."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name in ("modinfo", "modprobe", "nm", "readelf"):
            (root / "bin" / name).unlink(missing_ok=True)
            (root / "bin" / name).symlink_to(DOUBLES / "kmod")
        for name in ("make", "gcc"):
            self.put(f"bin/{name}", "#!/bin/sh\n", 0o755)
        self.put("bin/uname", f"#!/bin/sh\n[ $1 = -m ] && echo {ARCH} || echo {OTHER}\n", 0o755)
        self.top = root / "tree"
        self.top.mkdir()
        for name in ("dkms.conf", "build", "src"):
            if (TOP / name).is_dir():
                shutil.copytree(TOP / name, self.top / name, ignore=ignored)
            else:
                shutil.copy(TOP / name, self.top)
        for file in [self.top / "build/configure", *(self.top / "build/find").iterdir()]:
            text = file.read_text(encoding="utf-8")
            pattern = r"(?<![\w/.}$*])/(lib/modules|usr/src|usr/lib/rust|etc|sys|var/lib)/"
            text = re.sub(pattern, rf"{root}/\1/", text)
            # The default of these two settings is the root of the system.
            text = re.sub(r'\$(CORE|DRIVER)_ROOT("?/)', rf"${{\1_ROOT:-{root}}}\2", text)
            file.write_text(text, encoding="utf-8")
        # A release has the compiled Rust. The double of rust-assembly takes any file for current.
        self.put(f"tree/build/prebuilt/{ARCH}.S", "any\n")
        self.put("tree/build/rust-assembly", '[ -e "$3" ] || { echo ", is missing"; exit 1; }\n')
        self.put("tree/build/find/rustc", 'echo "no rustc"; exit 1\n', 0o755)
        self.put("etc/os-release", "ID=debian\n")
        self.kernel_tree(K)
        self.module(K, "ib_core", CORE)
        self.module(K, "nvidia", CLOSED)

    def kernel_tree(self, kernel: str, *config: str) -> None:
        self.put(f"lib/modules/{kernel}/modules.dep.bin", "x")
        self.put(f"lib/modules/{kernel}/build/Makefile")
        self.put(f"lib/modules/{kernel}/build/include/config/kernel.release", f"{kernel}\n")
        self.put(f"lib/modules/{kernel}/build/Module.symvers")
        self.config(kernel, *config)

    def config(self, kernel: str, *config: str) -> None:
        text = "".join(f"{line}\n" for line in config)
        self.put(f"lib/modules/{kernel}/build/.config", text)

    def module(self, kernel: str, name: str, text: str) -> Path:  # type: ignore[override]
        file = self.put(f"lib/modules/{kernel}/updates/{name}.ko", text)
        dep = self.root / f"lib/modules/{kernel}/modules.dep"
        files = sorted(path.name for path in file.parent.iterdir())
        dep.write_text("".join(f"updates/{name}:\n" for name in files), encoding="utf-8")
        return file

    def drop(self, *names: str) -> None:
        for name in names:
            path = self.root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def given_core(self) -> None:
        """Puts the directory of an RDMA core below `ofed`."""
        self.put("ofed/include/rdma/peer_mem.h", HEADERS["EX"])
        self.put("ofed/Module.symvers", f"0x00000000\t{REGISTER}\tib_core\n")

    def configure(self, *words: str, **environment: str) -> dict[str, str]:
        """Runs configure, and returns the settings that it prints."""
        environment.setdefault("KVER", K)
        code = self.run("dash", self.top / "build/configure", *words, **environment)
        assert code == 0, self.output
        return dict(re.findall(r"^(\w+)='(.*)'$", self.output, re.MULTILINE))

    def says(self, said: str, *words: str, **environment: str) -> None:
        """Checks that configure fails and prints a single message, which contains SAID."""
        environment.setdefault("KVER", K)
        assert self.run("dash", self.top / "build/configure", *words, **environment) == 1
        ours = [line for line in self.output.splitlines() if line.startswith("nv_peer_mem: ")]
        assert len(ours) == 1 and said in ours[0], self.output

    def shell(self, script: str) -> str:
        """Runs a script after the parts of configure were read."""
        parts = (TOP / "build/configure").read_text(encoding="utf-8")
        names = re.search(r"^for part in (.*); do$", parts, re.MULTILINE)
        assert names
        read = "; ".join(f'. "{self.top}/build/find/{name}.sh"' for name in names[1].split())
        die = 'die() { echo "died: $*"; exit 1; }; found() { echo "found: $*"; }; quiet='
        self.run("dash", "-c", f"here={self.top}/build; top={self.top}; {die}; {read}; {script}")
        return self.output.strip()


def ignored(directory: str, names: list[str]) -> list[str]:
    return [
        name for name in names if name in ("prebuilt", "target") or name.endswith((".o", ".cmd"))
    ]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def test_everything_is_there(tree: Tree) -> None:
    said = tree.configure()
    root = str(tree.root)
    assert {name: value.replace(root, "") for name, value in said.items()} == {
        "KVER": K,
        "KDIR": f"/lib/modules/{K}/build",
        "NVPM_COMPILER": "",
        "NVPM_TARGET": MADE_FOR[ARCH],
        "NVPM_INCLUDES": "/tree/src/include/core /tree/src/include/nvidia",
        "NVPM_CORE": "EX",
        "NVPM_DRIVER": "",
        "NVPM_SYMBOLS": "/tree/ib_core.symvers /tree/nvidia.symvers",
        "NVPM_RUST": "prebuilt",
        "NVPM_ASSEMBLE": "",
        "RUSTC": "rustc",
        "NVPM_LIBRARY": "",
        "BINDGEN": "bindgen",
    }
    assert tree.configure("--check") == {} and tree.output == ""
    symbols = (tree.top / "nvidia.symvers").read_text()
    assert symbols == "0x00000000\tnvidia_p2p_get_pages\tnvidia\tEXPORT_SYMBOL\t\n"


# ---- options ----


@pytest.mark.parametrize(
    "words", [["--bogus"], ["--chekc"], ["--dkms"], ["--dkms", "x"], ["--check", "x"], ["KVER"]]
)
def test_wrong_options(tree: Tree, words: list[str]) -> None:
    assert tree.run("dash", tree.top / "build/configure", *words) == 2
    assert tree.output.startswith("Usage: configure [--quiet | --check | --dkms core|driver")


def test_help(tree: Tree) -> None:
    assert tree.run("dash", tree.top / "build/configure", "--help") == 0
    assert len(tree.output.splitlines()) == 5
    assert tree.run("dash", TOP / "build/make") == 2
    assert tree.run("dash", TOP / "build/make", "nonsense") == 2
    assert tree.output.startswith("Usage: ")


def test_closed_stderr(tree: Tree) -> None:
    command = f"KVER={K} dash {tree.top}/build/configure 2>&-"
    assert tree.run("dash", "-c", command) == 0
    assert f"KVER='{K}'" in tree.output


def test_missing_programs(tree: Tree) -> None:
    """dkms does not report that make is missing. If there is a vmlinux, the types of modules need
    pahole."""
    tools = tree.root / "tools"
    tools.mkdir()
    for name in (
        "sed",
        "cat",
        "awk",
        "mktemp",
        "rm",
        "dash",
        "sh",
        "find",
        "head",
        "grep",
        "tail",
        "tr",
    ):
        program = shutil.which(name)
        assert program
        (tools / name).symlink_to(program)
    for name in ("modinfo", "modprobe", "nm", "uname", "dirname", "cut", "paste", "sort"):
        program = shutil.which(name, path=f"{tree.root}/bin:{os.environ['PATH']}")
        assert program
        (tools / name).symlink_to(program)
    configure = tree.top / "build/configure"
    text = configure.read_text()
    assert "PATH=$PATH:/usr/sbin:/sbin" in text
    configure.write_text(text.replace("PATH=$PATH:/usr/sbin:/sbin", ""))
    tree.says("make is missing: install it (package make).", "--check", PATH=str(tools))
    (tools / "make").symlink_to("/bin/true")
    (tools / "modinfo").rename(tools / "away")
    symbols = tree.top / "build/find/symbols.sh"
    text = symbols.read_text()
    symbols.write_text(text.replace("in /usr/sbin/modinfo /sbin/modinfo", "in /none /none"))
    symbols.write_text(symbols.read_text().replace("/usr/bin/modinfo /bin/modinfo", "/none /none"))
    tree.says("modinfo is missing: install it (package kmod).", "--check", PATH=str(tools))
    symbols.write_text(text)
    (tools / "away").rename(tools / "modinfo")
    tree.configure("--check", PATH=str(tools))
    btf = "CONFIG_DEBUG_INFO_BTF_MODULES=y"
    tree.config(K, btf)
    tree.configure("--check", PATH=str(tools))
    tree.put(f"lib/modules/{K}/build/vmlinux")
    tree.says(
        f"pahole is missing, which the build of modules for kernel {K} runs "
        "(CONFIG_DEBUG_INFO_BTF_MODULES): install it (package pahole, or dwarves before Debian "
        "12).",
        "--check",
        PATH=str(tools),
    )
    tree.configure("--check", PATH=str(tools), PAHOLE="sed")
    tree.config(K, f"# {btf} is not set")
    tree.configure("--check", PATH=str(tools))


# ---- the kernel ----


@pytest.mark.parametrize(
    "release, limit, older",
    [
        *(
            (release, "4.18", True)
            for release in ("4.17.19", "4.9.0-1", "3.19.0", "3.10", "2.6.32")
        ),
        *(
            (release, "4.18", False)
            for release in ("4.18", "4.18.0-553.el8", "4.19.1", "5.0", "10.1")
        ),
        *((release, "6.12", True) for release in ("6.11.99", "6.1.0-47-amd64", "5.14.0", "6.2")),
        *((release, "6.12", False) for release in ("6.12", "6.12.0-rc1", "6.13", "7.0", "7.3~rc7")),
        *((release, "4.18", False) for release in ("4.18-rc1", "4.18+")),
        ("unknown", "4.18", False),
    ],
)
def test_older_than(tree: Tree, release: str, limit: str, older: bool) -> None:
    said = tree.shell(f"release='{release}'; older_than {limit} && echo older || echo not")
    assert said == ("older" if older else "not")


def test_kernels_that_are_too_old(tree: Tree) -> None:
    release = f"lib/modules/{K}/build/include/config/kernel.release"
    tree.put(release, "4.17.0\n")
    tree.says("kernel 4.17.0 is older than 4.18, the oldest that this module can be built for.")
    tree.put(release, "4.18.0-553.el8_10.x86_64\n")
    tree.configure()


@pytest.mark.parametrize(
    "environment, kernel",
    [
        ({}, OTHER),
        ({"KDIR": "ROOT/lib/modules/" + K + "/build"}, K),
        ({"KVER": "", "KDIR": "ROOT/lib/modules/" + K}, K),
        ({"KDIR": "ROOT/lib/modules/" + K + "/nothing"}, K),
        ({"KDIR": "ROOT/usr/src"}, OTHER),
        ({"KVER": K}, K),
        ({"KVER": "6.9", "KDIR": "ROOT/lib/modules/" + K + "/build"}, "6.9"),
    ],
)
def test_which_kernel(tree: Tree, environment: dict[str, str], kernel: str) -> None:
    """A message names the headers' package of the kernel that was meant."""
    for name, value in environment.items():
        environment[name] = value.replace("ROOT", str(tree.root))
    lines = "; ".join(f"{name}='{value}'" for name, value in environment.items())
    assert tree.shell(f"{lines}\nchoose_kernel; echo $KVER") == kernel


def test_utsrelease_comes_first(tree: Tree) -> None:
    """Before Debian 13 the file kernel.release of the headers has another name."""
    build = f"lib/modules/{K}/build"
    tree.put(f"{build}/include/generated/utsrelease.h", '#define UTS_RELEASE "1.2.3-x"\n')
    assert tree.shell(f"KDIR={tree.root}/{build}; choose_kernel; echo $KVER") == "1.2.3-x"


def test_no_headers(tree: Tree) -> None:
    tree.drop(f"lib/modules/{K}/build")
    tree.says(f"no headers of kernel {K}: install linux-headers-{K}, or give KDIR=.")
    tree.put("etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    tree.says(f"no headers of kernel {K}: install kernel-devel-{K}, or give KDIR=.")
    tree.put("etc/os-release", 'ID="sles"\n')
    tree.says(f"install kernel-default-devel of {K}, or give KDIR=.")
    tree.says(
        f"KDIR={tree.root}/lib/modules/{K} is not a configured kernel tree".replace(
            str(tree.root), ""
        ),
        KDIR=f"{tree.root}/lib/modules/{K}",
    )
    assert f"(for kernel {K} package" in tree.output


def test_clang(tree: Tree) -> None:
    for name in ("clang", "ld.lld", "llvm-nm", "llvm-objcopy"):
        tree.put(f"bin/{name}", "#!/bin/sh\n", 0o755)
    clang, lld = "CONFIG_CC_IS_CLANG=y", "CONFIG_LD_IS_LLD=y"
    tree.config(K, clang)
    assert tree.configure()["NVPM_COMPILER"] == "CC=clang"
    tree.config(K, clang, lld)
    assert tree.configure()["NVPM_COMPILER"] == "LLVM=1"
    for environment in ({"LLVM": "-19"}, {"MAKEFLAGS": " -- CC=x"}, {"MAKEFLAGS": "LLVM=1"}):
        assert tree.configure(**environment)["NVPM_COMPILER"] == ""
    tree.drop("bin/llvm-objcopy")
    if not shutil.which("llvm-objcopy"):
        tree.says(f"kernel {K} was built with clang, and llvm-objcopy is missing")


# ---- the modules that depmod lists ----


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_depmod_has_not_run(tree: Tree, state: str) -> None:
    """The driver is installed, so the message must not advise to install a driver."""
    listed = f"lib/modules/{K}/modules.dep.bin"
    tree.drop(listed)
    if state == "empty":
        tree.put(listed)
    tree.says(f"depmod has not listed the modules of kernel {K}, such as /lib/modules/{K}/updates/")
    assert f": run depmod {K} as root." in tree.output
    tree.drop(f"lib/modules/{K}/updates/ib_core.ko")
    tree.module(K, "nvidia-current", CLOSED)
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    tree.given_core()
    tree.says("/updates/nvidia-current.ko (no mod", OFA_KERNEL=f"{tree.root}/ofed")
    tree.drop(f"lib/modules/{K}/updates")
    tree.says(f"no RDMA core with peer memory for kernel {K}")


def test_depmod_need_not_run(tree: Tree) -> None:
    """Both neighbours are given, with their symbols. The kernel's own modules are not listed; one
    of them has a name that begins like the driver's."""
    tree.drop(f"lib/modules/{K}/modules.dep.bin", f"lib/modules/{K}/updates/nvidia.ko")
    backlight = "name=nvidia_wmi_ec_backlight\n"
    tree.module(K, "nvidia-wmi-ec-backlight", backlight)
    tree.given_core()
    header = "#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API x\n"
    tree.put("driver/nvidia/nv-p2p.h", header)
    given = {"OFA_KERNEL": f"{tree.root}/ofed", "NV_SRC": f"{tree.root}/driver"}
    tree.says(f"no NVIDIA driver for kernel {K}", **given)
    tree.put("driver/Module.symvers", "0x00000000\tnvidia_p2p_get_pages\tnvidia\n")
    said = tree.configure(**given)
    assert said["NVPM_SYMBOLS"] == "/ofed/Module.symvers /driver/Module.symvers"


# ---- neighbours below other roots ----


class Pod(Tree):
    """A container without modules. Another container brings the driver, and shows its root
    directory below /driver. The node brings the core, and its root directory is mounted below
    /node."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "node/usr").mkdir(parents=True)
        (root / "driver/usr").mkdir(parents=True)
        self.drop(f"lib/modules/{K}/modules.dep.bin", f"lib/modules/{K}/updates")
        self.put(f"driver/lib/modules/{K}/kernel/drivers/video/nvidia.ko", OPEN)
        self.put(f"node/lib/modules/{K}/updates/ib_core.ko", CORE)
        self.roots = {"CORE_ROOT": f"{root}/node", "DRIVER_ROOT": f"{root}/driver/"}


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path / "root")


@pytest.mark.parametrize("listed", [True, False])
def test_roots(pod: Pod, listed: bool) -> None:
    """depmod may not have run in a container."""
    if listed:
        pod.put(f"node/lib/modules/{K}/modules.dep.bin", "x")
        pod.put(f"driver/lib/modules/{K}/modules.dep.bin", "x")
    pod.put(
        "driver/usr/src/nvidia-550.163.01/nvidia/nv-p2p.h",
        "#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API x\n",
    )
    pod.put("node/usr/src/ofa_kernel/default/include/rdma/peer_mem.h", HEADERS["EX"])
    pod.put("node/usr/src/ofa_kernel/default/Module.symvers", f"0x00000000\t{REGISTER}\tib_core\n")
    said = pod.configure(**pod.roots)
    assert said["NVPM_DRIVER"] == "open"
    assert said["NVPM_INCLUDES"] == (
        "/node/usr/src/ofa_kernel/default/include /driver/usr/src/nvidia-550.163.01/nvidia"
    )
    symbols = said["NVPM_SYMBOLS"].split()
    assert [Path(file).name for file in symbols] == ["ib_core.symvers", "nvidia.symvers"]


def test_a_core_below_a_root_as_a_tree_only(pod: Pod) -> None:
    """The OFED container shows sources without modules. The absolute link `default` leads nowhere
    here."""
    trees = pod.root / "ofed/usr/src/ofa_kernel"
    tree = f"ofed/usr/src/ofa_kernel/{ARCH}/{K}"
    pod.put(f"{tree}/include/rdma/peer_mem.h", HEADERS["EX"])
    pod.put(f"{tree}/Module.symvers", f"0x55555555\t{REGISTER}\tib_core\n")
    (trees / "default").symlink_to(f"/usr/src/ofa_kernel/{ARCH}/{K}")
    said = pod.configure(**{**pod.roots, "CORE_ROOT": f"{pod.root}/ofed"})
    assert said["NVPM_INCLUDES"].split()[0] == f"/{tree}/include"
    assert said["NVPM_SYMBOLS"].split()[0] == f"/{tree}/Module.symvers"


def test_nothing_below_a_root(pod: Pod) -> None:
    """The driver of this system must not be taken in place of the missing driver."""
    pod.module(K, "nvidia", CLOSED)
    pod.module(K, "ib_core", CORE)
    pod.drop("driver/lib")
    pod.says(f"no NVIDIA driver for kernel {K} below /driver: ", **pod.roots)
    pod.drop("node/lib")
    pod.says(f"no RDMA core with peer memory for kernel {K} below /node: ", **pod.roots)


@pytest.mark.parametrize("setting", ["CORE_ROOT", "DRIVER_ROOT"])
def test_wrong_roots(pod: Pod, setting: str) -> None:
    pod.says(f"{setting}=node is a relative path", **{**pod.roots, setting: "node"})
    pod.says(f"{setting}=/none is no directory", **{**pod.roots, setting: f"{pod.root}/none"})


# ---- the driver ----


def test_the_drivers_flavour(tree: Tree) -> None:
    assert tree.configure()["NVPM_DRIVER"] == ""
    tree.module(K, "nvidia", OPEN)
    assert tree.configure()["NVPM_DRIVER"] == "open"


@pytest.mark.parametrize("first, second", [(CLOSED, OPEN), (OPEN, CLOSED)])
def test_two_drivers(tree: Tree, first: str, second: str) -> None:
    """In either order, the driver that modprobe would load counts. Without such a driver, the
    loaded driver counts. Otherwise the proprietary driver counts, because a module for the
    proprietary driver also loads with the open driver."""
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    tree.module(K, "nvidia-current", first)
    tree.module(K, "nvidia-tesla", second)
    assert tree.configure()["NVPM_DRIVER"] == ""
    for source, flavour in (("D", ""), ("O", "open"), ("another", "")):
        tree.put("sys/module/nvidia/srcversion", f"{source}\n")
        assert tree.configure()["NVPM_DRIVER"] == flavour
    for name, text in (("nvidia-current", first), ("nvidia-tesla", second)):
        flavour = "open" if text == OPEN else ""
        tree.put("show-depends", f"install modprobe -i {name} $CMDLINE_OPTS\n")
        assert tree.configure()["NVPM_DRIVER"] == flavour
        tree.put("show-depends", f"insmod /lib/x/ib_core.ko \ninsmod /lib/x/{name}.ko.xz \n")
        assert tree.configure()["NVPM_DRIVER"] == flavour


def test_two_drivers_without_checksums(tree: Tree) -> None:
    """No driver is loaded. This must not be taken for a loaded driver without a checksum of its
    source."""
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    tree.module(K, "nvidia-a", driver(licence="GPL").replace("srcversion=D\n", ""))
    tree.module(K, "nvidia-b", driver().replace("srcversion=D\n", ""))
    assert tree.configure()["NVPM_DRIVER"] == ""


def test_two_open_drivers_and_other_modules(tree: Tree) -> None:
    """If there are two proprietary drivers, the last driver counts. Other modules of NVIDIA are no
    driver."""
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    tree.module(K, "nvidia-a", driver("550.1", "GPL", "A"))
    tree.module(K, "nvidia-b", driver("560.1", "NVIDIA", "B"))
    tree.module(K, "nvidia-c", driver("570.1", "NVIDIA", "C"))
    tree.module(K, "nvidia-uvm", "name=nvidia_uvm\nversion=1\nlicense=NVIDIA\n")
    tree.configure()
    assert "nvidia-c.ko (version 570.1, proprietary)" in tree.output


@pytest.mark.parametrize(
    "version, good",
    [
        ("535.261.03", True),
        ("535", True),
        ("534.99", False),
        ("470.256.02", False),
        ("600.1", True),
    ],
)
def test_the_drivers_version(tree: Tree, version: str, good: bool) -> None:
    tree.module(K, "nvidia", driver(version))
    if good:
        tree.configure()
    else:
        tree.says(f"the NVIDIA driver {version} is too old: install version 535 or later")


def test_an_empty_driver(tree: Tree) -> None:
    """A full disk has cut the file; dkms counts the driver as installed."""
    tree.module(K, "nvidia", "")
    tree.put("var/lib/dkms/nvidia/550.1/source/dkms.conf", 'BUILT_MODULE_NAME[0]="nvidia"\n')
    tree.says("/updates/nvidia.ko is empty, as after a full disk: install the NVIDIA driver again")
    assert "modinfo: ERROR" not in tree.output


def test_no_driver(tree: Tree) -> None:
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    advice = "install it (package nvidia-open-kernel-dkms or nvidia-kernel-dkms), or give NV_SRC="
    tree.says(f"no NVIDIA driver for kernel {K}: {advice}")
    tree.put("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")
    tree.says("(package for example nvidia-dkms-580-open or nvidia-dkms-580)")
    tree.put("var/lib/dkms/nvidia/550.1/source/dkms.conf", "BUILT_MODULE_NAME[0]='nvidia' # x\n")
    tree.says(f"no NVIDIA driver for kernel {K}: dkms knows nvidia/550.1, but has not built it")
    tree.put("var/lib/dkms/nvidia/560.1/source/dkms.conf", "BUILT_MODULE_NAME[0]='nvidia'\n")
    tree.says("dkms knows nvidia/560.1, but has not built it for this kernel (dkms install")
    tree.configure("--check", NVPM_LATER="core driver")
    tree.says(f"no NVIDIA driver for kernel {K}", "--check", NVPM_LATER="core")
    # dkms has installed the driver for this kernel, so dkms would only answer that it has done so.
    # The link of another kernel, or of another package, says nothing.
    for number, link in enumerate((f"nvidia/kernel-6.9-{ARCH}", f"other/kernel-{K}-{ARCH}")):
        (tree.root / "var/lib/dkms/other").mkdir(exist_ok=True)
        (tree.root / "var/lib/dkms" / link).symlink_to(f"560.1/{number}")
        tree.says("dkms knows nvidia/560.1, but has not built it for this kernel (dkms install")
    (tree.root / f"var/lib/dkms/nvidia/kernel-{K}-{ARCH}").symlink_to(f"550.1/{K}/{ARCH}")
    tree.says("(package for example nvidia-dkms-580-open or nvidia-dkms-580)")
    assert "dkms knows" not in tree.output
    tree.configure("--quiet", KBUILD_MODPOST_WARN="1")


def test_the_drivers_header(tree: Tree) -> None:
    """The header of the driver's version is taken. Without a driver, the newest header is taken."""
    good = "#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API x\n"
    for version in ("550.163.01", "99.1", "595.45.04"):
        tree.put(f"usr/src/nvidia-{version}/nvidia/nv-p2p.h", good)
    assert tree.configure()["NVPM_INCLUDES"].endswith("/usr/src/nvidia-550.163.01/nvidia")
    tree.drop(f"lib/modules/{K}/updates/nvidia.ko")
    tree.configure("--quiet", KBUILD_MODPOST_WARN="1")
    assert "/usr/src/nvidia-595.45.04/nvidia'" in tree.output
    tree.put("usr/src/nvidia-595.45.04/nvidia/nv-p2p.h", "old\n")
    tree.says(
        "nv-p2p.h is of an NVIDIA driver before 535", KBUILD_MODPOST_WARN="1", NVPM_LATER="driver"
    )
    source = tree.root / "usr/src/nvidia-550.163.01"
    tree.says(f"no NVIDIA driver for kernel {K}", NV_SRC=str(source))
    tree.put("usr/src/nvidia-550.163.01/Module.symvers", "x")
    for given in (source, source / "nvidia"):
        said = tree.configure(NV_SRC=str(given))
        assert said["NVPM_SYMBOLS"].endswith("/usr/src/nvidia-550.163.01/Module.symvers")
    # In NVIDIA's own sources the directory has one of these names.
    for flavour in ("kernel-open", "kernel"):
        tree.put(f"opt/{flavour}/{flavour}/nvidia/nv-p2p.h", good)
        said = tree.configure("--quiet", NV_SRC=f"{tree.root}/opt/{flavour}", NVPM_LATER="driver")
        assert said["NVPM_INCLUDES"].endswith(f"/opt/{flavour}/{flavour}/nvidia")
    tree.says("has no nvidia/nv-p2p.h: give the source directory", NV_SRC="/none")


def test_not_nvidias_driver(tree: Tree) -> None:
    tree.module(K, "nvidia", driver().replace(PIN, ""))
    tree.says("exports no nvidia_p2p_* function, so it is not NVIDIA's driver: install that")


# ---- the core ----

PLAIN = f"name=ib_core\nexport {REGISTER} 11111111\nexport ib_umem_get_peer 1\n"
PRIVATE = f"name=ib_core\nexport {REGISTER} 1\nexport ib_umem_activate_invalidation_notifier 1\n"
HEADERS = {
    "EX": "PEER_MEM_U64_CORE_CONTEXT peer_memory_client_ex\n",
    "PRIVATE_DATA": "PEER_MEM_U64_CORE_CONTEXT get_context_private_data\n",
    "PLAIN": "PEER_MEM_U64_CORE_CONTEXT\n",
}
KINDS = {"EX": CORE, "PLAIN": PLAIN, "PRIVATE_DATA": PRIVATE}


@pytest.mark.parametrize("kind", KINDS)
def test_the_cores_kind(tree: Tree, kind: str) -> None:
    """Without a header, the exports tell the kind."""
    tree.module(K, "ib_core", KINDS[kind])
    assert tree.configure()["NVPM_CORE"] == kind
    # Since OFED 24.07 the functions are in ib_uverbs.
    tree.module(K, "ib_core", "name=ib_core\nexport ib_x 1\n")
    tree.module(K, "ib_uverbs", KINDS[kind])
    assert tree.configure()["NVPM_CORE"] == kind
    assert f"ib_uverbs    /lib/modules/{K}/updates/ib_uverbs.ko" in tree.output
    tree.module(K, "ib_core", KINDS[kind])
    tree.configure()
    assert f"ib_uverbs    /lib/modules/{K}/updates/ib_uverbs.ko" in tree.output
    tree.module(K, "ib_core", "name=ib_core\nexport ib_x 1\n")
    tree.module(K, "ib_uverbs", f"name=ib_uverbs\nexport {REGISTER} 1\n")
    tree.says("but no function by which its generation is known: give OFA_KERNEL=")


def ofed(
    tree: Tree, where: str, kind: str, version: str = "0x00000000", listed: bool = True
) -> str:
    tree.put(f"{where}/include/rdma/peer_mem.h", HEADERS[kind])
    line = f"{version}\t{REGISTER}\tx\tEXPORT_SYMBOL\t\n" if listed else ""
    other = {
        "EX": EX,
        "PLAIN": "ib_umem_get_peer",
        "PRIVATE_DATA": "ib_umem_activate_invalidation_notifier",
    }
    tree.put(f"{where}/Module.symvers", f"{line}0x1\t{other[kind]}\tx\tEXPORT_SYMBOL\t\n")
    return str(tree.root / where)


@pytest.mark.parametrize("place", [f"{ARCH}/{K}", K, "default"])
def test_the_tree_of_the_core(tree: Tree, place: str) -> None:
    given = ofed(tree, f"usr/src/ofa_kernel/{place}", "EX")
    said = tree.configure()
    assert said["NVPM_INCLUDES"].startswith(f"/usr/src/ofa_kernel/{place}/include ")
    # The symbols are those of the installed module all the same.
    assert said["NVPM_SYMBOLS"].startswith("/tree/ib_core.symvers ")
    # A tree of another core is set aside, and a message says so.
    for kind, version, listed, why in (
        ("EX", "0x5", True, f"has another version of {REGISTER} than"),
        ("EX", "0x0", False, f"does not list {REGISTER}"),
        ("PLAIN", "0x00000000", True, "peer_mem.h is of another generation than the functions"),
    ):
        ofed(tree, f"usr/src/ofa_kernel/{place}", kind, version, listed)
        assert tree.configure()["NVPM_INCLUDES"].startswith("/tree/src/include/core ")
        assert f"none needed: /usr/src/ofa_kernel/{place} is not its directory (its" in tree.output
        assert why in tree.output
        tree.says(
            f"OFA_KERNEL=/usr/src/ofa_kernel/{place} is not of the RDMA core that kernel",
            OFA_KERNEL=given,
        )


def test_the_first_tree_that_fits(tree: Tree) -> None:
    for place in ("default", K, f"{ARCH}/{K}"):
        ofed(tree, f"usr/src/ofa_kernel/{place}", "EX")
        assert tree.configure()["NVPM_INCLUDES"].startswith(f"/usr/src/ofa_kernel/{place}/include ")


def test_the_tree_of_another_kernel(tree: Tree) -> None:
    """Without an installed core, `default` counts only for its kernel."""
    tree.drop(f"lib/modules/{K}/updates/ib_core.ko")
    ofed(tree, f"usr/src/ofa_kernel/{ARCH}/{OTHER}", "EX")
    (tree.root / "usr/src/ofa_kernel/default").symlink_to(f"{ARCH}/{OTHER}")
    tree.says(
        f"no RDMA core with peer memory for kernel {K}; /usr/src/ofa_kernel/default is that of "
        f"kernel {OTHER}: install MLNX_OFED"
    )
    # The link `default` now leads to the directory of this kernel, in another place.
    (tree.root / "usr/src/ofa_kernel/default").unlink()
    (tree.root / "usr/src/ofa_kernel/default").symlink_to(ofed(tree, f"opt/{K}", "PLAIN"))
    assert tree.configure()["NVPM_CORE"] == "PLAIN"
    ofed(tree, f"usr/src/ofa_kernel/{ARCH}/{K}", "PRIVATE_DATA")
    said = tree.configure()
    assert said["NVPM_CORE"] == "PRIVATE_DATA"
    assert said["NVPM_SYMBOLS"].startswith(f"/usr/src/ofa_kernel/{ARCH}/{K}/Module.symvers ")


def test_the_core_without_peer_memory(tree: Tree) -> None:
    """OFED is there, but depmod prefers another core."""
    tree.module(K, "ib_core", "name=ib_core\nexport ib_x 1\n")
    tree.says(f"no RDMA core with peer memory for kernel {K}: install MLNX_OFED or DOCA-OFED")
    ofed(tree, "usr/src/ofa_kernel/default", "EX")
    tree.says("which is installed, has none: install OFED's modules for it again")


def test_a_loaded_core_from_elsewhere(tree: Tree) -> None:
    """A container has loaded another core than the installed core. The tree that the user gives is
    taken."""
    given = ofed(tree, "given", "EX", "0x5")
    tree.put("bin/uname", f"#!/bin/sh\n[ $1 = -m ] && echo {ARCH} || echo {K}\n", 0o755)
    tree.says("is not of the RDMA core that kernel", OFA_KERNEL=given)
    tree.put("sys/module/ib_core/srcversion", "C\n")
    tree.says("is not of the RDMA core that kernel", OFA_KERNEL=given)
    tree.put("sys/module/ib_core/srcversion", "another\n")
    assert tree.configure(OFA_KERNEL=given)["NVPM_SYMBOLS"].startswith("/given/Module.symvers ")
    tree.says("has no include/rdma/peer_mem.h: give the directory that has it.", OFA_KERNEL="/none")


def test_a_core_that_is_too_old(tree: Tree) -> None:
    given = ofed(tree, "given", "EX")
    tree.put("given/include/rdma/peer_mem.h", "nothing\n")
    tree.says("is of an RDMA core older than MLNX_OFED 4.0", OFA_KERNEL=given)


def test_the_kernel_itself_has_peer_memory(tree: Tree) -> None:
    tree.drop(f"lib/modules/{K}/updates/ib_core.ko")
    ofed(tree, f"lib/modules/{K}/build", "EX")
    said = tree.configure()
    assert said["NVPM_SYMBOLS"].strip() == "/tree/nvidia.symvers" and said["NVPM_CORE"] == "EX"
    assert f"none needed: kernel {K} has peer memory" in tree.output


def test_busyboxs_modinfo(tree: Tree) -> None:
    """If the shell has a modinfo of its own, which is not that of kmod, the program modinfo is run
    in its place."""
    own = "modinfo() { echo own; }"
    symbols = tree.top / "build/find/symbols.sh"
    text = symbols.read_text()
    assert "/usr/sbin/modinfo /sbin/modinfo" in text
    symbols.write_text(text.replace("/usr/sbin/modinfo /sbin", f"{tree.root}/bin/modinfo /sbin"))
    file = tree.root / f"lib/modules/{K}/updates/nvidia.ko"
    script = f". {symbols}; modinfo -F version {file}"
    tree.run("dash", "-c", f"{own}; {script}")
    assert tree.output == "550.163.01\n"


# ---- versions of symbols, and compressed files ----


def test_versions_of_symbols(tree: Tree) -> None:
    tree.config(K, "CONFIG_MODVERSIONS=y")
    tree.configure()
    assert (tree.top / "nvidia.symvers").read_text().startswith("0x33333333\tnvidia_p2p_get_pages")
    tree.module(K, "nvidia", driver().replace(" 33333333", ""))
    tree.says(f"kernel {K} checks symbol versions, and /lib/modules/{K}/updates/nvidia.ko has none")


@pytest.mark.parametrize("ending, program", [("xz", "xz"), ("gz", "gzip"), ("zst", "zstd")])
def test_compressed_modules(tree: Tree, ending: str, program: str) -> None:
    tree.put(f"bin/{program}", '#!/bin/sh\n[ "$1" = -dc ] && cat "$2"\n', 0o755)
    plain = tree.root / f"lib/modules/{K}/updates/ib_core.ko"
    plain.rename(f"{plain}.{ending}")
    assert tree.configure()["NVPM_CORE"] == "EX"
    tree.put(f"bin/{program}", "#!/bin/sh\nexit 1\n", 0o755)
    tree.says(f"ib_core.ko.{ending} cannot be read: install it again.")


# ---- settings ----


def test_settings(tree: Tree) -> None:
    given = ofed(tree, "given", "EX")
    file = "etc/nv_peer_mem-build.conf"
    tree.put(file, f"# a comment\n\nOFA_KERNEL={given}")
    assert tree.configure()["NVPM_INCLUDES"].startswith("/given/include ")
    other = ofed(tree, "other", "EX")
    assert tree.configure(OFA_KERNEL=other)["NVPM_INCLUDES"].startswith("/other/include ")
    source = tree.root / "opt/driver"
    tree.put("opt/driver/nvidia/nv-p2p.h", "#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API x\n")
    tree.put("opt/driver/Module.symvers")
    tree.put(file, "NV_SRC=/none\n")
    assert tree.configure(NV_SRC=str(source))["NVPM_INCLUDES"].endswith("/opt/driver/nvidia")
    tree.put(file, f"NV_SRC={source}\n")
    assert tree.configure()["NVPM_INCLUDES"].endswith("/opt/driver/nvidia")
    tree.put(file, "OFA_KERNEL=/none\nNV_SRC=/none\n")
    tree.says("OFA_KERNEL=/none (of /etc/nv_peer_mem-build.conf) has no include")
    for line in (
        "OFA_KERNEL=relative",
        "export NV_SRC=/x",
        'NV_SRC="/x"',
        "NV_SRC=/a b",
        "x",
        " #",
    ):
        tree.put(file, f"# first\n{line}\n")
        tree.says(f"nv_peer_mem-build.conf, line 2: '{line}' is neither a comment nor")
    tree.put(file, "NV_SRC=/x\r\n")
    tree.says("line 1: the line ends in a carriage return, as on Windows.")


def test_characters_that_the_build_cannot_take(tree: Tree) -> None:
    tree.says("leads to a directory with a blank in its name", OFA_KERNEL=ofed(tree, "a b", "EX"))
    tree.says(
        "contains an apostrophe: choose a path without one.", OFA_KERNEL=ofed(tree, "a'b", "EX")
    )


# ---- Rust ----

CRATES = ("CONFIG_RUST=y", 'CONFIG_RUSTC_VERSION_TEXT="rustc 1.85.1 (x)"')


def with_crates(tree: Tree) -> None:
    tree.module(K, "nvidia", OPEN)
    tree.config(K, *CRATES, 'CONFIG_BINDGEN_VERSION_TEXT="bindgen 0.71.1"')
    tree.put(f"lib/modules/{K}/build/include/config/kernel.release", "6.12.1\n")
    tree.put(f"lib/modules/{K}/build/rust/libkernel.rmeta")
    tree.put("bin/rustc", '#!/bin/sh\necho "rustc 1.85.1 (x)"\n', 0o755)
    tree.put("bin/bindgen", "#!/bin/sh\n", 0o755)


def test_the_kernels_crates(tree: Tree) -> None:
    with_crates(tree)
    assert tree.configure()["NVPM_RUST"] == "in-kernel"
    assert tree.configure(NVPM_RUST="prebuilt")["NVPM_RUST"] == "prebuilt"
    # If the configuration does not have the compiler's version, each version of the compiler is
    # good.
    tree.config(K, CRATES[0])
    assert tree.configure()["NVPM_RUST"] == "in-kernel"


def test_why_not_the_kernels_crates(tree: Tree) -> None:
    """Each missing part leads to the prebuilt way, with the reason."""
    with_crates(tree)

    def prebuilt(why: str) -> None:
        assert tree.configure()["NVPM_RUST"] == "prebuilt"
        assert why in tree.output, tree.output
        tree.says(f"NVPM_RUST=in-kernel is not possible: {why}", NVPM_RUST="in-kernel")

    release = f"lib/modules/{K}/build/include/config/kernel.release"
    tree.put(release, "6.11.9\n")
    prebuilt("kernel 6.11.9 is older than 6.12, the oldest whose Rust crates")
    tree.put(release, "6.12.0\n")
    tree.module(K, "nvidia", CLOSED)
    prebuilt("the NVIDIA driver is the proprietary one")
    tree.module(K, "nvidia", OPEN)
    tree.put("bin/rustc", '#!/bin/sh\necho "rustc 1.86.0 (y)"\n', 0o755)
    prebuilt(f"kernel {K} was built with 'rustc 1.85.1 (x)', but rustc here is 'rustc 1.86.0 (y)'")
    # A second compiler has the right version.
    tree.put("bin/rustc-1.85", '#!/bin/sh\necho "rustc 1.85.1 (x)"\n', 0o755)
    assert tree.configure()["RUSTC"] == "rustc-1.85"
    assert tree.configure(RUSTC="rustc")["NVPM_RUST"] == "prebuilt"
    tree.drop(f"lib/modules/{K}/build/rust")
    prebuilt(f"the headers of kernel {K} lack the Rust metadata")
    tree.put(f"usr/src/linux-rust-{K}/rust/libkernel.rmeta")
    assert tree.configure()["KDIR"] == f"/usr/src/linux-rust-{K}"
    # Only the chosen tree is searched, and no other tree.
    chosen = {"KDIR": f"{tree.root}/lib/modules/{K}/build"}
    assert tree.configure(**chosen)["NVPM_RUST"] == "prebuilt"
    tree.config(K, "CONFIG_X=y")
    prebuilt(f"kernel {K} was built without CONFIG_RUST")
    tree.says("NVPM_RUST=x is not known: in-kernel or prebuilt.", NVPM_RUST="x")


def test_no_assembly(tree: Tree) -> None:
    tree.drop("tree/build/prebuilt")
    tree.says("the module's Rust can be compiled in neither way. in-kernel: kernel")
    assert (
        f"prebuilt: build/prebuilt/{ARCH}.S, is missing; and to make it, no rustc." in tree.output
    )
    tree.put("tree/build/find/rustc", "echo \"RUSTC='r' NVPM_LIBRARY='l'\"\n", 0o755)
    said = tree.configure()
    assert (said["NVPM_ASSEMBLE"], said["RUSTC"], said["NVPM_LIBRARY"]) == (f"{ARCH}.S", "r", "l")


@pytest.mark.parametrize("name", ["CONFIG_CFI", "CONFIG_CFI_CLANG"])
def test_kernels_that_check_calls(tree: Tree, name: str) -> None:
    tree.config(K, f"{name}=y")
    tree.says(
        f"kernel {K} checks the type of indirect calls (CONFIG_CFI), so only an in-kernel build"
    )
    tree.says("NVPM_RUST=prebuilt is not possible", NVPM_RUST="prebuilt")


@pytest.mark.parametrize(
    "version, library, good",
    [
        ("1.78.0", "/usr/src/rustc-1.78.0/library", True),
        ("1.77.9", "/usr/src/rustc-1.77.9/library", False),
        ("1.100.1", "SYSROOT", True),
        ("1.85.1", "", False),
    ],
)
def test_find_rustc(tree: Tree, version: str, library: str, good: bool) -> None:
    """A rustc counts if it is new enough and has the source of its library."""
    script = (TOP / "build/find/rustc").read_text().replace('"/usr/src/', f'"{tree.root}/usr/src/')
    tree.put("tree/build/find/rustc", script)
    tree.put(
        "bin/myrustc",
        f'#!/bin/sh\n[ "$1" = --version ] && echo "rustc {version} (x)" && exit\n'
        f'echo "{tree.root}/sysroot"\n',
        0o755,
    )
    if library:
        place = library.replace("SYSROOT", "/sysroot/lib/rustlib/src/rust/library").lstrip("/")
        tree.put(f"{place}/core/src/lib.rs")
    code = tree.run("dash", tree.top / "build/find/rustc", RUSTC="myrustc")
    assert code == (0 if good else 1)
    if good:
        where = library.replace("SYSROOT", "/sysroot/lib/rustlib/src/rust/library")
        assert tree.output == f"RUSTC='myrustc'\nNVPM_LIBRARY='{where}'\n"
    else:
        assert tree.output.startswith(
            "myrustc 1.78 or later with the source of its library is missing"
        )


# ---- dkms ----


def test_dkms_knows(tree: Tree) -> None:
    def known(name: str, module: str) -> None:
        tree.put(f"var/lib/dkms/{name}/source/dkms.conf", f"BUILT_MODULE_NAME[0]={module}\n")

    def knows(neighbour: str) -> list[str]:
        environment = {"dkms_tree": f"{tree.root}/var/lib/dkms"}
        code = tree.run("dash", tree.top / "build/configure", "--dkms", neighbour, **environment)
        assert code == 0
        return tree.output.split()

    assert knows("core") == knows("driver") == []
    known("mlnx-ofed-kernel/25.10", "ib_core")
    known("mlnx-ofa_kernel/24.1", "ib_core")
    known("my-mlnx-ofed-kernel/1", "ib_core")
    assert knows("core") == ["mlnx-ofa_kernel/24.1", "mlnx-ofed-kernel/25.10"]
    known("nvidia/550.1", '"nvidia"')
    known("nvidia-current/535", "'nvidia'")
    known("nvidia-fs/1", '"nvidia-fs"')
    known("nvidia-peer-memory/2", '"nvidia_peermem"')
    known("xnvidia/1", "xnvidia")
    assert knows("driver") == ["nvidia-current/535", "nvidia/550.1"]
