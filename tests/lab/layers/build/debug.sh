# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes a kernel with every checker on, compiled with clang, because only clang combines Rust and
# KASAN. The layer keeps the kernel, its modules, the files that other modules are compiled against,
# and clang.
set -euo pipefail
version=$1 series=$2 compiler=$3
source=/tmp/source objects=/tmp/objects
tarball=/usr/src/linux-source-$series.tar.xz

# unpack: unpacks the source. Only Kconfig and Makefiles are unpacked of drivers that the lab does
# not configure.
unpack() {
	local inside=linux-source-$series
	mkdir "$source"
	tar -xJf "$tarball" -C "$source" --strip-components=1 --anchored --wildcards \
		--exclude="$inside/drivers/gpu/*.[ch]" --exclude="$inside/drivers/media/*.[ch]" \
		--exclude="$inside/drivers/staging/*.[ch]" --exclude="$inside/drivers/scsi/*.[ch]" \
		--exclude="$inside/sound/*.[ch]" --exclude="$inside/arch/[!ux]*/*.[chS]" --exclude="$inside/arch/[!ux]*/*.dts*" \
		--exclude="$inside/Documentation/*/*" --exclude="$inside/tools/testing"
}

kernel_make() {
	make -C "$source" O="$objects" LLVM=1 -j"$(nproc)" "$@"
}

# configure: configures the kernel, and fails if an option of the lab is missing afterwards, because
# Kconfig drops options without a message.
configure() {
	local dropped
	grep '^CONFIG_' /in/config >/tmp/fragment
	kernel_make KCONFIG_ALLCONFIG=/tmp/fragment allnoconfig
	dropped=$(grep -vxFf "$objects/.config" /tmp/fragment | paste -sd' ') || true
	[ -z "$dropped" ] || {
		printf 'this kernel has no %s: see what it depends on in %s\n' "$dropped" "$series"
		exit 1
	}
}

# install_tree DIR: installs the files against which modules are compiled.
install_tree() {
	# shellcheck disable=SC2016 # make expands the variable
	kernel_make run-command KBUILD_RUN_COMMAND='$(srctree)/scripts/package/install-extmod-build '"$1"
	cp "$objects/.config" "$1/"
	mkdir -p "$1/rust"
	cp "$objects"/rust/*.rmeta "$objects"/rust/*.so "$1/rust/"
	cp "$objects/scripts/target.json" "$1/scripts/"
	ln -sfn "$1" "/lib/modules/$kver/build"
}

apt-get update
apt-get install -y --no-install-recommends "$compiler" lld llvm "linux-source-$series=$version"
unpack
configure
kernel_make vmlinux modules modules_prepare
kver=$(cat "$objects/include/config/kernel.release")
kernel_make modules_install
install -D -m 644 "$objects/vmlinux" "/boot/vmlinux-$kver"
install_tree "/usr/src/linux-rust-$kver"

# The sources for build/ofed.sh, in the place where build/kernel.sh keeps them.
mkdir -p "/usr/src/linux-lab-$series"
tar -xJf "$tarball" -C "/usr/src/linux-lab-$series" --strip-components=1 \
	--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*'
apt-get purge -y "linux-source-$series"
apt-get clean
rm -rf /var/log/*
