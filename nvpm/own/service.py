# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the service: init.d/. The journal has them (`journalctl -u nv_peer_mem`), and the
terminal of a user who starts the service by hand."""

from .model import FINE, FOLLOWS, Group, Own

STARTING = Group(
    "service-starting",
    (
        Own(
            "service-not-root",
            "nv_peer_mem: only root can do that",
            "a user other than root has called the service's script",
            "Call it with `sudo`",
        ),
        Own(
            "service-not-understood",
            "not understood in <w>: <*>. It takes ONBOOT= and MARKER=",
            "a line of `/etc/infiniband/nv_peer_mem.conf` is not understood, and is ignored",
            "Correct the line that the message quotes: the file takes `ONBOOT=` and `MARKER=`, "
            "with yes or no",
        ),
        Own(
            "service-no-gpu",
            "this machine has no NVIDIA GPU",
            "the service is installed on a machine without an NVIDIA GPU, and loads nothing there",
            kind=FINE,
        ),
        Own(
            "service-boot-not-wanted",
            "on boot it is not wanted: <w> says ONBOOT=no",
            "`/etc/infiniband/nv_peer_mem.conf` says that a boot does not load the module",
            kind=FINE,
        ),
        Own(
            "service-boot-unclear",
            "ONBOOT= in <w> is neither yes nor no",
            "the value of `ONBOOT=` is not understood, so no boot loads the module",
            "Write `ONBOOT=yes` or `ONBOOT=no` into `/etc/infiniband/nv_peer_mem.conf`, then "
            "`systemctl start nv_peer_mem`",
        ),
        Own(
            "service-boot-not-said",
            "on boot it is not wanted: <w> does not say ONBOOT=yes",
            "`/etc/infiniband/nv_peer_mem.conf` does not say `ONBOOT=yes`, so no boot loads the "
            "module",
            "If the module is wanted at each boot: write `ONBOOT=yes` into that file, then "
            "`systemctl start nv_peer_mem`",
        ),
        Own(
            "service-no-driver-yet",
            "has no NVIDIA driver yet. When one is loaded, so is this module",
            "no NVIDIA driver is installed for the running kernel. When it is loaded later, as "
            "by the GPU Operator, the service loads the module, too",
            "Nothing, if the driver comes later. Else install the driver for this kernel",
        ),
        Own(
            "service-not-loaded",
            "<nv_peer_mem: not|Not> loaded: ",
            "a start of the service would be of no use here; the rest of the line says why",
            kind=FINE,
        ),
        Own(
            "service-no-module",
            "there is no module for kernel",
            "nv_peer_mem is not built for the running kernel, or only its service is installed",
            "`dkms autoinstall -k $(uname -r)`; if dkms skips the kernel, it says why. Without "
            "dkms: install the kmod package for this kernel, or `make && make install`",
            like="OTHER_KERNEL",
        ),
        Own(
            "service-cannot-load",
            "nv_peer_mem: cannot load",
            "modprobe or the kernel refused a module; the rest of the line, and the next lines, "
            "say why",
            "Do what the last of these lines says. `nvpm explain` reads them, too",
            kind=FOLLOWS,
        ),
        Own(
            "service-marker-not-loaded",
            "MARKER=yes, but the marker cannot be loaded",
            "`nv_peer_mem_marker.ko` is not installed for this kernel, or NVIDIA's own "
            "nvidia_peermem is in its place. GPU memory can be registered all the same, but "
            "programs that look for the name nvidia_peermem do not find it",
            "Install the package again, or `make marker_install`",
        ),
        Own(
            "service-mark",
            "nv_peer_mem: service <n> loads the module",
            "the service loads the module now",
            kind=FINE,
        ),
        Own(
            "service-loaded",
            "<nv_peer_mem: loaded|Loaded>, version",
            "the service has loaded the module",
            kind=FINE,
        ),
        Own(
            "service-loaded-already",
            "nv_peer_mem: is loaded",
            "the module is loaded",
            kind=FINE,
        ),
        Own(
            "service-pod-keeps",
            "<nv_peer_mem: is loaded|Loaded> under the name nvidia_peermem, version",
            "a pod of the DaemonSet nv-peer-mem has loaded the module and keeps it, so the service "
            "neither loads nor unloads it. The pod unloads the module when it ends",
            kind=FINE,
        ),
        Own(
            "service-not-running",
            "nv_peer_mem: is not loaded",
            "the module is not loaded",
            kind=FINE,
        ),
        Own(
            "service-marker-loaded",
            "nv_peer_mem: the marker nvidia_peermem is loaded",
            "the marker is loaded: programs that look for a module named nvidia_peermem find it",
            kind=FINE,
        ),
    ),
)
STOPPING = Group(
    "service-stopping",
    (
        Own(
            "service-still-in-use",
            "still in use (registrations of GPU memory:",
            "programs have GPU memory registered, so the module stays loaded; the next lines "
            "name the processes and what each holds",
            "End these processes (`nvpm regions` lists each registration), then stop the service "
            "again",
            like="MODULE_IN_USE",
        ),
        Own(
            "service-cannot-unload",
            "nv_peer_mem: cannot unload",
            "rmmod could not unload the module, although nothing uses it; the rest of the line "
            "is its message",
            "`dmesg` has the reason. A kernel without module unloading, or lockdown, needs a "
            "reboot",
        ),
        Own(
            "service-unloaded",
            "nv_peer_mem: unloaded.",
            "the service has unloaded the module",
            kind=FINE,
        ),
        Own(
            "service-callback-stays",
            "nv_peer_mem_callback stays until the next boot, as it has to",
            "the callback module stays loaded, because the driver may call it long after a "
            "registration has ended",
            kind=FINE,
        ),
        Own(
            "openibd-pod-keeps",
            "openibd cannot unload the RDMA core before the DaemonSet nv-peer-mem has left this "
            "node",
            "openibd is about to restart, and a pod keeps nv_peer_mem loaded, under the name "
            "nvidia_peermem",
            "Keep the DaemonSet from this node ([how](kubernetes.md)), restart openibd, then let "
            "the DaemonSet return",
        ),
        Own(
            "openibd-devices-open",
            "stays loaded: programs have RDMA devices open",
            "openibd is about to restart, and refuses to stop while programs have RDMA devices "
            "open, so nv_peer_mem was not unloaded",
            "End the programs that use RDMA (`fuser -v /dev/infiniband/*` names them), then "
            "restart openibd",
        ),
        Own(
            "openibd-loaded-again",
            "is loaded again when openibd has started",
            "the module was unloaded for a restart of openibd, and will be loaded after it",
            kind=FINE,
        ),
        Own(
            "openibd-hook-yours",
            "is yours. For openibd to be able to restart, add this line to it",
            "a file of yours has the name of the hook by which openibd lets nv_peer_mem be "
            "unloaded first. Without the hook `openibd restart` fails",
            "Add the line that the message names to your file",
        ),
    ),
)
GROUPS = (STARTING, STOPPING)
