# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Scenarios of whole systems: tests/guest/systems/NAME.sh, each in a guest with
# systemd as init and a disk, which is restarted between the scenario's boots.
#
# Their first lines say, beside "# Shows:",
#   # Prepared: WORD...   what systems/prepare/WORD.sh did before the first boot;
#                         natively, ten times faster than in an emulated guest
#   # Kernels: older newer  that the first boot is of an older kernel than the
#                         others
#   # Machines: NAME...    kernels and drivers that it is run with (kernels); else stock

system_file() { printf '%s\n' "$top/tests/guest/systems/${1%@*}.sh"; }

system_names() {
	local file
	for file in "$top"/tests/guest/systems/*.sh; do
		on_machines "$(basename "$file" .sh)" "$file"
	done
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

# add_newer_kernel: its layers beneath everything else, so that what both have is
# the older one's. But /usr/lib/modules of any kernel's layer hides all beneath
# it (overlayfs: a new directory is opaque): the modules come once more, on top. So
# does what the RDMA core has for modules that are compiled: OFED keeps a tree for
# each kernel, whose versions of symbols may differ.
add_newer_kernel() {
	local full dir layer trees
	full=newer-$(sha256sum <<<"$newer" | cut -c 1-12)
	if ! use_layer "$full"; then
		new_dir tmp newer
		dir=$reply trees=$dir/root/usr/src/ofa_kernel/$(uname -m)
		mkdir -p "$dir/root/usr/lib" "$trees"
		cp -a "$LAB_CACHE/layers/${newer%%:*}/root/usr/src/ofa_kernel/default" "$trees/$newer_kver"
		for layer in $(tr : '\n' <<<"$newer" | tac); do
			cp -dRlf --preserve=mode,ownership,timestamps "$LAB_CACHE/layers/$layer/root/usr/lib/modules" "$dir/root/usr/lib/"
		done
		finish_layer "$dir" "$full"
	fi
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

# prepare_system NAME: the system before its first boot, in $stack.
prepare_system() {
	local word
	packages_layer
	system_layers "$(machine_of "$1")"
	[ -z "$(header "$(system_file "$1")" Kernels)" ] || two_kernels "$(machine_of "$1")"
	for word in $(header "$(system_file "$1")" Prepared); do
		prepare "$word"
	done
}

# boot_system NAME: all its boots. Succeeds if the scenario held.
boot_system() {
	local boot=1 rc
	new_run "$1"
	truncate -s 2G "$run/disk"
	mkfs.ext4 -q -E lazy_itable_init,lazy_journal_init "$run/disk"
	while :; do
		rc=0
		boot_guest "lab.scenario=${1%@*} lab.disk=vda lab.boot=$boot lab.seed=$seed systemd.show_status=error" || rc=$?
		[ "$rc" = 2 ] || return "$rc"
		boot=$((boot + 1))
		[ -z "${newer_kver-}" ] || vmlinux=$newer_vmlinux initramfs=$newer_initramfs
	done
}

# key_system NAME: of all that its result depends on.
key_system() {
	local parts=()
	prepare_system "$1"
	guest_files
	parts+=("$top/tests/guest/systems/machine" "$(system_file "$1")")
	key_of "$1" "$stack" "$(hash_of "${parts[@]}")" "$(emulator)" "$(declare -f boot_system)"
}

# run_system NAME: one line when it passes; when it does not, everything seen. In
# a shell of its own: what one chooses, a kernel for example, is not the next one's.
run_system() (
	scenario_label=$1 rc=0
	seed=$(choose_seed)
	prepare_system "$1"
	started=$SECONDS
	boot_system "$1" || rc=$?
	show_end "$1" "$rc" "system $1"
)

system_main() {
	local name
	if [ $# -eq 0 ]; then
		printf 'Whole systems (tests/run system NAME...):\n'
		for name in $(system_names); do
			printf '  %-16s %s\n' "$name" "$(header "$(system_file "$name")" Shows)"
		done
		return
	fi
	for name; do
		[ -e "$(system_file "$name")" ] || die "there is no system '$name': tests/run system lists them."
	done
	each run_system "$@"
}
