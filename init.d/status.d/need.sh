# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Does this machine need the module? There are three ways for an RDMA device to GPU
# memory: dma-buf, which programs ask for with a verb of its own (ibv_reg_dmabuf_mr),
# and, for programs that register a pointer (ibv_reg_mr), nvidia_peermem or this.

need_facts() {
	missing=$(dma_buf_lacks)
	if [ -z "$missing" ]; then
		fact need dma-buf none "yes: kernel, RDMA core and driver have it"
	else
		fact need dma-buf none "no: $missing"
	fi
	fact need nv_peer_mem none "$(need "$missing")"
}

# need LACKS: in words, by what dma-buf lacks and what else is there.
need() {
	if [ -z "$core" ] && loaded ib_core; then
		case $1 in
		"") echo "no: this RDMA core cannot use it; programs that use dma-buf work without it" ;;
		*) echo "yes, with another RDMA core: this one has no peer memory, and there is no dma-buf" ;;
		esac
	elif loaded nvidia_peermem && [ ! -e "$root/sys/module/$module/holders/nvidia_peermem" ]; then
		echo "this or nvidia_peermem, which is loaded and serves the same programs"
	elif [ -z "$1" ]; then
		echo "for programs that register with ibv_reg_mr; those that use dma-buf (ibv_reg_dmabuf_mr) work without it"
	else
		echo "yes: there is no dma-buf, so no other way but nvidia_peermem"
	fi
}

# dma_buf_lacks: what is in the way of dma-buf, nothing if it can be used.
dma_buf_lacks() {
	text_of /sys/module/nvidia/taint || text=
	for libverbs in "$root"/usr/lib64/libibverbs.so.1 "$root"/usr/lib/libibverbs.so.1 "$root"/usr/lib/*/libibverbs.so.1; do
		[ ! -e "$libverbs" ] || break
	done
	if kernel_before 5 12; then
		echo "kernel $kernel is older than 5.12"
	elif ! loaded nvidia; then
		echo "the NVIDIA driver is not loaded"
	elif [ "${text#*P}" != "$text" ]; then
		echo "the NVIDIA driver is the proprietary one; only the open one has it"
	elif ! has_symbol ib_umem_dmabuf_get && ! loaded ib_uverbs; then
		echo "the RDMA core is not loaded"
	elif ! has_symbol ib_umem_dmabuf_get; then
		echo "the RDMA core that is loaded does not have it"
	elif [ -e "$libverbs" ] && ! grep -q ibv_reg_dmabuf_mr "$libverbs"; then
		echo "${libverbs#"$root"} is older than rdma-core 34"
	fi
}

# kernel_before MAJOR MINOR
kernel_before() {
	major=${kernel%%.*}
	minor=${kernel#*.}
	minor=${minor%%[!0-9]*}
	[ "$major" -lt "$1" ] || { [ "$major" -eq "$1" ] && [ "${minor:-0}" -lt "$2" ]; }
}
