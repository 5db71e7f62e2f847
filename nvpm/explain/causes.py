# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The causes of failures, each of which stands only here. Messages refer to them."""

from ..facts.consumers import CUFILE_DMA_BUF, MOONCAKE_DMA_BUF, NCCL_SKIP, UCX_SKIP
from .model import Cause

NO_CLIENT = Cause(
    "no peer-memory module took the memory: neither nv_peer_mem nor nvidia_peermem is loaded, or "
    "the RDMA core has no peer memory",
    "Load the module that the node has: `modprobe nvidia-peermem` (it comes with NVIDIA's driver; "
    "`modinfo nvidia-peermem` finds it), or `/etc/init.d/nv_peer_mem start` (this package, which "
    "says why if it fails). `nvpm` on the node says which",
    "module: `state`; driver: `nvidia_peermem`",
    ours=True,
    of_node=True,
    tell="`nvpm status` says whether a module serves GPU memory",
    name="no client",
)
MARKER = Cause(
    "the program looks for a module named nvidia_peermem, which is not loaded",
    "`modprobe nvidia-peermem`, if the NVIDIA driver brought it; or nv_peer_mem with its marker: "
    "`MARKER=yes` in `/etc/infiniband/nv_peer_mem.conf`, then `/etc/init.d/nv_peer_mem restart`",
    "detection: `gpu-operator`",
    ours=True,
    name="the marker",
)
MEMORY_PEERS = Cause(
    "this version of the program looks for `/sys/kernel/mm/memory_peers` only, a directory that "
    "newer RDMA cores do not have, even if a module is loaded",
    "Update the program: NCCL to 2.23 or later, NVSHMEM to 3.2 or later",
    "detection: `NCCL, up to 2.22`",
    name="memory_peers",
)
MEMLOCK = Cause(
    "the limit on locked memory of the job (`ulimit -l`) is too low; GPU memory counts too",
    "`LimitMEMLOCK=infinity` for the daemon that starts the job (slurmd, kubelet, containerd, "
    "sshd), then restart it; in a container `--ulimit memlock=-1` or `--cap-add=IPC_LOCK`. Check "
    "with `ulimit -l` in the job itself",
    "access: `memory lock`",
    tell="`ulimit -l` in the job itself is not `unlimited`",
    name="locked memory",
)
BAR1 = Cause(
    "more GPU memory is registered at once than the GPU's BAR1 has room for",
    "Register less (smaller buffers, fewer processes for each GPU; `NCCL_BUFFSIZE` unset), or a "
    "larger BAR1 in the firmware; `nvidia-smi -q -d MEMORY` shows it",
    "GPUs: `BAR1`",
    tell="small buffers can be registered, and large ones cannot; `ulimit -l` is `unlimited`",
    name="BAR1",
)
IOMMU_ROOM = Cause(
    "the IOMMU translates, and has no room for the pages of a large dma-buf (above about 2 GiB)",
    "`iommu=pt` on the kernel's command line (arm64: `iommu.passthrough=1`), then reboot; until "
    "then register pieces of 1 GiB",
    "RDMA devices: `IOMMU`",
    tell="`cat /sys/kernel/iommu_groups/*/type` has `DMA`; pieces of 1 GiB can be registered",
    name="room of the IOMMU",
)
BAR1_LEAK = Cause(
    "a defect of the NVIDIA driver loses addresses of BAR1 when a part of a reused mapping is "
    "unmapped, so that less and less of BAR1 can be mapped",
    "Save `nvidia-smi -q -d MEMORY` (BAR1 in use without a process); then load the driver again or "
    "reboot, which alone frees the addresses; a driver with the repair "
    "(open-gpu-kernel-modules#1354)",
    "GPUs: `BAR1`",
    name="lost addresses of BAR1",
)
MAP_COUNT = Cause(
    "the process has as many mappings as `vm.max_map_count` allows, because each registration "
    "splits mappings",
    "`wc -l /proc/PID/maps` beside `sysctl vm.max_map_count`; raise the limit, or register fewer "
    "and larger buffers",
    "access: `memory lock`",
    tell="it begins after hours of registering",
    name="mappings",
)
GEFORCE = Cause(
    "the GPU is a GeForce, whose memory NVIDIA's driver gives to no other device",
    "A data-center or professional GPU; or turn GPUDirect RDMA off (`NCCL_NET_GDR_LEVEL=LOC`, "
    "`UCX_IB_GPU_DIRECT_RDMA=no`), and the program copies through host memory",
    "GPUs: `product`",
    tell="`nvidia-smi -L` names a GeForce",
    name="GeForce",
)
VMM = Cause(
    "the memory cannot be registered by its pointer: VMM memory without "
    "`gpuDirectRDMACapable` (PyTorch's `expandable_segments:True`, a sleep mode), a pool of "
    "`cudaMallocAsync`, managed memory, or the address at which gdrcopy has mapped GPU memory "
    "for the CPU",
    "Memory of `cudaMalloc`, by its own address, for buffers that are registered: "
    "`PYTORCH_CUDA_ALLOC_CONF` without `expandable_segments:True`; or as dma-buf, by the program "
    "or by `nvpm run PROGRAM`",
    "use: `failed_not_supported`",
    tell="`nvpm selftest` passes, and only this program fails",
    name="VMM memory",
)
SEVERAL_MAPPINGS = Cause(
    "one registration spans several allocations or VMM mappings, which only a dma-buf of the whole "
    "range can register in one piece",
    "Register each allocation by itself; or the whole range as dma-buf, by the program or by `nvpm "
    "run PROGRAM`: the open NVIDIA driver and kernel 5.12; or memory of `cudaMalloc` "
    "(`PYTORCH_CUDA_ALLOC_CONF` without `expandable_segments:True`)",
    "need: `dma-buf`",
    tell="small buffers can be registered, and those of several mappings cannot",
    name="several mappings",
)
FREED = Cause(
    "the peer's memory is not registered any more, or was freed while the peer still wrote to it",
    "Look at the peer's log. Deregister before the memory is freed",
    "use: `revocations`",
    name="freed memory",
)
NOT_GPU_MEMORY = Cause(
    "the address is no GPU memory of this process any more: freed, of another device, or of "
    "another process",
    "Look for a `cudaFree` before it, and for the wrong device (`cudaSetDevice`)",
    name="not GPU memory",
)
NO_DMABUF = Cause(
    "dma-buf is not available: the NVIDIA driver, the RDMA core or the device's driver has none",
    "Load nvidia-peermem or nv_peer_mem, and let the program register pointers "
    f"(`{NCCL_SKIP}`, `{UCX_SKIP}`, Mooncake without `{MOONCAKE_DMA_BUF}`; docs/choosing.md has "
    "others); or the open NVIDIA driver, kernel 5.12 and a newer RDMA core",
    "need: `dma-buf`",
    ours=True,
    tell="`nvpm status --all` says so",
    name="no dma-buf",
)
NO_ODP = Cause(
    "this mlx5 device cannot page on demand (ODP), and since kernel 7.2, 6.18.53 and 6.12.111 its "
    "driver refuses each dma-buf of such a device, which still says yes to programs that ask",
    "Load nvidia-peermem or nv_peer_mem (with an RDMA core of OFED), and let the program register "
    f"pointers (`{NCCL_SKIP}`, `{UCX_SKIP}`; docs/choosing.md has others). Newer firmware may have "
    "ODP: `ibv_devinfo -v` then lists `ODP_SUPPORT` below `general_odp_caps`",
    "RDMA devices: `dma-buf`",
    ours=True,
    tell="`ibv_devinfo -v` lists nothing below `general_odp_caps`",
    name="no on-demand paging",
)
NIC_NEVER_ASKS = Cause(
    "this NIC's driver takes no pointer to GPU memory: the kernel's own drivers of NICs that are "
    "not NVIDIA's (irdma, bnxt_re, mana, erdma, ionic and others) never ask for peer memory",
    "Let the program register by dma-buf: the open NVIDIA driver, kernel 5.12, and a driver of "
    "this NIC that has the verb. Only some makers' own drivers ask for peer memory; `nvpm status "
    "--all` says what this node's driver does",
    "RDMA devices: `peer memory`",
    tell="the NIC is not one of NVIDIA's",
    name="NIC that never asks",
)
NIC_NO_DMABUF = Cause(
    "dma-buf is not available: the driver of this NIC lacks the verb, or the NVIDIA driver exports "
    "none. A peer-memory module does not help: the kernel's driver of this NIC never asks for it",
    "A newer kernel, or the maker's newer driver, which has the verb for dma-buf "
    "(`reg_user_mr_dmabuf`); the open NVIDIA driver. Peer memory only with a maker's own driver "
    "that asks the RDMA core",
    "need: `dma-buf`",
    tell="the NIC is not one of NVIDIA's; `nvpm status --all` names what lacks dma-buf",
    name="NIC without dma-buf",
)
FOREIGN_DMABUF = Cause(
    "the dma-buf is not one of CUDA: memory of Vulkan, OpenGL, a display or a camera (V4L2) has "
    "an exporter that gives its pages to no other device",
    "Allocate the buffer with CUDA (`cudaMalloc`, `cuMemCreate`), export that as dma-buf, and "
    "import it into Vulkan or OpenGL as external memory; or copy",
    tell="the dma-buf comes from Vulkan, OpenGL or V4L2, and one of `cudaMalloc` is registered",
    name="dma-buf of another exporter",
)
DMABUF_RANGE = Cause(
    "the registration is longer than the dma-buf, or begins outside of it: the program exported "
    "one allocation or one VMM mapping, and registers more",
    "A newer version of the program; else `PYTORCH_CUDA_ALLOC_CONF` without "
    "`expandable_segments:True`, or export the range that is registered, in whole pages",
    tell="small buffers can be registered, and those of several mappings cannot",
    name="range of the dma-buf",
)
EXPORT_PAGES = Cause(
    "the range that is to become a dma-buf is not made of whole pages of the host, or does not "
    "belong to one allocation. Many arm64 kernels have pages of 64 KiB",
    "`getconf PAGESIZE` on the node: let buffer and length be multiples of it (64 KiB fits all, 2 "
    "MiB with VMM memory), or a newer version of the program, which rounds",
    name="pages of the dma-buf",
)
DESCRIPTORS = Cause(
    "the process has no file descriptors left (`ulimit -n`), and each exported dma-buf is one",
    "`ls /proc/PID/fd | wc -l` beside `ulimit -n`: raise the limit (`LimitNOFILE=` of the daemon, "
    "`--ulimit nofile=`), register fewer and larger buffers; if the number grows without end, a "
    "newer version of the program or library",
    "access: `open files`",
    tell="it begins after many registrations; `/proc/PID/fd` has as many entries as `ulimit -n`",
    name="file descriptors",
)
DATA_DIRECT = Cause(
    "data direct (ConnectX-8 beside Grace) refuses this dma-buf: there, the buffer must begin at "
    "a whole granule of VMM memory (2 MiB), so that its offset within the dma-buf is 0",
    "Allocate the buffer with `cuMemCreate`, or at a multiple of 2 MiB, or a newer version of the "
    "program; without data direct (`--use_data_direct`, `NCCL_IB_DATA_DIRECT=0`, "
    "`UCX_IB_DIRECT_NIC=n`) an offset is allowed",
    tell="large buffers can be registered, and small ones of `cudaMalloc` cannot",
    name="data direct",
)
DIRECT_NIC = Cause(
    "this UCX exports the memory for the NIC that is directly at the GPU (data direct), and "
    "registers it with another NIC: the direct NIC is down, or UCX chose by the GPU alone",
    "A newer UCX (ucx#11571), or bring the direct NIC's port up; until then `UCX_IB_DIRECT_NIC=n`",
    "RDMA devices: `port`",
    tell="a Grace Blackwell machine, a direct NIC that is down, and `UCX_IB_DIRECT_NIC=n` helps",
    name="direct NIC of UCX",
)
PAIR = Cause(
    "NVIDIA's driver refuses this pair of GPU and NIC, because no path between them is allowed "
    "(error 524 by dma-buf; peer memory is refused for the same pair)",
    "Use a NIC below the same root complex as the GPU; `NVreg_GrdmaPciTopoCheckOverride=1` tries "
    "it nevertheless",
    "distance: `nearest`",
    tell="`dmesg` has `topology not supported`, and another NIC of the machine is accepted",
    name="refused pair",
)
DISTANCE = Cause(
    "GPU and NIC are farther apart in the PCI tree than the program allows (`NCCL_NET_GDR_LEVEL`)",
    "Use the NIC near the GPU, or set `NCCL_NET_GDR_LEVEL` to the distance that `nvpm status` "
    "prints (`SYS` allows every distance)",
    "distance: `nearest`",
    name="distance",
)
ACS = Cause(
    "memory is registered, but the NIC cannot reach it: PCIe's ACS, the IOMMU or the platform (a "
    "virtual machine without ATS, MMIO addresses that are too high) is in the way, or the GPU is "
    "too far from the NIC in the PCI tree",
    "ACS off on the bridges, `iommu=pt` on the kernel's command line; in a virtual machine ATS. "
    "`NCCL_NET_GDR_LEVEL=LOC` confirms it",
    "PCI: `ACS`; RDMA devices: `IOMMU`",
    name="ACS or IOMMU",
)
PEER_NIC = Cause(
    "the peer's NIC could not reach the peer's memory",
    "On the peer: is a module loaded, is ACS off, does the IOMMU pass through (`iommu=pt`)?",
    "PCI: `ACS`; RDMA devices: `IOMMU`",
    name="the peer's NIC",
)
NETWORK = Cause(
    "the peer does not answer (retries exceeded): it is gone, no route leads to it, the GID index "
    "is wrong (RoCE), or the network loses packets",
    "The log of the peer first; on RoCE the GID index (`show_gids`) and a ping between the two "
    "NICs; then cables, the switches' PFC and ECN, and MTU. `ib_write_bw` between the same two "
    "NICs shows the network alone",
    "RDMA devices: `port`",
    name="network",
)
PORT = Cause(
    "a port of the NIC is down, or lost its link, or has no address by which the other side can "
    "reach it, or its network interface belongs to another container",
    "`ibstat` and `show_gids`: cable, transceiver, switch, address; name the NICs that work "
    "(`NCCL_IB_HCA`, `UCX_NET_DEVICES`); rdma-core of one version in the container and on the host",
    "RDMA devices: `port`",
    name="port",
)
GID = Cause(
    "the port has no usable address at this GID index (RoCE): the index is wrong, or the entry is "
    "empty, as often in a pod",
    "`show_gids` lists the entries: take one of RoCE v2 with an IP address "
    "(`NCCL_IB_GID_INDEX`, `UCX_IB_GID_INDEX`, `NVSHMEM_IB_GID_INDEX`, `MC_GID_INDEX`), or a newer "
    "version of the program, which skips empty entries",
    "RDMA devices: `port`",
    name="GID",
)
RAILS = Cause(
    "the two NICs cannot reach each other: rails without a route between them, an address (GID "
    "index) that is not routed, or NICs of different kinds (InfiniBand and Ethernet)",
    "`NCCL_CROSS_NIC=0`, and `NCCL_IB_HCA` or `UCX_NET_DEVICES` with NICs of one kind; ping "
    "between the two NICs",
    "RDMA devices: `port`",
    name="rails",
)
NO_INTERFACE = Cause(
    "there is no network interface for the first connection of the processes, which goes by TCP",
    "`ip address` in the container; `NCCL_SOCKET_IFNAME` with the name of an interface that is up",
    name="no interface",
)
BOOTSTRAP = Cause(
    "the first connection of the processes, which goes by TCP, does not reach the other host: "
    "another interface was taken (lo, docker0, veth), or a firewall or the route is in the way. "
    "GPUDirect RDMA has no part in it",
    "`NCCL_SOCKET_IFNAME` with an interface that reaches the other hosts (or without those that do "
    "not: `^docker0,lo`); a ping from host to host by that address; a firewall has to let all "
    "ports through between the nodes",
    name="first connection",
)
TOPOLOGY_FILE = Cause(
    "the file that describes the machine to NCCL (`NCCL_TOPO_FILE`, or the one that aws-ofi-nccl "
    "brings) lacks something that NCCL needs, or does not fit the GPUs of this job",
    "Unset `NCCL_TOPO_FILE` (it may stand in `/etc/nccl.conf` or `~/.nccl.conf`); a newer "
    "aws-ofi-nccl (1.13.2 or later writes the description itself) and a newer NCCL",
    name="topology file",
)
NO_DEVICE = Cause(
    "the process sees no RDMA device: the container lacks `/dev/infiniband`, the name is wrong "
    "or excluded, the NIC's driver is not loaded, or rdma-core lacks the NIC's library",
    "`ibv_devinfo` in the container; `--device=/dev/infiniband` for docker, the RDMA device "
    "plug-in for pods; ibverbs-providers as new as the host's; `NCCL_IB_HCA` and "
    "`UCX_NET_DEVICES` may exclude all",
    "access: `/dev/infiniband`",
    name="no RDMA device",
)
DEVICE_DENIED = Cause(
    "the process may not open the RDMA device: the container got no right to it, or its file "
    "has the wrong mode",
    "`--device=/dev/infiniband --ulimit memlock=-1` for docker (or `--privileged`), the RDMA "
    "device plug-in for pods; outside, rdma-core's udev rules",
    "access: `/dev/infiniband`",
    name="device denied",
)
NO_PROVIDER = Cause(
    "rdma-core in the container lacks this NIC's library, or does not fit the host's driver",
    "Install libibverbs1 and the NIC's library in the image, as new as the driver of the node: "
    "ibverbs-providers of the host's OFED for mlx5, the vendor's own for another NIC",
    name="no provider",
)
RDMA_OFF = Cause(
    "RDMA is turned off by a variable (`NCCL_IB_DISABLE`, `NCCL_NET`, `UCX_TLS`)",
    "Remove the variable",
    name="RDMA off",
)
TRAFFIC_CLASS = Cause(
    "a traffic class is set (`NVSHMEM_IB_TRAFFIC_CLASS`, `NCCL_IB_TC`), and the NIC refuses it: on "
    "InfiniBand it has no meaning",
    "Unset the variable on InfiniBand",
    name="traffic class",
)
OTHER_VERSIONS = Cause(
    "the processes run different versions, or were started with different variables",
    "One version, one image and the same variables on all nodes",
    name="other versions",
)
OTHER_UCX = Cause(
    "the process loads another UCX than the one that it was built with",
    "One UCX only: `ucx_info -v` shows which one is found; `LD_LIBRARY_PATH` without others",
    name="other UCX",
)
UCX_NO_CUDA = Cause(
    "this UCX has no CUDA: it was built without, or does not find its CUDA plug-ins",
    "`ucx_info -d | grep cuda` must list devices: a UCX built `--with-cuda`, the package ucx-cuda, "
    "or the program's own wheel (nixl-cu12, nixl-cu13)",
    name="UCX without CUDA",
)
UCX_NO_IB = Cause(
    "this UCX has no InfiniBand and RoCE: it was built without rdma-core, or does not find its "
    "plug-in",
    "`ucx_info -d | grep mlx5` must list devices: a UCX built `--with-verbs`, the package "
    "ucx-ib, or the program's own wheel",
    "access: `/dev/infiniband`",
    name="UCX without RDMA",
)
UCX_TLS = Cause(
    "`UCX_TLS` does not list `cuda_copy`, without which UCX takes GPU memory for host memory",
    "Add `cuda_copy` (and `cuda_ipc`) to `UCX_TLS`, or `UCX_TLS=rc,cuda`",
    name="UCX_TLS",
)
MEMTYPE = Cause(
    "the CPU copies GPU memory as if it were host memory: the library (MPI, UCX, libfabric) has no "
    "CUDA, does not know this allocation, or takes a path that is for host memory only",
    "A library built with CUDA, and newer; `UCX_MEMTYPE_CACHE=n`, and `nvcc --cudart shared`; with "
    "libfabric a provider with FI_HMEM, and no shared memory (`FI_EFA_ENABLE_SHM_TRANSFER=0`)",
    name="memory type",
)
MPI_NO_CUDA = Cause(
    "this MPI, or a library of it, is built without CUDA, or does not find libcuda",
    "`ompi_info --parsable --all | grep mpi_built_with_cuda_support`; an MPI built "
    "`--with-cuda` (Open MPI 5 also with `--with-cuda-libdir`, where libcuda is) over a UCX with "
    "CUDA (`--mca pml ucx`)",
    name="MPI without CUDA",
)
NO_LIBCUDA = Cause(
    "the process does not find the NVIDIA driver's library (libcuda)",
    "Install the driver's libraries; in a container `--gpus all`",
    "driver: `nvidia`",
    name="no libcuda",
)
SCATTER = Cause(
    "the NIC's library copies short messages with the CPU (scatter to CQE, inline sends), and the "
    "CPU does not reach this GPU memory",
    "`MLX5_SCATTER_TO_CQE=0` in the environment of the program; no `IBV_SEND_INLINE` for GPU "
    "memory",
    name="scatter to CQE",
)
CUDA_CONTEXT = Cause(
    "the thread has no CUDA context, or the wrong one",
    "`cudaSetDevice` in that thread before its first transfer",
    name="CUDA context",
)
GDRDRV = Cause(
    "gdrcopy's driver gdrdrv is not loaded on the node, or not built for its kernel, or the "
    "container has no `/dev/gdrdrv`",
    "`modprobe gdrdrv` on the node; give the container `/dev/gdrdrv`. Programs that can do without "
    "gdrcopy only get slower",
    name="gdrdrv",
)
GDRDRV_OTHER = Cause(
    "gdrdrv or gdrcopy's library does not fit the NVIDIA driver, or each other",
    "One version of gdrcopy (2.4.2 or later with driver 560 and later) for library and driver; "
    "build gdrdrv again for the loaded NVIDIA driver",
    name="other gdrcopy",
)
EFA_VERSIONS = Cause(
    "libfabric, the plug-in and the EFA driver do not fit each other, or are too old",
    "The newest EFA installer, on the host and in the image, with its own libfabric and "
    "aws-ofi-nccl",
    name="EFA versions",
)
EFA_OTHER_CORE = Cause(
    "the EFA driver cannot register its device, because the loaded RDMA core is OFED's, and not "
    "the one that it was built for",
    "On a node with EFA remove OFED, and let the EFA installer build its driver for the kernel's "
    "own RDMA core; or build the EFA driver with OFED's headers, if OFED has to stay",
    name="EFA over another core",
)
SECURITY_GROUP = Cause(
    "the security group of the EC2 instances does not let EFA through: it has to allow all traffic "
    "to and from itself",
    "In the security group an inbound and an outbound rule for all traffic whose source and "
    "destination are the group itself; all instances in one subnet and group",
    name="security group",
)
EFA_PEER = Cause(
    "the EFA device cannot reach GPU memory: there is neither dma-buf nor efa_nv_peermem, or this "
    "instance type has no GPUDirect RDMA",
    "The newest EFA installer and the open NVIDIA driver, on an instance type with GPUDirect RDMA",
    name="EFA without GPUDirect",
)
NO_HMEM = Cause(
    "libfabric offers no provider that takes GPU memory: it is built without CUDA, or the "
    "provider lacks FI_HMEM",
    "`fi_info -c FI_HMEM` must list the provider; a libfabric built `--with-cuda`",
    "detection: `libfabric`",
    name="no FI_HMEM",
)
OFI_VERBS_HMEM = Cause(
    "libfabric's provider verbs has no FI_HMEM for this device: the kernel has neither dma-buf nor "
    "`ib_register_peer_memory_client`, or libfabric does not know the device",
    "`grep ib_register_peer_memory_client /proc/kallsyms` shows an RDMA core with peer memory: "
    "OFED's, and the module for it; or a libfabric with dma-buf, and the open NVIDIA driver. "
    "libfabric itself must be built `--with-cuda`",
    "detection: `libfabric`",
    tell="`fi_info -p verbs -c FI_HMEM` lists no device; devices `-xrc` and `-dgram` never count",
    ours=True,
    name="FI_HMEM of verbs",
)
AMD = Cause(
    "the GPUs are AMD's, which nv_peer_mem does not serve: amdgpu has its own peer memory",
    "amdgpu with RDMA, or dma-buf: a kernel with `CONFIG_PCI_P2PDMA` and "
    "`CONFIG_DMABUF_MOVE_NOTIFY`, and `NCCL_DMABUF_ENABLE=1`",
    tell="`lsmod` shows amdgpu, and not nvidia",
    name="AMD",
)
ROCM_KERNEL_CONFIG = Cause(
    "the program for AMD's GPUs looks in `/boot/config-$(uname -r)` for `CONFIG_PCI_P2PDMA` and "
    "`CONFIG_DMABUF_MOVE_NOTIFY`. CoreOS and containers do not have that file, or the kernel lacks "
    "these settings",
    "`grep -c -e pci_p2pdma -e dma_buf_move_notify /proc/kallsyms` on the node: if it finds both, "
    "a newer UCX (with ucx#11541), or the host's `/boot` in the container; else another kernel",
    name="kernel settings for ROCm",
)
OTHER_GPU = Cause(
    "the accelerator is of another maker (Intel, Habana, Cambricon, Moore Threads, Huawei, AWS), "
    "which no module for NVIDIA's GPUs serves",
    "The maker's own peer memory, or dma-buf of the maker's driver: the program has to be built "
    "for this accelerator",
    name="accelerator of another maker",
)
UAR = Cause(
    "the GPU may not ring the NIC's doorbell: the NVIDIA driver lacks `PeerMappingOverride`, or "
    "the container lacks rights",
    '`options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1;"` '
    "in `/etc/modprobe.d`, then reboot; a privileged container; or "
    "`NVSHMEM_IBGDA_NIC_HANDLER=cpu`",
    name="doorbell",
)
PINNED_QUEUES = Cause(
    "GPU memory for queues of the NIC was refused; such memory has to stay pinned, which "
    "nv_peer_mem 1.x and drivers without dma-buf do not do",
    "Load this module (no marker is needed); or queues in host memory "
    "(`NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE=hostmem`)",
    "RDMA core: `client`",
    ours=True,
    name="queues in GPU memory",
)
DEVX = Cause(
    "the kernel's mlx5 driver does not have what the program's library asks for (DevX, mlx5dv): "
    "versions of host and container differ, or a right is missing",
    "OFED of one version on the host and in the container; `UCX_IB_MLX5_DEVX=no`; "
    "`CAP_NET_RAW` and a privileged container for DevX",
    name="DevX",
)
NIC_NAME = Cause(
    "the program takes a device for a NIC of NVIDIA by its name `mlx5_…`, and this one is named "
    "otherwise, or of another maker",
    "`ibv_devinfo` shows the driver: if it is mlx5, name the device `mlx5_0` again "
    "(`rdma dev set NAME name mlx5_0`; `NAME_KERNEL` in rdma-core's udev rule for names); or "
    "another transport",
    name="name of the NIC",
)
NOT_MLX5 = Cause(
    "this NIC has no support for what the program asks for, which works with certain NICs only",
    "Another transport of the program, or another NIC",
    name="other NIC",
)
NIC_REFUSED = Cause(
    "the NIC's firmware refuses the request of its driver or of the program",
    "Driver and firmware that fit each other; the kernel's line with `syndrome` names the request",
    tell="dmesg has a line of the NIC's driver with `syndrome` or `status`",
    name="the NIC refuses",
)
NIC_LIMIT = Cause(
    "the NIC has no room for more queues, contexts, memory keys or registrations",
    "Fewer processes, queue pairs or registrations for each NIC; newer firmware",
    "use: `registrations`",
    name="limit of the NIC",
)
REGION_TOO_LARGE = Cause(
    "the region is larger than this NIC registers in one piece",
    "Register the buffer in several smaller pieces, or smaller buffers: `max_mr_size` of "
    "`ibv_devinfo -v` is the limit of one piece",
    tell="smaller buffers can be registered; `max_mr_size` of `ibv_devinfo -v` is less",
    name="size of one region",
)
EFA_NO_RC = Cause(
    "EFA has no reliable connections of verbs, which this program or this build of it asks for",
    "The program's transport for EFA: Mooncake built with `USE_EFA=ON` and the protocol efa, NIXL "
    "with the backend LIBFABRIC, NCCL with aws-ofi-nccl, NVSHMEM with "
    "`NVSHMEM_REMOTE_TRANSPORT=libfabric` and `NVSHMEM_LIBFABRIC_PROVIDER=efa`; else TCP",
    name="no RC on EFA",
)
EFA_BACKEND = Cause(
    "NIXL goes by UCX, which does not drive EFA here: data goes by TCP or by an emulation, without "
    "GPUDirect RDMA and slowly",
    'Choose NIXL\'s backend LIBFABRIC: vLLM `kv_connector_extra_config` with `"backends": '
    '["LIBFABRIC"]`, ModelExpress `MX_NIXL_BACKEND=LIBFABRIC`, in a program '
    '`createBackend("LIBFABRIC")`',
    name="NIXL's backend on EFA",
)
NIC_LOST = Cause(
    "the NIC or its firmware does not answer any more: firmware, power, heat, PCIe, or a defect",
    "The `mlx5_core` lines of dmesg; newer firmware, a cold start of the node, the vendor's "
    "diagnosis",
    "RDMA devices: `port`",
    name="NIC lost",
)
KEY_QUEUE = Cause(
    "the NIC's own queue for memory keys (UMR) failed, by which its driver registers memory and "
    "takes it back: a registration fails, or a revocation is lost, and the NIC may still reach "
    "memory that has been freed",
    "Stop the jobs that use this NIC and reboot the node (`docs/defects.md`, B10). If it "
    "comes back: the first `mlx5` line above it, and newer firmware and driver",
    "RDMA devices: `port`",
    name="queue for memory keys",
)
OFED_REPLACED = Cause(
    "the module does not fit the loaded RDMA core: OFED was installed or replaced after the module "
    "had been built",
    "Build the module again: `dkms autoinstall` for nv_peer_mem, NVIDIA's installer for "
    "nvidia_peermem; delete the driver pod, so that the driver is built again",
    "RDMA core: `built for`",
    name="OFED replaced",
    subject=True,
)
NO_PEER_CORE = Cause(
    "the loaded `ib_core` is the distribution's, without peer memory",
    "Install MLNX_OFED or DOCA-OFED for this kernel, restart openibd (or reboot), then load the "
    "module again; or the open NVIDIA driver with dma-buf, which needs no such module",
    "RDMA core: `peer memory`",
    tell="`modinfo -n ib_core` names a file below `kernel/drivers`",
    name="core without peer memory",
    here="{get_core}",
)
MIXED_OFED = Cause(
    "modules of two RDMA stacks are mixed: a part of OFED was updated, and an older one is loaded "
    "or in the initramfs",
    "Rebuild the initramfs (`dracut -f`, `update-initramfs -u`) and reboot; for one OFED only",
    "RDMA core: `peer memory`",
    name="mixed OFED",
    here="Install OFED again for kernel {kernel} (modinfo -n ib_core ib_uverbs shows where the "
    "modules "
    "come from), make the initramfs anew (update-initramfs -u, or dracut -f) and reboot.",
)
NO_NVIDIA = Cause(
    "the NVIDIA driver is not loaded or not installed for this kernel",
    "`modprobe nvidia`, and the `NVRM:` lines of dmesg; build the driver for this kernel",
    "driver: `nvidia`",
    name="no NVIDIA driver",
)
FORBIDDEN = Cause(
    "a line in `/etc/modprobe.d` forbids the module: `install MODULE /bin/false`",
    "`grep -r 'install.*false' /etc/modprobe.d /usr/lib/modprobe.d` finds the line: remove it",
    "driver: `nvidia`",
    name="forbidden module",
    subject=True,
    here="{forbidden}",
)
DRIVER_REPLACED = Cause(
    "the NVIDIA driver was updated, and the old one is still loaded, or the module was built for "
    "the old one",
    "Reboot; if nv_peer_mem is installed here, then build it again (`dkms autoinstall`)",
    "driver: `nvidia`",
    name="driver replaced",
    subject=True,
)
DRIVER_FLAVOUR = Cause(
    "this GPU needs the other flavour of NVIDIA's driver: the open one begins with Turing, and "
    "Blackwell needs it",
    "Install the other flavour, then rebuild the module",
    "GPUs: `driver`",
    name="flavour of the driver",
)
OPEN_NEEDED = Cause(
    "a module needs the open NVIDIA driver, and the proprietary one is loaded",
    "Install the open NVIDIA driver, or build the module for the proprietary one, if it can be",
    "driver: `flavour`",
    name="open driver needed",
)
GPU_TAKEN = Cause(
    "the NVIDIA driver does not have this GPU: another driver (nouveau, vfio-pci) has it, or the "
    "driver does not know it",
    "`lspci -k -d 10de:` names the driver. Blacklist nouveau, rebuild the initramfs, reboot",
    "GPUs: `driver`",
    name="GPU without driver",
    here="lspci -k -d 10de: says which driver has it. If it is nouveau: echo 'blacklist nouveau' "
    ">/etc/modprobe.d/blacklist-nouveau.conf, make the initramfs anew (update-initramfs -u, or "
    "dracut -f) and reboot. If it is vfio-pci, the GPU is for a virtual machine: load nv_peer_mem "
    "there. If no driver has it, the kernel's log says why.",
)
GPU_LOST = Cause(
    "the GPU is gone or does not start: power, heat, PCIe, or a defect",
    "The `NVRM: Xid` lines; power off, reseat; the vendor's diagnosis",
    "GPUs: `driver`",
    name="GPU lost",
)
GPU_FAULT = Cause(
    "the GPU reports an error of its memory or of its links to other GPUs (NVLink); peer memory "
    "has no part in it",
    "`nvidia-smi -q -d ECC,ROW_REMAPPER`, `nvidia-smi nvlink -e` and the log of the Fabric "
    "Manager; reset the GPUs or reboot; if it comes back, the vendor's diagnosis",
    name="GPU fault",
)
GPU_PROGRAM = Cause(
    "a program's own code on the GPU failed: a wrong address, an illegal instruction, or code that "
    "does not end. Peer memory has no part in it",
    "The program that the line names (`pid=`, `name=`): its log at this time, "
    "`compute-sanitizer`, or another version of it. If different programs fail on one GPU only, "
    "test that GPU",
    name="program on the GPU",
)
BAR_SPACE = Cause(
    "the firmware gave the GPU too little address space for its BAR1",
    "Above 4G decoding and a large MMIO window in the firmware; `pci=realloc`",
    "GPUs: `BAR1`",
    name="address space",
)
SIGNATURE = Cause(
    "Secure Boot or lockdown refuses the module, because its signature is missing or its key is "
    "not enrolled",
    "Sign the module with an enrolled key, or enroll the key (`mokutil --import`, and confirm at "
    "the console at the next boot)",
    "security: `module signed by`",
    name="signature",
    subject=True,
    here="{to_enrol}",
)
NOT_ALLOWED = Cause(
    "modules may not be loaded here: lockdown, `kernel.modules_disabled`, or a container",
    "Load the module on the host, and not in a container; `nvpm status`, section security",
    "machine: `modules`",
    name="no modules allowed",
    subject=True,
    here="{not_permitted}",
)
OTHER_KERNEL = Cause(
    "the module is not built for the running kernel",
    "`dkms autoinstall` (nv_peer_mem), or install the NVIDIA driver again for this kernel; "
    "`uname -r` beside `modinfo -F vermagic`",
    "module: `installed`",
    name="other kernel",
    subject=True,
    here="Install the package that it comes from again, for kernel {kernel}: modinfo -n {module} "
    "names the file.",
)
NOT_INSTALLED = Cause(
    "nv_peer_mem was never installed on this node, or is installed and not built for the running "
    "kernel",
    "`ls -d /usr/src/nvidia-peer-memory-*`: if it is there, `dkms autoinstall`; else install "
    "nv_peer_mem, or load nvidia_peermem",
    "module: `installed`",
    ours=True,
    name="not installed",
)
CANNOT_LOAD_HERE = Cause(
    "a file of systemd loads this module at each boot, and this node does not have what it needs: "
    "a GPU, NVIDIA's driver, or an RDMA core with peer memory. Nothing else fails by that",
    "On a node without a GPU remove the line from `/etc/modules-load.d` (`grep -rl MODULE "
    "/etc/modules-load.d /usr/lib/modules-load.d /run/modules-load.d`), or give GPU nodes an image "
    "of their own; with a GPU: load NVIDIA's driver first",
    "driver: `modules-load.d`",
    name="module of another node",
)
NO_PEERMEM_MODULE = Cause(
    "the NVIDIA driver was installed without nvidia_peermem",
    "Load nv_peer_mem in its place; or install the driver again after OFED",
    "driver: `nvidia_peermem`",
    ours=True,
    name="no nvidia_peermem",
)
SECOND_CLIENT = Cause(
    "another module serves GPU memory already, and only one can",
    "Unload one of nvidia_peermem and nv_peer_mem",
    "driver: `nvidia_peermem`",
    name="second client",
    subject=True,
)
CALLBACK = Cause(
    "the module nv_peer_mem_callback of an earlier version is loaded, and stays loaded until the "
    "next boot",
    "Reboot, or load the version of nv_peer_mem that was loaded before",
    "module: `callback module`",
    ours=True,
    name="old callback module",
)
PEERMEM_DEFECT = Cause(
    "a defect of nvidia-peermem or of nv_peer_mem 1.x, which nv_peer_mem 2 does not have",
    "This module in place of it ([defects.md](defects.md)), or a newer NVIDIA driver",
    "driver: `nvidia_peermem`",
    ours=True,
    name="defect of peermem",
)
OLD_NV_PEER_MEM = Cause(
    "nv_peer_mem 1.x does not build or load with this OFED, driver or kernel",
    "This module, which builds with all of them and says what it lacks",
    "module: `installed`",
    ours=True,
    name="nv_peer_mem 1.x",
)
PARAMETER = Cause(
    "a parameter of the module has a value that it does not know",
    "Correct the line `options` in `/etc/modprobe.d`",
    name="parameter",
    subject=True,
)
NO_HEADERS = Cause(
    "what the build needs is not installed for this kernel: headers, compiler, or OFED's "
    "development files",
    "Install `linux-headers-…` (Debian, Ubuntu) or `kernel-devel-…` (RPM), and what the line names",
    "module: `installed`",
    name="no headers",
    subject=True,
)
BUILD_FAILED = Cause(
    "the module did not compile",
    "Read `make.log` that the line names, and give it to `nvpm explain`",
    "module: `installed`",
    name="build failed",
    subject=True,
)
DKMS_STATE = Cause(
    "dkms has lost the module's source, or has another version of the module",
    "`dkms status`, then `dkms remove` and install the package again",
    "module: `installed`",
    name="dkms",
    subject=True,
)
DEPMOD = Cause(
    "depmod failed, and dkms took the module away again; often the disk is full",
    "`depmod` by hand says why",
    "module: `installed`",
    name="depmod",
    subject=True,
)
MODULE_IN_USE = Cause(
    "a module that shall be unloaded is in use: programs have GPU memory registered, or other "
    "modules (nv_peer_mem, nvidia_peermem, gdrdrv, storage over RDMA) use it",
    "Stop the GPU jobs, then `/etc/init.d/nv_peer_mem stop`; `nvpm regions` names the processes. "
    "If modules of an earlier driver stay, reboot the node",
    "use: `reachable_regions`",
    name="module in use",
    subject=True,
)
USERSPACE_ONLY = Cause(
    "the driver pod found the driver loaded already and installed no modules (userspace-only), so "
    "that its sidecar does not find nvidia-peermem",
    "`FORCE_REINSTALL=true` in the ClusterPolicy, or reboot the node; a newer driver image",
    name="userspace only",
)
POD_ORDER = Cause(
    "a pod waits for another one: OFED and the NVIDIA driver have to be ready first",
    "The log of the pod that it waits for; `driver.rdma.useHostMofed=true` if OFED is on the host",
    "RDMA core: `peer memory`",
    name="order of pods",
)
POD_REPOSITORY = Cause(
    "the driver pod cannot fetch packages or headers for its build: no network, DNS, proxy or "
    "subscription, or repositories that do not have the running kernel",
    "Network, DNS, proxy and subscription for the pod; or a driver image that is precompiled for "
    "this kernel",
    name="no repository",
)
OTHER_IMAGE = Cause(
    "no driver image fits the node: there is none for its distribution, its kernel and this "
    "version, or the image is of another distribution",
    "The image's tag (`…-ubuntu22.04`, `…-rhel9.4`) beside the node's distribution and kernel: a "
    "version that is published for them, or the driver on the host (`driver.enabled=false`)",
    name="other image",
)
IMAGE_DEFECT = Cause(
    "a defect of this version of a driver image, operator or program, not of the node",
    "A newer version",
    name="defect of a version",
)
IOMMU = Cause(
    "the IOMMU refused an access of a device",
    "If the line names a NIC or a GPU: `iommu=pt` on the kernel's command line, ACS off",
    "RDMA devices: `IOMMU`",
    name="IOMMU fault",
)
SOFT_DEVICE = Cause(
    "the RDMA device is a software device, which cannot reach a GPU",
    "A NIC on PCI",
    "RDMA devices: `place`",
    name="software device",
)
NO_PEER_ON_SOC = Cause(
    "GB10 (DGX Spark), Jetson: these have neither peer memory nor dma-buf of GPU memory",
    "Host memory (`cudaHostAlloc`), which the GPU reaches as fast",
    "GPUs: `product`",
    name="GB10, Jetson",
)
KERNEL_CMA = Cause(
    "a defect of kernel 7.0.0-nvidia on GB10 (DGX Spark): memory for registrations is given to "
    "another part of the kernel (CMA and KHO); limits and BAR1 have no part in it",
    "Boot kernel 6.17, or `kho=off` on the kernel's command line",
    name="kernel 7.0 on GB10",
)
FORK = Cause(
    "the program forks while memory is registered",
    "`RDMAV_FORK_SAFE=1` (and `RDMAV_HUGEPAGES_SAFE=1` with huge pages), or a newer kernel "
    "and rdma-core",
    name="fork",
)
OPTIONS = Cause(
    "the options of the program exclude each other, or need another build of it",
    "As the line says",
    name="options",
)
GDS_DRIVER = Cause(
    "GPUDirect Storage lacks its own driver nvidia-fs, or the storage driver does not know it; "
    "peer memory has no part in it",
    "`modprobe nvidia_fs`, built for the loaded NVIDIA driver; for NVMe the driver of OFED "
    "(`--with-nvmf`, `--enable-gds`), or `use_pci_p2pdma` in cufile.json with a newer kernel",
    name="no nvidia-fs",
)
STORAGE_PEER = Cause(
    "GPUDirect Storage finds no peer memory; local NVMe, NFS and others that work in the kernel "
    "do not need it",
    "For RDMA in user space (WekaFS, Spectrum Scale): load the module, and the marker; or "
    f'`rdma_peer_type: "dmabuf"` in cufile.json, or `{CUFILE_DMA_BUF}`',
    "detection: `gpu-operator`",
    ours=True,
    name="GPUDirect Storage",
)
NOT_REVOCABLE = Cause(
    "with `persistent_api_support=0` nv_peer_mem cannot serve this pair of GPU and device, because "
    "the mapping cannot be revoked",
    "`options nv_peer_mem persistent_api_support=1` in `/etc/modprobe.d/nv_peer_mem.conf`, then "
    "`/etc/init.d/nv_peer_mem restart`; or another RDMA device",
    "module: `persistent_api_support`",
    ours=True,
    name="not revocable",
)
COHERENT_OFFLINE = Cause(
    "the memory of a Grace machine's GPU is not online: the kernel does not use it yet",
    "Start `nvidia-persistenced`, which brings it online; then `numactl -H` shows the GPU's node "
    "with memory",
    name="memory offline",
)
ORPHANS = Cause(
    "a user has as many orphaned registrations of GPU memory as nv_peer_mem allows: registrations "
    "that have ended, and whose memory the driver has not unpinned",
    "`nvpm regions` lists them as `orphaned`: free that memory, or end the process that holds it; "
    "or `persistent_api_support=1`",
    "use: `orphans`",
    ours=True,
    name="orphans",
)
SIGNALS = Cause(
    "UCX takes the signal SIGSEGV, which the program's runtime (Julia, Java) uses itself; GPU "
    "memory has no part in it",
    "`UCX_ERROR_SIGNALS=SIGILL,SIGBUS,SIGFPE` before the program starts",
    name="signals",
)
MTU = Cause(
    "the two NICs of a connection have different MTUs, which NCCL 2.20 and later and Mooncake do "
    "not adjust",
    "One MTU on all nodes and switches: `ibv_devinfo | grep active_mtu` on both sides; Mooncake: "
    "`MC_MTU` with the smaller one",
    "RDMA devices: `port`",
    name="MTU",
)
NO_PLUGIN = Cause(
    "the program does not find its plug-in, or a library that the plug-in needs",
    "The program's variable for plug-ins, and `LD_LIBRARY_PATH`; `ldd` of the plug-in names the "
    "missing library",
    name="no plug-in",
)
RDMA_NETNS = Cause(
    "the node's RDMA subsystem is not in the mode for network namespaces that the plug-in wants "
    "(shared), or `rdma` of iproute2 is too old to tell",
    "`rdma system show` on the node; `rdma system set netns shared` before any namespace is made, "
    "or `options ib_core netns_mode=1`; a newer iproute2",
    name="RDMA namespaces",
)
STREAM_MEMOPS = Cause(
    "stream memory operations are turned off in the NVIDIA driver",
    "`options nvidia NVreg_EnableStreamMemOPs=1` in `/etc/modprobe.d`, then load the driver again",
    name="stream memory operations",
)
