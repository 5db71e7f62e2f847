# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's layers: what each is made of, from the bottom up.

    base        Debian with compilers, verbs programs and RDMA user space
    kernel      a kernel as Debian builds it, and its headers; above it, where something compiles
                with the kernel's own Rust crates, metadata, which Debian leaves out; or
    debug       one compiled by us from the same source, with every checker on
    boot        its initramfs
    nvsource    what the lab compiles of NVIDIA's source, from Debian
    nvidia      the simulated NVIDIA driver, installed; or
    realdriver  NVIDIA's own, of Debian's package, built by dkms, and a GPU for it
    ofed        the RDMA core with peer memory, installed as MLNX_OFED does it
    neighbours  what is beside ours: NVIDIA's nvidia-peermem, which ours is compared with, a second
                client of the driver, mistakes for the kernel's checkers, verbs step by step
    module      nv_peer_mem.ko, built with the project's Makefile and installed, on the
                way that the machine's line names; for that:
    ready       the assembly that releases have for machines without Rust
    gpuverbs    the lab's own verbs client

What only some guests want (the column "layers" of ../jobs.md):
    generations drivers and RDMA cores of other generations, and the module for them
    grounds     the module compiled in every other way that the kernel can have
    programs    programs of others for CUDA memory, above libcuda over the simulated GPU (cuda) and
                the examples; and our own (clients)
    hosts       programs that run on two guests, Open MPI and ssh
    service     service script and status
    python      what measures, and draws what came of that

Layers that no guest has: pytest, which tests and checks programs of Python; hosttools and clienttools, the crates that other layers are compiled
with; and those of the packages.

Guests of arm64 have the same. What they boot is compiled here, on x86-64: all is built on the
lab's own base with a cross compiler above it (cross), and booted above a root of their own
processor (arm64root).
"""

import contextlib
import functools
import inspect
import os
import re
import shutil
import subprocess
import threading
import time
from collections import namedtuple
from pathlib import Path

import cache
import making
from cache import CACHE, LAB, TOP, Wrong, say, scratch

# The release whose programs most guests run (kernels has the others).
RELEASE = "trixie"

Machine = namedtuple("Machine", "machine kwant ksuite kpackages kcompiler kground kdriver krelease machine_is kflavour")

# The files that make up the module, as a package would ship them.
MODULE = [TOP / name for name in ("Kbuild", "Makefile", "dkms.conf", "src")]

# What a release is made of. Tests are in it, but make no difference here.
RELEASED = [*MODULE, *(TOP / name for name in (
    "nv_peer_mem.conf", "build_release.sh", "README.md", "LICENSE", "LICENSES", ".gitignore", "init.d", "nvpm", "nvpm.sh", "completions", "docs", "debian", "rpm"))]

# What this machine trusts: a network may have a certificate of its own, which programs in layers do not know.
TRUSTED = [path for path in [Path("/etc/ssl/certs/ca-certificates.crt")] if path.exists()]


def table(path):
    return [line.split() for line in (LAB / path).read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")]


@functools.cache
def machines():
    return {words[0]: Machine(*words) for words in table("kernels")}


def suites_of(release):
    """A release has its own packages, and the lab's own the kernels of all others beside them."""
    return [release, *(sorted({one.ksuite for one in machines().values()} - {release}) if release == RELEASE else ())]


def packages_of(root):
    """The packages of one of the roots in the table packages."""
    return [word for words in table("packages") if root in words[0].split(",") for word in words[1:]]


# ---- what the archive has ------------------------------------------------------------


def archive(base):
    """Kernels and drivers of the archive as "name|version" lines, oldest first. Kept until `tests/run
    update`: a lab that works is not disturbed by news."""
    path = CACHE / f"archive-nvidia+{'+'.join(sorted(suites_of(RELEASE)))}"
    if not path.exists():
        say("archive", f"listing the kernels and drivers that {making.mirror()} offers")
        with scratch("archive") as where:
            making.write_sources(where, *suites_of(RELEASE))
            binds = [f"{where}/sources.list:/etc/apt/sources.list:ro", f"{where}:/out"]
            cache.logged("archive", "listing the archive", functools.partial(making.in_layers, base, "bash", "-euc", r"""
                apt-get update
                apt-cache madison $(apt-cache pkgnames | grep -E "^linux-(image|headers|source)-[0-9]|^nvidia-kernel-dkms\$") |
                    tr -d " " | cut -d"|" -f1,2 | LC_ALL=C sort -uV >/out/list""", binds=binds))
            shutil.move(where / "list", path)
    return path.read_text(encoding="utf-8").splitlines()


def kernels_of(lines):
    """Release, version and series of each kernel that has image, headers and source of the same
    version, oldest first."""
    there, found = set(lines), []
    for line in lines:
        if image := re.fullmatch(r"linux-image-(([0-9]+\.[0-9]+)[^|]*-amd64)\|(.*)", line):
            release, series, version = image.groups()
            if not release.endswith(("-cloud-amd64", "-rt-amd64")) and {f"linux-headers-{release}|{version}", f"linux-source-{series}|{version}"} <= there:
                found.append((release, version, series))
    return sorted(found, key=lambda kernel: [[int(number) for number in re.findall(r"\d+", word)] for word in kernel[:2]])


# ---- the roots ----------------------------------------------------------------------

BASE = ["--variant=apt", "--customize-hook=ln -sf /run/resolv.conf \"$1\"/etc/resolv.conf",
        "--customize-hook=rm -f \"$1\"/etc/apt/sources.list.d/*", "--customize-hook=echo nv-lab >\"$1\"/etc/hostname"]

# No script of a package is run, for nothing of it could run here; what those would have made
# that guests need is made by hooks.
ARM64 = ["--variant=extract", "--architectures=arm64", "--extract-hook=ln -s mawk \"$1\"/usr/bin/awk",
         "--extract-hook=cp \"$1\"/usr/share/base-passwd/passwd.master \"$1\"/etc/passwd",
         "--extract-hook=cp \"$1\"/usr/share/base-passwd/group.master \"$1\"/etc/group", "--extract-hook=mkdir -p \"$1\"/mnt"]


class Layers:
    """A stack of layers, `stack`, to which functions add on top; and what is to be known of them."""

    def __init__(self, doing=lambda text: None):
        self.doing, self.stack, self.kver, self.kseries = doing, "", "", ""
        self.lab_base = self.root(RELEASE, BASE)

    def say(self, who, text):
        say(who, text)
        self.doing(f"[{who}] {text}")

    def make(self, full, name, text, fill):
        def begin(where):
            began = time.monotonic()
            self.say(name, text)
            fill(where)
            self.say(name, f"done in {round(time.monotonic() - began)} s")

        return making.unless_there(full, begin)

    def root(self, release, options, name="base"):
        packages = packages_of("arm64" if name == "arm64root" else release)

        def fill(where):
            making.write_sources(where, *suites_of(release))
            cache.logged(name, "making the base system", functools.partial(making.debian, where, options, release, packages))

        full = making.layer_name(f"{name}-{release}", options, packages)
        return self.make(full, name, f"Debian {release} (a minute or two)", fill)

    def beside(self, name, stack, text, *inputs, words=(), network=False):
        """The layer NAME above STACK, made by build/NAME.sh with WORDS."""
        def fill(where):
            making.build(where, name, f"{name}-{self.kver}" if self.kver else name, stack, inputs, words, network and suites_of(stack.split("-")[-2]))

        return self.make(making.built_name(name, stack, inputs, words), name, text, fill)

    def add(self, name, text, *inputs, on=None, **more):
        """On top; made above ON, what does not depend on a kernel, and so is shared by all."""
        self.stack = f"{self.beside(name, on or self.stack, text, *inputs, **more)}:{self.stack}"

    def path(self, full):
        return CACHE / "layers" / full / "root"

    def those(self, *names):
        """Of the stack those of these names."""
        return ":".join(full for full in self.stack.split(":") if full.split("-")[0] in names)

    # ---- a kernel and its neighbours -------------------------------------------------

    def choose(self, name):
        vars(self).update(machines()[name]._asdict())

    def choose_kernel(self, instead=None):
        """In kver (release), kpkg (package version) and kseries; LAB_KERNEL, a release or a series,
        takes the place of "7"."""
        want = instead or (os.environ.get("LAB_KERNEL", "7") if self.kwant == "7" else self.kwant)
        kernels = kernels_of(archive(self.lab_base))
        fitting = [kernel for kernel in kernels if kernel[0] == want or kernel[0].startswith((f"{want}.", f"{want}+"))]
        if not fitting:
            raise Wrong(f"the archive has no kernel '{want}' with image, headers and source of one version. It has: "
                        f"{' '.join(kernel[0] for kernel in kernels)}. Choose one with LAB_KERNEL=, or look again with tests/run update.")
        self.kver, self.kpkg, self.kseries = fitting[-1]
        earlier = kernels[:kernels.index(fitting[-1])]
        self.older = earlier[-1][0] if earlier else None

    def kernel(self, instead=None):
        """The kernel of the machine's line, and what boots it."""
        self.base = self.lab_base if self.krelease == RELEASE else self.root(self.krelease, BASE)
        self.choose_kernel(instead)
        self.stack = self.base
        if self.kflavour != "amd64":
            self.kver = f"{self.kver.removesuffix('-amd64')}-{self.kflavour}"
            cross = self.beside("cross", self.lab_base, "compilers and libraries for arm64 (a minute)", network=True)
            self.base = self.stack = f"{cross}:{self.lab_base}"
        if self.kpackages == "debug":
            self.add("debug", f"kernel {self.kseries}, compiled with debug/config (10 to 30 minutes, once)", LAB / "debug/config",
                     words=(self.kpkg, self.kseries, self.kcompiler), network=True)
            self.kver = next(self.path(self.those("debug")).glob("boot/vmlinux-*")).name.removeprefix("vmlinux-")
        else:
            self.add("kernel", f"kernel {self.kver}, ready for modules (a minute)",
                     words=(self.kver, self.kpkg, self.kseries, self.ksuite, self.kcompiler), network=True)
        self.kernel_stack = self.stack
        boot = self.beside("boot", self.kernel_stack, "initramfs", LAB / "initramfs-init", words=[self.kver])
        self.initramfs = str(self.path(boot) / "boot/lab-initramfs")
        self.vmlinux = str(self.path(self.kernel_stack.split(":")[0]) / f"boot/vmlinux-{self.kver}")

    def extra_metadata(self):
        """What compiles against the kernel's own Rust crates; the checker kernel comes with it. It stands on
        the kernel alone, and above what else does, which is the same without it."""
        if self.kpackages != "debug" and not self.those("metadata"):
            self.add("metadata", f"the Rust metadata of kernel {self.kver} (two minutes)", TOP / "debian/rust-metadata", on=self.kernel_stack,
                     words=(self.kver, self.kpkg, self.kseries), network=True)

    def nvsource(self):
        self.add("nvsource", "NVIDIA's source from Debian (35 MB)", on=self.lab_base, network=True)

    def neighbours(self):
        """The RDMA core's side and NVIDIA's, which is the upper one: it is edited more often."""
        self.add("ofed", f"RDMA core with peer memory for {self.kver}", LAB / "ofed", LAB / "compat.h", words=(self.kver, self.kseries))
        if self.kdriver in ("open", "closed"):
            self.nvsource()
            self.add("nvidia", f"simulated NVIDIA driver, {self.kdriver}", LAB / "nvidia", LAB / "compat.h",
                     words=(self.kver, self.kdriver, self.kcompiler))
        else:
            versions = [line.split("|")[1] for line in archive(self.lab_base) if line.startswith(f"nvidia-kernel-dkms|{self.kdriver}.")]
            if not versions:
                raise Wrong(f"the archive has no nvidia-kernel-dkms {self.kdriver}: choose another branch in tests/lab/kernels, "
                            "or look again with tests/run update.")
            self.add("realdriver", f"NVIDIA's own driver, {versions[-1]} (a minute or two)", LAB / "idlegpu",
                     on=f"{self.packaging()}:{self.stack}", words=(self.kver, versions[-1]), network=True)

    def neighbours_of_ours(self):
        self.add("neighbours", "modules and programs beside ours", LAB / "cpumap", LAB / "mistakes", LAB / "compat.h",
                 TOP / "tests/guest/defects/steps.c", LAB / "nvidia/lab_gpu.h", words=[self.kver])

    # ---- guests -----------------------------------------------------------------------

    def guest(self, machine, *extras):
        """All that a guest boots with, on that machine, and EXTRAS. `stack` is what programs of this
        machine run in, `guest_stack` what the guest boots."""
        self.choose(machine)
        # What depends on no kernel is made meanwhile: half of that time one processor has nothing to do.
        client = threading.Thread(target=self.client_early)
        client.start()
        self.kernel()
        self.neighbours()
        self.neighbours_of_ours()
        if self.kground == "in-kernel":
            self.extra_metadata()
        # Compiled against the kernel's own crate, the module takes half a minute less.
        ready = [] if self.kground == "in-kernel" else [self.make_ready()]
        self.add("module", f"nv_peer_mem.ko, {self.kground}", *MODULE, *ready, words=(self.kver, self.kground))
        for extra in sorted(set(extras)):
            if self.kflavour != "amd64" and extra not in ("generations", "grounds"):
                raise Wrong(f"machines of arm64 have no layers '{extra}'.")
            getattr(self, f"extra_{extra}")()
        above = self.stack.removesuffix(self.base)
        # Above every layer that has packages of its own: dpkg must know those in the end.
        self.gpuverbs()
        if self.kflavour == "amd64":
            self.guest_stack = self.stack
        else:
            client = self.beside("gpuverbs", self.clienttools().replace(self.lab_base, self.base), "verbs client of the lab, for arm64",
                                 *self.client_sources, words=["aarch64-unknown-linux-gnu"])
            self.guest_stack = f"{client}:{above}{self.root(RELEASE, ARM64, 'arm64root')}"

    def client_early(self):
        """In a thread of its own. What fails here fails once more where it is waited for."""
        with contextlib.suppress(Wrong):
            self.beside("gpuverbs", self.clienttools(), "verbs client of the lab", *self.client_sources)

    def make_ready(self):
        """For arm64 `ready` is what a release has for that processor."""
        ready = self.beside("ready", self.base, "the Rust as assembly", *MODULE)
        return self.path(ready) / "ready"

    def clienttools(self):
        """What the verbs client is compiled in."""
        tools = self.beside("clienttools", self.lab_base, "crates for the verbs client (half a minute)",
                            LAB / "build/crates.sh", TOP / "tests/guest/gpuverbs/Cargo.toml", network=True)
        return f"{tools}:{self.lab_base}"

    client_sources = (TOP / "tests/guest/gpuverbs", LAB / "nvidia/lab_gpu.h")

    def gpuverbs(self):
        self.add("gpuverbs", "verbs client of the lab", *self.client_sources, on=self.clienttools())

    def extra_generations(self):
        self.add("generations", "drivers and RDMA cores of other generations", LAB / "nvidia", LAB / "compat.h", *MODULE, self.make_ready(),
                 words=(self.kver, self.kground, self.kdriver))

    def extra_grounds(self):
        self.extra_metadata()
        self.add("grounds", "the module compiled in every way (minutes)", *MODULE, self.make_ready(), LAB / "object", words=[self.kver])
        # What was found of them.
        self.compiled = self.path(self.stack.split(":")[0]) / "grounds"

    def extra_ubuntu(self):
        self.add("ubuntu", "an RDMA core as Ubuntu ships it, and the module for it", *MODULE, self.make_ready(), words=(self.kver, self.kground))

    def extra_ready(self):
        self.stack = f"{self.make_ready().parts[-3]}:{self.stack}"

    def extra_programs(self):
        """Beneath a kernel's packages: dpkg must know the last."""
        above, self.stack = self.stack.removesuffix(self.base), self.base
        self.add("cuda", "CUDA of the lab", LAB / "cuda/cuda.c", LAB / "cuda/include", LAB / "nvidia/lab_gpu.h")
        self.add("examples", "the examples", TOP / "examples")
        self.add("programs", "programs for CUDA memory (a minute or two)", network=True)
        self.add("clients", "the lab's own programs for CUDA memory", TOP / "tests/guest/clients")
        self.stack = above + self.stack

    def extra_hosts(self):
        self.add("hosts", "Open MPI, ssh and programs for two guests", TOP / "tests/guest/hosts", on=self.lab_base, network=True)

    def extra_service(self):
        self.add("service", "service", *(TOP / name for name in ("init.d", "nvpm", "nvpm.sh", "nv_peer_mem.conf")), on=self.lab_base)

    def extra_python(self):
        self.add("python", "all of Python, and matplotlib", on=self.lab_base, network=True)

    def extra_pytest(self):
        self.add("pytest", "pytest, and what checks programs of Python", *TRUSTED, on=self.lab_base, network=True)

    # ---- without a guest ------------------------------------------------------------------

    def compile(self, machine):
        """The module compiled in every way that it can be; what was found is in the file
        `compiled`. Of a kernel that is source alone it is not linked."""
        self.choose(machine)
        if self.kpackages != "tree":
            self.guest(machine, "grounds")
            return
        self.choose_kernel()
        self.stack = self.lab_base
        self.add("tree", f"kernel tree of {self.kseries} ({self.kpkg}), two minutes",
                 words=(self.kpkg, self.kseries, self.ksuite, self.kcompiler), network=True)
        self.nvsource()
        self.add("compile", f"module for {self.kver}", *MODULE, words=[self.kver])
        self.compiled = self.path(self.stack.split(":")[0]) / "compiled"

    def tools(self, name):
        """What knows no kernel."""
        self.stack = self.lab_base
        if name == "host":
            self.add("hosttools", "crates for the tests on the host (two minutes)", LAB / "build/crates.sh",
                     TOP / "tests/host/Cargo.toml", network=True)
        elif name == "client":
            self.stack = self.clienttools()
        elif name == "python":
            self.extra_python()
        elif name == "pytest":
            self.extra_pytest()
        elif name == "debian11":
            self.stack = self.root("bullseye", BASE)

    # ---- packages, and whole systems that have them installed: guests with systemd and a disk -----

    def packaging(self):
        """What makes packages, above a kernel's own: dpkg has one list of what is installed."""
        return self.beside("packaging", self.those("kernel", "base"), "Debian's tools for packages (a minute)", network=True)

    def packaged(self, machine):
        """No program for verbs is in it, which not every release's base could run."""
        self.choose(machine)
        self.kernel()
        self.neighbours()
        self.neighbours_of_ours()
        self.extra_metadata()
        self.stack = f"{self.packaging()}:{self.stack}"

    def packages(self, machine):
        """A guest's stack without module, with what packages are made with and the packages themselves,
        made on stock: in /packages and, of an older version, in /packages/old."""
        self.packaged("stock")
        self.made = self.beside("packages", self.stack, "packages, deb and rpm", *RELEASED, words=[self.kver])
        if machine != "stock":
            self.packaged(machine)
        self.stack = f"{self.made}:{self.stack}"

    def system_of(self, machine, instead=None):
        """As guest, for a system on which nothing is installed yet."""
        self.choose(machine)
        self.kernel(instead)
        kernel = self.stack
        self.neighbours()
        self.add("system", "systemd, dkms and rpm", TOP / "tests/guest/systems/machine/units", on=kernel, network=True)
        self.gpuverbs()

    def system(self, machine, name):
        """The system before its first boot. The first lines of tests/guest/systems/NAME.sh say
            # Prepared: WORD...   what systems/prepare/WORD.sh did before the first boot;
                                  natively, ten times faster than in an emulated guest
            # Kernels: older newer  that the first boot is of an older kernel than the others"""
        text = (TOP / f"tests/guest/systems/{name}.sh").read_text(encoding="utf-8")
        self.packages("stock")
        self.system_of(machine)
        newer = None
        if "\n# Kernels: " in text:
            if not self.older:
                raise Wrong(f"the archive has no kernel before {self.kver} to upgrade from: choose a newer one with LAB_KERNEL=.")
            newer = self.those("ofed", "nvidia", "kernel")
            self.newer_kver, self.newer_vmlinux, self.newer_initramfs = self.kver, self.vmlinux, self.initramfs
            self.system_of(machine, self.older)
        for word in " ".join(re.findall(r"^# Prepared: (.*)", text, re.MULTILINE)).split():
            inputs = [TOP / f"tests/guest/systems/prepare/{word}.sh", self.path(self.made) / "packages"]
            if word == "newer_kernel":
                self.add_newer(newer)
                inputs.append(self.path(newer.split(":")[-1]) / "var/lib/dpkg/status")
            self.add("prepared", f"a system, prepared: {word}", *inputs, words=(word, self.kver, self.newer_kver if newer else ""))

    def add_newer(self, newer):
        """The newer kernel's layers beneath everything else, so that what both have is the older one's.
        But /usr/lib/modules of any kernel's layer hides all beneath it (overlayfs: a new directory is
        opaque): the modules come once more, on top. So does what the RDMA core has for modules that are
        compiled: OFED keeps a tree for each kernel, whose versions of symbols may differ."""
        def fill(where):
            trees = where / f"root/usr/src/ofa_kernel/{os.uname().machine}"
            trees.mkdir(parents=True)
            (where / "root/usr/lib").mkdir()
            ofed = next(full for full in newer.split(":") if full.startswith("ofed-"))
            subprocess.run(["cp", "-a", self.path(ofed) / "usr/src/ofa_kernel/default", trees / self.newer_kver], check=True)
            for full in reversed(newer.split(":")):
                subprocess.run(["cp", "-dRlf", "--preserve=mode,ownership,timestamps", self.path(full) / "usr/lib/modules", where / "root/usr/lib/"],
                               check=True)

        full = self.make(making.layer_name("newer", newer, inspect.getsource(Layers.add_newer)), "newer", f"kernel {self.newer_kver} beside the older", fill)
        self.stack = f"{full}:{self.stack.removesuffix(f':{self.base}')}:{newer}:{self.base}"


def layers(who, kind, *words, doing=lambda text: None):
    """Has layers made: a guest's, a system's, those of packages, compile or tools. Returns what is to
    be known of them."""
    made = Layers(doing)
    try:
        getattr(made, kind)(*words)
    except Wrong as wrong:
        raise Wrong(f"the layers of {who} could not be made: {wrong}") from wrong
    return vars(made)
