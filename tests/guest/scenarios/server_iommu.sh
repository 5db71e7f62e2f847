# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: behind an IOMMU every address that the module gives is mapped for the device
load_neighbours
moved() { check "$1, persistent_api_support=$support" gpuverbs transfer --from 0 --to 16M --length 3M+17 --seed 2; }
for support in 1 0; do
	load_module persistent_api_support=$support
	with_core short_segments moved "segments of 64 KiB"
	# The memory is mapped for another device than the network card. For the network card, the
	# address is then not mapped, or is the address of one of its own buffers. The core's check
	# must notice this.
	with_core other_device registers "mapped for another device" EFAULT
	check "and seen" grep -qE '^(unmapped|bad)_address 1:' "$CORE/violations"
	echo clear >"$CORE/violations"
	moved "and then it works"
	unload_module
done
