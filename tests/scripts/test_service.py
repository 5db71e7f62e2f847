# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""init.d/nv_peer_mem on a machine that is made of files: each command, each reason for which the
module is not loaded or not unloaded, and each message."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from system import DOUBLES, TOP, System

PROGRAMS = (
    *("modprobe", "rmmod", "modinfo", "dmesg", "id", "uname", "systemctl", "systemd-notify"),
    *("nvpm", "logger"),
)
CONF = "etc/infiniband/nv_peer_mem.conf"
# Exit codes of the LSB.
FAILED, USAGE, NOT_ALLOWED, NOT_INSTALLED, NOT_RUNNING, UNKNOWN = 1, 2, 4, 5, 3, 4
GPU = ("0x10de", "0x030200")


class Service(System):
    """A machine with the service's script. The script is a copy, in which the directories of the
    system are replaced by those of the machine."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for program in PROGRAMS:
            (root / "bin" / program).unlink(missing_ok=True)
            (root / "bin" / program).symlink_to(DOUBLES / "service")
        text = (TOP / "init.d/nv_peer_mem").read_text(encoding="utf-8")
        for name, meant in (
            ("PATH=/usr/sbin:", f"PATH={root}/bin:/usr/sbin:"),
            ("lib=/usr/lib/", f"lib={root}/usr/lib/"),
            ("/usr/sbin/nvpm", f"{root}/bin/nvpm"),
            (">/dev/kmsg", f">>{root}/dev/kmsg"),
            ("/var/lib/", f"{root}/var/lib/"),
            ("/usr/src/", f"{root}/usr/src/"),
            ("/run/systemd/", f"{root}/run/systemd/"),
            ("/sys/", f"{root}/sys/"),
            ('"$PPID"', '"${PARENT-$PPID}"'),
        ):
            assert name in text, name
            text = text.replace(name, meant)
        self.script = self.put("nv_peer_mem", text, 0o755)
        lib = root / "usr/lib/nvidia-peer-memory"
        lib.mkdir(parents=True)
        shutil.copy(TOP / "init.d/conf.sh", lib)
        self.put(CONF, "ONBOOT=yes\n")
        self.put("dev/kmsg", "nvidia: an old line\nnvidia: another old line\n")
        for module in ("nvidia", "ib_core", "ib_uverbs"):
            (root / "sys/module" / module).mkdir(parents=True)
        self.device("0000:3b:00.0", *GPU)

    def device(self, address: str, vendor: str, kind: str) -> None:
        self.put(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        self.put(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")
        self.put(f"sys/bus/pci/devices/{address}/modalias", f"pci:{address}\n")

    def no_device(self) -> None:
        shutil.rmtree(self.root / "sys/bus/pci/devices")

    def unload(self, *modules: str) -> None:
        for module in modules:
            shutil.rmtree(self.root / "sys/module" / module)

    def load(self, *, references: int = 0, marker: bool = False) -> None:
        self.put("sys/module/nv_peer_mem/version", "2.0.0\n")
        self.put("sys/module/nv_peer_mem/refcnt", f"{references}\n")
        self.put("sys/module/nv_peer_mem/statistics/reachable_regions", "7\n")
        if marker:
            (self.root / "sys/module/nvidia_peermem").mkdir()
            (self.root / "sys/module/nv_peer_mem/holders/nvidia_peermem").mkdir(parents=True)

    def load_by_pod(self, *, references: int = 0) -> None:
        """Loads the module under the name of NVIDIA's own, as a pod does."""
        self.put("sys/module/nvidia_peermem/version", "2.0.0\n")
        self.put("sys/module/nvidia_peermem/refcnt", f"{references}\n")
        self.put("sys/module/nvidia_peermem/statistics/reachable_regions", "7\n")

    def pod_keeps(self, name: str, age: int = 0) -> None:
        """A pod has written its state AGE seconds ago."""
        state = {"at": 7, "name": name, "reason": 'a "name":"x"', "since": 3, "state": "ready"}
        file = self.put("run/nv-peer-mem/status.json", json.dumps(state, separators=(",", ":")))
        os.utime(file, (time.time() - age, time.time() - age))

    def loaded(self, module: str = "nv_peer_mem") -> bool:
        return (self.root / "sys/module" / module).is_dir()

    def does(self, *words: str, **environment: str) -> int:
        return self.run("dash", self.script, *words, **environment)

    def systemd(self, state: str = "running") -> dict[str, str]:
        """Makes systemd run the machine, and returns the environment of its scripts."""
        (self.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        self.put("state", state)
        return {"PARENT": "1", "NOTIFY_SOCKET": "/run/notify"}


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path / "root")


# ---- start ----


def test_start(service: Service) -> None:
    assert service.does("start") == 0
    assert service.output == "nv_peer_mem: loaded, version 2.0.0.\n"
    assert service.calls() == ["modprobe nv_peer_mem"]
    assert service.does("start") == 0
    assert service.output == "nv_peer_mem: is loaded already.\n"
    assert service.calls() == []


def test_start_of_a_module_without_a_version(service: Service) -> None:
    service.load()
    service.put("sys/module/nv_peer_mem/version", "")
    assert service.does("start", PARENT="1", NOTIFY_SOCKET="/x") == 0
    assert service.calls() == ["systemd-notify --status=Loaded, version unknown. More: nvpm status"]


@pytest.mark.parametrize("by_systemd", [True, False])
def test_modules_that_a_power_cut_took(service: Service, by_systemd: bool) -> None:
    """They are put back before a start: in a step of its own if systemd starts the service. Only
    root's file is run, and only if there are copies."""
    text = '#!/bin/sh\necho "versions $*" >>"$NVPM_SYSROOT/calls"\n'
    versions = service.put("usr/src/nvidia-peer-memory-2.0.0/build/dkms/versions", text, 0o755)
    environment = service.systemd() if by_systemd else {}
    put_back = ["versions put-back"]
    for copies in (False, True):
        if copies:
            (service.root / "var/lib/nvidia-peer-memory/6.1/files").mkdir(parents=True)
            (service.root / "var/lib/nvidia-peer-memory/6.2/files").mkdir(parents=True)
        assert service.does("put-back", **environment) == 0 and service.output == ""
        assert service.calls() == (put_back if copies else [])
        assert service.does("start", **environment) == 0
        expected = [*(put_back if copies and not by_systemd else []), "modprobe nv_peer_mem"]
        calls = [call for call in service.calls() if "systemd-notify" not in call]
        assert [call for call in calls if "systemctl" not in call] == expected
        service.unload("nv_peer_mem")
    versions.rename(service.root / "elsewhere")
    versions.symlink_to(service.root / "elsewhere")
    assert service.does("put-back", **environment) == 0
    assert service.calls() == []


def test_start_loads_the_neighbours_first(service: Service) -> None:
    service.unload("nvidia", "ib_uverbs")
    assert service.does("start") == 0
    assert service.calls() == ["modprobe ib_uverbs", "modprobe nvidia", "modprobe nv_peer_mem"]


def test_start_of_a_user(service: Service) -> None:
    service.put("uid", "1000")
    assert service.does("start") == NOT_ALLOWED
    assert service.output == "nv_peer_mem: only root can do that.\n"
    assert service.calls() == []


def test_start_without_the_module(service: Service) -> None:
    service.put("fails/modinfo.nv_peer_mem")
    service.put("advice", "build it")
    assert service.does("start") == NOT_INSTALLED
    assert service.output == "nv_peer_mem: there is no module for kernel 6.1.0-test. build it\n"
    assert service.calls() == ["nvpm advise nv_peer_mem"]


def test_start_tells_systemd(service: Service) -> None:
    """A user has called the script, so the unit's state must follow."""
    service.systemd()
    assert service.does("start", PARENT="42") == 0
    assert service.calls() == [
        "modprobe nv_peer_mem",
        "systemctl --quiet start --no-block nv_peer_mem.service",
    ]
    service.unload("nv_peer_mem")
    assert service.does("start", PARENT="1", NOTIFY_SOCKET="/x") == 0
    assert service.calls() == [
        "modprobe nv_peer_mem",
        "systemd-notify --status=Loaded, version 2.0.0. More: nvpm status",
    ]


@pytest.mark.parametrize("module", ["ib_uverbs", "nvidia", "nv_peer_mem"])
def test_start_fails(service: Service, module: str) -> None:
    """The message has modprobe's words, then the kernel's words since the start, then advice. Codes
    that a terminal would obey are replaced."""
    service.unload("nvidia", "ib_uverbs")
    service.put(f"fails/modprobe.{module}", f"modprobe: ERROR: could not insert '{module}': x\n")
    said = [
        *("nvidia: first", "[    1.0] nv_peer_mem: second", "other: not of these modules"),
        "[  12.3] [T1] NVRM: \x1b[2Jthird\x07",
        *("Loading of module is rejected", "Lockdown: x", "ib_core: y", "ib_uverbs: z"),
        *("nvidia: seven", "nvidia: eight", "nvidia: nine"),
    ]
    # Each module that is loaded before makes the kernel say these lines.
    service.put("says", "\n".join(said) + "\n")
    service.put("advice", "do this")
    code = service.does("start")
    assert code == FAILED
    lines = service.output.splitlines()
    assert lines[0] == (
        f"nv_peer_mem: cannot load {module}: modprobe: ERROR: could not insert '{module}': x"
    )
    assert lines[-1] == "nv_peer_mem: do this"
    assert not service.loaded() and "old line" not in service.output
    shown = lines[1:-1]
    if module == "ib_uverbs":
        assert shown == []
        return
    assert shown == [
        "  the kernel says: " + text
        for text in (
            *("NVRM: ?[2Jthird?", "Loading of module is rejected", "Lockdown: x", "ib_core: y"),
            *("ib_uverbs: z", "nvidia: seven", "nvidia: eight", "nvidia: nine"),
        )
    ]
    calls = "\n".join(service.calls())
    assert f"nvpm advise {module} modprobe: ERROR: could not insert '{module}': x " in calls
    assert "nvidia: first\nnv_peer_mem: second\nNVRM" in calls


def test_start_fails_and_nothing_is_known(service: Service) -> None:
    service.put("fails/modprobe.nv_peer_mem")
    service.put("no-python")
    assert service.does("start") == FAILED
    assert service.output == (
        "nv_peer_mem: cannot load nv_peer_mem: modprobe did not say why\n"
        "nv_peer_mem: dmesg may say more.\n"
    )


def test_start_without_a_log(service: Service) -> None:
    shutil.rmtree(service.root / "dev")
    service.put("fails/modprobe.nv_peer_mem", "x\n")
    assert service.does("start") == FAILED
    assert service.output.startswith("nv_peer_mem: cannot load nv_peer_mem: x\n")


def test_start_shows_what_is_not_understood(service: Service) -> None:
    service.put(CONF, "ONBOOT=maybe\nMARKER=perhaps\nx\n")
    assert service.does("start") == 0
    assert service.output == (
        f"nv_peer_mem: not understood in /{CONF}: ONBOOT=maybe; MARKER=perhaps; x. "
        "It takes ONBOOT= and MARKER=, yes or no.\n"
        "nv_peer_mem: loaded, version 2.0.0.\n"
    )


# ---- a start by the boot ----

NO_GPU = "this machine has no NVIDIA GPU."
REASONS = {
    "ONBOOT=no": f"on boot it is not wanted: /{CONF} says ONBOOT=no.",
    "MARKER=yes": f"on boot it is not wanted: /{CONF} does not say ONBOOT=yes.",
    "ONBOOT=yes\nONBOOT=off": f"on boot it is not wanted: /{CONF} says ONBOOT=no.",
    "ONBOOT=maybe": f"on boot it is not wanted: ONBOOT= in /{CONF} is neither yes nor no "
    "(ONBOOT=maybe).",
    "ONBOOT=yes\nONBOOT=": f"on boot it is not wanted: ONBOOT= in /{CONF} is neither yes nor no "
    "(ONBOOT=).",
    "ONBOOT=yes": "",
    "ONBOOT=no\nONBOOT=yes": "",
}


@pytest.mark.parametrize("conf", REASONS, ids=repr)
def test_boot(service: Service, conf: str) -> None:
    """The boot has the same result by systemd, also as ExecCondition, and by SysV init. A start by
    a user, or by systemd after the boot, loads the module whatever the file says."""
    service.put(CONF, conf + "\n")
    reason = REASONS[conf]
    boots = [("start", {"PREVLEVEL": "N"})]
    boots += [(word, service.systemd("starting")) for word in ("start", "may-start")]
    for word, environment in boots:
        shutil.rmtree(service.root / "run", ignore_errors=True)
        if "PARENT" in environment:
            service.systemd("starting")
        code = service.does(word, **environment)
        assert code == (1 if word == "may-start" and reason else 0)
        assert service.loaded() == (not reason and word == "start")
        assert (f"nv_peer_mem: not loaded: {reason}\n" in service.output) == bool(reason)
        notes = [call for call in service.calls() if call.startswith("systemd-notify")]
        if reason and "PARENT" in environment:
            assert notes == [f"systemd-notify --status=Not loaded: {reason} More: nvpm status"]
        if service.loaded():
            service.unload("nv_peer_mem")
    for state in ("running", "degraded", "stopping"):
        assert service.does("start", **service.systemd(state)) == 0
        assert service.loaded()
        service.unload("nv_peer_mem")
    assert service.does("start", **service.systemd("initializing")) == 0
    assert service.loaded() == (not reason)


def test_a_user_starts_while_the_machine_boots(service: Service) -> None:
    service.put(CONF, "ONBOOT=no\n")
    service.systemd("starting")
    assert service.does("start", PARENT="42") == 0
    assert service.loaded()


@pytest.mark.parametrize(
    "vendor, kind, has",
    [
        (*GPU, True),
        ("0x10de", "0x030000", True),
        ("0x10de", "0x040300", False),  # audio
        ("0x10de", "0x0c0330", False),  # USB
        ("0x10de", "0x068000", False),  # NVSwitch
        ("0x1002", "0x030000", False),
        ("0x15b3", "0x020700", False),
    ],
)
def test_which_machines_have_a_gpu(service: Service, vendor: str, kind: str, has: bool) -> None:
    service.unload("nvidia")
    service.no_device()
    service.put("sys/bus/pci/devices/0000:00:00.0/vendor", "0x10de\n")
    service.device("0000:01:00.0", "0x8086", "0x060400")
    service.device("0000:02:00.0", vendor, kind)
    service.put("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n")
    assert service.does("start", **service.systemd("starting")) == 0
    assert service.loaded() == has
    assert (f"not loaded: {NO_GPU}" in service.output) == (not has)


@pytest.mark.parametrize(
    "aliases, has",
    [
        ("snd\nnvidia", True),
        ("nvidia_current", True),
        ("nvidiafb\nxnvidia\nnouveau", False),
        ("", False),
    ],
)
def test_other_devices_of_the_driver(service: Service, aliases: str, has: bool) -> None:
    """modprobe would load NVIDIA's driver for another device, such as an NVSwitch."""
    service.unload("nvidia")
    service.no_device()
    service.device("0000:02:00.0", "0x10de", "0x068000")
    service.put("aliases", aliases + "\n")
    service.does("start", **service.systemd())
    assert service.loaded() == has


def test_a_loaded_driver_is_enough(service: Service) -> None:
    service.no_device()
    assert service.does("start", **service.systemd("starting")) == 0
    assert service.loaded()


def test_no_gpu_and_no_boot(service: Service) -> None:
    """Without a GPU, even a later start by systemd is of no use. A start by a user shows the
    driver's reason."""
    service.unload("nvidia")
    service.no_device()
    service.put("fails/modprobe.nvidia", "modprobe: ERROR: No such device\n")
    assert service.does("start", **service.systemd()) == 0
    assert NO_GPU in service.output and service.calls() == [
        f"systemd-notify --status=Not loaded: {NO_GPU} More: nvpm status"
    ]
    assert service.does("start", PARENT="42") == FAILED
    assert "No such device" in service.output


def test_no_driver_yet(service: Service) -> None:
    service.unload("nvidia")
    service.put("fails/modinfo.nvidia")
    assert service.does("may-start", **service.systemd("starting")) == 1
    reason = "kernel 6.1.0-test has no NVIDIA driver yet. When one is loaded, so is this module."
    assert service.output == f"nv_peer_mem: not loaded: {reason}\n"
    # A driver that is loaded need not be installed for modinfo, for example in a container.
    (service.root / "sys/module/nvidia").mkdir()
    assert service.does("may-start", **service.systemd("starting")) == 0
    assert service.output == ""


def test_may_start_of_a_loaded_module(service: Service) -> None:
    service.load()
    service.put(CONF, "ONBOOT=no\n")
    assert service.does("may-start", **service.systemd("starting")) == 0


# ---- stop ----


def test_stop(service: Service) -> None:
    service.load()
    assert service.does("stop") == 0
    assert service.output == "nv_peer_mem: unloaded.\n"
    assert service.calls() == ["rmmod nv_peer_mem"]
    assert service.does("stop") == 0
    assert service.output == "nv_peer_mem: is not loaded.\n"
    assert service.calls() == []


def test_stop_leaves_the_callback_module(service: Service) -> None:
    service.load()
    (service.root / "sys/module/nv_peer_mem_callback").mkdir()
    assert service.does("stop") == 0
    assert service.output == (
        "nv_peer_mem: unloaded. nv_peer_mem_callback stays until the next boot, as it has to.\n"
    )


def test_stop_of_a_user(service: Service) -> None:
    service.load()
    service.put("uid", "1000")
    assert service.does("stop") == NOT_ALLOWED
    assert service.loaded() and service.calls() == []


def test_stop_tells_systemd(service: Service) -> None:
    service.systemd()
    assert service.does("stop", PARENT="42") == 0
    assert service.calls() == ["systemctl --quiet stop nv_peer_mem.service"]
    service.load()
    assert service.does("stop", PARENT="1") == 0
    assert service.calls() == ["rmmod nv_peer_mem"]


@pytest.mark.parametrize("marker", [True, False])
@pytest.mark.parametrize("conf", ["MARKER=yes", "MARKER=no"])
def test_stop_while_memory_is_registered(service: Service, marker: bool, conf: str) -> None:
    """After a stop in vain everything is as before, also the marker."""
    service.put(CONF, conf + "\n")
    service.load(references=3, marker=marker)
    service.put("fails/rmmod.nv_peer_mem", "rmmod: ERROR: Module is in use\n")
    service.put("holders", "process 42 (train): 7 registrations\nprocess 43 (x): 1\n")
    for word in ("stop", "restart", "force-reload", "try-restart"):
        assert service.does(word) == FAILED
        assert service.loaded() and service.loaded("nvidia_peermem") == marker
        again = "nv_peer_mem: the marker nvidia_peermem is loaded.\n" if marker else ""
        assert service.output == (
            "nv_peer_mem: still in use (registrations of GPU memory: 7). "
            "End the programs that hold them, then try again.\n"
            "  process 42 (train): 7 registrations\n  process 43 (x): 1\n" + again
        )
        assert service.calls() == (["rmmod nvidia_peermem"] if marker else []) + [
            "rmmod nv_peer_mem"
        ] + (["modprobe nv_peer_mem_marker"] if marker else [])


def test_stop_fails_though_not_in_use(service: Service) -> None:
    service.load()
    service.put("fails/rmmod.nv_peer_mem", "rmmod: ERROR: not permitted\n")
    assert service.does("stop") == FAILED
    assert service.output == "nv_peer_mem: cannot unload: rmmod: ERROR: not permitted\n"
    shutil.rmtree(service.root / "sys/module/nv_peer_mem/statistics")
    service.put("sys/module/nv_peer_mem/refcnt", "1\n")
    assert service.does("stop") == FAILED
    assert "(registrations of GPU memory: unknown)" in service.output


@pytest.mark.parametrize("job", ["", "0", "17"])
def test_the_unit_stays_active(service: Service, job: str) -> None:
    """If systemd stops the service in vain, systemd's job is cancelled, and the unit counts as
    active."""
    environment = service.systemd()
    service.load(references=1)
    service.put("job", job)
    service.put("fails/rmmod.nv_peer_mem", "x\n")
    assert service.does("stop", **environment) == FAILED
    cancelled = ["systemctl --quiet cancel 17"] if job == "17" else []
    start = "systemctl --quiet --no-block start nv_peer_mem.service"
    assert service.calls() == ["rmmod nv_peer_mem", *cancelled, start]
    assert service.does("stop", PARENT="42") == FAILED
    assert service.calls() == ["rmmod nv_peer_mem"]


# ---- the marker ----


def test_marker(service: Service) -> None:
    service.put(CONF, "ONBOOT=yes\nMARKER=yes\n")
    assert service.does("start") == 0
    assert service.output == (
        "nv_peer_mem: loaded, version 2.0.0.\nnv_peer_mem: the marker nvidia_peermem is loaded.\n"
    )
    assert service.loaded("nvidia_peermem")
    service.calls()
    assert service.does("start") == 0
    assert service.calls() == []
    assert service.does("stop") == 0
    assert service.calls() == ["rmmod nvidia_peermem", "rmmod nv_peer_mem"]
    assert not service.loaded("nvidia_peermem")


def test_marker_that_is_new_in_the_file(service: Service) -> None:
    service.load()
    service.put(CONF, "MARKER=yes\n")
    service.put("uid", "1000")
    assert service.does("start") == 0
    assert service.calls() == []
    service.put("uid", "0")
    assert service.does("start") == 0
    assert service.loaded("nvidia_peermem")
    assert "the marker nvidia_peermem is loaded" in service.output


def test_marker_fails(service: Service) -> None:
    service.put(CONF, "MARKER=yes\n")
    service.put("fails/modprobe.nv_peer_mem_marker", "modprobe: FATAL: not found\n")
    assert service.does("start") == 0
    assert service.output.endswith(
        "nv_peer_mem: MARKER=yes, but the marker cannot be loaded: modprobe: FATAL: not found\n"
    )


def test_modules_of_nvidia_are_left_alone(service: Service) -> None:
    """NVIDIA's own nvidia_peermem does not use this module."""
    service.load()
    (service.root / "sys/module/nvidia_peermem").mkdir()
    assert service.does("stop") == 0
    assert service.calls() == ["rmmod nv_peer_mem"]
    assert service.loaded("nvidia_peermem")


# ---- a pod has loaded the module, under the name of NVIDIA's own ----

KEPT = (
    "nv_peer_mem: is loaded under the name nvidia_peermem, version 2.0.0. A pod of the DaemonSet "
    "nv-peer-mem keeps it, so this service neither loads nor unloads it.\n"
)
NOTE = (
    "systemd-notify --status=Loaded under the name nvidia_peermem, version 2.0.0, by a pod. "
    "More: nvpm status"
)


@pytest.mark.parametrize("references", [0, 7])
def test_the_module_of_a_pod(service: Service, references: int) -> None:
    """The service loads no second module, does not unload the pod's module, and loads no marker."""
    service.put(CONF, "ONBOOT=yes\nMARKER=yes\n")
    service.load_by_pod(references=references)
    for word, said in (
        ("start", KEPT),
        ("stop", KEPT),
        ("restart", KEPT + KEPT),
        ("try-restart", ""),
    ):
        assert service.does(word) == 0
        assert service.output == said
    assert service.calls() == []
    assert service.loaded("nvidia_peermem") and not service.loaded()


def test_a_module_of_a_pod_with_its_own_name(service: Service) -> None:
    """The state of the pod names the module, and the service leaves it alone as well."""
    service.load(references=7)
    service.pod_keeps("nv_peer_mem")
    kept = KEPT.replace("nvidia_peermem", "nv_peer_mem")
    for word, said in (("start", kept), ("stop", kept), ("try-restart", "")):
        assert service.does(word) == 0
        assert service.output == said
    assert service.calls() == [] and service.loaded()
    hook = TOP / "init.d/openibd-hook"
    assert service.run("dash", hook, "pre-stop") == 0
    assert service.output.startswith("nv_peer_mem: is loaded under the name nv_peer_mem, and a pod")


@pytest.mark.parametrize("name, age", [("nv_peer_mem", 180), ("nvidia_peermem", 0), ("x", 0)])
def test_a_module_that_no_pod_keeps(service: Service, name: str, age: int) -> None:
    """The state is old, or names a module that is not loaded."""
    service.load()
    service.pod_keeps(name, age)
    assert service.does("stop") == 0
    assert service.calls() == ["rmmod nv_peer_mem"]


def test_systemd_skips_the_module_of_a_pod(service: Service) -> None:
    """The unit does not become active, so systemd starts it when the pod has left the node. A start
    by an older systemd, which does not skip, loads nothing, either."""
    service.load_by_pod()
    for state in ("starting", "running"):
        assert service.does("may-start", **service.systemd(state)) == 1
        assert service.output == KEPT
        assert service.calls() == [NOTE]
    assert service.does("start", **service.systemd()) == 0
    assert service.calls() == [NOTE]
    # The unit is active, and a user stops it.
    assert service.does("stop", PARENT="42") == 0
    assert service.calls() == ["systemctl --quiet stop nv_peer_mem.service"]


@pytest.mark.parametrize("nvpm, code", [(0, 0), (3, 3), (UNKNOWN, 0)])
def test_status_of_the_module_of_a_pod(service: Service, nvpm: int, code: int) -> None:
    """nvpm's screen names the owner. Without nvpm, the script names the owner."""
    service.load_by_pod()
    service.put("status.code", str(nvpm))
    assert service.does("status") == code
    shown = KEPT if nvpm == UNKNOWN else ""
    assert service.output.lstrip("\n") == shown


def test_modules_of_that_name_that_are_no_pods(service: Service) -> None:
    """NVIDIA's own module and the marker have no statistics."""
    service.put("sys/module/nvidia_peermem/version", "590.1\n")
    assert service.does("start") == 0
    assert service.calls() == ["modprobe nv_peer_mem"]
    service.put("sys/module/nv_peer_mem/holders/nvidia_peermem/refcnt", "0\n")
    assert service.does("stop") == 0
    assert service.calls() == ["rmmod nvidia_peermem", "rmmod nv_peer_mem"]


def test_an_own_module_beside_that_of_a_pod(service: Service) -> None:
    """The service unloads what it has loaded, whatever the other module is."""
    service.load()
    service.load_by_pod()
    assert service.does("stop") == 0
    assert service.calls() == ["rmmod nv_peer_mem"]


def event(service: Service, word: str) -> list[str]:
    """Returns the calls that udev's script makes for an event."""
    lib = service.root / "usr/lib/nvidia-peer-memory"
    shutil.copy(TOP / "init.d/module-event", lib)
    assert service.run("dash", lib / "module-event", word) == 0
    return service.calls()


def test_an_event_beside_the_module_of_a_pod(service: Service) -> None:
    """The driver is loaded again, and the pod's module with it."""
    service.systemd()
    asked = event(service, "arrived")
    assert [call for call in asked if " start " in call]
    service.load_by_pod()
    assert event(service, "arrived") == []


def test_openibd_beside_the_module_of_a_pod(service: Service) -> None:
    service.put("etc/init.d/nv_peer_mem", "#!/bin/sh\necho stopped\n", 0o755)
    service.load_by_pod()
    hook = TOP / "init.d/openibd-hook"
    assert service.run("dash", hook, "pre-stop") == 0
    assert service.output == (
        "nv_peer_mem: is loaded under the name nvidia_peermem, and a pod keeps it: openibd cannot "
        "unload the RDMA core before the DaemonSet nv-peer-mem has left this node.\n"
    )
    assert service.run("dash", hook, "post-start") == 0
    assert service.output == ""
    # NVIDIA's own module is no concern of this hook.
    shutil.rmtree(service.root / "sys/module/nvidia_peermem/statistics")
    assert service.run("dash", hook, "pre-stop") == 0
    assert service.output == ""
    # The marker belongs to a module that the service has loaded.
    shutil.rmtree(service.root / "sys/module/nvidia_peermem")
    service.load(marker=True)
    (service.root / "run").mkdir()
    assert service.run("dash", hook, "pre-stop") == 0
    assert service.output.startswith("stopped\n")


# ---- restart ----


@pytest.mark.parametrize("word", ["restart", "force-reload", "try-restart"])
def test_restart(service: Service, word: str) -> None:
    """try-restart does nothing unless the module is loaded."""
    assert service.does(word) == 0
    assert service.loaded() == (word != "try-restart")
    assert (service.output == "") == (word == "try-restart")
    service.load()
    service.calls()
    assert service.does(word) == 0
    assert service.calls() == ["rmmod nv_peer_mem", "modprobe nv_peer_mem"]


# ---- status ----


@pytest.mark.parametrize(
    "loaded, nvpm, code",
    [
        *((True, 0, 0), (True, 3, 3), (True, 1, 1)),
        *((False, 0, NOT_RUNNING), (False, 3, NOT_RUNNING), (False, 1, 1)),
    ],
)
def test_status(service: Service, loaded: bool, nvpm: int, code: int) -> None:
    """nvpm's screen is shown. If nvpm succeeds on a machine that needs no module, the service is
    still not running."""
    if loaded:
        service.load()
    service.put("status", "the screen")
    service.put("status.code", str(nvpm))
    assert service.does("status") == code
    assert service.output == "the screen"


@pytest.mark.parametrize("code", [UNKNOWN, 126, 127])
@pytest.mark.parametrize("loaded", [True, False])
def test_status_without_nvpm(service: Service, loaded: bool, code: int) -> None:
    if loaded:
        service.load()
    service.put("status.code", str(code))
    assert service.does("status") == (0 if loaded else NOT_RUNNING)
    assert f"nv_peer_mem: is {'' if loaded else 'not '}loaded.\n" in service.output
    shutil.rmtree(service.root / "sys/module")
    assert service.does("status") == UNKNOWN
    assert "loaded" not in service.output


# ---- other words, and a removed package ----


@pytest.mark.parametrize("words", [[], ["reload"], ["nonsense"], ["START"]])
def test_usage(service: Service, words: list[str]) -> None:
    assert service.does(*words) == USAGE
    assert service.output == (
        "Usage: /nv_peer_mem {start|stop|restart|try-restart|force-reload|status [--json]}\n"
    )


def test_the_package_is_removed(service: Service) -> None:
    shutil.rmtree(service.root / "usr")
    service.load()
    for word in ("start", "stop", "restart", ""):
        assert service.does(word) == 0
    assert service.does("status") == UNKNOWN
    assert service.output == "" and service.calls() == []


# ---- module-event ----


@pytest.mark.parametrize("value, said", [("maybe", True), ("no", False), ("yes", False)])
def test_an_event_says_what_is_not_understood(service: Service, value: str, said: bool) -> None:
    (service.root / "run/systemd/system").mkdir(parents=True)
    service.put(CONF, f"ONBOOT={value}\n")
    lib = service.root / "usr/lib/nvidia-peer-memory"
    shutil.copy(TOP / "init.d/module-event", lib)
    assert service.run("dash", lib / "module-event", "arrived") == 0
    logged = [call for call in service.calls() if call.startswith("logger")]
    assert logged == (
        [
            "logger -t nv_peer_mem -p daemon.warning not loaded: ONBOOT= in "
            f"/{CONF} is neither yes nor no (ONBOOT=maybe)."
        ]
        if said
        else []
    )
