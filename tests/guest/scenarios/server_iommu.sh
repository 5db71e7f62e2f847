# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: behind an IOMMU every address that the module gives is mapped for the device
. /lab/server.sh
load_gpu
load_rdma
seed_driver
moved() { gpuverbs transfer --from 0 --to 16M --length 3M+17 "$@"; }
for support in 1 0; do
	load_module persistent_api_support=$support
	for layout in contiguous descending holes64k fragmented; do
		echo "$layout" >"$NVIDIA/layout"
		check "$layout, persistent_api_support=$support: transfer" moved --seed 1 --shift 12345
	done
	turn short_segments 1
	check "segments of 64 KiB, persistent_api_support=$support: transfer" moved --seed 2
	turn short_segments 0
	echo contiguous >"$NVIDIA/layout"
	# Mapped for another device than the one that does DMA: this is what the
	# core's check is for, and it must see it. To the network card the address
	# is nothing, or a buffer of its own.
	turn other_device 1
	check "mapped for another device: refused" register EFAULT
	check "and seen" grep -qE '^(unmapped|bad)_address 1:' "$CORE/violations"
	turn other_device 0
	echo clear >"$CORE/violations"
	check "and then it works" moved --seed 3
	unload_module
done
load_module persistent_api_support=0
check "freed while registered" gpuverbs revoke --from 0 --to 8M --length 300001
