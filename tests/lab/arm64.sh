# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Machines of arm64: what they boot is compiled here, on x86-64, and emulated.
#
# All is built on the lab's own base with a cross compiler above it ("cross"); a guest
# has the same layers, but above a root of its own processor ("arm64root").

is_arm64() { [[ $kflavour = arm64* ]]; }

# cross_layer: what compiles for arm64, in $cross.
cross_layer() {
	layer_network=yes on_base cross "compilers and libraries for arm64 (a minute)"
	cross=$reply
}

# unpack_arm64 DIR PACKAGES: Debian in DIR/root. No script of a package is run, for nothing
# of it could run here; what those would have made that guests need is made below.
# This text is part of the layer's hash.
unpack_arm64() {
	# shellcheck disable=SC2016 # for the shell inside
	setpriv --pdeathsig KILL mmdebstrap --mode=root --variant=extract --architectures=arm64 \
		--include="$2" --aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--extract-hook='ln -s mawk "$1"/usr/bin/awk' \
		--extract-hook='cp "$1"/usr/share/base-passwd/passwd.master "$1"/etc/passwd' \
		--extract-hook='cp "$1"/usr/share/base-passwd/group.master "$1"/etc/group' \
		--extract-hook='mkdir -p "$1"/mnt' \
		"$LAB_RELEASE" "$1/root" "$1/sources.list"
}

# new_arm64_root FULLNAME PACKAGES
new_arm64_root() {
	local dir
	new_dir arm64root
	dir=$reply
	write_sources "$dir"
	say arm64root "Debian $LAB_RELEASE for arm64 (a minute)"
	logged "$LAB_CACHE/log/arm64root.log" unpack_arm64 "$dir" "$2" || die "unpacking Debian for arm64 failed; nothing of it is kept."
	finish_layer "$dir" "$1"
}

# arm64_root: a guest's root, in $arm64_root.
arm64_root() {
	local packages
	packages=$(grep -v '^#' "$lab/arm64.packages" | paste -sd,)
	arm64_root=$(named arm64root "$LAB_RELEASE" "$packages" < <(declare -f unpack_arm64 finish_layer))
	unless_there "$arm64_root" new_arm64_root "$arm64_root" "$packages"
}

# arm64_kernel_layers: as kernel_layers.
arm64_kernel_layers() {
	base_layer
	list_archive "$base"
	choose_kernel
	kver=${kver%-amd64}-$kflavour
	cross_layer
	base=$cross:$lab_base
	layer_args=("$kver" "$kpkg" "$kseries")
	layer_network=yes layer arm64kernel "$base" "kernel $kver, ready for modules (a minute or two)" "$top/debian/rust-metadata"
	stack=$reply:$base
	boot_layer
}

# arm64_layers [EXTRA...]: as guest_layers, of the machine that was chosen. $stack is what
# programs of this machine run in, $guest_stack what the guest boots.
arm64_layers() {
	local above extra
	arm64_kernel_layers
	arm64_root
	driver_layers
	neighbours_layer
	# `ready` is what a release has for this processor.
	lab_base=$base module_layer
	for extra in $(printf '%s\n' "$@" | sort -u); do
		case $extra in
		generations | grounds) "extra_$extra" ;;
		*) die "machines of arm64 have no layers '$extra'." ;;
		esac
	done
	above=${stack%"$base"}
	clienttools_layer
	layer_args=(aarch64-unknown-linux-gnu)
	layer gpuverbs "${client_stack%"$lab_base"}$base" "verbs client of the lab, for arm64" "$top/tests/guest/gpuverbs" "$lab/nvidia/lab_gpu.h"
	guest_stack=$reply:$above$arm64_root
	# It makes patterns here, too.
	gpuverbs_layer
}
