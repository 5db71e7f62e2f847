# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The RDMA core, and for which one the module was loaded.
parameter=/sys/module/nv_peer_mem/parameters/peerdirect_support
look 0
says "RDMA core" "built for" none "MLNX_OFED 5.4 and later"
for ofed in 4.9-5.1.0.0 5.0-2.1.8.0; do
	put /ofed_info "MLNX_OFED_LINUX-$ofed:"
	put $parameter 0
	look 0
	only_these "built for"
	says "RDMA core" "peer memory" good "in ib_core, MLNX_OFED_LINUX-$ofed"
	says "RDMA core" "built for" bad "skips the clients" peerdirect_support=1
	put $parameter 1
	look 0
	only_these ''
done
for ofed in 5.8-1.0.1.1 24.10-4.1.4.0; do
	put /ofed_info "MLNX_OFED_LINUX-$ofed:"
	put $parameter 1
	look 0
	only_these "built for"
	says "RDMA core" "built for" warn "loaded for MLNX_OFED 4.1 to 5.0" "Remove peerdirect_support=1 from"
	put $parameter 0
	look 0
	only_these ''
done
gone /ofed_info

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
