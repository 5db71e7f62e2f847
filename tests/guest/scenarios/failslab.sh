# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: whichever allocation of memory fails in the kernel, nothing is left
load_neighbours
. /lab/fault_injection.sh
let_memory_fail

figure() { sed -n "s/^$1=//p" /tmp/failed; }

# fail_each LAYOUT TEXT LENGTH: checks registrations of LENGTH bytes. In the first registration the
# first allocation fails, in the second one the second allocation, and so on.
fail_each() {
	local text="$2, persistent_api_support=$support" words=(gpuverbs fail-allocations --offset 0 --length "$3")
	echo "$1" >"$NVIDIA/layout"
	check "$text" "${words[@]}" >/tmp/failed
	check "$text: allocations failed" test "$(figure ended_with_ENOMEM)" -gt 0
	say "$text: $(figure allocations) allocations, ENOMEM for $(figure ended_with_ENOMEM)"
	# A deregistration must not allocate memory. If it did, it could fail.
	check "$text: it ends" "${words[@]}" --during deregister >/tmp/failed
	equal "$text: whichever allocation fails" 0 "$(figure ended_with_ENOMEM)"
	equal "$text: and that takes no memory" 0 "$(figure allocations)"
	nothing_left "$text"
}

for support in 1 0; do
	load_module persistent_api_support=$support
	fail_each contiguous "one page" 64K
	# The pages do not follow each other, and their number is larger than the number of entries
	# in one chunk of a scatterlist. The allocation of the second chunk can therefore fail after
	# the first chunk was allocated.
	fail_each descending "132 pages apart" 8448K
	check "and then it works" gpuverbs register --offset 0 --length 8448K
	unload_module
done
