# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The guest's initramfs: busybox and the modules that reach the shared layers.
set -euo pipefail
kver=$1
work=/tmp/initramfs
mkdir -p "$work"/{bin,modules}
cp /usr/bin/busybox "$work/bin/busybox"
install -m 755 /in/initramfs-init "$work/init"
for module in virtio_pci 9pnet_virtio 9p overlay; do
	modprobe -S "$kver" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
	name=$(basename "$path" .xz)
	case $path in
	*.xz) xz -dc "$path" ;;
	*) cat "$path" ;;
	esac >"$work/modules/$name"
	printf '%s\n' "$name"
done >"$work/modules/order"
mkdir -p /boot
(cd "$work" && find . | cpio -o -H newc --quiet) | gzip -1 >/boot/lab-initramfs
