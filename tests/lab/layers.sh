# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The lab's layers, from the bottom up: what each is made of.
#
#   base        Debian with compilers, verbs programs and RDMA user space
#   kernel      a kernel as Debian builds it, its headers and Rust metadata; or
#   debug       one compiled by us from the same source, with every checker on
#   boot        its initramfs
#   nvsource    NVIDIA's own header and nvidia-peermem source, from Debian
#   nvidia      the simulated NVIDIA driver, installed; or
#   realdriver  NVIDIA's own, of Debian's package, built by dkms, and a GPU for it
#   ofed        the RDMA core with peer memory, installed as MLNX_OFED does it
#   neighbours  other modules beside ours: NVIDIA's nvidia-peermem, which ours is
#               compared with, a second client of the driver, mistakes for the kernel's checkers
#   steps       the client that does verbs step by step, beside either module
#   module      nv_peer_mem.ko, built with the project's Makefile and installed, on the
#               ground that the machine's line names; for that:
#   ready       the assembly that releases have for machines without Rust
#   gpuverbs    the lab's own verbs client
#
# What only some guests want (the column "layers" of ../jobs.md):
#   generations drivers and RDMA cores of other generations, and the module for them
#   grounds     the module on every other ground that the kernel can have
#   cuda        libcuda over the simulated GPU, with the examples, and
#   programs    programs of others for CUDA memory, and our own
#   hosts       programs that run on two guests, on top of
#   openmpi     Open MPI and ssh
#   service     service script and status
#   python      what measures, and draws what came of that
#
# What no guest has: hosttools and clienttools, crates for what is compiled with them; and
# those of packages.sh.
#
# Guests of arm64 have the same, made by other means (arm64.sh).
#
# A function leaves the stack of layers up to its own in $stack. What does not
# depend on a kernel is made on $lab_base alone, and so shared by all.

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

# new_base FULLNAME PACKAGES
new_base() {
	local dir started=$SECONDS
	new_dir base
	dir=$reply
	write_sources "$dir" "$base_release"
	say base "Debian $base_release from $mirror (about 2 GB, a minute or two)"
	LAB_RELEASE=$base_release logged "$LAB_CACHE/log/base.log" make_base "$dir" "$2" ||
		die "making the base system failed; nothing of it is kept."
	finish_layer "$dir" "$1"
	say base "done in $((SECONDS - started)) s"
}

# base_layer [RELEASE]: in $base; the release in $base_release.
base_layer() {
	local packages
	base_release=${1:-$LAB_RELEASE}
	packages=$(grep -v '^#' "$lab/$base_release.packages" | paste -sd,)
	base=$(named base "$base_release" "$packages" < <(declare -f make_base finish_layer))
	stack=$base
	[ "$base_release" != "$LAB_RELEASE" ] || lab_base=$base
	unless_there "$base" new_base "$base" "$packages"
}

# on_base NAME TEXT INPUT...: a layer that knows no kernel, made on the lab's own release.
# Its name is in $reply.
on_base() {
	local base_release=$LAB_RELEASE
	layer_args=()
	layer "$1" "$lab_base" "${@:2}"
}

# on_stack NAME TEXT INPUT...: a layer for the kernel, above all that is there.
on_stack() {
	layer_args=("$kver")
	layer "$1" "$stack" "${@:2}"
	stack=$reply:$stack
}

# Beside the others: it leaves its stack in $host_stack.
hosttools_layer() {
	base_layer
	layer_network=yes on_base hosttools "crates for the tests on the host (two minutes)" \
		"$lab/build/crates.sh" "$top/tests/host/Cargo.toml"
	host_stack=$reply:$base
}

# kernel_layers: the kernel of the machine's line, and what boots it.
kernel_layers() {
	base_layer
	list_archive "$base"
	[ "$krelease" = "$LAB_RELEASE" ] || base_layer "$krelease"
	choose_kernel
	case $kpackages in
	image)
		layer_args=("$kver" "$kpkg" "$kseries" "$ksuite" "$kcompiler")
		layer_network=yes layer kernel "$base" "kernel $kver, ready for modules (three minutes)" "$top/debian/rust-metadata"
		;;
	debug)
		layer_args=("$kpkg" "$kseries" "$kcompiler")
		layer_network=yes layer debug "$base" "kernel $kseries, compiled with debug/config (10 to 30 minutes, once)" \
			"$lab/debug/config"
		kver=$(basename "$LAB_CACHE/layers/$reply"/root/boot/vmlinux-*)
		kver=${kver#vmlinux-}
		;;
	esac
	stack=$reply:$base
	boot_layer
}

# boot_layer: $initramfs and $vmlinux of the kernel on top of the stack.
boot_layer() {
	layer_args=("$kver")
	layer boot "$stack" "initramfs" "$lab/initramfs-init"
	initramfs=$LAB_CACHE/layers/$reply/root/boot/lab-initramfs
	vmlinux=$LAB_CACHE/layers/${stack%%:*}/root/boot/vmlinux-$kver
}

# driver_layers: above the kernel, its neighbours: NVIDIA's side and the RDMA core's.
driver_layers() {
	case $kdriver in
	open | closed)
		layer_network=yes on_base nvsource "NVIDIA's header from Debian (35 MB)"
		stack=$reply:$stack
		layer_args=("$kver" "$kdriver" "$kcompiler")
		layer nvidia "$stack" "simulated NVIDIA driver, $kdriver" "$lab/nvidia" "$lab/compat.h"
		;;
	*)
		packaging_layer
		layer_args=("$kver" "$(newest_driver "$kdriver")")
		layer_network=yes layer realdriver "$packaging:$stack" "NVIDIA's own driver, ${layer_args[1]} (a minute or two)" "$lab/idlegpu"
		;;
	esac
	stack=$reply:$stack
	layer_args=("$kver" "$kseries")
	layer ofed "$stack" "RDMA core with peer memory for $kver" "$lab/ofed" "$lab/compat.h"
	stack=$reply:$stack
}

neighbours_layer() {
	on_stack neighbours "modules beside ours" "$lab/cpumap" "$lab/mistakes" "$lab/compat.h"
}

# The files that make up the module, as a package would ship them.
module_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/src")

# ready_layer: the assembly that releases have for machines without Rust, beside the
# others in $ready, a layer.
ready_layer() {
	on_base ready "the Rust half as assembly" "${module_sources[@]}"
	ready=$reply
}

module_layer() {
	ready_layer
	layer_args=("$kver" "$kground")
	layer module "$stack" "nv_peer_mem.ko, on the ground $kground" "${module_sources[@]}" "$LAB_CACHE/layers/$ready/root/ready"
	stack=$reply:$stack
}

# clienttools_layer: what the verbs client is compiled in, in $client_stack.
clienttools_layer() {
	layer_network=yes on_base clienttools "crates for the verbs client (half a minute)" \
		"$lab/build/crates.sh" "$top/tests/guest/gpuverbs/Cargo.toml"
	client_stack=$reply:$lab_base
}

# Above every layer that has packages of its own: dpkg must know those in the end.
gpuverbs_layer() {
	clienttools_layer
	layer_args=()
	layer gpuverbs "$client_stack" "verbs client of the lab" "$top/tests/guest/gpuverbs" "$lab/nvidia/lab_gpu.h"
	stack=$reply:$stack
}

# extra_NAME: what only some guests want. A kernel's packages come
# after CUDA's programs, and Open MPI's after the kernel's: dpkg must know the last.
extra_generations() {
	layer_args=("$kver" "$kground" "$kdriver")
	layer generations "$stack" "drivers and RDMA cores of other generations" "$lab/nvidia" "$lab/compat.h" \
		"${module_sources[@]}" "$LAB_CACHE/layers/$ready/root/ready"
	stack=$reply:$stack
}

# What was found of them is in the layer $grounds.
extra_grounds() {
	# A kernel of an older release has modules that older binutils made.
	if [[ $ksuite != "$LAB_RELEASE"* ]]; then
		layer_args=("$ksuite")
		layer_network=yes layer binutils "$lab_base" "binutils of $ksuite"
		stack=$reply:$stack
	fi
	layer_args=("$kver")
	layer grounds "$stack" "the module on every ground (minutes)" "${module_sources[@]}" \
		"$LAB_CACHE/layers/$ready/root/ready" "$lab/object"
	grounds=$reply
	stack=$reply:$stack
}

extra_cuda() {
	local cuda
	case $stack in *:cuda-*) return 0 ;; esac
	on_base cuda "CUDA of the lab" "$lab/cuda/cuda.c" "$lab/cuda/include" "$lab/nvidia/lab_gpu.h"
	cuda=$reply:$lab_base
	layer examples "$cuda" "the examples" "$top/examples"
	stack=${stack%"$base"}$reply:$cuda
}

extra_programs() {
	local below programs
	extra_cuda
	below=examples-${stack##*:examples-}
	layer_network=yes layer programs "$below" "programs for CUDA memory (a minute or two)"
	programs=$reply:$below
	layer clients "$programs" "the lab's own programs for CUDA memory" "$top/tests/guest/clients"
	stack=${stack%"$below"}$reply:$programs
}

extra_hosts() {
	local openmpi
	layer_network=yes on_base openmpi "Open MPI and ssh"
	openmpi=$reply:$lab_base
	layer hosts "$openmpi" "programs for two guests" "$top/tests/guest/hosts"
	stack=$reply:${openmpi%"$base"}$stack
}

extra_service() {
	on_base service "service" "$top/init.d" "$top/nv_peer_mem.conf"
	stack=$reply:$stack
}

extra_python() {
	layer_network=yes on_base python "all of Python, and matplotlib"
	stack=$reply:$stack
}

# guest_layers MACHINE [EXTRA...]: all that a guest boots with, on that machine, and EXTRA ones.
guest_layers() {
	local extra
	choose_machine "$1"
	if is_arm64; then
		arm64_layers "${@:2}"
		return
	fi
	kernel_layers
	driver_layers
	neighbours_layer
	on_base steps "verbs step by step" "$top/tests/guest/defects/steps.c" "$lab/nvidia/lab_gpu.h"
	stack=$reply:$stack
	module_layer
	for extra in $(printf '%s\n' "${@:2}" | sort -u); do
		"extra_$extra"
	done
	gpuverbs_layer
}

# compile_layers MACHINE: the module compiled on every ground that it can have; what was found
# is in the file $compiled. Of a kernel that is source alone it is not linked.
compile_layers() {
	local nvsource
	choose_machine "$1"
	if [ "$kpackages" != tree ]; then
		guest_layers "$1" grounds
		compiled=$LAB_CACHE/layers/$grounds/root/grounds
		return
	fi
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

# What nobody has used for a week goes.
prune_layers() { find "$LAB_CACHE"/{layers,cargo} -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} + 2>/dev/null || true; }
