# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: which program sees the module on which RDMA core, with the marker and without
# Prepared: deb

# UCX is Debian's, and ucx_info shows its answer. The other programs are not installed. Each
# function repeats the test of one program. This list has the file of the program's source, and its
# version or commit:
#   nccl_2_8      NVIDIA/nccl v2.8.4-1, src/transport/net_ib.cc
#   nccl_2_18     NVIDIA/nccl v2.18.5-1, src/transport/net_ib.cc
#   nccl_2_22     NVIDIA/nccl v2.22.3-1, src/transport/net_ib.cc
#   nccl          NVIDIA/nccl ebd1e929, src/transport/net_ib/gdr.cc
#   nccl_gin      the same file, for its GPU-initiated networking
#   ucc           openucx/ucc d92cc7af, src/components/tl/mlx5/tl_mlx5_context.c
#   nvshmem       NVIDIA/nvshmem 0edd7a3d, src/modules/transport/common/transport_ib_common.cpp
#   libfabric     ofiwg/libfabric 32dfaf9d, prov/verbs/include/linux/verbs_osd.h; the names of
#                 devices are in prov/verbs/src/verbs_info.c, which up to 2.1.0 had only mlx
#   gpu_operator  NVIDIA/gpu-operator 92f404ce, cmd/nvidia-validator/main.go
#   mscclpp       microsoft/mscclpp 1f5f065d, src/core/ib.cc
#   mooncake      kvcache-ai/Mooncake 3b5a59413, mooncake-transfer-engine/tent/src/transport/rdma/rdma_transport.cpp
#   openib        open-mpi/ompi v4.1.6, opal/mca/btl/openib/btl_openib_mca.c
any() { for file; do [ ! -e "$file" ] || return 0; done; return 1; }
peermem=/sys/module/nvidia_peermem/version
nccl_2_8() { any "$PEERS/nv_mem/version"; }
nccl_2_18() { any "$PEERS/nv_mem/version" "$PEERS/nvidia-peermem/version"; }
nccl_2_22() { any "$PEERS/nv_mem/version" "$PEERS/nv_mem_nc/version"; }
nccl() { any "$PEERS/nv_mem/version" "$PEERS/nv_mem_nc/version" "$peermem"; }
nccl_gin() { any "$peermem"; }
ucx() { grep -qE 'memory types:.*cuda' <<<"$(ucx_info -d 2>/dev/null)"; }
ucc() { any "$PEERS/nv_mem/version" "$peermem" /sys/module/nv_peer_mem/version; }
nvshmem() { any "$PEERS/nv_mem/version" "$PEERS/nvidia-peermem/version" "$peermem"; }
libfabric() { grep -q ib_register_peer_memory_client /proc/kallsyms && grep -qE 'mlx|bnxt_re|roce' <<<"$(rdma link show)"; }
gpu_operator() { grep -qE '^nvidia_peermem\s' <<<"$(lsmod)"; }
mscclpp() { grep -q nvidia_peermem /proc/modules; }
mooncake() { grep -q '^nvidia_peermem ' /proc/modules; }
openib() { any "$PEERS/nv_mem/version"; }

# seen TEXT PROGRAM...: checks that these programs see the module, and that all other programs do
# not.
seen() {
	local program seeing=''
	for program in nccl_2_8 nccl_2_18 nccl_2_22 nccl nccl_gin ucx ucc nvshmem libfabric gpu_operator mscclpp mooncake openib; do
		! "$program" || seeing+="$program "
	done
	equal "$1" "${*:2}" "${seeing% }"
}

marker() {
	sed -i '/MARKER=/d' "$conf"
	echo "MARKER=$1" >>"$conf"
	run systemctl restart nv_peer_mem
	equal "restarted with MARKER=$1" 0 "$code"
}

boot_1() {
	# libfabric also looks at the device's name.
	rdma dev set rxe0 name roce0
	run systemctl stop nv_peer_mem
	seen "not loaded: seen by" libfabric
	run systemctl start nv_peer_mem
	seen "with memory_peers: seen by" nccl_2_8 nccl_2_18 nccl_2_22 nccl ucx ucc nvshmem libfabric openib
	marker yes
	seen "with memory_peers and the marker: seen by" \
		nccl_2_8 nccl_2_18 nccl_2_22 nccl nccl_gin ucx ucc nvshmem libfabric gpu_operator mscclpp mooncake openib
	run systemctl stop nv_peer_mem
	echo 0 >/sys/module/ib_core/parameters/peer_sysfs
	run systemctl start nv_peer_mem
	seen "without memory_peers, with the marker: seen by" nccl nccl_gin ucx ucc nvshmem libfabric gpu_operator mscclpp mooncake
	marker no
	seen "without memory_peers: seen by" ucx ucc libfabric
}
