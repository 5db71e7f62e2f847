# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions that prepare the debug kernel for failing allocations.

# dma_debug 1|$: prints the address of the first or of the last function of DMA-API debug.
dma_debug() { awk '$2 ~ /^[tT]$/ && $3 ~ /^(debug_dma_|add_dma_entry)/ { print $1 }' /proc/kallsyms | sort | sed -n "$1p"; }

# let_memory_fail: makes allocations fail, including allocations that may wait. A failure adds no
# line to the log. Allocations of DMA-API debug do not fail, because DMA-API debug turns itself off
# when it gets no memory.
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
