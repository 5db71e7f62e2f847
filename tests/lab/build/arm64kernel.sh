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
# From 7.3 on its parts are in packages of their own.
kernel=()
for part in image base binary modules; do
	! apt-cache show "linux-$part-$kver:arm64=$version" >/dev/null 2>&1 || kernel+=("linux-$part-$kver:arm64=$version")
done
apt-get download "${kernel[@]}" "linux-headers-$kver:arm64=$version" \
	"linux-headers-${kver%-arm64*}-common=$version" "linux-kbuild-${kver%-arm64*}=$version" "linux-source-$series=$version"
for deb in linux-{image,base,binary,modules}-*.deb; do
	[ ! -e "$deb" ] || dpkg-deb -x "$deb" /
done
# rust-metadata asks dpkg of these. What is installed above this knows nothing of it.
cp -a /var/lib/dpkg /tmp/dpkg
export DPKG_ADMINDIR=/tmp/dpkg
dpkg --unpack --force-depends linux-headers-*.deb linux-kbuild-*.deb

# What build/ofed.sh compiles, as build/kernel.sh keeps it.
mkdir -p "$lab"
dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xOf - "./usr/src/linux-source-$series.tar.xz" |
	tar -xJf - -C "$lab" --strip-components=1 \
		--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*'

# What guests load they unpack, emulated: it is unpacked here, but for drivers of
# devices that no guest has.
modules=/lib/modules/$kver/kernel
rm -rf "$modules"/{sound,drivers/{ata,gpu,hwmon,iio,input,media,mtd,platform,scsi,staging,usb,video},drivers/net/{usb,wireless}}
find "$modules" -name '*.ko.xz' -exec xz -d {} +
depmod "$kver"

if grep -q '^CONFIG_RUST=y' "/usr/src/linux-headers-$kver/.config"; then
	dpkg --unpack --force-depends linux-source-*.deb
	TMPDIR=/tmp ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- /in/rust-metadata "$kver"
	dpkg --purge "linux-source-$series"
fi

# Debian's is no archive that unpacks itself.
mkdir -p /boot
[ -e "/boot/vmlinuz-$kver" ] || mv "/lib/modules/$kver/vmlinuz" "/boot/vmlinuz-$kver"
mv "/boot/vmlinuz-$kver" "/boot/vmlinux-$kver"
rm -rf /var/lib/apt/lists/*
