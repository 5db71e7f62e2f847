# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: any range and any physical layout of GPU memory is registered right
load_neighbours
seed_driver

# entries EXPECTED TEXT: registers 3 MiB, and checks how many entries the device gets. The core
# counts the entries in its statistics.
entries() {
	local before
	before=$(peer nv_mem num_reg_pages)
	gpuverbs register --offset 0 --length 3M >/dev/null
	equal "$2, persistent_api_support=$support" "$1" $(($(peer nv_mem num_reg_pages) - before))
}
# Behind an IOMMU, the module joins all pieces to one entry. With the closed driver it cannot,
# because the kernel lets only GPL modules join pieces.
many=48
[ "$MACHINE" = plain ] || [ "$(flavour)" = closed ] || many=1
for support in 1 0; do
	load_module "persistent_api_support=$support"
	seed=$support
	for layout in contiguous descending holes64k holes2m fragmented; do
		for range in "64K 0" "1 65535" "4096 4095" "300001 7" "3M+17 65000"; do
			# Each combination of a layout and a range is tested in only one of the two
			# modes. The modes take turns.
			[ $(((seed += 1) % 2)) = 0 ] || continue
			read -r length shift <<<"$range"
			with layout "$layout" check "$layout, $length bytes $shift into the page, persistent_api_support=$support" \
				gpuverbs transfer --from 0 --to 16M --length "$length" --shift "$shift" --seed "$seed"
		done
	done
	entries 1 "contiguous memory is one entry"
	with layout descending entries "$many" "pages in descending order"
	with_core short_segments with layout descending entries 48 "short segments are kept to"
	unload_module
done

# The module must map and unmap each entry by the kernel's functions, even without an IOMMU.
if [ "$MACHINE" = plain ]; then
	tracing=/sys/kernel/tracing
	mount -t tracefs tracefs "$tracing" 2>/dev/null || test -e "$tracing/trace"
	for function in dma_map_resource dma_unmap_resource; do
		echo "p:lab/$function $function" >>"$tracing/kprobe_events"
	done
	# calls FUNCTION LENGTH: counts the calls of FUNCTION by a registration.
	calls() {
		echo >"$tracing/trace"
		echo 1 >"$tracing/events/lab/enable"
		gpuverbs register --offset 0 --length "$2" >/dev/null
		echo 0 >"$tracing/events/lab/enable"
		grep -c " $1: " "$tracing/trace" || true
	}
	echo descending >"$NVIDIA/layout"
	for support in 1 0; do
		load_module "persistent_api_support=$support"
		# The first registration also asks the driver for the map type. The calls that it
		# makes for this purpose must not count.
		register ok >/dev/null
		# Some kernels count a call twice, because the driver's double redirects the call.
		for function in dma_map_resource dma_unmap_resource; do
			one=$(calls "$function" 64K)
			check "$function is called for one piece, persistent_api_support=$support" test "$one" -gt 0
			equal "calls of $function for 48 pieces, persistent_api_support=$support" $((48 * one)) "$(calls "$function" 3M)"
		done
		unload_module
	done
	echo >"$tracing/kprobe_events"
fi
