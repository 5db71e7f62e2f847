# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module serves on each ground, beside the open and the closed driver
. /lab/driver.sh
load_rdma

# serves_on GROUND FLAVOUR: GPU memory, pinned and revocable. (ready-oldest: with what
# kernels from 4.18 on need; free-open: with what the open driver allows.)
serves_on() {
	local where="$1, $2 driver"
	check "$where: the module is loaded" insmod "/lib/nv_peer_mem/ground-$1/nv_peer_mem.ko"
	equal "$where: it says its ground" "${1%%-*}" "$(cat /sys/module/nv_peer_mem/statistics/ground)"
	check "$where: write" transfer_seen 0 8M 300001 31 --shift 12345
	check "$where: memory stays while it is registered" gpuverbs revoke --from 0 --to 8M --length 300001 --expect pinned
	unload_module
	insmod "/lib/nv_peer_mem/ground-$1/nv_peer_mem.ko" persistent_api_support=0
	check "$where: revocable memory is revoked" gpuverbs revoke --from 0 --to 8M --length 300001
	unload_module
	wait_for "everything to be given back" driver_at_rest
}

for flavour in open closed; do
	load_flavour "$flavour"
	for directory in /lib/nv_peer_mem/ground-*; do
		ground=${directory##*/ground-}
		case $ground-$flavour in
		kernel-closed | *-open-closed)
			mark_log
			check "$ground, closed driver: the kernel refuses it" eval "! insmod $directory/nv_peer_mem.ko"
			expect_log "and says why" 'GPL-only symbols|from proprietary module nvidia'
			;;
		*) serves_on "$ground" "$flavour" ;;
		esac
	done
	[ "$flavour" = closed ] || unload_gpu
done
