# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whether the programs that use GPUDirect RDMA will see that it is there. Each
# has its own test, and none asks the module: this repeats their tests.

detection_facts() {
	if ! loaded "$module"; then
		fact detection programs none "nothing to detect: the module is not loaded"
		return
	fi
	nv_mem=$peers/nv_mem/version
	other_name=/sys/module/nvidia_peermem/version
	marker=$(marker_advice)
	looks_for "NCCL, up to 2.22" "It looks for nothing else, and this RDMA core does not have it: update NCCL.${marker:+ $marker}" "$nv_mem"
	looks_for "NCCL, newer" "$marker" "$nv_mem" "$peers/nv_mem_nc/version" "$other_name"
	looks_for "NCCL GIN, GDAKI" "$marker" "$other_name"
	looks_for "UCX" "$marker" "$nv_mem" "$other_name" /sys/module/nv_peer_mem/version
	looks_for "UCC" "$marker" "$nv_mem" "$other_name" /sys/module/nv_peer_mem/version
	looks_for "NVSHMEM" "$marker" "$nv_mem" "$peers/nvidia-peermem/version" "$other_name"
	libfabric_fact
	if grep -q '^nvidia_peermem ' "$root/proc/modules" 2>/dev/null; then
		fact detection gpu-operator good "yes: a module nvidia_peermem is loaded"
	else
		fact detection gpu-operator warn "no: it looks for a module nvidia_peermem in lsmod" "$marker"
	fi
}

# looks_for PROGRAM ADVICE FILE...: any of the files is enough for it.
looks_for() {
	program=$1 todo=$2
	shift 2
	for file; do
		if [ -r "$root$file" ]; then
			fact detection "$program" good "yes: $file"
			return
		fi
	done
	fact detection "$program" warn "no: it looks for $*" "$todo"
}

# marker_advice: how a program finds a module called nvidia_peermem, if there is none.
marker_advice() {
	if [ -r "$root$other_name" ]; then
		return
	elif marker_wanted; then
		echo "$service restart: it says why the module nvidia_peermem, which MARKER=yes asks for, is not there."
	else
		echo "Set MARKER=yes in $conf, then $service restart: that adds a module named nvidia_peermem."
	fi
}

# libfabric also wants a name for the device that it knows the maker by.
libfabric_fact() {
	if [ -z "$core" ]; then
		fact detection libfabric warn "no: there is no ib_register_peer_memory_client in /proc/kallsyms" "$service start"
		return
	fi
	for device in "$root"/sys/class/infiniband/*; do
		base "$device"
		case $base in
		*mlx* | *bnxt_re* | *roce*)
			fact detection libfabric good "yes: ib_register_peer_memory_client in /proc/kallsyms, device $base"
			return
			;;
		esac
	done
	fact detection libfabric warn "no: no RDMA device has mlx, bnxt_re or roce in its name" \
		"rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx)."
}
