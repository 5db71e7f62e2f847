# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages that other programs print about nv_peer_mem: the kernel, modprobe, rmmod and systemd. No
source of nv_peer_mem contains them."""

from .model import FINE, FOLLOWS, Group, Own
from .module import OTHER_CALLBACK, REBOOT

DKMS_FORCED = (
    "`dkms build --force` and `dkms install --force` of nvidia-peer-memory ([other "
    "installers](troubleshooting.md#loading))"
)
# The Linux module loader, and modprobe, about nv_peer_mem.
LOADING = Group(
    "others-loading",
    (
        Own(
            "load-not-found",
            "<FATAL: Module nv_peer_mem not found|Module nv_peer_mem not found."
            "|Failed to find module 'nv_peer_mem'>",
            "there is no nv_peer_mem for the running kernel: either it was never installed on "
            "this node, or it is installed and not built for this kernel. The line does not say "
            "which",
            "`ls -d /usr/src/nvidia-peer-memory-*`: if it finds nothing, install nv_peer_mem "
            "([how](installing.md)), or load nvidia_peermem. Else build it for this kernel: "
            "`dkms autoinstall -k $(uname -r)`, which says why if it skips the kernel",
            like="NOT_INSTALLED",
            here="There is no module for kernel {kernel}. {install}",
        ),
        Own(
            "load-gpl-only",
            "nv_peer_mem: module using GPL-only symbols uses symbols",
            "nv_peer_mem was built with functions that are for GPL modules only, as beside the "
            "open driver, and now the NVIDIA driver is the proprietary one",
            f"Build it again, and it does without them: {DKMS_FORCED}. If `modinfo -F rust "
            "nv_peer_mem` says `prebuilt`, the kernel itself checks locks: boot another kernel, "
            "or install the open driver",
            here="{without_gpl}",
        ),
        Own(
            "load-no-core",
            "nv_peer_mem: Unknown symbol ib_<|un>register_peer_memory_client",
            "the RDMA core that is loaded has no peer memory: it is the kernel's own",
            "Install MLNX_OFED or DOCA-OFED for this kernel, restart openibd (or reboot), then "
            "load the module again; or the open NVIDIA driver with dma-buf, which needs no such "
            "module",
            like="NO_PEER_CORE",
            here="{get_core}",
        ),
        Own(
            "load-other-core",
            "nv_peer_mem: Unknown symbol ib_<|un>register_peer_memory_client (err -22)",
            "the RDMA core was updated after nv_peer_mem was built, and its functions differ",
            f"Build it again: {DKMS_FORCED}",
            like="OFED_REPLACED",
            here="{to_unlink}Build it again: {rebuild}",
        ),
        Own(
            "load-no-driver",
            "nv_peer_mem: Unknown symbol nvidia_p2p_",
            "the NVIDIA driver is not loaded, or the loaded one lacks a function of the driver "
            "for which nv_peer_mem was built",
            "`modprobe nvidia`, and the `NVRM:` lines of dmesg. If it is loaded: reboot, so that "
            f"the installed driver is loaded, then build the module for it: {DKMS_FORCED}",
            like="NO_NVIDIA",
            here="{driver_lacks}",
        ),
        Own(
            "load-other-driver",
            "nv_peer_mem: Unknown symbol nvidia_p2p_<w> (err -22)",
            "nv_peer_mem was built for another NVIDIA driver than the loaded one",
            "Reboot, so that the installed driver is loaded, then build the module for it: "
            f"{DKMS_FORCED}",
            like="DRIVER_REPLACED",
            here="{driver_lacks}",
        ),
        Own(
            "load-no-callback",
            "nv_peer_mem: Unknown symbol nvpm_callback",
            "nv_peer_mem lacks a function of nv_peer_mem_callback: the latter was not loaded "
            "first (`insmod` was used, or the list `modules.dep` is old), or another version of "
            "it is loaded",
            "`depmod`, then `modprobe nv_peer_mem`. If `modinfo nv_peer_mem_callback` finds no "
            f"such module, build both again: {DKMS_FORCED}",
            here="{callback_lacks}",
        ),
        Own(
            "load-other-callback",
            "<disagrees about version of symbol nvpm_callback"
            "|could not insert 'nv_peer_mem': Protocol not supported>",
            OTHER_CALLBACK,
            REBOOT,
            like="CALLBACK",
        ),
        Own(
            "load-disagrees",
            "nv_peer_mem: disagrees about version of symbol",
            "the RDMA core or the NVIDIA driver was updated after nv_peer_mem was built",
            f"Build it again: {DKMS_FORCED}. If `modinfo -n nv_peer_mem` names a file below "
            "`weak-updates` (RHEL), first remove that link to another kernel's module, and run "
            "`depmod`",
            like="OFED_REPLACED",
            here="{to_unlink}Build it again: {rebuild}",
        ),
        Own(
            "load-unknown-symbol",
            "nv_peer_mem: Unknown symbol",
            "nv_peer_mem was not built for this kernel",
            f"Build it again: {DKMS_FORCED}",
            like="OTHER_KERNEL",
            here="{to_unlink}Build it again: {rebuild}",
        ),
        Own(
            "load-version-magic",
            "nv_peer_mem: version magic",
            "nv_peer_mem was built for another kernel",
            "Build it for this one: `dkms autoinstall -k $(uname -r)`; `uname -r` beside "
            "`modinfo -F vermagic nv_peer_mem` shows both",
            like="OTHER_KERNEL",
            here="{to_unlink}Build it for this one: {build}",
        ),
        Own(
            "load-exec-format",
            "could not insert 'nv_peer_mem': Exec format error",
            "nv_peer_mem was not built for this kernel, or its file was cut short. The kernel's "
            "log says which",
            f"Build it again: {DKMS_FORCED}",
            like="OTHER_KERNEL",
            here="{to_unlink}Build it again: {rebuild}",
            rest=True,
        ),
        Own(
            "load-key-rejected",
            "could not insert 'nv_peer_mem': <Key was rejected|Required key not available>",
            "Secure Boot is on, and nv_peer_mem, or a module that it needs, is not signed with a "
            "key that this machine trusts",
            "`mokutil --import` the key that `nvpm status` names (`/var/lib/dkms/mok.pub`, on "
            "Ubuntu `/var/lib/shim-signed/mok/MOK.der`), reboot, and choose *Enroll MOK*; or "
            "sign the modules with a key that is enrolled",
            like="SIGNATURE",
            here="{to_enrol}",
        ),
        Own(
            "load-not-permitted",
            "could not insert 'nv_peer_mem': Operation not permitted",
            "modules may not be loaded here: the kernel is locked down and nv_peer_mem is not "
            "signed, or the sysctl `kernel.modules_disabled` is 1, or this is a container",
            "Locked down: sign the module. `sysctl kernel.modules_disabled` says 1: reboot, and "
            "load the module before it is set. In a container: load the module on the host",
            like="NOT_ALLOWED",
            here="{not_permitted}",
        ),
        Own(
            "load-unsupported",
            "module '<w>' is unsupported",
            "SLES loads no module that SUSE does not support unless it is allowed to",
            "`echo 'allow_unsupported_modules 1' >/etc/modprobe.d/10-unsupported-modules.conf`, "
            "then load the module again",
        ),
        Own(
            "load-no-memory",
            "could not insert 'nv_peer_mem': Cannot allocate memory",
            "the kernel has no memory left for the module",
            "`free -m`: end programs, then load the module again",
        ),
        Own(
            "load-unknown-parameter",
            "nv_peer_mem: unknown parameter '",
            "a line `options nv_peer_mem` in `/etc/modprobe.d` names a parameter that this "
            "version does not have, and the kernel ignores it",
            kind=FINE,
        ),
    ),
)
# The kernel about messages that it left out.
REGISTERED = Group(
    "others-registered",
    (
        Own(
            "module-suppressed",
            "nv_peer_mem: <n> callbacks suppressed",
            "there were more than 10 messages in 5 seconds; the line counts those that were not "
            "printed",
            "Read the messages before this line",
            kind=FOLLOWS,
        ),
    ),
)
# rmmod, modprobe and systemd, when the module is unloaded.
UNLOADING = Group(
    "others-unloading",
    (
        Own(
            "unload-in-use",
            "Module nv_peer_mem is in use",
            "programs have GPU memory registered through nv_peer_mem, or the marker is loaded",
            "`/etc/init.d/nv_peer_mem stop`, which unloads the marker first and names the "
            "programs; end these, then stop it again",
            like="MODULE_IN_USE",
        ),
        Own(
            "unload-callback-in-use",
            "Module nv_peer_mem_callback is in use",
            "the callback module stays loaded until the next boot, because the driver may call "
            "it long after a registration has ended. It uses neither the driver nor the RDMA "
            "core, and serves older and newer versions of nv_peer_mem",
            kind=FINE,
        ),
        Own(
            "unload-driver-in-use",
            "Module nvidia is in use by: <*>nv_peer_mem",
            "nv_peer_mem uses the NVIDIA driver, so the driver cannot be unloaded before it",
            "`/etc/init.d/nv_peer_mem stop` first, then what else the line names; `nvpm status "
            "--all` lists all users (`in use by`)",
            like="MODULE_IN_USE",
        ),
        Own(
            "unload-core-in-use",
            "ib_core is in use by: <*>nv_peer_mem",
            "OFED is restarted while nv_peer_mem uses it: the hook that unloads nv_peer_mem "
            "first is missing, or a file of yours is in its place",
            "`/etc/init.d/nv_peer_mem stop`, then openibd. "
            "`/usr/lib/nvidia-peer-memory/openibd-hook install` makes the hook, or prints the "
            "line that your file needs",
            like="MODULE_IN_USE",
        ),
        Own(
            "unload-canceled",
            "Job for nv_peer_mem.service canceled",
            "programs have GPU memory registered, so `systemctl stop` or `restart` did not stop "
            "the service, which stays active",
            "`systemctl status nv_peer_mem` names the programs: end them, then stop it again",
            like="MODULE_IN_USE",
        ),
    ),
)
GROUPS = (LOADING, REGISTERED, UNLOADING)
