# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: whichever allocation of memory fails in the kernel, nothing is left
# Machines: checker
load_gpu
load_rdma

# Allocations that may wait can fail too; the log is kept for what is wrong.
for attribute in failslab fail_page_alloc; do
	echo 0 >"/sys/kernel/debug/$attribute/verbose"
	echo N >"/sys/kernel/debug/$attribute/ignore-gfp-wait"
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

figure() { sed -n "s/^$1=//p" /tmp/starve; }

# starve TEXT LENGTH VERB
starve() {
	check "$1" gpuverbs starve --offset 0 --length "$2" --during "$3" >/tmp/starve
	cat /tmp/starve
	check "$1: allocations failed" test "$(figure allocations)" -gt 0
	say "$1: $(figure allocations) allocations, ENOMEM for $(figure ended_with_ENOMEM)"
	for double in "$NVIDIA" "$CORE"; do
		equal "$1: nothing is left in ${double##*/}" '' "$(live_gauges "$double" | grep -v live_clients | paste -sd' ')"
	done
}

for support in 1 0; do
	load_module persistent_api_support=$support
	echo contiguous >"$NVIDIA/layout"
	for verb in register deregister; do
		starve "one page, $verb, persistent_api_support=$support" 64K $verb
	done
	# More pages than one chunk of a scatterlist has entries, none a neighbour
	# of another: the second chunk can fail when the first is there.
	echo descending >"$NVIDIA/layout"
	for verb in register deregister; do
		starve "160 pages apart, $verb, persistent_api_support=$support" 10M $verb
	done
	check "and then it works" gpuverbs register --offset 0 --length 10M
	unload_module
done
