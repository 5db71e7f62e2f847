# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module compiled for every kernel of the table, on every ground that it can have.

# compile_layers MACHINE: leaves in $compiled what was found.
compile_layers() {
	choose_machine "$1"
	if [ "$kpackages" = tree ]; then
		tree_layers
	else
		guest_layers "$1" grounds
		compiled=$LAB_CACHE/layers/$grounds/root/grounds
	fi
}

# tree_layers: of a kernel that is source alone.
tree_layers() {
	local nvsource
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

# compile_machines: the first of each kernel.
compile_machines() {
	local machine
	for machine in $(kernel_table | awk '$10 != "systems" { print $1 }'); do
		[ "$(first_with_kernel "$machine")" != "$machine" ] || printf '%s\n' "$machine"
	done
}

key_compile() {
	compile_layers "$1"
	key_of "$stack" "$compiled"
}

# run_compile MACHINE: the layer is the result; it says when it was made.
run_compile() {
	local compiled
	compile_layers "$1"
	sed "s/^/[compile@$1] /" "$compiled"
	say "compile@$1" "passed, $(wc -l <"$compiled") checks, at $(date -u -r "$compiled" '+%F %R') UTC"
}

# matrix_main: every kernel of the table.
matrix_main() {
	local machine rc=0
	for machine in $(compile_machines); do
		(run_compile "$machine") || rc=1
	done
	[ "$rc" -eq 0 ] || die "not for every kernel of tests/lab/kernels the module compiles: see above."
}
