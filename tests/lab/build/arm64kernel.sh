# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# A kernel for arm64 as Debian builds it, and its headers, whose programs are those for
# x86-64 (linux-kbuild). It is unpacked alone: what its packages' scripts do is for a
# machine that would boot it.
set -euo pipefail
kver=$1 version=$2 series=$3
lab=/usr/src/linux-lab-$series

mkdir /tmp/debs
cd /tmp/debs
apt-get update
apt-get download "linux-image-$kver:arm64=$version" "linux-headers-$kver:arm64=$version" \
	"linux-headers-${kver%-arm64*}-common=$version" "linux-kbuild-${kver%-arm64*}=$version" "linux-source-$series=$version"
for deb in linux-image-* linux-headers-* linux-kbuild-*; do dpkg-deb -x "$deb" /; done

# What build/ofed.sh compiles, as build/kernel.sh keeps it.
mkdir -p "$lab"
dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xOf - "./usr/src/linux-source-$series.tar.xz" |
	tar -xJf - -C "$lab" --strip-components=1 \
		--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*'

# What guests load they unpack, emulated: it is unpacked here, but for drivers of
# devices that no guest has.
kernel=/lib/modules/$kver/kernel
rm -rf "$kernel"/{sound,drivers/{ata,gpu,hwmon,iio,input,media,mtd,platform,scsi,staging,usb,video},drivers/net/{usb,wireless}}
find "$kernel" -name '*.ko.xz' -exec xz -d {} +
depmod "$kver"

# Debian's is no archive that unpacks itself.
mv "/boot/vmlinuz-$kver" "/boot/vmlinux-$kver"
rm -rf /var/lib/apt/lists/*
