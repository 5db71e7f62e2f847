# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes the lab's layers. These are the layers of a guest, from the bottom up:

    base        Debian with compilers, verbs programs and RDMA user space
    kernel      a kernel as Debian builds it, and its headers; above this layer, if something is
                compiled with the kernel's own Rust crates, the layer `metadata`, which has the
                metadata that Debian leaves out; or
    debug       a kernel that the lab compiles from the same source, with every checker on
    boot        the kernel's initramfs
    nvsource    the parts of NVIDIA's source, from Debian, that the lab compiles
    nvidia      the simulated NVIDIA driver, installed; or
    realdriver  NVIDIA's own driver, built by dkms from Debian's package, and a GPU for it
    ofed        the RDMA core with peer memory, installed as MLNX_OFED does it
    neighbours  modules and programs beside ours: NVIDIA's nvidia-peermem, with which ours is
                compared, a second client of the driver, mistakes for the kernel's checkers, and
                a program that does verbs step by step
    module      nv_peer_mem.ko, built with the project's Makefile and installed, in the
                way that the machine's line names; a prebuilt module needs the layer
    rustcore    Rust's core, compiled for each product, which saves nine tenths of the time
    ready       the assembly of releases, for machines without Rust
    gpuverbs    the lab's own verbs client

These layers are only for some guests (the column "layers" of ../jobs.md):
    generations drivers and RDMA cores of other generations, and the module for them
    rust        the module compiled in every way that is possible for the kernel
    programs    other projects' programs for CUDA memory, above a libcuda for the simulated GPU
                (cuda) and the examples; and the lab's own programs (clients)
    hosts       programs that run on two guests, Open MPI and ssh
    service     service script and status
    hardware    the tests for hardware, and their client
    hardwarefaults  the module with mistakes, which these tests must notice
    ideal       the client with which the benchmark compares the module
    card        an emulated ConnectX, for the kernel's own driver: the QEMU that has such cards
                (qemu), and the headers that describe them (mlx5headers)
    mlx5        the same, and the RDMA driver of NVIDIA's network cards with peer memory, compiled
                from Debian's source (mlx5source), and the list of all modules (depmod)
    operators   the container image, and what the operators of a cluster bring in containers:
                versions of driver and core; and a module by which the kernel trusts a
                certificate (trust)
    python      all of Python, for programs that measure

No guest has these layers: pytest, which tests and checks programs of Python, and above it emulator,
which runs programs of arm64, languages, which has Java, Node, Go, gdb and valgrind, or dkms, which
has the program dkms of three releases of Debian; hosttools, clienttools and nvpmcrates, the crates
for compiling other layers and nvpm/; nvpmtools, nvpmcompiled and nvpmprogram, which compile
nvpm-bin as releases have it; and the layers of the packages, which take nvpm-bin from there.

Guests of arm64 have the same layers, which are compiled here, on x86-64: they are built on the
lab's own base with a cross compiler above it (cross), and booted above a root of the guest's own
processor (arm64root).
"""

import contextlib
import functools
import inspect
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from layers import cache, making, slowest
from layers.cache import CACHE, DOUBLES, LAB, TOP, Wrong, say
from layers.machines import (
    RELEASE,
    Machine,
    driver_version,
    find_kernel,
    machines,
    packages_of,
    suites_of,
    wanted_kernel,
)

# The files that make up the module, as a package would ship them.
MODULE = [TOP / name for name in ("Kbuild", "Makefile", "dkms.conf", "build", "src")]

# The files of a release. Tests are part of a release, but make no difference here.
BESIDE_MODULE = (
    "nv_peer_mem.conf build_release.sh README.md LICENSE LICENSES .gitignore init.d "
    "docs debian rpm preload nvpm"
)
RELEASED = [*MODULE, *(TOP / name for name in BESIDE_MODULE.split())]

# The service, and the programs that it calls.
SERVICE = [TOP / name for name in ("init.d", "nv_peer_mem.conf")]

# The sources of nvpm-bin and the image's program, whose checksum nvpm/compile notes.
NVPM_PARTS = "Cargo.lock Cargo.toml build compile data foreign keeper src sysroots"
NVPM = [TOP / "nvpm" / name for name in NVPM_PARTS.split()]

# The manifests of the other packages in nvpm/. The crates depend on nothing else of these packages.
MANIFESTS = [
    (TOP / f"nvpm/{part}/Cargo.toml").read_text(encoding="utf-8") for part in ("foreign", "keeper")
]

# What runs in guests, and the modules beside ours.
GUEST = TOP / "tests/guest"
MODULES = GUEST / "modules"

# The sources of the lab's own verbs client.
CLIENT = (GUEST / "gpuverbs", DOUBLES / "driver/lab_gpu.h")

# The certificates that this machine trusts: a network may have its own certificate, which programs
# in layers do not know.
TRUSTED = [path for path in [Path("/etc/ssl/certs/ca-certificates.crt")] if path.exists()]

# ---- the roots ----------------------------------------------------------------------

BASE = [
    "--variant=apt",
    '--customize-hook=ln -sf /run/resolv.conf "$1"/etc/resolv.conf',
    '--customize-hook=rm -f "$1"/etc/apt/sources.list.d/*',
    '--customize-hook=echo nv-lab >"$1"/etc/hostname',
]

# No script of a package is run, because programs of arm64 cannot run here. The hooks make the files
# that guests need and that scripts would have made.
ARM64 = [
    "--variant=extract",
    "--architectures=arm64",
    '--extract-hook=ln -s mawk "$1"/usr/bin/awk',
    '--extract-hook=cp "$1"/usr/share/base-passwd/passwd.master "$1"/etc/passwd',
    '--extract-hook=cp "$1"/usr/share/base-passwd/group.master "$1"/etc/group',
    '--extract-hook=mkdir -p "$1"/mnt',
]


class Bootable(NamedTuple):
    """A kernel's release, and the files that QEMU boots."""

    kver: str
    vmlinux: str
    initramfs: str


def root_of(full: str) -> Path:
    """Returns the directory with the files of a layer."""
    return CACHE / "layers" / full / "root"


def topmost(stack: str) -> Path:
    """Returns the directory with the files of the layer that was added last."""
    return root_of(stack.split(":")[0])


def hardware() -> list[Path]:
    """Returns the files of the tests for hardware. A change of their own tests does not change what
    runs in a guest."""
    top = TOP / "tests/hardware"
    files = [path for path in sorted(top.glob("*.py")) if not path.name.startswith("test_")]
    return [*files, top / "client", top / "run"]


class Layers:
    """A stack of layers, `stack`, on top of which functions add layers; and facts about the layers.
    An attribute exists once the function that sets it has been called."""

    machine: Machine
    # `kver` is the release of the machine's kernel, `kpkg` is the version of the kernel's packages,
    # and `kseries` is the kernel's series. `older` is the release before it in the archive.
    kver, kpkg, kseries = "", "", ""
    older: str | None = None
    # The kernel that the guest boots, and the kernel that a system boots from the second time on.
    kernel: Bootable
    newer: Bootable | None = None
    # The layers below all others of a machine, and these layers together with the kernel. The third
    # value is a guest's root, if this root differs from `stack`.
    base: str
    kernel_stack: str
    guest_stack = ""
    # `made` is the layer with the packages. `compiled` is a file or a directory that says how the
    # module was compiled.
    made: str
    compiled: Path
    # The layer with the QEMU for guests with emulated ConnectX cards, and the kernel's headers that
    # describe such a card.
    qemu = ""
    card: Path

    def __init__(self, doing: Callable[[str], None] = lambda text: None) -> None:
        self.doing = doing
        self.stack = ""
        self.lab_base = self.root(RELEASE, BASE)

    def say(self, who: str, text: str) -> None:
        say(who, text)
        self.doing(f"[{who}] {text}")

    def make(self, full: str, name: str, text: str, fill: Callable[[Path], None]) -> str:
        def begin(where: Path) -> None:
            began = time.monotonic()
            self.say(name, text)
            fill(where)
            seconds = round(time.monotonic() - began)
            self.say(name, f"done in {seconds} s")
            slowest.took(f"{name}: {text}", seconds)

        return making.unless_there(full, begin)

    def root(self, release: str, options: list[str], name: str = "base") -> str:
        packages = packages_of("arm64" if name == "arm64root" else release)

        def fill(where: Path) -> None:
            making.write_sources(where, *suites_of(release))
            debian = functools.partial(making.debian, where, options, release, packages)
            cache.logged(name, "making the base system", debian)

        full = making.layer_name(f"{name}-{release}", options, packages)
        return self.make(full, name, f"Debian {release} (a minute or two)", fill)

    def beside(
        self,
        name: str,
        stack: str,
        text: str,
        *inputs: Path,
        words: Sequence[str] = (),
        network: bool = False,
    ) -> str:
        """Makes the layer NAME above STACK, by build/NAME.sh with WORDS. Returns its full name."""

        def fill(where: Path) -> None:
            log = f"{name}-{self.kver}" if self.kver else name
            suites = suites_of(stack.split("-")[-2]) if network else []
            making.build(where, name, log, stack, inputs, words, suites)

        return self.make(making.built_name(name, stack, inputs, words), name, text, fill)

    def add(
        self,
        name: str,
        text: str,
        *inputs: Path,
        on: str | None = None,
        words: Sequence[str] = (),
        network: bool = False,
    ) -> None:
        """Adds the layer NAME on top. A layer that does not depend on a kernel is made above ON, so
        that all kernels share it."""
        below = on or self.stack
        full = self.beside(name, below, text, *inputs, words=words, network=network)
        self.stack = f"{full}:{self.stack}"

    def those(self, *names: str) -> str:
        """Returns the layers of the stack that have these names."""
        return ":".join(full for full in self.stack.split(":") if full.split("-")[0] in names)

    # ---- a kernel and its neighbours -------------------------------------------------

    def make_kernel(self, instead: str | None = None) -> None:
        """Makes the kernel of the machine's line, or the kernel INSTEAD, and its initramfs."""
        self.make_base()
        self.choose_kernel(instead)
        self.stack = self.base
        if self.machine.flavour != "amd64":
            self.make_cross()
        if self.machine.packages == "debug":
            self.add_debug()
        else:
            self.add_kernel()
        self.kernel_stack = self.stack
        self.make_boot()

    def make_base(self) -> None:
        release = self.machine.release
        self.base = self.lab_base if release == RELEASE else self.root(release, BASE)

    def choose_kernel(self, instead: str | None = None) -> None:
        want = instead or wanted_kernel(self.machine)
        kernel, before = find_kernel(self.lab_base, want)
        self.kver, self.kpkg, self.kseries = kernel
        self.older = before.release if before else None

    def make_cross(self) -> None:
        """Makes the cross compiler for arm64. The kernel has the version of the kernel for
        amd64."""
        self.kver = f"{self.kver.removesuffix('-amd64')}-{self.machine.flavour}"
        text = "compilers and libraries for arm64 (a minute)"
        cross = self.beside("cross", self.lab_base, text, network=True)
        self.base = self.stack = f"{cross}:{self.lab_base}"

    def add_debug(self) -> None:
        self.add(
            "debug",
            f"kernel {self.kseries}, compiled with debug/config (10 to 30 minutes, once)",
            LAB / "layers/debug/config",
            words=(self.kpkg, self.kseries, self.machine.compiler),
            network=True,
        )
        image = next(root_of(self.those("debug")).glob("boot/vmlinux-*"))
        self.kver = image.name.removeprefix("vmlinux-")

    def add_kernel(self) -> None:
        machine = self.machine
        self.add(
            "kernel",
            f"kernel {self.kver}, ready for modules (a minute)",
            words=(self.kver, self.kpkg, self.kseries, machine.suite, machine.compiler),
            network=True,
        )

    def make_boot(self) -> None:
        init = LAB / "layers/initramfs-init"
        boot = self.beside("boot", self.kernel_stack, "initramfs", init, words=[self.kver])
        vmlinux = topmost(self.kernel_stack) / f"boot/vmlinux-{self.kver}"
        initramfs = root_of(boot) / "boot/lab-initramfs"
        self.kernel = Bootable(self.kver, str(vmlinux), str(initramfs))

    def extra_metadata(self) -> None:
        """Adds the metadata for compiling against the kernel's own Rust crates. The checker kernel
        has the metadata already. The layer depends only on the kernel."""
        if self.machine.packages == "debug" or self.those("metadata"):
            return
        self.add(
            "metadata",
            f"the Rust metadata of kernel {self.kver} (two minutes)",
            TOP / "debian/rust-metadata",
            on=self.kernel_stack,
            words=(self.kver, self.kpkg, self.kseries),
            network=True,
        )

    def add_nvsource(self) -> None:
        self.add("nvsource", "NVIDIA's source from Debian (35 MB)", on=self.lab_base, network=True)

    def add_neighbours(self) -> None:
        """Adds the RDMA core, and the driver above it, because the driver is edited more often."""
        self.add(
            "ofed",
            f"RDMA core with peer memory for {self.kver}",
            DOUBLES / "core",
            DOUBLES / "compat.h",
            words=(self.kver, self.kseries),
        )
        if self.machine.driver in ("open", "closed"):
            self.add_simulated_driver()
        else:
            self.add_real_driver()

    def add_beside_ours(self) -> None:
        self.add(
            "neighbours",
            "modules and programs beside ours",
            MODULES / "cpumap",
            MODULES / "mistakes",
            DOUBLES / "compat.h",
            GUEST / "defects/steps.c",
            DOUBLES / "driver/lab_gpu.h",
            words=[self.kver],
        )

    def add_simulated_driver(self) -> None:
        self.add_nvsource()
        self.add(
            "nvidia",
            f"simulated NVIDIA driver, {self.machine.driver}",
            DOUBLES / "driver",
            DOUBLES / "compat.h",
            words=(self.kver, self.machine.driver, self.machine.compiler),
        )

    def add_real_driver(self) -> None:
        version = driver_version(self.lab_base, self.machine.driver)
        self.add(
            "realdriver",
            f"NVIDIA's own driver, {version} (a minute or two)",
            DOUBLES / "idlegpu",
            on=f"{self.packaging()}:{self.stack}",
            words=(self.kver, version),
            network=True,
        )

    # ---- guests -----------------------------------------------------------------------

    def guest(self, machine: str, *extras: str) -> None:
        """Makes all layers of a guest on that machine, and EXTRAS. Programs of this machine run in
        `stack`; the guest boots `guest_stack`."""
        self.machine = machines()[machine]
        # Layers that depend on no kernel are made in parallel, because one processor is idle half
        # of that time.
        threading.Thread(target=self.client_early).start()
        self.make_kernel()
        self.add_neighbours()
        self.add_beside_ours()
        self.add_module()
        for extra in sorted(set(extras)):
            if self.machine.flavour != "amd64" and extra not in ("generations", "rust"):
                raise Wrong(f"machines of arm64 have no layers '{extra}'.")
            getattr(self, f"extra_{extra}")()
        above = self.stack.removesuffix(self.base)
        # This layer is above every layer with packages, because the topmost list of dpkg must have
        # all packages.
        self.add_gpuverbs()
        if self.machine.flavour == "amd64":
            self.guest_stack = self.stack
        else:
            arm64root = self.root(RELEASE, ARM64, "arm64root")
            self.guest_stack = f"{self.gpuverbs_arm64()}:{above}{arm64root}"

    def add_module(self) -> None:
        rust = self.machine.rust
        if rust == "in-kernel":
            self.extra_metadata()
        # Compiled against the kernel's own crate, the module takes half a minute less.
        ready = [] if rust == "in-kernel" else [self.make_ready()]
        words = (self.kver, rust)
        self.add("module", f"nv_peer_mem.ko, {rust}", *MODULE, *ready, words=words)

    def client_early(self) -> None:
        """Makes the verbs client early, in a thread. A failure is ignored here, because the same
        layer fails again when the guest needs it."""
        with contextlib.suppress(Wrong):
            self.beside("gpuverbs", self.clienttools(), "verbs client of the lab", *CLIENT)

    def make_ready(self) -> Path:
        """Makes the assembly of releases, for the machine's processor. Returns its directory."""
        stack = f"{self.rustcore()}:{self.base}"
        return root_of(self.beside("ready", stack, "the Rust as assembly", *MODULE)) / "ready"

    def rustcore(self) -> str:
        """Makes the layer with Rust's core. It depends only on the compiler and the flags."""
        inputs = [TOP / "build", TOP / "dkms.conf", TOP / "src/kernel/builtins.rs"]
        return self.beside("rustcore", self.lab_base, "Rust's core (a minute)", *inputs)

    def clienttools(self) -> str:
        """Makes the layer in which the verbs client is compiled."""
        tools = self.beside(
            "clienttools",
            self.lab_base,
            "crates for the verbs client (half a minute)",
            LAB / "layers/build/crates.sh",
            GUEST / "gpuverbs/Cargo.toml",
            network=True,
        )
        return f"{tools}:{self.lab_base}"

    def add_gpuverbs(self) -> None:
        self.add("gpuverbs", "verbs client of the lab", *CLIENT, on=self.clienttools())

    def gpuverbs_arm64(self) -> str:
        text, words = "verbs client of the lab, for arm64", ["aarch64-unknown-linux-gnu"]
        tools = self.clienttools().replace(self.lab_base, self.base)
        return self.beside("gpuverbs", tools, text, *CLIENT, words=words)

    # ---- layers of some guests, by the words of jobs.md -----------------------------------

    def extra_generations(self) -> None:
        self.add(
            "generations",
            "drivers and RDMA cores of other generations",
            DOUBLES / "driver",
            DOUBLES / "compat.h",
            *MODULE,
            self.make_ready(),
            words=(self.kver, self.machine.rust, self.machine.driver),
        )

    def extra_ideal(self) -> None:
        ideal = MODULES / "ideal"
        self.add("ideal", "the ideal client of the benchmark", ideal, words=[self.kver])

    def extra_rust(self) -> None:
        self.extra_metadata()
        inputs = [*MODULE, self.make_ready(), LAB / "checks/object"]
        text = "the module compiled in every way (minutes)"
        self.add("rust", text, *inputs, words=[self.kver])
        self.compiled = topmost(self.stack) / "compiled"

    def extra_ubuntu(self) -> None:
        self.add(
            "ubuntu",
            "an RDMA core as Ubuntu ships it, and the module for it",
            *MODULE,
            self.make_ready(),
            words=(self.kver, self.machine.rust),
        )

    def extra_ready(self) -> None:
        self.stack = f"{self.make_ready().parts[-3]}:{self.stack}"

    def extra_programs(self) -> None:
        """Adds the programs below the kernel's layers, because the topmost list of dpkg must also
        have the kernel's packages."""
        above, self.stack = self.stack.removesuffix(self.base), self.base
        self.add_cuda()
        self.add("examples", "the examples", TOP / "examples")
        self.add("programs", "programs for CUDA memory (a minute or two)", network=True)
        clients = GUEST / "clients"
        self.add(
            "clients",
            "the lab's own programs for CUDA memory",
            clients,
            DOUBLES / "driver/lab_gpu.h",
            TOP / "nvpm/data/programs.table",
        )
        self.stack = above + self.stack

    def add_cuda(self) -> None:
        apart = ("gpu_host.c", "README.md")
        sources = [path for path in sorted((DOUBLES / "cuda").iterdir()) if path.name not in apart]
        self.add("cuda", "CUDA of the lab", *sources, DOUBLES / "driver/lab_gpu.h")

    def extra_wheels(self) -> None:
        """Adds the wheels at the place of the programs, also because of the topmost list of
        dpkg."""
        above, self.stack = self.stack.removesuffix(self.base), self.base
        requirements = [
            LAB / f"layers/wheels/requirements{version}.txt" for version in ("", "-3.11")
        ]
        text = "programs that come as wheels (140 MB)"
        self.add("wheels", text, *requirements, *TRUSTED, network=True)
        self.stack = above + self.stack

    def extra_preload(self) -> None:
        """Adds the preloaded library, and a libibverbs that is linked as in Ubuntu."""
        self.add("symbolic", "libibverbs as Ubuntu links it", on=self.lab_base, network=True)
        parts = ("src", ".cargo", "Cargo.toml", "Cargo.lock")
        inputs = [TOP / "preload" / part for part in parts]
        self.add("preload", "the preloaded library", *inputs, on=self.lab_base)

    def make_qemu(self) -> None:
        """Makes the layer with a newer QEMU, which runs on this machine and not in the guest."""
        text = "QEMU for devices in other processes (20 MB)"
        self.qemu = self.beside("qemu", self.lab_base, text, network=True)

    def extra_hosts(self) -> None:
        text, hosts = "Open MPI, ssh and programs for two guests", GUEST / "hosts"
        self.add("hosts", text, hosts, on=self.lab_base, network=True)

    def extra_card(self) -> None:
        """Makes what emulated ConnectX cards need. The layout of a card does not depend on the
        guest's kernel, so the headers are those of the newest kernel."""
        self.make_qemu()
        newest, _ = find_kernel(self.lab_base, wanted_kernel(machines()["stock"]))
        words = (newest.release, newest.version)
        text = f"the headers of mlx5 {newest.release} (20 MB)"
        layer = self.beside("mlx5headers", self.lab_base, text, words=words, network=True)
        self.card = root_of(layer) / "usr/src/mlx5headers"

    def extra_mlx5(self) -> None:
        """Adds mlx5_ib, the RDMA driver of NVIDIA's network cards, with peer memory, and makes what
        such cards need."""
        self.extra_card()
        source = self.beside(
            "mlx5source",
            self.lab_base,
            f"the source of mlx5_ib {self.kver} (a minute)",
            words=(self.kpkg, self.kseries),
            network=True,
        )
        # The layer needs none of the layers above the RDMA core, which are edited more often.
        core = self.stack[self.stack.index("ofed-") :]
        text = f"mlx5_ib with peer memory for {self.kver} (a minute)"
        words = (self.kver, self.kseries)
        self.add("mlx5", text, DOUBLES / "core", on=f"{source}:{core}", words=words)
        self.add("depmod", "the list of all modules", words=[self.kver])

    def extra_operators(self) -> None:
        """Adds the container image, a program that runs containers, and what the operators'
        containers bring: versions of driver and core. An emulated guest compiles the module in
        minutes, so the image does so here, for each pair of driver and core."""
        self.add("crun", "a program that runs containers", on=self.lab_base, network=True)
        self.add(
            "operators",
            "drivers and RDMA cores of the operators' containers",
            DOUBLES / "driver",
            DOUBLES / "operators/neighbours",
            DOUBLES / "compat.h",
            words=[self.kver],
        )
        containers = DOUBLES / "operators/containers"
        self.add("containers", "doubles of the operators' containers", containers, on=self.lab_base)
        self.add_image_base()
        ready = self.make_ready()
        inputs = [*MODULE, ready, DOUBLES / "operators/neighbours"]
        text = "the module, built in the image for each pair (a minute)"
        self.add("imagebuilt", text, *inputs, words=[self.kver])
        release = [TOP / name for name in ("LICENSE", "LICENSES", "container")]
        release.append(TOP / "init.d")
        # The layer installs files into a directory of its own, so any layers may lie below.
        self.add("image", "the image", *MODULE, *release, ready, on=self.with_program())
        text = "a module by which the kernel trusts a certificate"
        self.add("trust", text, MODULES / "trust", on=self.kernel_stack, words=[self.kver])

    def add_image_base(self) -> None:
        """Adds Debian's packages of the container image, below /image."""
        files = [TOP / f"container/{name}" for name in ("make-image", "packages.txt", "dpkg.cfg")]

        def fill(where: Path) -> None:
            (where / "root").mkdir()
            command = ["sh", files[0], "--base", where / "root/image", making.mirror()]
            run = functools.partial(subprocess.run, command, check=False)
            cache.logged("imagebase", "installing the packages of the image", run)

        name = making.layer_name("imagebase", cache.hash_of(*files))
        base = self.make(name, "imagebase", "Debian's packages of the image (a minute)", fill)
        self.stack = f"{base}:{self.stack}"

    def extra_service(self) -> None:
        self.add("service", "service", *SERVICE, on=self.with_program())

    def extra_hardware(self) -> None:
        self.add("hardware", "the tests for hardware", *hardware(), on=self.lab_base)

    def extra_hardwarefaults(self) -> None:
        text = "the module with mistakes for the tests for hardware (two minutes)"
        inputs = [*MODULE, self.make_ready()]
        self.add("hardwarefaults", text, *inputs, words=[self.kver])

    def extra_python(self) -> None:
        self.add("python", "all of Python", on=self.lab_base, network=True)

    def extra_pytest(self) -> None:
        text = "pytest, and what checks programs of Python"
        self.add("pytest", text, *TRUSTED, on=self.lab_base, network=True)

    def extra_emulator(self) -> None:
        self.add("emulator", "what makes and runs programs of arm64 (120 MB)", network=True)

    def extra_languages(self) -> None:
        self.add("languages", "Java, Node, Go, gdb and valgrind (300 MB)", network=True)

    def extra_nvpmcrates(self) -> None:
        self.stack = f"{self.nvpm_crates()}:{self.stack}"

    def extra_nvpmbuilt(self) -> None:
        """Adds the programs in Rust for this processor, as a release has them."""
        self.stack = f"{self.nvpm_program(os.uname().machine)}:{self.stack}"

    def extra_nvpmprogram(self) -> None:
        """Adds nvpm-bin for both processors, and what compiles it."""
        self.stack = f"{self.nvpm_programs()}:{self.nvpm_tools()}"

    def nvpm_crates(self) -> str:
        inputs = [TOP / "nvpm/Cargo.toml", TOP / "nvpm/Cargo.lock", *TRUSTED]
        text = "crates of the programs in Rust (two minutes)"
        words = MANIFESTS
        return self.beside("nvpmcrates", self.lab_base, text, *inputs, words=words, network=True)

    def nvpm_tools(self) -> str:
        """Makes the layers in which nvpm-bin is compiled for both processors."""
        text = "what compiles nvpm-bin for both processors (a minute)"
        sysroots = TOP / "nvpm/sysroots"
        tools = self.beside("nvpmtools", self.lab_base, text, sysroots, network=True)
        return f"{self.nvpm_crates()}:{tools}:{self.lab_base}"

    def nvpm_compiled(self, arch: str) -> str:
        """Makes the layers with the crates of nvpm-bin, compiled for a release."""
        inputs = [TOP / "nvpm" / name for name in ("Cargo.toml", "Cargo.lock", "compile")]
        text = f"the crates of nvpm-bin, compiled for {arch} (a minute)"
        tools = self.nvpm_tools()
        full = self.beside("nvpmcompiled", tools, text, *inputs, words=[arch, *MANIFESTS])
        return f"{full}:{tools}"

    def nvpm_program(self, arch: str) -> str:
        """Makes the layer with nvpm-bin and the image's program, below /opt/nvpm-programs."""
        text = f"nvpm-bin for {arch} (half a minute)"
        return self.beside("nvpmprogram", self.nvpm_compiled(arch), text, *NVPM, words=[arch])

    def nvpm_programs(self) -> str:
        return f"{self.nvpm_program('x86_64')}:{self.nvpm_program('aarch64')}"

    def with_program(self) -> str:
        """Returns the lab's own base with nvpm-bin for this processor."""
        return f"{self.nvpm_program(os.uname().machine)}:{self.lab_base}"

    def extra_dkms(self) -> None:
        self.add("dkms", "dkms of three releases of Debian", network=True)

    # ---- without a guest ------------------------------------------------------------------

    def compile(self, machine: str) -> None:
        """Compiles the module in every way that is possible; the file `compiled` has the findings.
        For a kernel that exists only as source, the module is not linked."""
        self.machine = machines()[machine]
        if self.machine.packages != "tree":
            self.guest(machine, "rust")
            return
        self.choose_kernel()
        self.stack = self.lab_base
        self.add(
            "tree",
            f"kernel tree of {self.kseries} ({self.kpkg}), two minutes",
            words=(self.kpkg, self.kseries, self.machine.suite, self.machine.compiler),
            network=True,
        )
        self.add_nvsource()
        self.add("compile", f"module for {self.kver}", *MODULE, words=[self.kver])
        self.compiled = topmost(self.stack) / "compiled"

    def tools(self, name: str) -> None:
        """Makes the layers of checks without a kernel."""
        self.stack = self.lab_base
        if name == "host":
            self.add_hosttools()
        elif name == "hostsweep":
            # A sweep is a program in Python, of which the base has only the smallest part.
            self.extra_pytest()
            self.add_hosttools()
        elif name == "client":
            self.stack = self.clienttools()
        elif name == "python":
            self.extra_python()
        elif name == "pytest":
            self.extra_pytest()
        elif name == "emulator":
            self.extra_pytest()
            self.extra_emulator()
        elif name == "languages":
            self.extra_pytest()
            self.extra_languages()
        elif name == "nvpmcrates":
            self.extra_pytest()
            self.extra_nvpmcrates()
        elif name == "nvpmbuilt":
            self.extra_pytest()
            self.extra_nvpmbuilt()
        elif name == "nvpmprogram":
            self.extra_nvpmprogram()
        elif name == "dkms":
            self.extra_pytest()
            self.extra_dkms()
        elif name == "debian11":
            self.stack = f"{self.nvpm_programs()}:{self.root('bullseye', BASE)}"

    def add_hosttools(self) -> None:
        self.add(
            "hosttools",
            "crates for the tests on the host (two minutes)",
            LAB / "layers/build/crates.sh",
            TOP / "tests/host/Cargo.toml",
            network=True,
        )

    # ---- packages, and whole systems (with systemd and a disk) that have them installed ---------

    def packaging(self) -> str:
        """Makes the layer with the tools for packages. The layer lies directly above the kernel's
        packages, because the list of dpkg in the upper layer hides the list below."""
        text = "Debian's tools for packages (a minute)"
        return self.beside("packaging", self.those("kernel", "base"), text, network=True)

    def packaged(self, machine: str) -> None:
        """Makes the stack in which packages are made and tested. The stack has no program for
        verbs, because the base of some releases could not run such a program."""
        self.machine = machines()[machine]
        self.make_kernel()
        self.add_neighbours()
        self.add_beside_ours()
        self.extra_metadata()
        self.stack = f"{self.packaging()}:{self.stack}"

    def packages(self, machine: str) -> None:
        """Makes a guest's stack without the module, but with the tools for packages. The stack has
        the packages, made on the machine `stock`, in /packages, and packages of an older version in
        /packages/old."""
        self.packaged("stock")
        self.stack = f"{self.nvpm_programs()}:{self.rustcore()}:{self.stack}"
        text = "packages, deb and rpm"
        self.made = self.beside("packages", self.stack, text, *RELEASED, words=[self.kver])
        if machine != "stock":
            self.packaged(machine)
        self.stack = f"{self.made}:{self.stack}"

    def system_of(self, machine: str, instead: str | None = None) -> None:
        """Makes all layers of a system on which the module is not installed yet."""
        self.machine = machines()[machine]
        self.make_kernel(instead)
        self.add_neighbours()
        units = GUEST / "systems/machine/units"
        self.add("system", "systemd, dkms and rpm", units, on=self.kernel_stack, network=True)
        self.add_gpuverbs()

    def system(self, machine: str, name: str) -> None:
        """Makes a system before its first boot. The first lines of tests/guest/systems/NAME.sh say
        # Prepared: WORD...     runs systems/prepare/WORD.sh before the first boot: natively, ten
                                times faster than in an emulated guest
        # Kernels: older newer  boots an older kernel first, and the newer kernel from then on"""
        text = (TOP / f"tests/guest/systems/{name}.sh").read_text(encoding="utf-8")
        self.packages("stock")
        self.system_of(machine)
        newer_stack = ""
        if "\n# Kernels: " in text:
            newer_stack = self.those("ofed", "nvidia", "kernel")
            self.boot_older_first(machine)
        for words in re.findall(r"^# Prepared: (.*)", text, re.MULTILINE):
            for word in words.split():
                self.prepare(word, newer_stack)

    def boot_older_first(self, machine: str) -> None:
        if not self.older:
            raise Wrong(
                f"the archive has no kernel before {self.kver} to upgrade from: choose a newer one "
                "with LAB_KERNEL=."
            )
        self.newer = self.kernel
        self.system_of(machine, self.older)

    def prepare(self, word: str, newer_stack: str) -> None:
        inputs = [TOP / f"tests/guest/systems/prepare/{word}.sh", root_of(self.made) / "packages"]
        if word == "release":
            self.add_cuda()
            inputs += hardware()
        if word == "newer_kernel":
            self.add_newer(newer_stack)
            inputs.append(root_of(newer_stack.split(":")[-1]) / "var/lib/dpkg/status")
        newer = self.newer.kver if self.newer else ""
        self.add("prepared", f"a system, prepared: {word}", *inputs, words=(word, self.kver, newer))

    def add_newer(self, newer_stack: str) -> None:
        """Adds the newer kernel's layers below all others, so that a file of both kernels is the
        older kernel's. But /usr/lib/modules of any kernel's layer hides the directory of that name
        below it (overlayfs: a new directory is opaque), so the newer kernel's modules are added
        again, on top. OFED's tree for the newer kernel is also added on top, because OFED keeps a
        tree for each kernel, whose versions of symbols may differ."""
        assert self.newer
        kver, newer = self.newer.kver, newer_stack.split(":")

        def fill(where: Path) -> None:
            trees = where / f"root/usr/src/ofa_kernel/{os.uname().machine}"
            trees.mkdir(parents=True)
            (where / "root/usr/lib").mkdir()
            ofed = next(full for full in newer if full.startswith("ofed-"))
            tree = root_of(ofed) / "usr/src/ofa_kernel/default"
            subprocess.run(["cp", "-a", tree, trees / kver], check=True)
            link = ["cp", "-dRlf", "--preserve=mode,ownership,timestamps"]
            for full in reversed(newer):
                modules = root_of(full) / "usr/lib/modules"
                subprocess.run([*link, modules, where / "root/usr/lib/"], check=True)

        name = making.layer_name("newer", newer_stack, inspect.getsource(Layers.add_newer))
        full = self.make(name, "newer", f"kernel {kver} beside the older", fill)
        above = self.stack.removesuffix(f":{self.base}")
        self.stack = f"{full}:{above}:{newer_stack}:{self.base}"


def layers(
    who: str, kind: str, *words: str, doing: Callable[[str], None] = lambda text: None
) -> Layers:
    """Makes the layers of KIND: a guest, a system, packages, compile or tools."""
    made = Layers(doing)
    try:
        getattr(made, kind)(*words)
    except Wrong as wrong:
        raise Wrong(f"the layers of {who} could not be made: {wrong}") from wrong
    return made
