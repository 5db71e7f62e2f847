# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Layers of the packages, and of whole systems that have them installed: guests with systemd
# as init and a disk. The first lines of tests/guest/systems/NAME.sh say
#   # Prepared: WORD...   what systems/prepare/WORD.sh did before the first boot;
#                         natively, ten times faster than in an emulated guest
#   # Kernels: older newer  that the first boot is of an older kernel than the others

# What a release is made of. Tests are in it, but make no difference here.
package_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/nv_peer_mem.conf" "$top/build_release.sh"
	"$top/README.md" "$top/LICENSE" "$top/LICENSES" "$top/.gitignore"
	"$top/src" "$top/init.d" "$top/docs" "$top/debian" "$top/rpm")

# packages_layer MACHINE: a guest's stack without module, with what
# packages are made with and the packages themselves, in $stack. $packages is the layer
# that has them, made on stock: in /packages and, of an older version, in /packages/old.
packages_layer() {
	packaging_layers stock
	layer_args=("$kver")
	layer packages "$stack" "packages, deb and rpm" "${package_sources[@]}"
	packages=$reply
	[ "$1" = stock ] || packaging_layers "$1"
	stack=$packages:$stack
}

# packaging_layers MACHINE: no program for verbs is in them, which not every release's base
# could run.
packaging_layers() {
	choose_machine "$1"
	if is_arm64; then arm64_kernel_layers; else kernel_layers; fi
	driver_layers
	neighbours_layer
	packaging_layer
	stack=$packaging:$stack
}

# packaging_layer: in $packaging, on top of the kernel's packages: dpkg has one list of
# what is installed.
packaging_layer() {
	local kernel
	kernel=$(tr : '\n' <<<"$stack" | grep -E '^(kernel|arm64kernel|cross|base)-' | paste -sd:)
	layer_args=()
	layer_network=yes layer packaging "$kernel" "Debian's tools for packages (a minute)"
	packaging=$reply
}

# system_layers MACHINE: as guest_layers, for a system on which nothing is installed yet.
system_layers() {
	local kernel_stack
	choose_machine "$1"
	kernel_layers
	kernel_stack=$stack
	driver_layers
	layer_args=()
	layer_network=yes layer system "$kernel_stack" "systemd, dkms and rpm" "$top/tests/guest/systems/machine/units"
	stack=$reply:$stack
	gpuverbs_layer
}

# two_kernels MACHINE: layers of a system with the older kernel in $stack; of what the
# newer one needs beside it in $newer.
two_kernels() {
	local older kernel_instead
	older=$(older_kernel)
	[ "$older" ] || die "the archive has no kernel before $kver to upgrade from: choose a newer one with LAB_KERNEL=."
	newer=$(tr : '\n' <<<"$stack" | grep -E '^(ofed|nvidia|kernel)-' | paste -sd:)
	newer_kver=$kver newer_vmlinux=$vmlinux newer_initramfs=$initramfs
	kernel_instead=$older
	system_layers "$1"
}

# new_newer FULLNAME: what both kernels need of the newer one's layers, once more.
new_newer() {
	local dir layer trees
	new_dir newer
	dir=$reply trees=$dir/root/usr/src/ofa_kernel/$(uname -m)
	mkdir -p "$dir/root/usr/lib" "$trees"
	cp -a "$LAB_CACHE/layers/${newer%%:*}/root/usr/src/ofa_kernel/default" "$trees/$newer_kver"
	for layer in $(tr : '\n' <<<"$newer" | tac); do
		cp -dRlf --preserve=mode,ownership,timestamps "$LAB_CACHE/layers/$layer/root/usr/lib/modules" "$dir/root/usr/lib/"
	done
	finish_layer "$dir" "$1"
}

# add_newer_kernel: its layers beneath everything else, so that what both have is
# the older one's. But /usr/lib/modules of any kernel's layer hides all beneath
# it (overlayfs: a new directory is opaque): the modules come once more, on top. So
# does what the RDMA core has for modules that are compiled: OFED keeps a tree for
# each kernel, whose versions of symbols may differ.
add_newer_kernel() {
	local full
	full=$(named newer "$newer" < <(declare -f new_newer))
	unless_there "$full" new_newer "$full"
	stack=$full:${stack%:*}:$newer:$base
}

# prepare WORD: runs systems/prepare/WORD.sh on top of the stack.
prepare() {
	local inputs=("$top/tests/guest/systems/prepare/$1.sh" "$LAB_CACHE/layers/$packages/root/packages")
	if [ "$1" = newer_kernel ]; then
		add_newer_kernel
		inputs+=("$LAB_CACHE/layers/${newer##*:}/root/var/lib/dpkg/status")
	fi
	layer_args=("$1" "$kver" "${newer_kver-}")
	layer prepared "$stack" "a system, prepared: $1" "${inputs[@]}"
	stack=$reply:$stack
}

# prepare_system NAME MACHINE: the system before its first boot, in $stack.
prepare_system() {
	local word file=$top/tests/guest/systems/$1.sh
	packages_layer stock
	system_layers "$2"
	! grep -q '^# Kernels: ' "$file" || two_kernels "$2"
	# shellcheck disable=SC2013 # words are what is wanted
	for word in $(sed -n 's/^# Prepared: //p' "$file"); do
		prepare "$word"
	done
}
