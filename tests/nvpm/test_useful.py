# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The judge of advice finds commands that do nothing on a machine. The expectations are written by
hand for two machines: one has the packages, and the other has nothing of them, and no module."""

from pathlib import Path

import pytest
import useful
from machine import Machine

# A command, and the part of the command that does nothing on the bare machine. Each of these does
# something on a machine with the packages.
COMMANDS = (
    ("/etc/init.d/nv_peer_mem start; if that fails, it says why.", "/etc/init.d/nv_peer_mem start"),
    ("Build it: dkms autoinstall -k 6.1", "dkms autoinstall"),
    ("dkms build --force nvidia-peer-memory/2.0.0 && x", "nvidia-peer-memory"),
    ("systemctl enable nv_peer_mem", "systemctl enable nv_peer_mem"),
    ("systemctl disable --now nv_peer_mem before", "systemctl disable --now nv_peer_mem"),
    ("update-rc.d nv_peer_mem defaults", "update-rc.d nv_peer_mem"),
    ("chkconfig --add nv_peer_mem", "chkconfig --add nv_peer_mem"),
    ("modprobe nv_peer_mem", "modprobe nv_peer_mem"),
    ("modprobe -r nv_peer_mem && modprobe nvidia", "modprobe -r nv_peer_mem"),
    ("modinfo -F signer nv_peer_mem", "modinfo -F signer nv_peer_mem"),
)
# Commands that do nothing on both machines.
USELESS = (
    "modprobe efa_nv_peermem",
    "modprobe -r mlx5_ib",
    "/etc/init.d/openibd restart",
    "make && make install, in the module's source",
    "rpmbuild --rebuild --define 'kernel_version 1'",
    "mokutil --import /var/lib/shim-signed/mok/MOK.der",
    "setpci -s 0000:ff:00.0 CAP_EXP+8.w=5000:7000",
    "rm /lib/modules/1/weak-updates/x.ko && depmod",
    "docs/no-such-page.md has more",
    "nvpm mend says more",
    "systemctl restart slurmd",
    "grep -r x /etc/no-such-directory",
)
# Commands that do something on both machines.
USEFUL = (
    "modprobe nvidia; if there is no GPU, the kernel's log says so.",
    "modprobe mlx5_core; dmesg | grep mlx5_core shows why not.",
    "Install MLNX_OFED or DOCA-OFED, then restart it (/etc/init.d/openibd restart).",
    "There is no key /var/lib/x.der yet. Then: mokutil --import /var/lib/x.der",
    "setpci -s 0000:04:00.0 CAP_EXP+8.w=5000:7000",
    "echo 'blacklist x' >/etc/modprobe.d/x.conf",
    "nvpm selftest shows it; nvpm says more, docs/choosing.md most.",
    "systemctl restart systemd-modules-load",
)


@pytest.fixture
def packaged(tmp_path: Path) -> str:
    return str(Machine(f"{tmp_path}/packaged").root)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    machine = Machine(f"{tmp_path}/bare")
    machine.change(
        "- /sys/module/nv_peer_mem /modinfo/nv_peer_mem /modinfo/nv_peer_mem_callback "
        "/etc/infiniband /etc/systemd"
    )
    return str(machine.root)


@pytest.mark.parametrize(("advice", "part"), COMMANDS)
def test_command_of_the_packages(advice: str, part: str, packaged: str, bare: str) -> None:
    assert not list(useful.useless(packaged, advice))
    assert any(part in found for found in useful.useless(bare, advice))


@pytest.mark.parametrize("advice", USELESS)
def test_useless(advice: str, packaged: str, bare: str) -> None:
    assert list(useful.useless(packaged, advice)) and list(useful.useless(bare, advice))


@pytest.mark.parametrize("advice", USEFUL)
def test_useful(advice: str, packaged: str, bare: str) -> None:
    assert not list(useful.useless(packaged, advice))
    assert not list(useful.useless(bare, advice))
