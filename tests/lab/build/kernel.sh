# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# A kernel as Debian builds it, its headers, what modules for it are compiled with
# and, where it has Rust, the metadata of its crates, which Debian leaves out.
set -euo pipefail
kver=$1 version=$2 series=$3 suite=$4 compiler=$5
tarball=/usr/src/linux-source-$series.tar.xz
lab=/usr/src/linux-lab-$series

# The RDMA stack is rebuilt from the kernel's own source: keep that part of it.
keep_source() {
	mkdir -p "$lab"
	tar -xJf "$tarball" -C "$lab" --strip-components=1 \
		--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*' \
		'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
		'*/scripts/extract-vmlinux'
}

# Each layer above this one has depmod read all modules: drivers of devices that no
# guest has are left out. What guests load they unpack, emulated: it is unpacked here.
trim_modules() {
	local kernel=/lib/modules/$kver/kernel
	rm -rf "$kernel"/sound "$kernel"/drivers/net/{usb,wireless} \
		"$kernel"/drivers/{ata,comedi,gpu,hid,hwmon,iio,input,leds,md,media,mtd,platform,scsi,staging,usb,video,watchdog}
	find "$kernel"/{net,lib,crypto} "$kernel"/drivers/{infiniband,net/ethernet/intel,virtio,char} -name '*.ko.xz' -exec xz -d {} +
	depmod "$kver"
}

apt-get update
INITRD=No apt-get install -y --no-install-recommends -t "$suite" \
	"linux-image-$kver=$version" "linux-headers-$kver=$version" "linux-source-$series=$version" "$compiler"
keep_source &
kept=$!
# In memory: a kernel's source is many small files.
! grep -q '^CONFIG_RUST=y' "/usr/src/linux-headers-$kver/.config" || TMPDIR=/tmp /in/rust-metadata "$kver"
trim_modules
wait "$kept"
apt-get purge -y "linux-source-$series"

# Booted through PVH the kernel need not unpack itself: two seconds less a boot.
"$lab/scripts/extract-vmlinux" "/boot/vmlinuz-$kver" >"/boot/vmlinux-$kver"
[ -s "/boot/vmlinux-$kver" ]
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*
