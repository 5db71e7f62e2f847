# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes lines of logs from the table of `nvpm explain`, and explains them."""

from nvpm.explain import judge, texts
from nvpm.explain.conditions import COMPARISON, ERROR, LINE, VARIABLE
from nvpm.explain.errors import ERRORS
from nvpm.explain.model import Conditions
from nvpm.explain.scan import Scan
from nvpm.explain.signs import WORDS_OF_PROGRAMS
from nvpm.explain.table import Entry

# The text that stands in a made line for each placeholder.
VALUES = {"<*>": " some words ", "<n>": "7711", "<w>": "rail_3"}
# A line that shows each fact, and no other fact that a case of the table depends on.
SHOWING = {
    "geforce": "Product Name : GeForce 3090",
    "data_center": "Product Name : A100",
    "gb10": "Product Name : GB10",
    "grace": "Processor : Grace",
    "amd": "modules: amdgpu",
    "other_gpu": "kernel driver: habanalabs",
    "efa": "provider: efa",
    "infiniband": "link_layer: InfiniBand",
    "ethernet": "link_layer: Ethernet",
    "gpu": "device memory: VRAM",
    "gdrdma": "Channel 00 : 1[1] -> 0[0] [receive] via P/GDRDMA",
    "tcp": "Using network Socket",
    "memlock_limited": "max locked memory (kbytes, -l) 64",
    "memlock_unlimited": "max locked memory (kbytes, -l) unlimited",
    "one_node": "nnodes=1",
    "many_nodes": "nnodes=2",
    "gid_zero": "GID index : 0",
    "other_nic": "device: irdma_0",
    "iommu_translates": "iommu: Default domain type: Translated",
    "iommu_passes": "BOOT_IMAGE=/vmlinuz iommu=pt",
    "erdma": "driver: erdma",
    "mlx5_nic": "device: mlx5_0",
    "foreign_dmabuf": "memory of Vulkan",
    "data_direct": "uses data direct",
    "arm64_address": "address 0xfcc99fa00000",
    "gdr_mapping": "calls gdr_map",
    "gpu_xid": "NVRM: Xid (PCI:0000:cb:00): 13,",
    "umr_failed": "reg umr failed (4). Trying to recover and resubmit the flushed WQEs",
    "loopback": "NET : Using interface lo:127.0.0.1<0>",
    "ofed_core": "at /usr/src/ofa_kernel/drivers/infiniband/core/device.c:1382",
    "rdma_up": "dev port 1 ==> ens5 (Up)",
    "omni_path": "device: hfi1_0",
    "julia_frames": "3 multiq_check_empty",
    "ofi_provider": "Selected provider is tcp",
    "ofi_verbs": "provider: verbs;ofi_rxm",
    "container": "$ docker run image",
    "vm": "Hypervisor: KVM",
    "peermem_loaded": "nv_peer_mem 20480 0",
    "rdma_module": "module: knem",
    "vmm": "alloc: cuMemCreate",
    "traffic_class": "NVSHMEM_IB_TRAFFIC_CLASS: 5",
    "open_driver": "installed: nvidia-open",
    "proprietary_driver": "a proprietary driver",
    "ucx_tls_without_cuda": "UCX_TLS=tcp,sm",
    "ucx_sees_module": "(md supports: host|cuda)",
    "ucx_host_memory": "failed to register address 0x55bace2c02a0 (host)",
    "ucx_without_cuda": "# Configured with: --prefix=/usr --disable-params-check",
    "ucx_dmabuf": "dmabuf is supported",
    "gdr_enabled": "GPU Direct RDMA Enabled",
    "gdr_disabled": "GPU Direct RDMA Disabled",
    "connect_failed": "Connect to 192.0.2.1 failed",
    "plugin_found": "Plugin Path : /opt/libnccl-net.so",
    "plugin_missing": "NET/Plugin: Could not find: libnccl-net.so",
    "perftest": "$ ib_write_bw",
    "perftest_dmabuf": "options: --use_cuda_dmabuf",
    "monarch_fallback": "mlx5dv CUDA registration failed",
    "mooncake_dmabuf": "WITH_NVIDIA_PEERMEM=0",
    "rdma_wanted": "--protocol rdma",
    "no_rnic": "No available RNIC",
    "lsmod_asked": "$ lsmod | grep nv",
    "ubuntu_node": "OS Image: Ubuntu",
    "rhel_node": "OS Image: Rocky Linux",
    "gds_nvme": "NVMe : Supported",
    "userspace_only": "performing userspace-only install",
    "gpu_operator": "started nvidia-driver-daemonset",
    "mofed_container": "NVIDIA_NIC_DRIVER_VER is set",
}
VERSIONS = {
    "nccl": "NCCL version {}",
    "rccl": "RCCL version {}",
    "ucx": "UCX version {}",
    "nvshmem": "NVSHMEM v{}",
    "driver": "Driver Version: {}",
    "kernel": "Linux version {}",
    "gdrcopy": "gdrcopy {}",
    "cuda": "CUDA Version: {}",
    "ofed": "MLNX_OFED_LINUX-{}",
    "libfabric": "libfabric: {}",
    "ofi_plugin": "aws-ofi-nccl {}",
    "open_mpi": "Open MPI {}",
}
assert set(VERSIONS) == set(WORDS_OF_PROGRAMS)


def line_of(text: str) -> str:
    """Returns a line with the message."""
    made = texts.expanded(text)[0]
    return texts.PLACEHOLDER.sub(lambda found: VALUES[found.group()], made)


def version_for(sign: str, wanted: str) -> str:
    """Returns a version that is below, above or equal to WANTED, as SIGN says."""
    parts = [int(part) for part in wanted.split(".")]
    if sign == "<":
        # The first part of the version stays, because patterns contain it.
        parts[-1] -= 1
        assert parts[-1] >= 0
    elif sign == ">":
        parts[-1] += 1
    return ".".join(map(str, [*parts, *[0] * (3 - len(parts))]))


def lines_for(entry: Entry, when: Conditions) -> list[str]:
    """Returns a log with the message of ENTRY in which all conditions hold. The name of a verb
    counts only in a line that speaks of a failure."""
    wanted = [one[len(LINE) :] for one in when if one.startswith(LINE)]
    # If the text has alternatives, the conditions may be about one of them.
    made = max(
        map(line_of, texts.expanded(entry.message.text)),
        key=lambda one: sum(text in one for text in wanted),
    )
    line, lines = made + (" error" if entry.general else ""), []
    for one in when:
        compared = COMPARISON.fullmatch(one)
        if one.startswith(ERROR):
            line += f": {ERRORS[one[len(ERROR) :].split(',')[0]][1]}"
        elif one.startswith(LINE) and one[len(LINE) :] in made:
            continue
        elif one.startswith(LINE):
            line += f" {line_of(one[len(LINE) :])}"
        elif one.startswith(VARIABLE):
            name, _, value = one[len(VARIABLE) :].partition("=")
            lines.append(f"{name}={value or 1}")
        elif compared:
            name, sign, version = compared.groups()
            lines.append(VERSIONS[name].format(version_for(sign, version)))
        else:
            lines.append(SHOWING[one])
    return [*lines, line]


def scanned(lines: list[str]) -> Scan:
    scan = Scan()
    scan.read("log", [f"{line}\n".encode() for line in lines])
    return scan


def explained(lines: list[str]) -> judge.Verdict:
    return judge.judged(scanned(lines))
