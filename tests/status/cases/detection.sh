# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Cores with and without a list of clients, and no marker.
no_marker() {
	gone /sys/module/nv_peer_mem/holders /sys/module/nvidia_peermem
	put /proc/modules "nv_peer_mem 16384 0 - Live 0x0"
}
no_marker
look 0
only_these "NCCL GIN, GDAKI,gpu-operator"
says detection "NCCL, newer" good memory_peers/nv_mem/version
says detection NVSHMEM good memory_peers/nv_mem/version
says detection UCX good memory_peers/nv_mem/version
says detection gpu-operator warn lsmod MARKER=yes

gone /sys/kernel/mm
look 0
only_these "NCCL, up to 2.22,NCCL, newer,NCCL GIN, GDAKI,NVSHMEM,gpu-operator"
says detection "NCCL, newer" warn "no: it looks for /sys/kernel/mm" MARKER=yes
says detection UCX good /sys/module/nv_peer_mem/version
says detection UCC good /sys/module/nv_peer_mem/version
says "RDMA core" "client nv_mem" none persistent

put /etc/infiniband/nv_peer_mem.conf $'ONBOOT=yes\nMARKER=yes'
look 0
says detection "NCCL, newer" warn "no: it looks for" "says why"

new_machine
put /etc/infiniband/nv_peer_mem.conf $'ONBOOT=yes\nMARKER=yes'
gone /sys/kernel/mm
look 0
only_these "NCCL, up to 2.22"
says detection "NCCL, up to 2.22" warn "no: it looks for" "update NCCL."
if grep -q "MARKER=" "$scratch/facts"; then fail "a marker is advised that is there"; else ok; fi
says detection "NCCL, newer" good /sys/module/nvidia_peermem/version
says detection NVSHMEM good /sys/module/nvidia_peermem/version

new_machine
mv "$root/sys/class/infiniband/mlx5_0" "$root/sys/class/infiniband/ibp4s0"
look 0
only_these libfabric
says detection libfabric warn "no RDMA device has mlx" "rdma dev set"
