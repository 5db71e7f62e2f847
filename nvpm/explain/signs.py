# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The facts that a log can show, each with the pattern that shows it: kinds of GPUs and networks,
limits, and versions of programs."""

import re
from typing import NamedTuple, Pattern, Tuple


class Sign(NamedTuple):
    """A pattern that shows a fact. A line without any of the KEYWORDS, which are words, cannot
    match."""

    fact: str
    keywords: Tuple[str, ...]
    pattern: Pattern[str]
    words: str  # what the fact is called in sentences


def sign(fact: str, words: str, keywords: str, *patterns: str) -> Sign:
    return Sign(fact, tuple(keywords.split()), re.compile("|".join(patterns)), words)


SIGNS = (
    sign(
        "geforce",
        "the GPU is a GeForce",
        "GeForce RTX GTX rtx gpu gpus GPU GPUs Ti",
        r"\b[2345]0[789]0(?: ?Ti)? ?(?:gpu|GPU)s?\b",
        r"GeForce(?! ?[,/])|\b(?:RTX|rtx)[ -]?[2-5]0[5-9]0\b|\bGTX\b",
    ),
    sign(
        "data_center",
        "the GPU is one for data centers",
        "Tesla Quadro RTX NVIDIA A H L S B GH GB V P K G",
        r"\b(?:Tesla|Quadro|RTX (?:A|PRO )\d{4}|RTX \d{4} Ada|NVIDIA (?:L4|L20|T4|A2|A16|A30))\b",
        r"\b(?:A10G?|A40|A[18]00|H[128]00|H20|L40S?|B[23]00|G[HB][23]00|V100|P100|K[248]0m?)\b",
    ),
    sign("gb10", "the machine is a DGX Spark (GB10)", "GB DGX", r"\bGB10\b|DGX[ _]Spark"),
    sign(
        "grace",
        "the machine has a Grace processor",
        "Grace GH GB gh gb",
        r"\bGrace\b|\b[Gg][HhBb]200\b|\b[Gg][Bb]300\b",
    ),
    sign(
        "amd",
        "the GPUs are AMD's",
        "amdgpu amdkfd kfd ROCm rocm ROCM RCCL rccl hip MI use_rocm use_rocm_dmabuf",
        # Open MPI and UCX name ROCm as one of the things that they could have.
        r"amdgpu|amdkfd|/dev/kfd|RCCL|\brccl\b|/opt/rocm|\brocm-?\d|\+hip\d|\bMI[123]\d\d[AX]?\b",
        r"(?<!CUDA/)\bROCm\b(?! support: no|\W{0,12}(?:no|not)\b)|--use_rocm[= ]\d|MPI-ROCM",
    ),
    sign(
        "other_gpu",
        "the accelerator is of another maker than NVIDIA and AMD",
        "habanalabs Habana Gaudi gaudi_gdr MLU Cambricon MTT Moore Ascend torch_npu GPU Trainium "
        "use_hl use_mlu use_neuron use_neuron_dmabuf Inferentia",
        r"habanalabs|\bHabana\b|\bGaudi ?[23]?\b|gaudi_gdr|--use_(?:hl|mlu|neuron\w*)[= ]\d",
        r"\bMLU\d{3}|Cambricon|\bMTT S\d|Moore Threads|\bAscend ?\d{3}|torch_npu|Trainium",
        r"Inferentia|Data Center GPU Max",
    ),
    sign(
        "efa",
        "the network is EFA",
        "EFA efa Libfabric rdmap",
        r"\bEFA\b|\befa\b|NET/(?:AWS )?Libfabric|rdmap\d+s",
    ),
    sign(
        "infiniband",
        "the network is InfiniBand",
        "link_layer IB Link layer",
        r"[Ll]ink[_ ]layer:\s*InfiniBand|mlx\d_\w+:\d+/IB\b|Link type\s*:\s*IB\b",
    ),
    sign(
        "ethernet",
        "the network is Ethernet (RoCE)",
        "link_layer RoCE Link layer",
        r"[Ll]ink[_ ]layer:\s*Ethernet|:\d+/RoCE\b|Link type\s*:\s*Ethernet",
    ),
    sign(
        "gpu",
        "the log speaks of GPUs",
        "CUDA cuda Cuda GPU gpu NCCL NVIDIA nvidia Nvidia NVSHMEM nvshmem gdrdrv gdr_copy GDRDMA "
        "vram VRAM GDRCopy gdrcopy nvidia_peermem nv_peer_mem use_cuda use_cuda_dmabuf cudaMalloc "
        "cudaMemcpy cudaSetDevice cuda_copy cuda_ipc GPUs gpus",
        r"(?i)cuda|gpu|nccl|nvidia|nvshmem|gdr|vram|nv_peer_mem",
    ),
    sign("gdrdma", "some channels use GDRDMA", "GDRDMA", r"/GDRDMA"),
    sign("tcp", "NCCL uses TCP", "Socket", r"Using network Socket|via NET/Socket"),
    sign(
        "memlock_limited",
        "the log shows a limit on locked memory",
        "locked ulimit memlock MEMLOCK",
        r"max locked memory\s+\((?:kbytes|kb), -l\)\s+\d{1,12}\b",
        r"\(current: \d{1,12}\b",
        r"RLIMIT_MEMLOCK is \d{1,12}\b",
        r"ulimit -l\b[^a-z\d]*\d{2,12}\b",
        r"[Mm]ax locked memory\s+\d{1,12}\b",
        r"memlock[ :=]+(?:soft|hard)?[ :=]*\d{2,12}\b",
    ),
    sign(
        "memlock_unlimited",
        "the log shows that locked memory is unlimited",
        "locked ulimit memlock MEMLOCK",
        r"max locked memory.*\bunlimited",
        r"ulimit -l\b[^a-z]*unlimited",
        r"[Mm]ax locked memory\s+unlimited",
        r"memlock[ :=]+(?:-1|unlimited)",
    ),
    sign(
        "one_node",
        "the job has one node",
        "nnodes nNodes NNODES nodes n_nodes",
        r"(?i)\bn_?nodes[ =:]+1\b",
    ),
    sign(
        "many_nodes",
        "the job has several nodes",
        "nnodes nNodes NNODES n_nodes NET host hosts H srun",
        r"\b(?:nnodes|nNodes|NNODES|n_nodes)[ =:]+(?:[2-9]|\d{2,})\b",
        r"via NET/|-?-hosts? \S+,\S+|-H \S+,\S+|\bsrun\b.* (?:-N ?|--nodes[ =])[2-9]",
    ),
    sign(
        "gid_zero",
        "GID index 0, or a link-local GID, is used",
        "GID Gid gid sgix NCCL_IB_GID_INDEX UCX_IB_GID_INDEX NVSHMEM_IB_GID_INDEX localGid "
        "localGids remoteGid remoteGids dlid",
        r"\b[Gg][Ii][Dd] index[ :]+0\b|GID_INDEX(?:=| set by environment to )0\b",
        # In order: NCCL's address of a queue, an empty address of perftest, UCX on RoCE.
        r"\bGID 0 \(|GID: (?:00:){15}00|\brmac \S+ sgix 0\b|(?:local|remote)Gids? ?:?fe80:",
        # UCX and Mooncake on RoCE, where no LID exists.
        r"dlid=49152 .*sgid_index=0\b",
        r"LID: 0, GID: \(GID_Index (?:0\)|\d+\) fe:80:)",
    ),
    sign(
        "other_nic",
        "the NIC is not one of NVIDIA's",
        "erdma erdma_ bnxt_re bnxt_re_ bnxt_re_bond ionic ionic_ irdma irdma_ hns_ mana_ qedr",
        # With a number: the modules may be loaded for other NICs of the node.
        r"\b(?:erdma|bnxt_re|bnxt_re_bond|ionic|irdma|hns|mana|qedr)_?\d",
    ),
    sign(
        "iommu_translates",
        "the IOMMU translates",
        "intel_iommu Translated",
        r"^(?!.*\biommu=pt\b).*\bintel_iommu=on\b|Default domain type: Translated",
    ),
    sign(
        "iommu_passes",
        "the IOMMU passes addresses through",
        "iommu Passthrough",
        r"\biommu=pt\b|\biommu\.passthrough=1|Default domain type: Passthrough",
    ),
    sign(
        "erdma",
        "the NIC is Alibaba's eRDMA",
        "erdma erdma_ eRDMA",
        r"\berdma(?:_?\d|\b)|\beRDMA\b",
    ),
    sign(
        "mlx5_nic",
        "a NIC is one of NVIDIA's (mlx5)",
        "mlx mlx5_ mlx5 rocep ibp",
        r"\bmlx5_\d|\bmlx5_bond|\b(?:rocep|ibp)\d+s\d",
    ),
    sign(
        "foreign_dmabuf",
        "the log speaks of memory of Vulkan, OpenGL or V4L2",
        "Vulkan vulkan VK_ EGL egl OpenGL V4L V4L2 v4l v4l2 VIDIOC_EXPBUF NvKmsKapiMemory gbm_bo "
        "vkGetMemoryFdKHR VkDeviceMemory eglExportDMABUFImageMESA VK_EXTERNAL_MEMORY_HANDLE_TYPE_"
        "DMA_BUF_BIT_EXT VK_KHR_external_memory_fd VK_EXT_external_memory_dma_buf NvBufSurface",
        r"(?i:vulkan)|\bVK_|vkGetMemoryFd|\bEGL\b|\begl[A-Z]|OpenGL|(?i:v4l2?)|VIDIOC_EXPBUF",
        r"NvKmsKapiMemory|\bgbm_bo|\bNvBufSurface",
    ),
    sign(
        "data_direct",
        "the program uses data direct",
        "Data data DATA_DIRECT useDataDirect direct use_data_direct",
        r"[Dd]ata[- ][Dd]irect(?! DMA Interface is not)|DATA_DIRECT|use_data_direct",
        r"useDataDirect ?= ?(?:true|1)",
    ),
    sign(
        "arm64_address",
        "addresses of the process are those of arm64, as on Grace",
        "address addr addr= buf dptr",
        # A process of x86_64 has addresses below 0x800000000000.
        r"(?<![0-9a-z])0x[89a-f][0-9a-f]{11}(?![0-9a-f])",
    ),
    sign(
        "gdr_mapping",
        "the program maps GPU memory for the CPU",
        "gdr_map gdr_mmap",
        r"\bgdr_m?map\b",
    ),
    sign(
        "rdma_up",
        "a port of an RDMA device is up",
        "Up ACTIVE Active",
        r"port \d+ ==> \S+ \(Up\)|state:\s+(?:4: ACTIVE|PORT_ACTIVE)|State: Active",
    ),
    sign(
        "omni_path",
        "the NIC is an Omni-Path one",
        "hfi hfi1 hfi_ hfi1_0",
        r"\bhfi1_\d",
    ),
    sign(
        "julia_frames",
        "a backtrace shows Julia's own functions",
        "partr jl_gc_collect jl_safepoint_wait_gc multiq_check_empty julia_multiq_check_empty_ "
        "julia_poptask_ jl_gc_state_set ijl_gc_collect",
        r"\bpartr\.jl|jl_gc_(?:collect|state_set)|jl_safepoint|multiq_check_empty|julia_poptask",
    ),
    sign(
        "ofi_provider",
        "the plug-in found a provider of libfabric",
        "provider Provider",
        r"(?i)selected provider is \w",
    ),
    sign(
        "ofi_verbs",
        "the plug-in uses libfabric's provider verbs",
        "provider Provider",
        r"(?i)(?:selected provider is|\bprovider:) verbs",
    ),
    sign(
        "container",
        "the program runs in a container",
        "docker kubectl kubelet pod pods containerd dockerenv podman enroot pyxis k",
        r"\bdocker run|kubectl |\bpods?\b|containerd|dockerenv|podman|enroot|pyxis|k8s",
    ),
    sign(
        "vm",
        "the machine is virtual",
        "KVM QEMU vfio hypervisor Hypervisor passthrough",
        r"\bKVM\b|QEMU|vfio|[Hh]ypervisor|passthrough",
    ),
    sign(
        "peermem_loaded",
        "a peer-memory module is loaded",
        "nvidia_peermem nv_peer_mem",
        r"^\s*(?:nvidia_peermem|nv_peer_mem)\s+\d+\s+\d+",
        r"nv_peer_mem: version \S+ loaded",
    ),
    sign(
        "rdma_module",
        "the log names a kernel module for GPUs or RDMA",
        "nvidia nv_peer_mem nv_peer_memory nvidia_peer_memory mlnx mlnx_ofed ofed ofa_kernel "
        "gdrdrv mlx knem iser srp isert mlnx_ofed_kernel",
        r"nvidia|nv_peer_mem|mlnx|ofed|ofa_kernel|gdrdrv|\bmlx\d|\b(?:knem|iser|isert|srp)\b",
    ),
    sign(
        "vmm",
        "the program uses VMM memory",
        "expandable_segments cuMemCreate VMM cuMemMap sleep sleep_mode",
        r"expandable_segments(?!: ?[Ff]alse|=[Ff]alse)\b",
        r"cuMemCreate|\bVMM\b(?!\W{0,12}(?:no|not|false|disabled|off)\b)|cuMemMap",
        r"sleep[_ ]mode(?!\W{0,6}(?:[Ff]alse|0|off)\b)",
    ),
    sign(
        "traffic_class",
        "a traffic class is set",
        "NVSHMEM_IB_TRAFFIC_CLASS NCCL_IB_TC UCX_IB_TRAFFIC_CLASS",
        r"NVSHMEM_IB_TRAFFIC_CLASS|NCCL_IB_TC|UCX_IB_TRAFFIC_CLASS",
    ),
    sign(
        "open_driver",
        "the NVIDIA driver is the open one",
        "NVIDIA nvidia GPU",
        r"NVIDIA UNIX Open Kernel Module|nvidia-open|Open GPU kernel modules",
    ),
    sign(
        "proprietary_driver",
        "the NVIDIA driver is the proprietary one",
        "UNIX proprietary",
        r"NVIDIA UNIX (?!Open)\S+ Kernel Module|proprietary driver",
    ),
    sign(
        "ucx_tls_without_cuda",
        "`UCX_TLS` is set without `cuda_copy`",
        "UCX_TLS",
        r"UCX_TLS[ =]+(?!\^)(?!all\b)(?!\S*cuda)(?!\S*\ball\b)[a-z]\S*",
    ),
    sign(
        "ucx_sees_module",
        "UCX found a peer-memory module",
        "GPUDirect supports reg_mem_types",
        r"cuda GPUDirect RDMA is (?:enabled|detected)",
        r"md supports: [^)]*\bcuda\b",
        r"md reg_mem_types 0x[0-9a-f]*[2367abef]\b",
    ),
    sign(
        "ucx_host_memory",
        "UCX registers host memory",
        "register",
        r"failed to register address \S+ \(host\)",
    ),
    sign(
        "ucx_without_cuda",
        "UCX is built without CUDA",
        "configured Configured",
        # Options of UCX, as `ucx_info -v` prints them.
        r"onfigured with: (?!.*cuda)(?=.*--)(?=.*--(?:disable-params-check|without-java|with-verbs"
        r"|with-mlx5|with-rdmacm|without-xpmem|enable-devel-headers|with-knem))",
    ),
    sign(
        "ucx_dmabuf",
        "UCX uses dma-buf",
        "dmabuf",
        r"(?:dmabuf|dma_buf) is supported",
    ),
    sign(
        "gdr_enabled",
        "NCCL uses GPUDirect RDMA for some GPUs",
        "GPU",
        r"GPU Direct RDMA Enabled",
    ),
    sign(
        "gdr_disabled",
        "NCCL does not use GPUDirect RDMA for some GPUs",
        "GPU",
        r"GPU Direct RDMA Disabled",
    ),
    sign(
        "connect_failed",
        "a TCP connection failed",
        "connect Connect socketStartConnect socketPollConnect",
        r"[Cc]onnect to \S+.* failed|Call to connect\b.* failed",
    ),
    sign(
        "plugin_found",
        "NCCL loads a network plug-in on a host",
        "Plugin",
        r"Plugin Path ?: \S*libnccl-net",
    ),
    sign(
        "plugin_missing",
        "NCCL finds no network plug-in on a host",
        "Plugin",
        r"NET/Plugin: Could not find: libnccl-net\.so|No plugin found \(libnccl-net\.so\)",
    ),
    sign(
        "perftest",
        "the program is perftest",
        "ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat perftest",
        r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\b|perftest",
    ),
    sign(
        "perftest_dmabuf",
        "perftest was told to use dma-buf",
        "use_cuda_dmabuf use_rocm_dmabuf DMA",
        r"--use_\w+_dmabuf|DMA-BUF for GPU buffer",
    ),
    sign(
        "monarch_fallback",
        "Monarch goes on with a dma-buf for each buffer",
        "dv",
        r"mlx5dv CUDA registration failed",
    ),
    sign(
        "mooncake_dmabuf",
        "Mooncake is to use dma-buf",
        "WITH_NVIDIA_PEERMEM",
        r"WITH_NVIDIA_PEERMEM\s*[=:]\s*[\"']?(?:0|OFF|off|false)",
    ),
    sign(
        "rdma_wanted",
        "the job is to use RDMA",
        "protocol mooncake_protocol disaggregation MC_MS_FILTERS MC_GID_INDEX "
        "NCCL_IB_HCA NVSHMEM_HCA_LIST DeviceName device_name",
        r"protocol[\"']?\s*[:=]\s*[\"']?rdma|--protocol[ =]rdma|--disaggregation-ib-device",
        r"MC_MS_FILTERS|MC_GID_INDEX|NCCL_IB_HCA|NVSHMEM_HCA_LIST",
        r"device_name[\"']?\s*[:=]\s*[\"']?(?:mlx|ib|roce|erdma|bnxt)",
    ),
    sign(
        "no_rnic",
        "Mooncake could open no NIC",
        "RNIC",
        r"No available RNIC",
    ),
    sign(
        "lsmod_asked",
        "someone looked for the module in `lsmod`",
        "lsmod",
        r"lsmod\s*\|\s*e?grep\s.*(?:nv|peer)",
    ),
    sign(
        "ubuntu_node",
        "the node runs Ubuntu",
        "Ubuntu ubuntu",
        r"(?i:\bOS\b|os[-_ ]?image|os-release|os_release).{0,40}[Uu]buntu",
        r"Ubuntu \d\d\.\d\d[.\d]* LTS\s+\d\.\d+\.\d",
    ),
    sign(
        "rhel_node",
        "the node runs RHEL or one of its relatives",
        "Red Rocky CentOS AlmaLinux Oracle rhel rocky centos almalinux",
        r"(?i:\bOS\b|os[-_ ]?image|os-release|os_release).{0,40}"
        r"(?:Red Hat|Rocky|CentOS|AlmaLinux|Oracle|ID=\W?(?:rhel|rocky|centos|almalinux))",
    ),
    sign(
        "gds_nvme",
        "GPUDirect Storage works with NVMe",
        "NVMe",
        r"NVMe(?: P2PDMA)?\s*: Supported",
    ),
    sign(
        "userspace_only",
        "the driver pod installed no modules",
        "userspace",
        r"performing userspace-only install",
    ),
    sign(
        "gpu_operator",
        "the GPU Operator runs the driver",
        "daemonset DaemonSet operator ctr DRIVER_ARCH driver nvcr package Resolving Unloading "
        "Stopping peermem",
        # The scripts of the driver pod print these lines, also where the container's name is cut.
        r"failed to load nvidia-peermem module|nvidia-peermem module is not loaded",
        r"nvidia-driver[- ][Dd]aemon[Ss]et|gpu-operator|nvidia-(?:driver|peermem|gdrcopy)-ctr",
        r"nvcr\.io/nvidia/driver|DRIVER_ARCH is|Updating the package cache\.\.\.",
        r"Resolving Linux kernel version\.\.\.|Unloading NVIDIA driver kernel modules\.\.\.",
        r"Stopping NVIDIA persistence daemon\.\.\.",
    ),
    sign(
        "mofed_container",
        "the log is of a container of OFED",
        "mofed doca ofed OFED Unsetting NVIDIA_NIC_DRIVER_VER container nvcr",
        r"\bmofed-\S+-ds|doca-driver|nvcr\.io/nvidia/mellanox/(?:mofed|doca)",
        r"NVIDIA driver container exec|NVIDIA_NIC_DRIVER_VER|Executing driver sources container",
        r"Unsetting driver ready state|No OFED driver found for kernel",
    ),
)
# Programs whose version a log can contain. The group of the pattern is the version.
PROGRAMS = (
    sign(
        "nccl",
        "NCCL",
        "NCCL nccl",
        r"\bNCCL(?: version)?[ :<=-]*v?(\d\.\d+[.\d]*)|nccl[ _=:-]+v?(2\.\d+[.\d]*)",
    ),
    sign("rccl", "RCCL", "RCCL", r"\bRCCL version[ :]+(\d[.\d]+)"),
    sign(
        "ucx",
        "UCX",
        "UCX ucx",
        r"\bUCX (?:version|v)?[ :=]*v?(1\.\d+[.\d]*)|ucx[-_/ ]v?(1\.\d+[.\d]*)",
    ),
    sign(
        "nvshmem",
        "NVSHMEM",
        "NVSHMEM nvshmem",
        r"(?i)\bnvshmem(?: version| v)?[ :=v_-]*(\d\.\d+[.\d]*)",
    ),
    sign(
        "driver",
        "NVIDIA driver",
        "driver Driver drivers NVRM Module",
        r"(?i)driver(?:s| version)?[ :=]+(?:version )?(\d{3}\.\d+[.\d]*)",
        r"Kernel Module\s+(?:for \S+\s+)?(\d{3}\.[.\d]+)",
    ),
    sign(
        "kernel",
        "kernel",
        "kernel Kernel Linux",
        r"(?:[Kk]ernel(?: version)?|Linux)[ :=]+(?:version )?([2-9]\.\d+\.\d+)",
    ),
    sign(
        "gdrcopy",
        "gdrcopy",
        "gdrcopy GDRCopy gdrdrv GDRCOPY",
        r"(?i)gdr(?:copy|drv)(?: version| library)?[ :=v]+(\d\.\d+[.\d]*)",
    ),
    sign(
        "cuda",
        "CUDA",
        "CUDA cuda",
        r"(?i)\bcuda(?: version| runtime)?[ :=v-]*(\d\d\.\d+)",
    ),
    sign(
        "ofed",
        "OFED",
        "OFED ofed MLNX_OFED_LINUX MLNX_OFED",
        r"(?:MLNX_OFED(?:_LINUX)?|DOCA-OFED|OFED)[- :]+(\d+\.\d+[-.\d]*)",
    ),
    sign("libfabric", "libfabric", "libfabric", r"libfabric[ :=v-]+(\d\.\d+[.\d]*)"),
    sign("ofi_plugin", "aws-ofi-nccl", "ofi", r"aws-ofi-nccl[ :=v]+(\d\.\d+[.\d]*)"),
    sign("open_mpi", "Open MPI", "Open OpenMPI", r"Open ?MPI[) ]*:? v?(\d\.\d+[.\d]*)"),
)
WORDS_OF_FACTS = {one.fact: one.words for one in SIGNS}
WORDS_OF_PROGRAMS = {one.fact: one.words for one in PROGRAMS}
KEYWORDS = frozenset(word for one in (*SIGNS, *PROGRAMS) for word in one.keywords)
