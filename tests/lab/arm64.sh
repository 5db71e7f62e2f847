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

# arm64_root: a guest's root, in $arm64_root.
arm64_root() {
	local packages dir making
	packages=$(grep -v '^#' "$lab/arm64.packages" | paste -sd,)
	arm64_root=arm64root-$( (printf '%s\n' "$LAB_RELEASE" "$packages"; declare -f unpack_arm64) | sha256sum | cut -c 1-12)
	! use_layer "$arm64_root" || return 0
	exec {making}>"$LAB_CACHE/tmp/$arm64_root.building"
	flock "$making"
	if ! use_layer "$arm64_root"; then
		new_dir tmp arm64root
		dir=$reply
		write_sources "$dir"
		with_dots arm64root "Debian $LAB_RELEASE for arm64 (a minute)" "$LAB_CACHE/log/arm64root.log" unpack_arm64 "$dir" "$packages" || {
			show_log "$LAB_CACHE/log/arm64root.log"
			die "unpacking Debian for arm64 failed; nothing of it is kept."
		}
		finish_layer "$dir" "$arm64_root"
	fi
	rm -f "$LAB_CACHE/tmp/$arm64_root.building"
	exec {making}>&-
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
# programs of this machine run in, $arm64_stack what the guest boots.
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
	layer_args=(aarch64-unknown-linux-gnu)
	layer gpuverbs "$base" "verbs client of the lab, for arm64" "$top/tests/guest/gpuverbs" "$lab/nvidia/lab_gpu.h"
	arm64_stack=$reply:$above$arm64_root
	# It makes patterns here, too.
	gpuverbs_layer
}

# arm64_emulator: how these guests are run, for keys.
arm64_emulator() {
	printf '%s\n' "$arm64_stack"
	qemu-system-aarch64 --version | head -n 1
	declare -f qemu_arm64
}

# qemu_arm64 RUN WORDS: see qemu_command. The processor is one of servers; of those
# that QEMU has it knows pages of 4, 16 and 64 KiB.
qemu_arm64() {
	local devices words="lab.machine=$machine_is lab.ground=$kground lab.driver=$kdriver lab.name=$machine lab.layers=$arm64_stack $2" smmu=
	if [ "$machine_is" = smmu ]; then
		smmu=,iommu=smmuv3
		words="iommu.passthrough=0 iommu.strict=1 $words"
	fi
	[ "$LAB_ACCEL-$LAB_CLOCK" = tcg-host ] || die "machines of arm64 are emulated, by the host's clock: leave LAB_ACCEL and LAB_CLOCK out."
	guest_devices "$1"
	# shellcheck disable=SC2054 # QEMU's options have commas
	qemu=(
		qemu-system-aarch64 -nodefaults -no-user-config -display none -no-reboot
		-machine "virt,gic-version=3$smmu" -accel "tcg,thread=${LAB_THREADS:-single}" -cpu neoverse-n1 -smp "$LAB_CPUS" -m "$LAB_GUEST_MB"
		-kernel "$vmlinux" -initrd "$initramfs"
		-append "console=ttyAMA0 loglevel=5 log_buf_len=4M panic=-1 mitigations=off cryptomgr.notests=1 nokaslr $words"
		"${devices[@]}"
	)
}
