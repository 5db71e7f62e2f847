# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the guest's initramfs: busybox, the modules that reach the shared layers, and modules for a
# disk, which are loaded only if the guest has a disk.
set -euo pipefail
kver=$1
work=/tmp/initramfs
mkdir -p "$work"/{bin,modules}
cp /usr/bin/busybox "$work/bin/busybox"
install -m 755 /in/initramfs-init "$work/init"

# take ORDER MODULE...: takes the modules and the modules that they need, and writes their names to
# the file ORDER, in the order in which to load them.
take() {
	local order=$1 module path name
	shift
	for module; do
		modprobe -S "$kver" --show-depends "$module"
	done | awk '$1 == "insmod" { print $2 }' | while read -r path; do
		name=$(basename "$path" .xz)
		[ ! -e "$work/modules/$name" ] || continue
		xz -dcf "$path" >"$work/modules/$name"
		printf '%s\n' "$name"
	done >"$work/modules/$order"
}
take order virtio_pci 9pnet_virtio 9p overlay
# The debug kernel has neither module, because no guest with that kernel has a disk.
take disk-order virtio_blk ext4 || true

mkdir -p /boot
(cd "$work" && find . | cpio -o -H newc --quiet) | gzip -1 >/boot/lab-initramfs
