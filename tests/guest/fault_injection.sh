# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prepares the debug kernel for allocation failures.

# dma_debug 1|$: the first or the last function of DMA-API debug, which turns
# itself off when it gets no memory.
dma_debug() { awk '$2 ~ /^[tT]$/ && $3 ~ /^(debug_dma_|add_dma_entry)/ { print $1 }' /proc/kallsyms | sort | sed -n "$1p"; }

# Allocations that may wait can fail too; the log is kept for what is wrong.
let_memory_fail() {
	local attribute
	for attribute in failslab fail_page_alloc; do
		echo 0 >"/sys/kernel/debug/$attribute/verbose"
		echo N >"/sys/kernel/debug/$attribute/ignore-gfp-wait"
		echo "0x$(dma_debug 1)" >"/sys/kernel/debug/$attribute/reject-start"
		echo "0x$(dma_debug '$')" >"/sys/kernel/debug/$attribute/reject-end"
	done
	echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
}
