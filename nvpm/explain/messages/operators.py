# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of the GPU Operator, the Network Operator and their driver containers."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section

SECTION = Section(
    "GPU Operator, Network Operator",
    "The driver container contains nvidia-peermem. Beside the operators' containers, this module "
    "comes as an image, whose pod builds and loads the module under the name nvidia_peermem. "
    "[kubernetes.md](kubernetes.md) has the details, and says what other pods need.",
    (
        Message(
            "Module nvidia-peermem not found in directory",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver; gpu-operator#2619, "
            "gpu-driver-container#1019",
            (
                Case(c.USERSPACE_ONLY, ("userspace_only",)),
                Case(c.USERSPACE_ONLY, ("gpu_operator",), sure=FITS),
                Case(c.NO_PEERMEM_MODULE, (), (), sure=FITS),
            ),
        ),
        Message(
            "performing userspace-only install",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver; gpu-operator#2619",
            note="the driver was loaded already. If nvidia_peermem is not loaded then, its "
            "sidecar fails",
            do="If the sidecar fails: `FORCE_REINSTALL=true` in the ClusterPolicy, or reboot "
            "the node",
            kind=FINE,
        ),
        Message(
            "failed to load nvidia-peermem module",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver; gpu-operator#2868",
            do="Look for modprobe's line above it, and for the kernel's lines of that moment "
            "(`dmesg`). Often OFED was updated after the driver was built: delete the "
            "driver pod",
            kind=FOLLOWS,
        ),
        Message(
            "nvidia-peermem module is not loaded",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver",
            note="the probe of the sidecar prints this line, and the kubelet restarts the "
            "container",
            do="Look at the sidecar's log (container nvidia-peermem-ctr), which has "
            "modprobe's line",
            kind=FOLLOWS,
        ),
        Message(
            "waiting for mellanox ofed and nvidia drivers to be installed",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver",
            (Case(c.POD_ORDER),),
            note="the sidecar waits for the pod of OFED. With OFED on the host it waits for ever",
            sure=FITS,
        ),
        Message(
            "waiting for the mlx5_core and ib_umad kernel modules to be loaded",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver",
            (Case(c.POD_ORDER),),
            note="on systems with NVLink 5 the driver waits for the RDMA drivers",
            do="`modprobe ib_umad` on the node; the log of the pod of OFED",
            sure=FITS,
        ),
        Message(
            "RHEL_VERSION: unbound variable",
            "NVIDIA/gpu-driver-container: rhel8/nvidia-driver; gpu-operator#609",
            (Case(c.IMAGE_DEFECT),),
            note="old driver images for RHEL have it",
        ),
        Message(
            "MOFED drivers are not ready, skipping probe",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver",
            note="OFED is being replaced",
            kind=FINE,
        ),
        Message(
            "nvidia-peermem driver is not ready",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.MARKER),),
            note="the validator looks for the name in `lsmod`. Newer operators do not look if "
            "the driver is the host's",
            do="With drivers on the host: load the module, and the marker. With the driver "
            "container: the log of its container nvidia-peermem",
            sure=FITS,
        ),
        Message(
            "/run/mellanox/drivers/.driver-ready",
            "Mellanox/network-operator: manifests/state-ofed-driver; network-operator#318",
            note="the probe of the OFED container waits: its driver is not built or not loaded yet",
            do="`kubectl logs` of the pod mofed-…",
            kind=FOLLOWS,
        ),
        Message(
            "failed to create macvlan: invalid argument",
            "containernetworking/plugins: plugins/main/macvlan/macvlan.go; network-operator#1017, "
            "k8s-rdma-shared-dev-plugin#95",
            (Case(c.OPTIONS),),
            note="the master interface is one of InfiniBand, which has no macvlan",
            do="`IPoIBNetwork` (ipoib-cni) in place of `MacvlanNetwork`",
            sure=FITS,
        ),
        Message(
            "No matching repo to modify",
            "rpm-software-management/dnf-plugins-core: plugins/config_manager.py; gpu-operator#129",
            note="the driver container tries several repositories",
            kind=FINE,
        ),
        Message(
            "chroot: failed to run command <*>nvidia-smi",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go; gpu-operator#487",
            (Case(c.NO_NVIDIA),),
            note="the validator finds neither a driver pod's driver nor one of the host",
            do="The log of the driver pod; the driver on the host needs `driver.enabled=false`",
            sure=FITS,
        ),
        Message(
            "command failed, retrying after",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            note="the validator waits",
            do="Look at the line before it, which names the module (mlx5_core, "
            "nvidia_peermem, gdrdrv) or `nvidia-smi`",
            kind=FOLLOWS,
        ),
        Message(
            "error validating nvidia-peermem driver installation",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.MARKER),),
            note="the validator looks for the name in `lsmod`",
            do="With drivers on the host: load the module, and the marker. With the driver "
            "container: the log of its container nvidia-peermem",
            sure=FITS,
        ),
        Message(
            "No Mellanox device label found",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            note="the node has no label of Node Feature Discovery for a NIC of Mellanox",
            do="If it has such a NIC (`lspci -d 15b3:`): look at Node Feature Discovery",
            kind=FINE,
        ),
        Message(
            "GPUDirect RDMA is disabled, skipping",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            note="`driver.rdma.enabled` is false",
            do="Set it, if nvidia-peermem is wanted",
            kind=FINE,
        ),
        Message(
            "GPUDirect Storage driver (nvidia-fs) is not supported along with pre-compiled",
            "NVIDIA/gpu-operator: controllers/object_controls.go",
            (Case(c.OPTIONS),),
            do="Driver images that are not precompiled",
        ),
        Message(
            "Could not unload NVIDIA driver kernel modules",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver; gpu-operator#2685",
            (Case(c.MODULE_IN_USE),),
            note="modules of an earlier driver container can be in use, too",
            do="`/etc/init.d/nv_peer_mem stop` on the node before upgrades, stop the GPU "
            "pods, unload gdrdrv; else reboot the node; or `driver.enabled=false`",
        ),
        Message(
            "is used and will FAIL driver reload",
            "Mellanox/doca-driver-build: entrypoint.sh",
            (Case(c.MODULE_IN_USE),),
            note="the Network Operator replaces OFED",
            do="Drain the node, so that its GPU jobs end",
        ),
        Message(
            "failed to unload nvidia_peermem module",
            "Mellanox/doca-driver-build: entrypoint/internal/entrypoint/entrypoint.go",
            (Case(c.MODULE_IN_USE),),
            note="the Network Operator replaces OFED, and has unloaded nothing yet. A module that "
            "is called nv_peer_mem also uses OFED, and the operator does not know that name",
            do="Drain the node, so that its GPU jobs end. If nv_peer_mem is loaded, also "
            "`systemctl stop nv_peer_mem`, or the restart of OFED removes the node's NICs: "
            "[kubernetes.md](kubernetes.md)",
        ),
        Message(
            'network.nvidia.com/operator.mofed.wait<=true|: true|: "true"|": "true"|":"true">',
            "Mellanox/network-operator: pkg/nodeinfo/attributes.go",
            (Case(c.POD_ORDER),),
            note="pods wait until this label of the node is `false`",
            do="The log of the pod of OFED",
            sure=FITS,
        ),
        Message(
            "non-R<d|D>ma Device",
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/server.go; network-operator#31",
            (Case(c.POD_ORDER),),
            note="the device plug-in started before OFED",
            do="Restart the pod of the device plug-in",
            sure=FITS,
        ),
        Message(
            "error validating MOFED driver installation",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.POD_ORDER),),
            note="the validator does not find mlx5_core in `lsmod`",
            sure=FITS,
        ),
        Message(
            "error validating driver installation",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.NO_NVIDIA),),
            note="`nvidia-smi` fails in the validator",
            do="The driver pod's log, or the host's driver",
            sure=FITS,
        ),
        Message(
            "gdrcopy driver is not ready",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.GDRDRV),),
            do="The log of the driver pod's container nvidia-gdrcopy-ctr",
            sure=FITS,
        ),
        Message(
            "error validating nvidia-fs driver installation",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            note="nvidia_fs is not loaded",
            do="Look at the log of the driver pod's container nvidia-fs-ctr",
            kind=FOLLOWS,
        ),
        Message(
            "No Mellanox devices were found",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver",
            note="the driver container sees no NIC of Mellanox, and does not set up GPUDirect RDMA",
            do="If the node has such a NIC: `lspci -d 15b3:` on the node",
            kind=FINE,
        ),
        Message(
            "failed to reach RHEL package repositories",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver; gpu-operator#616",
            (Case(c.POD_REPOSITORY),),
        ),
        Message(
            "failed to update the dnf metadata cache",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver",
            (Case(c.POD_REPOSITORY),),
        ),
        Message(
            "RHEL entitlement may be improperly deployed",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver",
            (Case(c.POD_REPOSITORY),),
        ),
        Message(
            "Failed to update package cache",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver",
            (Case(c.POD_REPOSITORY),),
        ),
        Message(
            "Could not resolve Linux kernel version",
            "NVIDIA/gpu-driver-container: ubuntu24.04/nvidia-driver; gpu-operator#85, #155",
            (Case(c.POD_REPOSITORY),),
            note="the repositories have no headers for the running kernel: the kernel is too "
            "new, too old, or not the distribution's",
            sure=FITS,
        ),
        Message(
            "Unable to resolve RHEL version from kernel version",
            "NVIDIA/gpu-driver-container: rhel9/nvidia-driver; gpu-operator#617",
            (Case(c.POD_REPOSITORY),),
            note="the kernel is not one of Red Hat's",
            do="A driver on the host (`driver.enabled=false`), or a kernel of RHEL",
            sure=FITS,
        ),
        Message(
            "Failed to download metadata for repo",
            "rpm-software-management/dnf; gpu-operator#616, #190",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
            ),
            sure=FITS,
        ),
        Message(
            "Could<n't| not> resolve host",
            "curl/curl: lib/strerror.c",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
            ),
            note="the pod has no DNS, or no way out",
            sure=FITS,
        ),
        Message(
            "<Could not resolve '|Temporary failure resolving>",
            "Debian's apt: methods/connect.cc",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
            ),
            note="the pod has no DNS, or no way out",
            sure=FITS,
        ),
        Message(
            "Unable to <find a match: kernel-|locate package linux-headers-|"
            "locate package linux-image->",
            "rpm-software-management/dnf, Debian's apt; gpu-operator#190",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
                Case(c.NO_HEADERS, (), ()),
            ),
            note="the repositories do not have the running kernel",
            sure=FITS,
        ),
        Message(
            "failed to install <prerequisites|Ubuntu prerequisites|SLES prerequisites|"
            "RedHat dependencies|kernel development packages>:",
            "Mellanox/doca-driver-build: entrypoint/internal/driver/driver.go",
            (Case(c.POD_REPOSITORY),),
            sure=FITS,
        ),
        Message(
            "failed to update apt packages",
            "Mellanox/doca-driver-build: entrypoint/internal/driver/driver.go",
            (Case(c.POD_REPOSITORY),),
            sure=FITS,
        ),
        Message(
            "torage modules are loaded for current driver",
            "Mellanox/doca-driver-build: entrypoint.sh; network-operator#1639",
            (Case(c.MODULE_IN_USE),),
            note="the Network Operator replaces OFED, and storage over RDMA uses the old one",
            do="`UNLOAD_STORAGE_MODULES=true` in the NicClusterPolicy, with that storage unmounted",
        ),
        Message(
            "third-party RDMA modules are loaded for current driver",
            "Mellanox/doca-driver-build: entrypoint/internal/entrypoint/entrypoint.go",
            (Case(c.MODULE_IN_USE),),
            note="nothing is unloaded yet. The variable of the message does not unload these "
            "modules since June 2026",
            do="Unload the modules that the message's list has, on the node: for nv_peer_mem "
            "`systemctl stop nv_peer_mem`, and see [kubernetes.md](kubernetes.md)",
        ),
        Message(
            "failed to restart openibd service",
            "Mellanox/doca-driver-build: entrypoint/internal/driver/driver.go; "
            "network-operator#2176, #604",
            note="OFED's modules could not be loaded or unloaded",
            do="Look for `is in use by`, `could not insert` and `Error:` above it. If the node's "
            "own network is on a NIC of Mellanox, the node loses it for that time",
            kind=FOLLOWS,
        ),
        Message(
            "awa<t|it>ing DTK compilation",
            "Mellanox/doca-driver-build: entrypoint.sh",
            note="OpenShift's driver toolkit builds OFED in another container",
            do="The log of the container openshift-driver-toolkit-ctr of the same pod",
            kind=FOLLOWS,
        ),
        Message(
            'missing RDMA device spec for device <w>, RDMA device <*>"<umad|uverbs|rdma_cm>',
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/pci_net_device.go; "
            "k8s-rdma-shared-dev-plugin#108",
            (Case(c.NO_DEVICE),),
            note="the node lacks this file in `/dev/infiniband`, and the plug-in leaves out the "
            "NIC",
            do="`modprobe -a ib_umad ib_uverbs rdma_ucm` on the node, then restart the pod of "
            "the device plug-in",
            sure=FITS,
        ),
        Message(
            'missing RDMA device spec for device <w>, RDMA device <*>"issm',
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/pci_net_device.go, older; "
            "k8s-rdma-shared-dev-plugin#44, spiderpool#4753",
            (Case(c.NO_DEVICE),),
            note="virtual functions and Ethernet ports may lack `issm`, and an older plug-in "
            "leaves out such a NIC",
            do="A newer device plug-in, which does not ask for `issm`",
            sure=FITS,
        ),
        Message(
            "no devices in device pool, creating empty resource server",
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/resources_manager.go; "
            "k8s-rdma-shared-dev-plugin#44",
            (Case(c.OPTIONS),),
            note="no NIC fits the selectors of this resource, or each was left out before",
            do="The selectors (vendors, deviceIDs, ifNames) beside `lspci -nn -d 15b3:`; and "
            "`error creating new device` above it",
            sure=POSSIBLE,
        ),
        Message(
            "no Rdma Devices were found for resource",
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/server.go",
            note="pods get no NIC from this resource",
            do="Look for `error creating new device` and `no devices in device pool` above it",
            kind=FOLLOWS,
        ),
        Message(
            "incorrect RDMA subsystem network namespace",
            "Mellanox/k8s-rdma-shared-dev-plugin: pkg/resources/resources_manager.go",
            (Case(c.RDMA_NETNS),),
        ),
        Message(
            "Insufficient <rdma/|nvidia.com/hostdev|vpc.amazonaws.com/efa|openshift.io/>",
            "kubernetes/kubernetes: pkg/scheduler/framework/plugins/noderesources/fit.go",
            note="no node offers this RDMA resource, or all of it is taken",
            do="`kubectl describe node`, section Allocatable; then the log of the device plug-in",
            kind=FOLLOWS,
        ),
        Message(
            "error validating gdrcopy driver installation",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            (Case(c.GDRDRV),),
            do="The log of the driver pod's container nvidia-gdrcopy-ctr",
            sure=FITS,
        ),
        Message(
            "failed to validate the driver, retrying after",
            "NVIDIA/gpu-operator: cmd/nvidia-validator/main.go",
            note="the validator waits for the driver",
            do="The log of the driver pod",
            kind=FOLLOWS,
        ),
        Message(
            'Failed to pull image "nvcr.io/nvidia/<driver|mellanox/|cloud-native/nvidia-fs'
            "|cloud-native/gdrdrv>",
            "kubernetes/kubernetes: pkg/kubelet; gpu-operator#170, #308, #418, #595, #635, #690, "
            "#1212",
            (
                Case(c.OTHER_IMAGE, ("line:not found",)),
                Case(c.OTHER_IMAGE, ("line:manifest unknown",)),
                Case(c.POD_REPOSITORY, ("line:i/o timeout",)),
                Case(c.POD_REPOSITORY, ("line:no such host",)),
                Case(c.POD_REPOSITORY, ("line:connection refused",)),
            ),
            note="the operator adds the node's distribution to the tag",
            unless=("line:i/o timeout: not found",),
        ),
        Message(
            "nvidia/driver:<*>-<rhel|ubuntu>",
            "NVIDIA/gpu-operator: controllers/object_controls.go",
            (
                Case(c.OTHER_IMAGE, ("line:-rhel", "ubuntu_node"), ("rhel_node",)),
                Case(c.OTHER_IMAGE, ("line:-ubuntu", "rhel_node"), ("ubuntu_node",)),
            ),
            note="the driver's image is of another distribution than the node",
            sure=FITS,
        ),
        Message(
            "restarting failed container<=| >nvidia-<peermem|driver|gdrcopy>-ctr",
            "kubernetes/kubernetes: pkg/kubelet",
            note="the container ends again and again",
            do="`kubectl logs --previous -c` with the name of this container, and give that log to "
            "`nvpm explain`; and the image's distribution beside the node's",
            kind=FOLLOWS,
        ),
        Message(
            "nvidia-<gds|gdrcopy>-driver: <not found|command not found>",
            "NVIDIA/gpu-operator; gpu-operator#2416",
            (Case(c.IMAGE_DEFECT),),
            note="some images for RHEL contain only the source, for OpenShift's driver toolkit",
            do="Another version of that image, or the driver on the host",
            sure=FITS,
        ),
        Message(
            "RDMA resources for <w> not found. Are RDMA modules loaded",
            "k8snetworkplumbingwg/sriov-network-device-plugin: "
            "pkg/netdevice/pciNetDevice.go; sriov-network-device-plugin#424",
            (Case(c.NO_DEVICE),),
            note="the device plugin gives the network interface to pods without RDMA",
            sure=FITS,
        ),
        Message(
            "linux-modules-extra-<*> but it is not",
            "Debian's apt; network-operator#1450",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
                Case(c.NO_HEADERS, (), ()),
            ),
            note="the repositories have other packages of this kernel, and not this one",
            sure=FITS,
        ),
        Message(
            "Errors during downloading metadata for repository",
            "rpm-software-management/dnf; network-operator#830",
            (
                Case(c.POD_REPOSITORY, ("gpu_operator",)),
                Case(c.POD_REPOSITORY, ("mofed_container",)),
            ),
            sure=FITS,
        ),
    ),
)
