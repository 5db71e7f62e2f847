# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about a host that gives its GPUs to virtual machines. The NVIDIA driver is in the virtual
machines, but the settings of the host decide whether data goes directly from device to device."""

from typing import List

from ..read.machine import Machine
from ..read.pci import gpus, nics, pci_at
from ..read.ways import given_away
from .fact import Facts, good, info, warn
from .topology import acs_control, extended

ATS_CAPABILITY, ATS_ENABLE = 15, 1 << 31
DIRECT_TRANSLATED = 1 << 6

NO_IOMMU = (
    "Turn it on in the firmware (VT-d, AMD-Vi) and with intel_iommu=on or amd_iommu=on: without it "
    "nothing can be given to a virtual machine."
)
NO_DIRECT = (
    "Direct Translated P2P is off at {0}, so packets between a GPU and an RDMA device of one "
    "virtual machine go up to the CPU and back. With ATS in the RDMA device (mlxconfig "
    "ATS_ENABLED=1): setpci -s {1} ECAP_ACS+6.w=40:40 for each of them, until the next reboot. "
    "Leave redirect on: it keeps the virtual machines apart."
)
NO_ATS = (
    "Without address translation services the packets of a virtual machine go up to the CPU: "
    "mlxconfig -d {0} set ATS_ENABLED=1, and reboot."
)


def facts(machine: Machine) -> Facts:
    if not given_away(machine):
        return
    count = len(gpus(machine))
    yield info(
        "host", "GPUs", f"{count} given to virtual machines: the NVIDIA driver belongs there"
    )
    groups = [gpu.pci.iommu() for gpu in gpus(machine)]
    if "none" in groups:
        yield warn("host", "IOMMU", "a GPU has no IOMMU group", NO_IOMMU)
    else:
        yield good("host", "IOMMU", "on, as devices of virtual machines need it")
    yield from bridges(machine)
    yield from translation(machine)


def bridges(machine: Machine) -> Facts:
    """Judges the switch ports above the GPUs and RDMA devices. Root ports are left out, because
    data between two devices below one switch does not pass a root port."""
    devices = [gpu.pci for gpu in gpus(machine)] + [nic.pci for nic in nics(machine) if nic.pci]
    ports: List[str] = []
    for pci in devices:
        ports += [name for name in pci.path[2:-1] if name not in ports]
    configs = {name: pci_at(machine, name).config(4096) for name in ports}
    off = [
        name
        for name, config in configs.items()
        if len(config) > 16 and acs_control(config) and not acs_control(config) & DIRECT_TRANSLATED
    ]
    if off:
        value = f"redirects at {' '.join(off)}, without Direct Translated P2P"
        yield warn("host", "ACS", value, NO_DIRECT.format(off[0], off[0]))
    elif ports:
        yield good("host", "ACS", "translated requests go directly from device to device")


def translation(machine: Machine) -> Facts:
    for nic in nics(machine):
        if not nic.pci or nic.software:
            continue
        config = nic.pci.config(4096)
        control = extended(config, ATS_CAPABILITY)
        if len(config) > 16 and not control & ATS_ENABLE:
            name = f"ATS of {nic.name}"
            yield warn("host", name, "off", NO_ATS.format(nic.pci.address))
