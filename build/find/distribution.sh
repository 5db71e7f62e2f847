# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sets values that differ between distributions: names of packages, and places of files. KVER must
# be set before.

distribution() {
	case $(sed -n 's/^ID\(_LIKE\)\{0,1\}=//p' /etc/os-release 2>/dev/null) in
	*ubuntu*) ubuntu ;;
	*debian*) debian ;;
	*suse* | *sles*) suse ;;
	*) red_hat ;;
	esac
}

debian() {
	headers_package=linux-headers-$KVER
	pahole_package='pahole, or dwarves before Debian 12'
	core_packages='mlnx-ofed-kernel-dkms or doca-ofed'
	driver_packages='nvidia-open-kernel-dkms or nvidia-kernel-dkms'
	metadata_advice="/usr/lib/nvidia-peer-memory/rust-metadata $KVER makes it; in the sources debian/rust-metadata"
	# Debian's headers lack the kernel's Rust metadata, so debian/rust-metadata writes it here.
	metadata_dir=/usr/src/linux-rust-$KVER
}

ubuntu() {
	debian
	pahole_package=dwarves
	driver_packages='for example nvidia-dkms-580-open or nvidia-dkms-580'
	metadata_advice="package linux-lib-rust-$KVER"
}

suse() {
	headers_package="kernel-default-devel of $KVER"
	pahole_package=dwarves
	core_packages='mlnx-ofa_kernel-devel and mlnx-ofa_kernel-kmp-default, or doca-kernel'
	driver_packages='nvidia-open-driver-G06-kmp-default or nvidia-driver-G06-kmp-default'
	metadata_advice='' metadata_dir=''
}

red_hat() {
	headers_package=kernel-devel-$KVER
	pahole_package=dwarves
	core_packages='mlnx-ofa_kernel-devel and kmod-mlnx-ofa_kernel, or doca-kernel'
	driver_packages='kmod-nvidia-open-dkms or kmod-nvidia-latest-dkms'
	metadata_advice='' metadata_dir=''
}

# debian_drivers: prints the names of the modules that modprobe would load for the name nvidia.
# Debian names the driver's file after the flavour, and a line `install nvidia` in modprobe's
# configuration chooses among several drivers.
debian_drivers() {
	modprobe ${DRIVER_ROOT:+-d "$DRIVER_ROOT"} -S "$KVER" --show-depends nvidia 2>/dev/null |
		sed -n 's|^install ||p; s|^insmod .*/\([^/]*\)\.ko.*|\1|p' | tr -c '[:alnum:]_-' '\n' | grep '^nvidia'
}

# ubuntu_versions PROGRAM VERSION: prints the names that Ubuntu gives this version of PROGRAM.
# Prints nothing if VERSION is empty. Ubuntu has several versions of Rust's tools, and each version
# has its own name or directory.
ubuntu_versions() {
	[ -z "$2" ] || printf '%s\n' "$1-$2" "/usr/lib/rust-$2/bin/$1"
}
