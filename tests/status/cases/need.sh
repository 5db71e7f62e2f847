# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Which way there is to GPU memory on this machine, and whether the module is needed.
peer_memory="0000000000000000 T ib_register_peer_memory_client	[ib_core]"
dma_buf="0000000000000000 T ib_umem_dmabuf_get	[ib_uverbs]"
put /proc/kallsyms "$peer_memory
$dma_buf"
look 0
only_these ''
says need dma-buf none "yes: kernel, RDMA core and driver"
says need nv_peer_mem none "for programs that register with ibv_reg_mr; those that use dma-buf"
put /usr/lib/x86_64-linux-gnu/libibverbs.so.1 "ibv_reg_mr ibv_reg_dmabuf_mr"
look 0
says need dma-buf none yes
put /usr/lib/x86_64-linux-gnu/libibverbs.so.1 "ibv_reg_mr"
look 0
says need dma-buf none "no: /usr/lib/x86_64-linux-gnu/libibverbs.so.1 is older than rdma-core 34"
says need nv_peer_mem none "yes: there is no dma-buf"
gone /usr/lib

# Each thing that is in the way of dma-buf.
for old in 4.18.0-553.el8 5.11.22; do
	put /kernel $old
	look 0
	says need dma-buf none "no: kernel $old is older than 5.12"
done
for new in 5.12.0-rc1 5.14.0-503.el9 6.8.0-51-generic; do
	put /kernel $new
	look 0
	says need dma-buf none yes
done
gone /kernel
put /sys/module/nvidia/taint POE
put /sys/module/nv_peer_mem/statistics/ground ready
look 0
only_these ''
says need dma-buf none "no: the NVIDIA driver is the proprietary one"
says need nv_peer_mem none yes
put /sys/module/nvidia/taint OE
put /proc/kallsyms "$peer_memory"
look 0
says need dma-buf none "no: the RDMA core is not loaded"
mkdir -p "$root/sys/module/ib_uverbs"
look 0
says need dma-buf none "no: the RDMA core that is loaded"

# Cores without peer memory, with and without dma-buf; and NVIDIA's own module.
put /proc/kallsyms "$dma_buf"
look 0
says need nv_peer_mem none "no: this RDMA core cannot use it"
put /proc/kallsyms "0000000000000000 T ib_register_client	[ib_core]"
look 0
says need nv_peer_mem none "yes, with another RDMA core"
new_machine
gone /sys/module/nv_peer_mem
look 3
says need nv_peer_mem none "this or nvidia_peermem"
