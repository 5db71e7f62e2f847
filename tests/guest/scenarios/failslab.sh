# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: whichever allocation of memory fails in the kernel, nothing is left
load_gpu
load_rdma
. /lab/fault_injection.sh
let_memory_fail

figure() { sed -n "s/^$1=//p" /tmp/failed; }

# fail_each TEXT LENGTH
fail_each() {
	check "$1" gpuverbs fail-allocations --offset 0 --length "$2" >/tmp/failed
	check "$1: allocations failed" test "$(figure ended_with_ENOMEM)" -gt 0
	say "$1: $(figure allocations) allocations, ENOMEM for $(figure ended_with_ENOMEM)"
	# Nobody can be refused to let go.
	check "$1: it ends" gpuverbs fail-allocations --offset 0 --length "$2" --during deregister >/tmp/failed
	equal "$1: and that takes no memory" 0 "$(figure allocations)"
	for double in "$NVIDIA" "$CORE"; do
		equal "$1: nothing is left in ${double##*/}" '' "$(live_gauges "$double" | grep -v live_clients | paste -sd' ')"
	done
}

for support in 1 0; do
	load_module persistent_api_support=$support
	echo contiguous >"$NVIDIA/layout"
	fail_each "one page, persistent_api_support=$support" 64K
	# More pages than one chunk of a scatterlist has entries, none a neighbour
	# of another: the second chunk can fail when the first is there.
	echo descending >"$NVIDIA/layout"
	fail_each "132 pages apart, persistent_api_support=$support" 8448K
	check "and then it works" gpuverbs register --offset 0 --length 8448K
	unload_module
done
