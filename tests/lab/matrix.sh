# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Kernels of the table that no guest boots: the module is compiled for them.

# compile_layers MACHINE: a tree of its kernel, and what was compiled there.
compile_layers() {
	local nvsource
	choose_machine "$1"
	base_layer
	list_archive "$base"
	choose_kernel
	layer_network=yes on_base nvsource "NVIDIA's header from Debian (35 MB)"
	nvsource=$reply
	layer_args=("$kver" "$kpkg" "$kseries" "$ksuite" "$kcompiler")
	layer_network=yes layer tree "$base" "kernel tree of $kseries ($kpkg), two minutes" "$top/debian/rust-metadata"
	stack=$nvsource:$reply:$base
	layer_args=("$kver")
	layer compile "$stack" "module for $kver" "${module_sources[@]}"
	compiled=$LAB_CACHE/layers/$reply/root/compiled
}

key_compile() {
	compile_layers "$1"
	key_of "$stack" "$compiled"
}

# run_compile MACHINE: the layer is the result; it says when it was made.
run_compile() {
	local compiled
	compile_layers "$1"
	say "compile@$1" "passed, $(wc -l <"$compiled") checks: $(paste -sd, "$compiled"), at $(date -u -r "$compiled" '+%F %R') UTC"
}

# matrix_main: every kernel of the table; those that guests boot with all that guests have.
matrix_main() {
	local machine rc=0
	for machine in $(kernel_table | awk '{ print $1 }'); do
		if machines | grep -qxF "$machine"; then
			(guest_layers "$machine"; say "$machine" "$kver: nvidia.ko, ib_core.ko, rdma_rxe.ko, nv_peer_mem.ko are built") || rc=1
		else
			(run_compile "$machine") || rc=1
		fi
	done
	[ "$rc" -eq 0 ] || die "not for every kernel of tests/lab/kernels the module compiles: see above."
}
