# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The RDMA core.
put /proc/kallsyms "0000000000000000 T ib_register_client	[ib_core]"
look 0
only_these "peer memory,libfabric"
says "RDMA core" "peer memory" bad "does not have it" MLNX_OFED
gone /sys/module/ib_core
look 0
says "RDMA core" "peer memory" none "not loaded yet"
put /proc/kallsyms "0000000000000000 T ib_register_peer_memory_client"
look 0
says "RDMA core" "peer memory" good "in the kernel itself"
gone /sys/kernel/mm/memory_peers/nv_mem_revocable
look 0
only_these "client nv_mem_revocable"
says "RDMA core" "client nv_mem_revocable" bad "does not list it" restart
