# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of the container image's program (container/keeper), which keeps the module on a node of
a cluster, and of the hooks for the OFED container."""

from .model import FINE, Group, Own

IN_PAGE = "[kubernetes.md](kubernetes.md#the-image)"

POD = Group(
    "pod",
    (
        Own(
            "pod-no-driver",
            "nv-peer-mem: waiting: NVIDIA's driver <is not loaded|is being loaded|was unloaded>",
            "the pod waits for NVIDIA's driver, which another container or the node loads",
            "Look at the driver's pod: `kubectl -n gpu-operator get pods`. On a node with a driver "
            "of its own, `modprobe nvidia`",
        ),
        Own(
            "pod-no-uvm",
            "nv-peer-mem: waiting: the module nvidia_uvm is not loaded",
            "NVIDIA's driver is half loaded, so CUDA does not work on this node: its container is "
            "being replaced, or has left nvidia_uvm out",
            "If this lasts for minutes: reboot the node, or `FORCE_REINSTALL=true` once in "
            "`driver.manager.env`",
        ),
        Own(
            "pod-no-core",
            "nv-peer-mem: waiting: the RDMA core is not loaded",
            "the pod waits for the RDMA core, which the OFED container or the node loads",
            "Look at the OFED pod: `kubectl -n nvidia-network-operator get pods`",
        ),
        Own(
            "pod-ofed-not-ready",
            "nv-peer-mem: waiting: the OFED container is not ready",
            "the OFED container may be replacing the RDMA core, so the module must not be loaded "
            "now",
            "Look at the OFED pod: `kubectl -n nvidia-network-operator get pods`",
        ),
        Own(
            "pod-no-peer-memory",
            "nv-peer-mem: waiting: the RDMA core that is loaded has no peer memory",
            "the kernel's own RDMA core is loaded, to which no client can register",
            "Have the Network Operator bring OFED; or use dma-buf, and remove the DaemonSet",
        ),
        Own(
            "pod-driver-not-ready",
            "nv-peer-mem: waiting: the driver's container is not ready",
            "the driver's container may be replacing the driver, so the module must not be loaded "
            "now",
            "Look at the driver's pod: `kubectl -n gpu-operator get pods`",
        ),
        Own(
            "pod-was-taken",
            "nv-peer-mem: waiting: somebody else has unloaded the module",
            "the scripts of an operator, or a person, have unloaded the module, and may replace "
            "the driver or the RDMA core next",
            "Wait five minutes, or delete the pod: the next one loads the module at once",
        ),
        Own(
            "pod-no-headers",
            "nv-peer-mem: waiting: no headers of kernel",
            "the module cannot be built: neither the driver's container nor the node has headers "
            "of the running kernel",
            "Install the headers on the node, or have the driver's container build the driver "
            "again (`FORCE_REINSTALL=true` once in `driver.manager.env`)",
        ),
        Own(
            "pod-no-driver-file",
            "nv-peer-mem: waiting: the file of the loaded driver",
            "the module cannot be built: the driver is loaded, and its file is nowhere, as after "
            "a restart of the driver's pod that kept the driver",
            "`FORCE_REINSTALL=true` once in `driver.manager.env`, or reboot the node",
        ),
        Own(
            "pod-no-core-files",
            "nv-peer-mem: waiting: the files of the loaded RDMA core are neither in",
            "the module cannot be built: the OFED container shows its files only while it runs",
            "Look at the OFED pod: `kubectl -n nvidia-network-operator get pods`",
        ),
        Own(
            "pod-held",
            "nv-peer-mem: held:",
            "the module serves and should be unloaded, but programs have GPU memory registered",
            "End the processes and pods that the line names; `owners.yaml` lets the pod name them",
            like="MODULE_IN_USE",
        ),
        Own(
            "pod-blocked",
            "nv-peer-mem: blocked: NVIDIA's own nvidia_peermem is loaded",
            "NVIDIA's own module is loaded, and serves GPU memory already. Only one module can",
            "`driver.rdma.enabled=false` in the ClusterPolicy, and `rmmod nvidia_peermem` on the "
            f"node. Or keep NVIDIA's module, and remove the DaemonSet ({IN_PAGE})",
            like="SECOND_CLIENT",
        ),
        Own(
            "pod-build-failed",
            "nv-peer-mem: failed: the build:",
            "the module could not be built; the rest of the line is the build's own message",
            "All of the output is in `/var/lib/nv_peer_mem/build.log` on the node: give it to "
            "`nvpm explain`",
            rest=True,
        ),
        Own(
            "pod-disk",
            "nv-peer-mem: failed: a file cannot be read or written:",
            "the pod could not read or write a file; the rest of the line says which error",
            "Make room in `/var/lib/nv_peer_mem` on the node. The pod tries again by itself",
        ),
        Own(
            "pod-cache-writable",
            "nv-peer-mem: others than root can write to",
            "the directory from which the pod would load modules is not safe",
            "Look what is inside, then run the command in the line on the node",
        ),
        Own(
            "pod-setting",
            "nv-peer-mem: NVPM_<w>",
            "a variable in the DaemonSet has a value that the program does not know",
            "Correct `env` in the DaemonSet; the line has the values",
        ),
        Own(
            "pod-asked",
            "nv-peer-mem: unloaded: the module was unloaded on request",
            "somebody has run `nv-peer-mem unload` in the pod",
            "Delete the pod: the next one loads the module",
        ),
        Own(
            "pod-ready",
            "nv-peer-mem: ready:",
            "the module is registered with the RDMA core",
            kind=FINE,
        ),
    ),
)

# The messages of init.d/ofed-container-pre-stop and -post-start.
HOOKS = Group(
    "ofed-hooks",
    (
        Own(
            "ofed-hook-unloaded",
            "nv_peer_mem: <w> is unloaded, so that openibd can unload the RDMA core",
            "the hook of the OFED container has unloaded the module before openibd stops",
            kind=FINE,
        ),
        Own(
            "ofed-hook-in-use",
            "is in use: openibd will unload the drivers of the network cards and then fail",
            "programs have GPU memory registered while the OFED container restarts openibd: the "
            "node loses its network cards",
            "At the node's console: end the programs, `rmmod nv_peer_mem`; the container's next "
            "attempt loads OFED",
            like="MODULE_IN_USE",
        ),
        Own(
            "ofed-hook-not-loaded",
            "cannot be loaded: if OFED has changed, build the module again on the node",
            "the hook of the OFED container could not load the module after openibd has started",
            "Build the module again on the node, then `/etc/init.d/nv_peer_mem start` there",
        ),
    ),
)

GROUPS = (POD, HOOKS)
