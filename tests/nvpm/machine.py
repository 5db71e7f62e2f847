# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes a directory with the files from which nvpm and the service read the state of a machine. At
first the machine has no defect, and a GPU and an RDMA device are below one switch. A table may
change the machine by calling the methods (tables.py)."""

import codecs
import os
import re
import shutil
import struct
from pathlib import Path

# A number, or the text of a number in a table.
Word = str | int

PCI = "/sys/bus/pci/devices"
STATISTICS = "/sys/module/nv_peer_mem/statistics"
CONF = "etc/infiniband/nv_peer_mem.conf"
SWITCH = "pci0000:00/0000:00:01.0/0000:01:00.0"

GOOD = {
    "/sys/module/nv_peer_mem/version": "2.0.0",
    "/sys/module/nv_peer_mem_callback/version": "2.0.0",
    "/sys/module/nv_peer_mem/parameters/persistent_api_support": "1",
    "/sys/module/nv_peer_mem/parameters/peerdirect_support": "0",
    f"{STATISTICS}/rust": "in-kernel",
    f"{STATISTICS}/core_api": "MLNX_OFED 5.4 and later",
    f"{STATISTICS}/clients": "nv_mem persistent\nnv_mem_revocable revocable\n"
    "nv_mem_fixed persistent",
    "/modinfo/nv_peer_mem": "version=2.0.0\nrust=in-kernel\nsigner=DKMS module signing key",
    "/modinfo/nv_peer_mem_callback": "version=2.0.0\nsigner=DKMS module signing key",
    "/modinfo/nvidia": "version=590.1\nlicense=Dual MIT/GPL",
    "/sys/module/nvidia/version": "590.1",
    "/sys/module/nvidia/taint": "OE",
    # The marker is loaded, so all programs detect peer memory.
    "/sys/module/nv_peer_mem/holders/nvidia_peermem/refcnt": "0",
    "/sys/module/nvidia_peermem/version": "2.0.0",
    "/proc/modules": "nvidia_peermem 16384 0 - Live 0x0",
    "/proc/kallsyms": "0000000000000000 T ib_register_peer_memory_client\t[ib_core]",
    "/sys/module/ib_core/refcnt": "3",
    "/etc/infiniband/nv_peer_mem.conf": "ONBOOT=yes",
    "/etc/init.d/nv_peer_mem": "#!/bin/sh",
    "/usr/lib/systemd/system/nv_peer_mem.service": "[Unit]",
    "/usr/src/nvidia-peer-memory-2.0.0/dkms.conf": "PACKAGE_NAME=nvidia-peer-memory",
    "/var/lib/dkms/nvidia-peer-memory/2.0.0/source": "",
    "/etc/systemd/system/multi-user.target.wants/nv_peer_mem.service": "[Unit]",
    "/sys/kernel/security/lockdown": "[none] integrity confidentiality",
    "/sys/module/module/parameters/sig_enforce": "N",
    "/proc/sys/kernel/osrelease": "7.3.4-test",
    "/proc/sys/kernel/hostname": "machine",
    "/proc/sys/kernel/arch": "x86_64",
}
# The files that only the packages of nv_peer_mem install, beside the module and its configuration.
PACKAGED = (
    "/etc/init.d/nv_peer_mem",
    "/usr/lib/systemd/system/nv_peer_mem.service",
    "/usr/src/nvidia-peer-memory-2.0.0",
    "/var/lib/dkms/nvidia-peer-memory",
)
FIGURES = (
    "reachable_regions bytes registrations revocations failed_no_memory "
    "failed_not_supported failed_freed "
    "failed_driver"
)
# Short names for long paths in a table.
ALIASES = {
    "@figures": STATISTICS,
    "@parameters": "/sys/module/nv_peer_mem/parameters",
    "@list": "/proc/driver/nv_peer_mem/regions",
    "@pairs": "/proc/driver/nv_peer_mem/pairs",
    "@conf": "/etc/infiniband/nv_peer_mem.conf",
    "@kernel": "/proc/sys/kernel/osrelease",
    "@pci": PCI,
    "@switch": SWITCH,
}

# The texts with which sysfs shows the states of ports. The key is the text without the state's
# number.
NUMBERED = {
    text[3:]: text
    for text in ("1: DOWN", "2: INIT", "4: ACTIVE", "2: Polling", "3: Disabled", "5: LinkUp")
}


class Machine:
    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self.gone("")
        for path, text in GOOD.items():
            self.put(path, text)
        for figure in FIGURES.split():
            self.put(f"{STATISTICS}/{figure}", "0")
        for client in "nv_mem", "nv_mem_revocable", "nv_mem_fixed":
            self.put(f"/sys/kernel/mm/memory_peers/{client}/version", "2.0.0")
        self.secure_boot(0)
        self.bridges(
            0, "pci0000:00/0000:00:01.0", SWITCH, f"{SWITCH}/0000:02:00.0", f"{SWITCH}/0000:02:01.0"
        )
        self.gpu(f"{SWITCH}/0000:02:00.0/0000:03:00.0", 0)
        self.nic("mlx5_0", f"{SWITCH}/0000:02:01.0/0000:04:00.0", 0)

    def change(self, line: str) -> None:
        """Applies a line of a table. tables.py describes the lines."""
        word, *rest = line.split()
        if word == "-":
            self.gone(*rest)
            self.without_packages()
        elif line.endswith("/"):
            self.at(f"{line}x")
        elif line.startswith("/"):
            file_line = re.fullmatch(r"(\S+) (=|:=|\+=|->) ?(.*)", line)
            assert file_line, f"no change of a file: {line}"
            path, how, text = file_line.groups()
            if how == "->":
                self.symlink(path, text)
            else:
                with self.at(path).open("ab" if how == "+=" else "wb") as file:
                    file.write(codecs.escape_decode(text.encode())[0] + b"\n" * (how != ":="))
        else:
            getattr(self, word)(*rest)

    def at(self, path: str) -> Path:
        place = self.root / str(path).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def put(self, path: str, text: Word) -> None:
        self.at(path).write_text(f"{text}\n")

    def symlink(self, path: str, target: Path | str) -> None:
        place = self.at(path)
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    def gone(self, *paths: str) -> None:
        for path in paths:
            place = f"{self.root}{path}"
            if os.path.isdir(place) and not os.path.islink(place):
                shutil.rmtree(place)
            elif os.path.lexists(place):
                os.unlink(place)

    def without_packages(self) -> None:
        """Removes the rest of the packages from a machine that has neither the module nor its
        configuration any more. Such a machine has nothing of the packages."""
        if not any((self.root / path).exists() for path in ("modinfo/nv_peer_mem", CONF)):
            self.gone(*PACKAGED)

    def renamed(self) -> None:
        """Loads the module under the name nvidia_peermem, in place of the marker, as a pod does.
        The packages are not installed."""
        modules = self.root / "sys/module"
        self.gone("/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem/holders")
        (modules / "nv_peer_mem").rename(modules / "nvidia_peermem")
        self.gone(*(f"/modinfo/{name}" for name in ("nv_peer_mem", "nv_peer_mem_callback")))
        self.gone(f"/{CONF}", "/etc/systemd/system/multi-user.target.wants")
        self.without_packages()

    def mode(self, mode: str, path: str) -> None:
        self.at(path).chmod(int(mode, 8))

    def zeros(self, count: Word, *paths: str) -> None:
        for path in paths:
            self.at(path).write_bytes(bytes(int(count)))

    # ---- PCI ----

    def pci(self, path: str, vendor: str, kind: str, node: Word) -> None:
        """Adds a device at PATH, which begins with the bridges above the device."""
        name, place = path.rpartition("/")[2], f"/sys/devices/{path}"
        for attribute, text in {"vendor": vendor, "class": kind, "numa_node": node}.items():
            self.put(f"{place}/{attribute}", text)
        self.symlink(f"{PCI}/{name}", f"../../../devices/{path}")
        self.link(name, "32.0", 16)
        self.zeros(256, f"{place}/config")

    def link(
        self,
        pci: str,
        speed: str,
        width: Word,
        max_speed: str | None = None,
        max_width: Word | None = None,
    ) -> None:
        """Sets the current and the best state of a PCIe link."""
        for when, gts, lanes in (
            ("current", speed, width),
            ("max", max_speed or speed, max_width or width),
        ):
            self.put(f"{PCI}/{pci}/{when}_link_speed", f"{gts} GT/s PCIe")
            self.put(f"{PCI}/{pci}/{when}_link_width", lanes)

    def bridges(self, node: Word, *paths: str) -> None:
        for path in paths:
            self.pci(path, "0x8086", "0x060400", node)
            self.acs(path.rpartition("/")[2], 0)

    def acs(self, pci: str, control: Word) -> None:
        """Sets the ACS control register. Another capability precedes the ACS capability, so nvpm
        has to follow the list of capabilities."""
        config = bytearray(4096)
        struct.pack_into("<I", config, 0x100, 0x14010001)
        struct.pack_into("<IHH", config, 0x140, 0x0001000D, 0x5F, int(control))
        self.at(f"{PCI}/{pci}/config").write_bytes(config)

    def settings(self, pci: str, control: str) -> None:
        """Sets the control register of the PCI Express capability. Another capability precedes this
        capability."""
        config = bytearray(256)
        config[0x34] = 0x40
        struct.pack_into("<H", config, 0x40, 0x5001)
        struct.pack_into("<IIH", config, 0x50, 0x00020010, 0, int(control, 16))
        self.at(f"{PCI}/{pci}/config").write_bytes(config)

    def iommu(self, pci: str, kind: str) -> None:
        self.put(f"/sys/kernel/iommu_groups/{pci}/type", kind)
        self.symlink(f"{PCI}/{pci}/iommu_group", self.at(f"/sys/kernel/iommu_groups/{pci}"))

    def drive(self, pci: str, driver: str) -> None:
        self.put(f"/sys/bus/pci/drivers/{driver}/uevent", "")
        self.symlink(f"{PCI}/{pci}/driver", self.at(f"/sys/bus/pci/drivers/{driver}"))

    # ---- GPUs and RDMA devices ----

    def gpu(self, path: str, node: Word, product: str = "0x2330") -> None:
        pci = path.rpartition("/")[2]
        self.pci(path, "0x10de", "0x030200", node)
        self.drive(pci, "nvidia")
        self.put(f"{PCI}/{pci}/device", product)
        self.bar1(pci, 131072, 131072)

    def bar1(self, pci: str, mib: Word, largest: Word = 0) -> None:
        """Sets the size of BAR1. If the BAR can be resized, also sets the largest possible size."""
        first = 0x380000000000
        window = f"0x{first:016x} 0x{first + (int(mib) << 20) - 1:016x} 0x0"
        self.put(f"{PCI}/{pci}/resource", f"0x00000000d0000000 0x00000000d0ffffff 0x0\n{window}")
        self.gone(f"{PCI}/{pci}/resource1_resize")
        if largest:
            self.put(f"{PCI}/{pci}/resource1_resize", f"{int(largest) * 2 - 64:016x}")

    def nic(self, name: str, path: str, node: Word, layer: str = "InfiniBand") -> None:
        pci, place = path.rpartition("/")[2], f"/sys/class/infiniband/{name}"
        self.no_card(name, pci)
        self.pci(path, "0x15b3", "0x020700", node)
        self.drive(pci, "mlx5_core")
        self.symlink(f"{place}/device", f"../../../bus/pci/devices/{pci}")
        self.settings(pci, "2930")
        self.put(f"{place}/node_type", "1: CA")
        self.put(f"{place}/fw_ver", "28.39.1002")
        self.put(f"{place}/board_id", "MT_0000000838")
        self.port(name, 1, "ACTIVE", "LinkUp", layer)
        for file in f"uverbs{name.rpartition('_')[2]}", "rdma_cm":
            self.put(f"/dev/infiniband/{file}", "")
            self.mode("666", f"/dev/infiniband/{file}")

    def no_card(self, name: str, pci: str) -> None:
        """Removes the RDMA device's earlier card, if the device now gets another card."""
        link = self.root / f"sys/class/infiniband/{name}/device"
        if link.is_symlink() and link.readlink().name != pci:
            self.gone(f"{PCI}/{link.readlink().name}")

    def port(self, nic: str, number: Word, state: str, physical: str, layer: str) -> None:
        place = f"/sys/class/infiniband/{nic}/ports/{number}"
        self.put(f"{place}/state", NUMBERED[state])
        self.put(f"{place}/phys_state", NUMBERED[physical])
        self.put(f"{place}/rate", "400 Gb/sec (4X NDR)")
        self.put(f"{place}/link_layer", layer)
        local, ipv4 = (
            "fe80:0000:0000:0000:0e42:a1ff:fe00:0001",
            "0000:0000:0000:0000:0000:ffff:0a00:0001",
        )
        for index, gid in enumerate(
            (local, local, ipv4, ipv4, "0000:0000:0000:0000:0000:0000:0000:0000")
        ):
            self.put(f"{place}/gids/{index}", gid)
            self.put(f"{place}/gid_attrs/types/{index}", "RoCE v2" if index % 2 else "IB/RoCE v1")

    def no_devices(self) -> None:
        self.gone("/sys/devices", PCI, "/sys/class/infiniband", "/dev/infiniband")

    def far(self, node: Word) -> None:
        """Moves the RDMA device to another root complex, on NODE."""
        self.bridges(node, "pci0000:80/0000:80:01.0")
        self.nic("mlx5_0", "pci0000:80/0000:80:01.0/0000:81:00.0", node)

    def many_devices(self) -> None:
        """Replaces all devices. The machine then has eight GPUs and, below the switch of each GPU,
        an RDMA device. It also has four RDMA devices without a switch. Each of two nodes has half
        of the devices."""
        self.no_devices()
        self.put("/sys/devices/system/node/online", "0-1")
        for i in range(1, 9):
            port = f"pci0000:{i}0/0000:{i}0:01.0"
            switch = f"{port}/0000:{i}1:00.0"
            self.bridges(
                int(i > 4), port, switch, f"{switch}/0000:{i}2:00.0", f"{switch}/0000:{i}2:01.0"
            )
            self.gpu(f"{switch}/0000:{i}2:00.0/0000:{i}3:00.0", int(i > 4))
            self.nic(f"mlx5_{i + 1}", f"{switch}/0000:{i}2:01.0/0000:{i}4:00.0", int(i > 4))
        for nic, bus, node in (0, 0, 0), (1, 1, 0), (10, 4, 1), (11, 5, 1):
            port = f"pci0000:a{bus}/0000:a{bus}:01.0"
            self.bridges(node, port)
            self.nic(f"mlx5_{nic}", f"{port}/0000:b{bus}:00.0", node)

    def grace(self, product: str) -> None:
        """Changes the machine to arm64. Its GPU is behind NVLink-C2C, and the GPU's BAR does not
        contain the GPU's memory. Its RDMA device is at another root complex."""
        self.no_devices()
        self.put("/proc/sys/kernel/arch", "aarch64")
        self.put("/sys/devices/system/node/online", "0-8")
        self.bridges(0, "pci0009:00/0009:00:00.0", "pci0000:00/0000:00:00.0")
        self.gpu("pci0009:00/0009:00:00.0/0009:01:00.0", 0, product)
        self.bar1("0009:01:00.0", 64)
        self.nic("mlx5_0", "pci0000:00/0000:00:00.0/0000:01:00.0", 0)

    def secure_boot(self, on: Word) -> None:
        """Writes the firmware variable SecureBoot, which has four bytes of attributes and then the
        value."""
        variable = self.at(
            "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        )
        variable.write_bytes(bytes([6, 0, 0, 0, int(on)]))
