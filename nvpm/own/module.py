# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the kernel module and of the marker: src/. They stand in the kernel's log."""

from .model import FINE, Group, Own

# The callback module stays loaded when a newer nv_peer_mem is installed, so their versions can
# differ. The module and modprobe both say so.
OTHER_CALLBACK = (
    "the module nv_peer_mem_callback of another version is loaded, which stays until the next "
    "boot, and this nv_peer_mem needs its own"
)
REBOOT = "Reboot. Until then only the version of nv_peer_mem that was loaded before can be loaded"

LOADING = Group(
    "module-loading",
    (
        Own(
            "module-loaded",
            "nv_peer_mem: version <w> loaded: GPU memory is",
            "the module is loaded. The line says whether GPU memory stays pinned until it is "
            "deregistered",
            kind=FINE,
        ),
        Own(
            "module-nvidia-peermem-loaded",
            "<w> is loaded and serves the same memory: unload it",
            "a module is loaded that serves GPU memory already, and only one can: NVIDIA's own, or "
            "nv_peer_mem under its other name, as a pod loads it. `nvpm status` says which one "
            "(driver: `nvidia_peermem`)",
            "If NVIDIA's own is loaded: `modprobe -r nvidia_peermem && echo 'blacklist "
            "nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf`, then start "
            "nv_peer_mem again; or leave nvidia_peermem, and do without nv_peer_mem. If it is "
            "nv_peer_mem, nothing has to be done",
            like="SECOND_CLIENT",
            here="{unload_peermem}",
        ),
        Own(
            "module-client-refused",
            "the RDMA core refuses the client '",
            "another module serves NVIDIA GPU memory already, and has registered that name",
            "`ls /sys/kernel/mm/memory_peers` shows the names; unload the module whose name it is",
            like="SECOND_CLIENT",
        ),
        Own(
            "module-other-callback",
            "the module nv_peer_mem_callback that is loaded is of another version",
            OTHER_CALLBACK,
            REBOOT,
            like="CALLBACK",
        ),
        Own(
            "module-parameter",
            ": the values of this parameter are 0 and 1",
            "a parameter of nv_peer_mem has a value that the module does not know",
            "Correct the options of nv_peer_mem: `grep -r nv_peer_mem /etc/modprobe.d` finds "
            "them. `modinfo -p nv_peer_mem` lists the parameters",
            like="PARAMETER",
        ),
        Own(
            "marker-loaded",
            "this is not NVIDIA's module: it shows programs that nv_peer_mem",
            "the marker is loaded: programs that look for a module named nvidia_peermem find it",
            kind=FINE,
        ),
    ),
)

# The module prints these when memory is registered.
REGISTERING = Group(
    "module-registering",
    (
        Own(
            "module-no-pci-device",
            "the RDMA device is not a PCI device: it cannot reach GPU memory",
            "the RDMA device is a software device, such as rxe or siw, and no device on PCI",
            "Use an RDMA device on PCI",
            like="SOFT_DEVICE",
        ),
        Own(
            "module-pair-refused",
            "the NVIDIA driver does not let this RDMA device reach this GPU's memory",
            "NVIDIA's driver refuses this pair of GPU and RDMA device: the PCI topology between "
            "them does not allow it, or the driver's option `NVreg_GrdmaPciTopoCheckOverride=2` "
            "forbids it",
            "Use a device below the same PCI switch or root complex as the GPU; `nvpm status` "
            "shows the pairs. `NVreg_GrdmaPciTopoCheckOverride=1` tries the pair nevertheless",
            like="PAIR",
        ),
        Own(
            "module-not-revocable",
            "only the NVIDIA driver can map this GPU's memory for this RDMA device",
            "with `persistent_api_support=0` registrations must be revocable, and the module "
            "cannot map memory for this pair itself",
            "`options nv_peer_mem persistent_api_support=1` in "
            "`/etc/modprobe.d/nv_peer_mem.conf`, then `/etc/init.d/nv_peer_mem restart`; or "
            "another RDMA device",
            like="NOT_REVOCABLE",
        ),
        Own(
            "module-device-cannot-revoke",
            "the driver of this RDMA device cannot revoke registrations of GPU memory",
            "with `persistent_api_support=0` registrations must be revocable, and the driver of "
            "this device (erdma, Broadcom's own bnxt_re) does not do what the RDMA core expects "
            "of it when memory is freed ([defects.md](defects.md#defects-of-rdma-cores), B13, "
            "B18, B19)",
            "`options nv_peer_mem persistent_api_support=1` in "
            "`/etc/modprobe.d/nv_peer_mem.conf`, then `/etc/init.d/nv_peer_mem restart`",
            like="NOT_REVOCABLE",
        ),
        Own(
            "module-coherent-not-revocable",
            "GPU memory behind a coherent link cannot be revoked",
            "this is a Grace machine, whose GPU memory cannot be revoked, and "
            "`persistent_api_support=0` asks for that",
            "`options nv_peer_mem persistent_api_support=1` in "
            "`/etc/modprobe.d/nv_peer_mem.conf`, then `/etc/init.d/nv_peer_mem restart`",
            like="NOT_REVOCABLE",
        ),
        Own(
            "module-coherent-offline",
            "GPU memory behind a coherent link is not online",
            "the memory of a Grace machine's GPU is not online: the kernel does not use it yet",
            "Start `nvidia-persistenced`, which brings it online; then `numactl -H` shows the "
            "GPU's node with memory",
            like="COHERENT_OFFLINE",
        ),
        Own(
            "module-driver-version",
            "the NVIDIA driver's <*> has version <n>, which this module does not know",
            "the NVIDIA driver is newer than the module, and has changed its structures",
            "Install a version of nv_peer_mem that fits the driver",
        ),
        Own(
            "module-driver-page-size",
            "the NVIDIA driver's page size type <*> is unknown to this module",
            "the NVIDIA driver is newer than the module, and has pages of a size that the module "
            "does not know",
            "Install a version of nv_peer_mem that fits the driver",
        ),
        Own(
            "module-driver-pages",
            "the NVIDIA driver <*> pages of <*> bytes for a range of",
            "the NVIDIA driver pinned or mapped less or more than the module asked for, and the "
            "registration was refused. That is a defect of the driver or of the module",
            "`nvpm report --write FILE.tar.gz`, and report it with the kernel's log",
        ),
        Own(
            "module-orphans",
            "orphaned registrations of GPU memory, or 4 TiB of them",
            "a user has as many orphans as the module allows: registrations that have ended "
            "while the driver does not unpin their memory before it is freed (only with "
            "`persistent_api_support=0`, and not for root)",
            "`nvpm regions` lists them as `orphaned`. If a large job was just ending, try again; "
            "else free that memory, or end the process that holds it. Deregister in the process "
            "that registered, or set `persistent_api_support=1`",
            like="ORPHANS",
        ),
    ),
)

# The module prints these when registered memory is freed or deregistered.
REGISTERED = Group(
    "module-registered",
    (
        Own(
            "module-not-unpinned",
            "did not unpin GPU memory (error <n>): it stays in use until the driver is unloaded",
            "the NVIDIA driver refused to unpin memory that was deregistered, so the memory "
            "stays in use",
            "`nvpm report --write FILE.tar.gz`, and report it with the kernel's log. Unloading "
            "the driver, or a reboot, frees the memory",
        ),
        Own(
            "module-unpinned-later",
            "did not unpin GPU memory (error <n>): it is unpinned when it is freed",
            "the NVIDIA driver refused to unpin memory that was deregistered, so the memory "
            "stays pinned until the program frees it",
            "Nothing for this program. `nvpm report --write FILE.tar.gz`, and report it with the "
            "kernel's log",
        ),
        Own(
            "module-not-unmapped",
            "the NVIDIA driver did not unmap GPU memory",
            "the NVIDIA driver refused to unmap memory that was deregistered",
            "`nvpm report --write FILE.tar.gz`, and report it with the kernel's log",
        ),
        Own(
            "module-not-revoked",
            "the RDMA core did not revoke a registration",
            "memory was freed while it was registered, and the RDMA core returned an error when "
            "the module asked it to revoke the registration",
            "`nvpm report --write FILE.tar.gz`, and report it with the kernel's log",
        ),
    ),
)
GROUPS = (LOADING, REGISTERING, REGISTERED)
