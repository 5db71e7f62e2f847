# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The facts that a log can show, each with the pattern that shows it: kinds of GPUs and networks,
limits, and versions of programs."""

import re
from typing import NamedTuple, Pattern, Tuple

from . import needed


class Sign(NamedTuple):
    """A pattern that shows a fact. NEEDED has texts that are made of the pattern. A line in small
    letters that has none of these texts cannot match."""

    fact: str
    needed: Tuple[str, ...]
    pattern: Pattern[str]
    words: str  # what the fact is called in sentences


def sign(fact: str, words: str, *patterns: str) -> Sign:
    pattern = re.compile("|".join(patterns))
    return Sign(fact, needed.texts(pattern), pattern, words)


SIGNS = (
    sign(
        "geforce",
        "the GPU is a GeForce",
        r"\b[2345]0[789]0(?: ?Ti)? ?(?:gpu|GPU)s?\b",
        r"GeForce(?! ?[,/])|\b(?:RTX|rtx)[ -]?[2-5]0[5-9]0\b|\bGTX\b",
    ),
    sign(
        "data_center",
        "the GPU is one for data centers",
        r"\b(?:Tesla|Quadro|RTX (?:A|PRO )\d{4}|RTX \d{4} Ada|NVIDIA (?:L4|L20|T4|A2|A16|A30))\b",
        r"\b(?:A10G?|A40|A[18]00|H[128]00|H20|L40S?|B[23]00|G[HB][23]00|V100|P100|K(?:20|40|80)m?)\b",
    ),
    sign("gb10", "the machine is a DGX Spark (GB10)", r"\bGB10\b|DGX[ _]Spark"),
    sign(
        "grace",
        "the machine has a Grace processor",
        r"\bGrace\b|\b[Gg][HhBb]200\b|\b[Gg][Bb]300\b",
    ),
    sign(
        "amd",
        "the GPUs are AMD's",
        # Open MPI and UCX name ROCm as a part that they could have.
        r"amdgpu|amdkfd|/dev/kfd|RCCL|\brccl\b|/opt/rocm|\brocm-?\d|\+hip\d|\bMI[123]\d\d[AX]?\b",
        r"(?<!CUDA/)\bROCm\b(?! support: no|\W{0,12}(?:no|not)\b)|--use_rocm[= ]\d|MPI-ROCM",
    ),
    sign(
        "other_gpu",
        "the accelerator is of another maker than NVIDIA and AMD",
        r"habanalabs|\bHabana\b|\bGaudi ?[23]?\b|gaudi_gdr|--use_(?:hl|mlu|neuron\w*)[= ]\d",
        r"\bMLU\d{3}|Cambricon|\bMTT S\d|Moore Threads|\bAscend ?\d{3}|torch_npu|Trainium",
        r"Inferentia|Data Center GPU Max",
    ),
    sign(
        "efa",
        "the network is EFA",
        r"\bEFA\b|\befa\b|NET/(?:AWS )?Libfabric|rdmap\d+s",
    ),
    sign(
        "infiniband",
        "the network is InfiniBand",
        r"[Ll]ink[_ ]layer:\s*InfiniBand|mlx\d_\w+:\d+/IB\b|Link type\s*:\s*IB\b",
    ),
    sign(
        "ethernet",
        "the network is Ethernet (RoCE)",
        r"[Ll]ink[_ ]layer:\s*Ethernet|:\d+/RoCE\b|Link type\s*:\s*Ethernet",
    ),
    sign(
        "gpu",
        "the log speaks of GPUs",
        r"(?i)cuda|gpu|nccl|nvidia|nvshmem|gdr|vram|nv_peer_mem",
    ),
    sign("gdrdma", "some channels use GDRDMA", r"/GDRDMA"),
    sign("tcp", "NCCL uses TCP", r"Using network Socket|via NET/Socket"),
    sign(
        "memlock_limited",
        "the log shows a limit on locked memory",
        r"max locked memory\s+\((?:kbytes|kb), -l\)\s+\d{1,12}\b",
        r"\(current: \d{1,12}\b",
        r"RLIMIT_MEMLOCK is \d{1,12}\b",
        r"ulimit -l\b[^a-z\d]*\d{2,12}\b",
        r"[Mm]ax locked memory\s+\d{1,12}\b",
        r"LimitMEMLOCK(?:Soft)?=\d{2,12}\b",
        r"\b[Mm]emlock[\"']?,?[ :=]+[\"']?(?:soft|hard|Soft|Hard)?[\"']?[ :=]*\d{2,12}\b",
    ),
    sign(
        "memlock_unlimited",
        "the log shows that locked memory is unlimited",
        r"max locked memory.*\bunlimited",
        r"ulimit -l\b[^a-z]*unlimited",
        r"[Mm]ax locked memory\s+unlimited",
        r"LimitMEMLOCK(?:Soft)?=infinity\b",
        r"\b[Mm]emlock[\"']?,?[ :=]+[\"']?(?:soft|hard|Soft|Hard|-)?[\"']?[ :=]*(?:-1\b|unlimited)",
        # A container with this right has no limit.
        r"--cap-add[ =]\"?(?:CAP_)?IPC_LOCK\b|^\s*- \"?(?:CAP_)?IPC_LOCK\b",
        r"\[.*\"(?:CAP_)?IPC_LOCK\"",
    ),
    sign(
        "one_node",
        "the job has one node",
        r"(?i)\bn_?nodes[ =:]+1\b",
    ),
    sign(
        "many_nodes",
        "the job has several nodes",
        r"\b(?:nnodes|nNodes|NNODES|n_nodes)[ =:]+(?:[2-9]|\d{2,})\b",
        r"via NET/|-?-hosts? \S+,\S+|-H \S+,\S+|\bsrun\b.{0,99} (?:-N ?|--nodes[ =])[2-9]",
    ),
    sign(
        "gid_zero",
        "GID index 0, or a link-local GID, is used",
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
        # With a number: the modules may be loaded for other NICs of the node.
        r"\b(?:erdma|bnxt_re|bnxt_re_bond|ionic|irdma|hns|mana|qedr)_?\d",
    ),
    sign(
        "iommu_translates",
        "the IOMMU translates",
        r"^(?!.*\biommu=pt\b).*\bintel_iommu=on\b|Default domain type: Translated",
    ),
    sign(
        "iommu_passes",
        "the IOMMU passes addresses through",
        r"\biommu=pt\b|\biommu\.passthrough=1|Default domain type: Passthrough",
    ),
    sign(
        "erdma",
        "the NIC is Alibaba's eRDMA",
        r"\berdma(?:_?\d|\b)|\beRDMA\b",
    ),
    sign(
        "mlx5_nic",
        "a NIC is one of NVIDIA's (mlx5)",
        r"\bmlx5_\d|\bmlx5_bond|\b(?:rocep|ibp)\d+s\d",
    ),
    sign(
        "foreign_dmabuf",
        "the log speaks of memory of Vulkan, OpenGL or V4L2",
        r"(?i:vulkan)|\bVK_|vkGetMemoryFd|\bEGL\b|\begl[A-Z]|OpenGL|(?i:v4l2?)|VIDIOC_EXPBUF",
        r"NvKmsKapiMemory|\bgbm_bo|\bNvBufSurface",
    ),
    sign(
        "data_direct",
        "the program uses data direct",
        r"[Dd]ata[- ][Dd]irect(?! DMA Interface is not)|DATA_DIRECT|use_data_direct",
        r"useDataDirect ?= ?(?:true|1)",
    ),
    sign(
        "arm64_address",
        "addresses of the process are those of arm64, as on Grace",
        # A process of x86_64 has addresses below 0x800000000000.
        r"(?<![0-9a-z])0x[89a-f][0-9a-f]{11}(?![0-9a-f])",
    ),
    sign(
        "gpu_xid",
        "the GPU reported an error (Xid)",
        r"NVRM: Xid \(",
    ),
    sign(
        "umr_failed",
        "the NIC's own queue for memory keys failed",
        r"reg umr failed|UMR post send failed|couldn't recover UMR|UMR recovery"
        r"|Couldn't modify UMR QP to \w+, err",
    ),
    sign(
        "loopback",
        "the first connection goes by the loopback interface",
        r"Using (?:interface )?(?:\[0\])?lo:127\.",
    ),
    sign(
        "ofed_core",
        "the RDMA core is OFED's",
        r"/ofa_kernel/\S*drivers/infiniband|\bmlx_compat\b|\bib_core\(O",
    ),
    sign(
        "gdr_mapping",
        "the program maps GPU memory for the CPU",
        r"\bgdr_m?map\b",
    ),
    sign(
        "rdma_up",
        "a port of an RDMA device is up",
        r"port \d+ ==> \S+ \(Up\)|state:\s+(?:4: ACTIVE|PORT_ACTIVE)|State: Active",
    ),
    sign(
        "omni_path",
        "the NIC is an Omni-Path one",
        r"\bhfi1_\d",
    ),
    sign(
        "julia_frames",
        "a backtrace shows Julia's own functions",
        r"\bpartr\.jl|jl_gc_(?:collect|state_set)|jl_safepoint|multiq_check_empty|julia_poptask",
    ),
    sign(
        "ofi_provider",
        "the plug-in found a provider of libfabric",
        r"(?i)selected provider is \w",
    ),
    sign(
        "ofi_verbs",
        "the plug-in uses libfabric's provider verbs",
        r"(?i)(?:selected provider is|\bprovider:) verbs",
    ),
    sign(
        "container",
        "the program runs in a container",
        r"\bdocker run|kubectl |\bpods?\b|containerd|dockerenv|podman|enroot|pyxis|k8s",
    ),
    sign(
        "vm",
        "the machine is virtual",
        r"\bKVM\b|QEMU|vfio|[Hh]ypervisor|passthrough",
    ),
    sign(
        "peermem_loaded",
        "a peer-memory module is loaded",
        # A line of lsmod, which pdsh, grep and others begin with a prefix.
        r"(?:^|[\s:|'\"])(?:nvidia_peermem|nv_peer_mem)\s+\d{4,8}\s+\d{1,4}\b",
        r"nv_peer_mem: version \S+ loaded",
    ),
    sign(
        "rdma_module",
        "the log names a kernel module for GPUs or RDMA",
        r"nvidia|nv_peer_mem|mlnx|ofed|ofa_kernel|gdrdrv|\bmlx\d|\b(?:knem|iser|isert|srp)\b",
    ),
    sign(
        "vmm",
        "the program uses VMM memory",
        # PyTorch recommends the setting to each program that has no memory left.
        r"^(?!.*(?:try setting|avoid fragmentation|\bunset\b|\bwithout\b)).*"
        r"expandable_segments[\"']?\s*[:=]\s*[\"']?(?:[Tt]rue|1)\b",
        r"cuMemCreate|\bVMM\b(?!\W{0,12}(?:no|not|false|disabled|off)\b)|cuMemMap",
        r"sleep[_ ]mode(?!\W{0,6}(?:[Ff]alse|0|off)\b)",
    ),
    sign(
        "traffic_class",
        "a traffic class is set",
        r"NVSHMEM_IB_TRAFFIC_CLASS|NCCL_IB_TC|UCX_IB_TRAFFIC_CLASS",
    ),
    sign(
        "open_driver",
        "the NVIDIA driver is the open one",
        r"NVIDIA UNIX Open Kernel Module|nvidia-open|Open GPU kernel modules",
    ),
    sign(
        "proprietary_driver",
        "the NVIDIA driver is the proprietary one",
        r"NVIDIA UNIX (?!Open)\S+ Kernel Module|proprietary driver",
    ),
    sign(
        "ucx_tls_without_cuda",
        "`UCX_TLS` is set without `cuda_copy`",
        r"UCX_TLS[ =]+(?!\^)(?!all\b)(?!\S*cuda)(?!\S*\ball\b)[a-z]\S*",
    ),
    sign(
        "ucx_sees_module",
        "UCX found a peer-memory module",
        r"cuda GPUDirect RDMA is (?:enabled|detected)",
        r"md supports: [^)]*\bcuda\b",
        r"md reg_mem_types 0x[0-9a-f]*[2367abef]\b",
    ),
    sign(
        "ucx_host_memory",
        "UCX registers host memory",
        r"failed to register address \S+ \(host\)",
    ),
    sign(
        "ucx_without_cuda",
        "UCX is built without CUDA",
        # Options of UCX, as `ucx_info -v` prints them.
        r"onfigured with: (?!.*cuda)(?=.*--)(?=.*--(?:disable-params-check|without-java|with-verbs"
        r"|with-mlx5|with-rdmacm|without-xpmem|enable-devel-headers|with-knem))",
    ),
    sign(
        "ucx_dmabuf",
        "UCX uses dma-buf",
        r"(?:dmabuf|dma_buf) is supported",
    ),
    sign(
        "gdr_enabled",
        "NCCL uses GPUDirect RDMA for some GPUs",
        r"GPU Direct RDMA Enabled",
    ),
    sign(
        "gdr_disabled",
        "NCCL does not use GPUDirect RDMA for some GPUs",
        r"GPU Direct RDMA Disabled",
    ),
    sign(
        "connect_failed",
        "a TCP connection failed",
        r"[Cc]onnect to \S+.* failed|Call to connect\b.* failed",
    ),
    sign(
        "plugin_found",
        "NCCL loads a network plug-in on a host",
        r"Plugin Path ?: \S*libnccl-net",
    ),
    sign(
        "plugin_missing",
        "NCCL finds no network plug-in on a host",
        r"NET/Plugin: Could not find: libnccl-net\.so|No plugin found \(libnccl-net\.so\)",
    ),
    sign(
        "perftest",
        "the program is perftest",
        r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\b|perftest",
    ),
    sign(
        "perftest_dmabuf",
        "perftest was told to use dma-buf",
        r"--use_\w+_dmabuf|DMA-BUF for GPU buffer",
    ),
    sign(
        "monarch_fallback",
        "Monarch goes on with a dma-buf for each buffer",
        r"mlx5dv CUDA registration failed",
    ),
    sign(
        "mooncake_dmabuf",
        "Mooncake is to use dma-buf",
        r"WITH_NVIDIA_PEERMEM\s*[=:]\s*[\"']?(?:0|OFF|off|false)",
    ),
    sign(
        "rdma_wanted",
        "the job is to use RDMA",
        r"protocol[\"']?\s*[:=]\s*[\"']?rdma|--protocol[ =]rdma|--disaggregation-ib-device",
        r"MC_MS_FILTERS|MC_GID_INDEX|NCCL_IB_HCA|NVSHMEM_HCA_LIST",
        r"device_name[\"']?\s*[:=]\s*[\"']?(?:mlx|ib|roce|erdma|bnxt)",
    ),
    sign(
        "no_rnic",
        "Mooncake could open no NIC",
        r"No available RNIC",
    ),
    sign(
        "lsmod_asked",
        "someone looked for the module in `lsmod`",
        r"lsmod\s*\|\s*e?grep\s.*(?:nv|peer)",
    ),
    sign(
        "ubuntu_node",
        "the node runs Ubuntu",
        r"(?i:\bOS\b|os[-_ ]?image|os-release|os_release).{0,40}[Uu]buntu",
        r"Ubuntu \d\d\.\d\d[.\d]* LTS\s+\d\.\d+\.\d",
    ),
    sign(
        "rhel_node",
        "the node runs RHEL or one of its relatives",
        r"(?i:\bOS\b|os[-_ ]?image|os-release|os_release).{0,40}"
        r"(?:Red Hat|Rocky|CentOS|AlmaLinux|Oracle|ID=\W?(?:rhel|rocky|centos|almalinux))",
    ),
    sign(
        "gds_nvme",
        "GPUDirect Storage works with NVMe",
        r"NVMe(?: P2PDMA)?\s*: Supported",
    ),
    sign(
        "userspace_only",
        "the driver pod installed no modules",
        r"performing userspace-only install",
    ),
    sign(
        "gpu_operator",
        "the GPU Operator runs the driver",
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
        r"\bNCCL(?: version)?[ :<=-]*v?(\d\.\d+[.\d]*)|nccl[ _=:-]+v?(2\.\d+[.\d]*)",
    ),
    sign("rccl", "RCCL", r"\bRCCL version[ :]+(\d[.\d]+)"),
    sign(
        "ucx",
        "UCX",
        r"\bUCX (?:version|v)?[ :=]*v?(1\.\d+[.\d]*)|ucx[-_/ ]v?(1\.\d+[.\d]*)",
    ),
    sign(
        "nvshmem",
        "NVSHMEM",
        r"(?i)\bnvshmem(?: version| v)?[ :=v_-]*(\d\.\d+[.\d]*)",
    ),
    sign(
        "driver",
        "NVIDIA driver",
        r"(?i)driver(?:s| version)?[ :=]+(?:version )?(\d{3}\.\d+[.\d]*)",
        r"Kernel Module\s+(?:for \S+\s+)?(\d{3}\.[.\d]+)",
    ),
    sign(
        "kernel",
        "kernel",
        r"(?:[Kk]ernel(?: version)?|Linux(?: \S+)?)[ :=(]+(?:version )?([2-9]\.\d+\.\d+)",
        # The output of `uname -r` on some distributions.
        r"(?<![\w.-])([3-9]\.\d+\.\d+)-\d[\w.-]*?(?:generic|nvidia|lowlatency|aws|azure|gcp|oracle"
        r"|amd64|el\d+\w*)\b",
    ),
    sign(
        "gdrcopy",
        "gdrcopy",
        r"(?i)gdr(?:copy|drv)(?: version| library)?[ :=v]+(\d\.\d+[.\d]*)",
    ),
    sign(
        "cuda",
        "CUDA",
        r"(?i)\bcuda(?: version| runtime)?[ :=v-]*(\d\d\.\d+)",
    ),
    sign(
        "ofed",
        "OFED",
        r"(?:MLNX_OFED(?:_LINUX)?|DOCA-OFED|OFED)[- :]+(\d+\.\d+[-.\d]*)",
    ),
    sign("libfabric", "libfabric", r"libfabric[ :=v-]+(\d\.\d+[.\d]*)"),
    sign("ofi_plugin", "aws-ofi-nccl", r"aws-ofi-nccl[ :=v]+(\d\.\d+[.\d]*)"),
    sign("open_mpi", "Open MPI", r"Open ?MPI[) ]*:? v?(\d\.\d+[.\d]*)"),
)
WORDS_OF_FACTS = {one.fact: one.words for one in SIGNS}
WORDS_OF_PROGRAMS = {one.fact: one.words for one in PROGRAMS}
# A line can show a fact only if the line has at least one of these texts.
NEEDED = frozenset(text for one in (*SIGNS, *PROGRAMS) for text in one.needed)
