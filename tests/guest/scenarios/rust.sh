# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module serves however its Rust is compiled, beside the open and the closed driver
. /lab/driver.sh
load_rdma

# serves_on WAY FLAVOUR: checks the module that was compiled in the way WAY, beside the driver of
# the flavour FLAVOUR. The module must serve pinned and revocable GPU memory. prebuilt-oldest is
# compiled for kernels from 4.18 on, and prebuilt-open for the open driver.
serves_on() {
	local where="$1, $2 driver"
	check "$where: the module is loaded" load_built "rust-$1"
	equal "$where: it says how it was compiled" "${1%-o*}" "$(statistic rust)"
	check "$where: write" transfer_seen 0 8M 300001 31 --shift 12345
	check "$where: memory stays while it is registered" revoke --expect pinned
	unload_module
	load_built "rust-$1" persistent_api_support=0
	check "$where: revocable memory is revoked" revoke
	unload_module
	wait_for "everything to be given back" driver_at_rest
}

for flavour in open closed; do
	load_flavour "$flavour"
	for way in /lib/nv_peer_mem/rust-*; do
		way=${way##*/rust-}
		case $way-$flavour in
		in-kernel-closed | *-open-closed)
			mark_log
			check "$way, closed driver: the kernel refuses it" eval "! load_built rust-$way"
			expect_log "and says why" 'GPL-only symbols|from proprietary module nvidia'
			;;
		*) serves_on "$way" "$flavour" ;;
		esac
	done
	[ "$flavour" = closed ] || unload_gpu
done
