# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The lab's layers, from the bottom up: what each is made of.
#
#   base      Debian with compilers, verbs programs and RDMA user space
#   hosttools what the tests on the host need beside that
#   kernel    the stock kernel, its headers and Rust metadata; or instead of it
#   debug     a kernel with every checker on, compiled from the same source
#   nvsource  NVIDIA's own header and nvidia-peermem source, from Debian
#   nvidia    the simulated NVIDIA driver, installed
#   ofed      the RDMA core with peer memory, installed as MLNX_OFED does it
#   reference     NVIDIA's nvidia-peermem, and what shows its defects
#   module    nv_peer_mem.ko, built with the project's Makefile and installed
#   proprietary  NVIDIA's other flavour, as the kernel sees it
#   cpumap    another client of the NVIDIA driver, which maps for the CPU
#   gpuverbs  the lab's own verbs client
#   cuda      libcuda and libcudart over the simulated GPU
#   programs  programs of others for CUDA memory
#   clients   our own, and the examples
#   service   service script and status
#   openmpi   Open MPI and ssh, for two guests
#   hosts     programs that run on two guests
#   bench     what reports measurements, compiled on benchtools: its crates
#
# Every function leaves the stack of layers up to its own in $stack. What does
# not depend on a kernel is made on $base alone, and so shared by all.

# make_base DIR PACKAGES: Debian in DIR/root. This text is part of the layer's hash.
make_base() {
	# shellcheck disable=SC2016 # for the shell inside
	setpriv --pdeathsig KILL mmdebstrap --mode=root --variant=apt --include="$2" \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook='ln -sf /run/resolv.conf "$1"/etc/resolv.conf' \
		--customize-hook='rm -f "$1"/etc/apt/sources.list.d/*' \
		--customize-hook='echo nv-lab >"$1"/etc/hostname' \
		"$LAB_RELEASE" "$1/root" "$1/sources.list"
}

base_layer() {
	local packages dir started=$SECONDS
	packages=$(grep -v '^#' "$lab/base.packages" | paste -sd,)
	base=base-$( (printf '%s\n' "$LAB_RELEASE" "$packages"; declare -f make_base) | sha256sum | cut -c 1-12)
	stack=$base
	! use_layer "$base" || return 0
	new_dir tmp base
	dir=$reply
	write_sources "$dir"
	with_dots base "Debian $LAB_RELEASE from $mirror (about 2 GB, a minute or two)" "$LAB_CACHE/log/base.log" \
		make_base "$dir" "$packages" || {
		show_log "$LAB_CACHE/log/base.log"
		die "making the base system failed; nothing of it is kept."
	}
	finish_layer "$dir" "$base"
	say base "done in $((SECONDS - started)) s"
}

# Beside the others: it leaves its stack in $host_stack.
hosttools_layer() {
	local stack
	base_layer
	layer_network=yes
	layer_args=()
	layer hosttools "$base" "crates for the tests on the host (two minutes)" \
		"$lab/build/crates.sh" "$top/tests/host/Cargo.toml" "$top/tests/host/build.rs"
	host_stack=$reply:$base
}

kernel_layer() {
	layer_network=yes
	layer_args=("$kver" "$kpkg" "$kseries")
	layer kernel "$stack" "kernel $kver with Rust metadata (two minutes)" "$top/debian/rust-metadata"
	stack=$reply:$stack
	boot_layer
}

# Sets $kver to the release of the kernel that was made.
debug_layer() {
	local kernel
	layer_network=yes
	layer_args=("$kpkg" "$kseries")
	layer debug "$stack" "kernel $kseries with KASAN, lockdep and other checkers (10 to 30 minutes, once)" \
		"$lab/debug/config"
	stack=$reply:$stack
	kernel=$(echo "$LAB_CACHE/layers/$reply"/root/boot/vmlinux-*)
	kver=${kernel##*/vmlinux-}
	boot_layer
}

nvsource_layer() {
	layer_network=yes
	layer_args=()
	layer nvsource "$base" "NVIDIA's header from Debian (35 MB)"
	stack=$reply:$stack
}

nvidia_layer() {
	layer_network=
	layer_args=("$kver")
	layer nvidia "$stack" "simulated NVIDIA driver" "$lab/nvidia"
	stack=$reply:$stack
}

ofed_layer() {
	layer_network=
	layer_args=("$kver" "$kseries")
	layer ofed "$stack" "RDMA core with peer memory for $kver" "$lab/ofed"
	stack=$reply:$stack
}

reference_layer() {
	layer_network=
	layer_args=("$kver")
	layer reference "$stack" "nvidia-peermem, to be measured against" "$top/tests/guest/defects" "$lab/nvidia/lab_gpu.h"
	stack=$reply:$stack
}

# The files that make up the module, as a package would ship them.
module_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/src")

module_layer() {
	layer_network=
	layer_args=("$kver")
	layer module "$stack" "nv_peer_mem.ko" "${module_sources[@]}"
	stack=$reply:$stack
}

proprietary_layer() {
	layer_network=
	layer_args=("$kver")
	layer proprietary "$stack" "a driver of the proprietary flavour" "$lab/proprietary"
	stack=$reply:$stack
}

cpumap_layer() {
	layer_network=
	layer_args=("$kver")
	layer cpumap "$stack" "a second client of the NVIDIA driver" "$lab/cpumap"
	stack=$reply:$stack
}

gpuverbs_layer() {
	layer_network=
	layer_args=()
	layer gpuverbs "$base" "verbs client of the lab" "$top/tests/guest/gpuverbs" "$lab/nvidia/lab_gpu.h"
	stack=$reply:$stack
}

cuda_layer() {
	layer_network=
	layer_args=()
	layer cuda "$base" "CUDA of the lab" "$lab/cuda" "$lab/nvidia/lab_gpu.h"
	cuda_stack=$reply:$base
}

programs_layer() {
	layer_network=yes
	layer_args=()
	layer programs "$cuda_stack" "programs for CUDA memory (a minute or two)"
	cuda_stack=$reply:$cuda_stack
}

# It goes, with what it stands on, below the layers of a kernel: those have
# packages of their own, which dpkg must know in the end.
clients_layer() {
	layer_network=
	layer_args=()
	layer clients "$cuda_stack" "the lab's own programs for CUDA memory, and the examples" \
		"$top/tests/guest/clients" "$top/examples" "$lab/nvidia/lab_gpu.h"
	stack=${stack%"$base"}$reply:$cuda_stack
}

service_layer() {
	layer_network=
	layer_args=()
	layer service "$base" "service" "$top/init.d" "$top/nv_peer_mem.conf"
	stack=$reply:$stack
}

# hosts_layers: what two guests at a time need beside guest_layers.
hosts_layers() {
	local openmpi
	layer_network=yes
	layer_args=()
	layer openmpi "$base" "Open MPI and ssh"
	openmpi=$reply
	layer_network=
	layer hosts "$openmpi:$base" "programs for two guests" "$top/tests/guest/hosts" "$lab/nvidia/lab_gpu.h"
	stack=$reply:$openmpi:$stack
}

# Beside the others: the program's own stack is left in $bench_stack, that with the
# crates in $benchtools_stack.
bench_layer() {
	base_layer
	layer_network=yes
	layer_args=()
	layer benchtools "$base" "crates for the report of measurements (a minute or two)" \
		"$lab/build/crates.sh" "$top/tests/bench/Cargo.toml"
	benchtools_stack=$reply:$base
	layer_network=
	layer bench "$benchtools_stack" "report of measurements" "$top/tests/bench"
	bench_stack=$reply:$base
}

# guest_layers [MACHINE]: everything that a guest boots with, on the machine
# stock (the default), iommu or debug (boot.sh). What is there is used.
guest_layers() {
	machine=${1:-stock}
	[[ " $LAB_MACHINES " == *" $machine "* ]] || die "there is no machine '$machine', only: $LAB_MACHINES."
	base_layer
	list_archive "$base"
	choose_kernel
	case $machine in
	debug) debug_layer ;;
	*) kernel_layer ;;
	esac
	nvsource_layer
	nvidia_layer
	ofed_layer
	reference_layer
	module_layer
	proprietary_layer
	cpumap_layer
	gpuverbs_layer
	cuda_layer
	programs_layer
	clients_layer
	service_layer
	prune_layers
}

# What was used within a day is kept, for somebody may be using it. Of each kind of
# layer 24 older ones are, for two weeks.
prune_layers() {
	local kind
	find "$LAB_CACHE/layers" -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} +
	for kind in $(find "$LAB_CACHE/layers" -mindepth 1 -maxdepth 1 -printf '%f\n' | sed 's/-[^-]*$//' | sort -u); do
		find "$LAB_CACHE/layers" -mindepth 1 -maxdepth 1 -name "$kind-*" -mmin +1440 -printf '%T@ %p\n' |
			sort -rn | tail -n +25 | cut -d' ' -f2 | xargs -r rm -rf
	done
}
