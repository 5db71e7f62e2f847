# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Gives the parts of advice that depend on this machine: how the module was installed, which key
signs modules here, and what is loaded. native.py puts these parts into the advice for a module
that cannot be loaded, and facts put them into their own advice."""

import os
import re
from functools import partial
from typing import Callable, Dict, Union

from ..read.kernel_symbols import peer_memory_in
from ..read.machine import CALLBACK, MODULE, SERVICE, Machine, modinfo, own_module
from ..read.place import cloud, container, image_based
from . import pod
from .core_advice import get_core

INSTALL_DRIVER = (
    "Install NVIDIA's kernel modules, the open or the proprietary ones "
    "(nvidia-open-kernel-dkms or nvidia-kernel-dkms on Debian), and reboot."
)
UNLOAD_PEERMEM = (
    "modprobe -r nvidia_peermem && echo 'blacklist nvidia_peermem' "
    ">/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf"
)

# In a template, {NAME} is replaced by a text of WORDS or BY_INSTALLER. If the text of a template
# depends on the module, the template is a table of texts by module. The entry "" of such a table is
# for all other modules.
Template = Union[str, Dict[str, str]]

# The source of the package is here, and dkms has not taken it over.
SOURCE = "dkms install --force nvidia-peer-memory/{source} -k {kernel}"

# Commands by the installer of the module. The installer is a package for one kernel ("kmod"), make,
# or dkms, which has the source ("dkms") or not yet ("source"). If nothing of the module is here,
# the installer is "".
PACKAGE = (
    "rpmbuild --rebuild --define 'kernel_version {kernel}' nvidia_peer_memory-*.src.rpm, "
    "then rpm -U --replacepkgs the kmod package that it wrote"
)
MAKE = "make && make install, in the module's source"
# The module, or its package, is not here.
NOWHERE = "install nv_peer_mem, whose source is not here: docs/installing.md"
DKMS = (
    "dkms build --force nvidia-peer-memory/{version} && "
    "dkms install --force nvidia-peer-memory/{version}"
)
BY_INSTALLER = {
    "rebuild": {"kmod": PACKAGE, "make": MAKE, "dkms": DKMS, "source": SOURCE, "": NOWHERE},
    # "build" builds the module for a running kernel that has no module. "install" also says why the
    # module is missing.
    "build": {
        "kmod": PACKAGE,
        "make": MAKE,
        "dkms": "dkms autoinstall -k {kernel}",
        "source": SOURCE,
        "": NOWHERE,
    },
    "install": {
        "kmod": "The kmod package is for another kernel. Build one for this: {build}",
        "make": "Build it: {build}",
        "dkms": "Build it: {build}; if that skips the kernel, it says why.",
        "source": "Build it: {build}",
        "": "Install nv_peer_mem: docs/installing.md; or NVIDIA's driver again, with its "
        "nvidia_peermem.",
    },
}

RELOAD = "modprobe -r nv_peer_mem && modprobe nv_peer_mem"

INSTALLED = ("updates/dkms", "updates", "extra")
DKMS_FORCED = (
    "dkms build --force nvidia-peer-memory/VERSION && "
    "dkms install --force nvidia-peer-memory/VERSION, with the VERSION that dkms status names"
)
CUT = (
    "Its file is there, {cut_file}, and cannot be read: a full disk may have cut it short. Make "
    "room (df /var /lib), then build it again: {build}"
)

# The module, the callback module and the marker are three files, and each file needs its own
# signature.
SIGN = (
    "{headers}Sign the modules with a key that this machine trusts: "
    "for file in {directory}/nv_peer_mem*.ko; do "
    "/lib/modules/{kernel}/build/scripts/sign-file sha256 KEY CERTIFICATE $file; done"
)
GET_HEADERS = "Install the kernel's headers, which have the program sign-file. "
NO_KEY = (
    "There is no key {key} yet. dkms makes it when it builds a module: {build_again}. "
    "Then: mokutil --import {key}, reboot and confirm."
)
OTHER_KEY = (
    "The key of this machine, {key}, is enrolled already, so {module} was not signed with it "
    "(modinfo -F signer {module}). Build it again: {build_again}"
)
KEY_WAITS = (
    "The key {key} waits to be confirmed: reboot, and choose Enroll MOK when the machine starts."
)
ENROL = (
    "Enrol the key that modules are signed with here, reboot and confirm: mokutil --import {key}"
)
NO_CONSOLE = (
    "On {cloud} no console may show the question of MokManager. Then turn Secure Boot off in the "
    "settings of the virtual machine, or boot an image whose firmware database has the key, or use "
    "modules that the provider has signed. Where there is a console: "
)
ON_THE_NODE = (
    "Modules belong to the node, not to this container. Run nvpm on the node: it says which module "
    "the node has. The GPU Operator loads nvidia-peermem with driver.rdma.enabled=true."
)
IN_IMAGE = (
    "{image} is one image, so modules are built into the image: add the package to a layered image "
    "or build, and boot that (docs/kubernetes.md)."
)
BUILD_AGAIN = {
    MODULE: "{rebuild}",
    "nvidia": "install the NVIDIA driver's package again",
    "": "install the package again that {module} is from",
}

UNLINK = (
    "{filename} is weak-modules' link to the module of another kernel: rm {filename} && depmod. "
)
CHECKS_LOCKS = (
    "This kernel is built to check its locks, with functions for GPL modules only, which a module "
    "beside the proprietary NVIDIA driver must not use. "
    "Boot another kernel, or install the open driver."
)
KERNEL_CRATES = (
    "nv_peer_mem was built with the kernel's own Rust crates, which are for GPL modules only; "
    "now the NVIDIA driver is the proprietary one. "
    "Build it again, and it does without them: {rebuild}"
)
OTHER_CALLBACK = (
    "The module nv_peer_mem_callback stays loaded until the next boot, and this version of "
    "nv_peer_mem needs another one: reboot. Until then only the version of nv_peer_mem that was "
    "loaded before can be loaded."
)
NO_CALLBACK = (
    "The module nv_peer_mem_callback, which nv_peer_mem needs, was not loaded with it: run "
    "depmod, then try again. If there is no such module (modinfo nv_peer_mem_callback), "
    "build both again: {rebuild}"
)
NO_DRIVER = "The NVIDIA driver is not loaded: modprobe nvidia, and see the kernel's log. "
OTHER_DRIVER = (
    "The NVIDIA driver that is loaded does not have this function. Load the one that is installed "
    "(reboot), then build the module for it: {rebuild}"
)
WITHOUT_CORE = (
    "nvidia_peermem answers so if the RDMA core has no peer memory, or had none when NVIDIA's "
    "driver was built. {get_core} Then install NVIDIA's driver again."
)
EMPTY_PEERMEM = (
    "nvidia_peermem was built without an RDMA core that has peer memory, so it is empty: install "
    "NVIDIA's driver again now that OFED is there, or use nv_peer_mem."
)
SERVED_ALREADY = (
    "nv_peer_mem is loaded and serves the same memory: only one module can. For programs that look "
    "for the name nvidia_peermem: MARKER=yes in /etc/infiniband/nv_peer_mem.conf."
)
MODULES_OFF = (
    "This kernel loads no more modules until it is booted again: something has set "
    "kernel.modules_disabled (grep -r modules_disabled /etc/sysctl.conf /etc/sysctl.d). "
    "Load nv_peer_mem before that."
)
LOCKED_DOWN = "The kernel is locked down and takes signed modules only. "
NO_RIGHT = "The kernel does not let this shell load modules: in a container, do it on the host."


class Advice:
    """Advice about a module. TEXT is the text that modprobe and the kernel have printed about the
    module."""

    def __init__(self, machine: Machine, module: str = MODULE, text: str = "") -> None:
        self.machine, self.module, self.text, self.kernel = machine, module, text, machine.kernel

    def __getitem__(self, name: str) -> str:
        """Returns the text that replaces {NAME} in a template. Only this text is computed."""
        if name in BY_INSTALLER and pod.to_build(self.machine):
            return pod.to_build(self.machine)
        if name in BY_INSTALLER and image_based(self.machine):
            return self.filled(IN_IMAGE)
        if name in BY_INSTALLER and container(self.machine):
            return ON_THE_NODE
        if name in BY_INSTALLER:
            by = self.installed_by()
            # dkms counts a module as installed even if a full disk has cut the module's file short,
            # so dkms must be forced to build the module again.
            if by == "dkms" and self.file_of_no_module():
                return self.filled(CUT if name == "install" else DKMS_FORCED)
            return self.filled(BY_INSTALLER[name][by])
        return WORDS[name](self)

    def filled(self, template: Template) -> str:
        if isinstance(template, dict):
            template = template.get(self.module, template[""])
        return template.format_map(self)

    def installed_by(self) -> str:
        if self.machine.exists("/var/lib/dkms/nvidia-peer-memory"):
            return "dkms"
        if "/nvidia_peer_memory/" in self["filename"]:
            return "kmod"
        if self.machine.run("rpm", "-q", "--whatprovides", "nvidia_peer_memory-kmod")[0]:
            return "kmod"
        if "/extra/" in self["filename"]:
            return "make"
        return "source" if self.source() else ""

    def source(self) -> str:
        """Returns the version of the package's source below /usr/src, which is there before dkms
        has taken it over."""
        found = self.machine.glob("/usr/src/nvidia-peer-memory-*/dkms.conf")
        return os.path.dirname(found[-1]).rpartition("-")[2] if found else ""

    def file_of_no_module(self) -> str:
        """Returns the module's file for this kernel, if modinfo cannot read that file."""
        if modinfo(self.machine):
            return ""
        files = (f"/lib/modules/{self.kernel}/{place}/nv_peer_mem.ko*" for place in INSTALLED)
        return next(iter(self.machine.glob(*files)), "")

    def to_unlink(self) -> str:
        """Returns how to remove the link to the module, if RHEL's weak-modules has made this link.
        weak-modules links to modules of other kernels without comparing the symbols of OFED and of
        the driver, so the linked module may not fit."""
        return self.filled(UNLINK) if "/weak-updates/" in self["filename"] else ""

    def to_enrol(self) -> str:
        """Returns how to make this machine trust a module that was built here. If the firmware has
        the key of dkms already, the module was signed with another key, and the advice is
        different."""
        text = self.to_enrol_at_console()
        return self.filled(NO_CONSOLE) + text if cloud(self.machine) else text

    def headers(self) -> str:
        """Returns how to get the program that signs modules, if it is not here."""
        there = self.machine.exists(f"/lib/modules/{self.kernel}/build/scripts/sign-file")
        return "" if there else GET_HEADERS

    def enrolled(self) -> bool:
        """Returns whether the firmware or the kernel has the key of this machine."""
        known = self.known_key()
        return "already enrolled" in known or "built-in trusted keyring" in known

    def known_key(self) -> str:
        return self.machine.run("mokutil", "--test-key", self.key())[1]

    def to_enrol_at_console(self) -> str:
        if self.module == MODULE and self.installed_by() == "kmod":
            return self.filled(SIGN)
        if not self.machine.exists(self.key()):
            return self.filled(NO_KEY)
        if self.enrolled():
            return self.filled(OTHER_KEY)
        return self.filled(KEY_WAITS if "enrollment request" in self.known_key() else ENROL)

    def key(self) -> str:
        """Returns the file of the key with which dkms signs modules on this machine. If no key is
        configured, dkms uses its own key; on Ubuntu it uses the key of the machine's owner."""
        files = self.machine.glob("/etc/dkms/framework.conf.d/*.conf")
        framework = self.machine.all_text("/etc/dkms/framework.conf", *files)
        setting = "^\\s*mok_certificate=[\"']?([^\"'\n]*)"
        configured = "".join(re.findall(setting, framework, re.MULTILINE)[-1:])
        if configured:
            return configured
        system = self.machine.all_text("/etc/os-release")
        ubuntu = re.search("^ID=[\"']?ubuntu", system, re.MULTILINE)
        return "/var/lib/shim-signed/mok/MOK.der" if ubuntu else "/var/lib/dkms/mok.pub"

    def build_again(self) -> str:
        return self.filled(BUILD_AGAIN)

    def without_gpl(self) -> str:
        if modinfo(self.machine).get("rust") == "prebuilt":
            return CHECKS_LOCKS
        return self.filled(KERNEL_CRATES)

    def forbidden(self) -> str:
        name = "".join(re.findall(r"for module ([\w-]+)", self.text)[:1]) or self.module
        line = self.forbidding_line(name)
        return f"A line in /etc/modprobe.d forbids {name}: remove it. {line}"

    def forbidding_line(self, module: str) -> str:
        """Returns a text with the file and the line of modprobe's configuration that forbid MODULE.
        Such a line makes modprobe run a program that does nothing in place of loading MODULE."""
        directories = ("/etc", "/run", "/usr/lib", "/lib")
        # modprobe takes dashes and underscores for the same.
        name = re.escape(module).replace("_", "[-_]")
        forbidding = re.compile(rf"\s*install\s+{name}\s.*(false|true)")
        for file in self.machine.glob(*(f"{place}/modprobe.d/*.conf" for place in directories)):
            for line in self.machine.lines(file):
                if forbidding.match(line):
                    return f"{file}:{line}"
        return ""

    def callback_lacks(self) -> str:
        """Returns advice if nv_peer_mem lacks symbols of the callback module. modprobe loads both
        modules unless its list of modules is old. So if the callback module is loaded, it is of
        another version."""
        return OTHER_CALLBACK if self.machine.loaded(CALLBACK) else self.filled(NO_CALLBACK)

    def driver_lacks(self) -> str:
        if not self.machine.loaded("nvidia"):
            return NO_DRIVER + self.forbidding_line("nvidia")
        return self.filled(OTHER_DRIVER)

    def empty_peermem(self) -> str:
        """Returns why nvidia_peermem answers EINVAL, although no parameter is wrong."""
        if not peer_memory_in(self.machine):
            return self.filled(WITHOUT_CORE)
        return SERVED_ALREADY if own_module(self.machine) else EMPTY_PEERMEM

    def unload_peermem(self) -> str:
        """Returns what to do about nvidia_peermem, which serves already. The module of this name
        may be nv_peer_mem itself."""
        if pod.keeps_module(self.machine):
            return pod.SERVES
        return SERVED_ALREADY if own_module(self.machine) else f"Unload it: {UNLOAD_PEERMEM}"

    def not_permitted(self) -> str:
        """Returns the reason for which root cannot load any module."""
        if self.machine.text("/proc/sys/kernel/modules_disabled") == "1":
            return MODULES_OFF
        lockdown = self.machine.text("/sys/kernel/security/lockdown")
        if re.search(r"\[(integrity|confidentiality)\]", lockdown):
            return LOCKED_DOWN + self["to_enrol"]
        return NO_RIGHT


def service(machine: Machine, action: str) -> str:
    """Returns the command that starts or restarts the service, or how to do the same with a pod. A
    module that `make install` has installed has no service."""
    if pod.keeps_module(machine):
        return pod.RESTART
    if machine.exists(SERVICE):
        return f"{SERVICE} {action}"
    return RELOAD if action == "restart" and machine.loaded(MODULE) else "modprobe nv_peer_mem"


def of_installed(field: str, advice: Advice) -> str:
    return modinfo(advice.machine).get(field, "")


# The names that templates may have in braces.
WORDS: Dict[str, Callable[[Advice], str]] = {
    "module": lambda advice: advice.module,
    "kernel": lambda advice: advice.kernel,
    # dkms knows the version without the commit and the checksum of the sources.
    "version": lambda advice: of_installed("version", advice).partition("+")[0],
    "filename": partial(of_installed, "filename"),
    "directory": lambda advice: os.path.dirname(advice["filename"]),
    "cut_file": Advice.file_of_no_module,
    "source": Advice.source,
    "restart_service": lambda advice: service(advice.machine, "restart"),
    "key": Advice.key,
    "headers": Advice.headers,
    "to_unlink": Advice.to_unlink,
    "get_core": lambda advice: get_core(advice.machine),
    "image": lambda advice: image_based(advice.machine),
    "cloud": lambda advice: cloud(advice.machine),
    "to_enrol": Advice.to_enrol,
    "build_again": Advice.build_again,
    "without_gpl": Advice.without_gpl,
    "forbidden": Advice.forbidden,
    "callback_lacks": Advice.callback_lacks,
    "driver_lacks": Advice.driver_lacks,
    "empty_peermem": Advice.empty_peermem,
    "unload_peermem": Advice.unload_peermem,
    "not_permitted": Advice.not_permitted,
}
