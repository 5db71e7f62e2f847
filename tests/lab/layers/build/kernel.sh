# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs a kernel of Debian, its headers, and the compiler for its modules.
set -euo pipefail
kver=$1 version=$2 series=$3 suite=$4 compiler=$5
modules=/lib/modules/$kver/kernel source=/usr/src/linux-lab-$series

# unpack_arm64: unpacks a kernel for arm64, and does not run the scripts of its packages, which
# prepare a machine that boots the kernel. The programs of its headers are those for x86-64
# (linux-kbuild).
unpack_arm64() {
	local part deb kernel=()
	mkdir /tmp/debs
	cd /tmp/debs
	# From 7.3 on, the kernel's parts are in separate packages.
	for part in image base binary modules; do
		! apt-cache show "linux-$part-$kver:arm64=$version" >/dev/null 2>&1 || kernel+=("linux-$part-$kver:arm64=$version")
	done
	apt-get download "${kernel[@]}" "linux-headers-$kver:arm64=$version" "linux-source-$series=$version" \
		"linux-headers-${kver%-arm64*}-common=$version" "linux-kbuild-${kver%-arm64*}=$version"
	for deb in *.deb; do dpkg-deb -x "$deb" /; done
}

# older_binutils: installs assembler and linker of the kernel's own release in /opt/binutils,
# because they make other symbols than the lab's from the same assembly.
older_binutils() {
	local tool
	cd /tmp
	apt-get download "binutils-x86-64-linux-gnu/$suite" "libbinutils/$suite"
	mkdir -p /opt/binutils/bin
	for package in ./*binutils*.deb; do dpkg-deb -x "$package" /opt/binutils; done
	for tool in /opt/binutils/usr/bin/x86_64-linux-gnu-*; do ln -s "$tool" "/opt/binutils/bin/${tool##*-gnu-}"; done
	LD_LIBRARY_PATH=/opt/binutils/usr/lib/x86_64-linux-gnu /opt/binutils/bin/as --version
}

apt-get update
case $kver in
*-arm64*) unpack_arm64 ;;
*)
	INITRD=No apt-get install -y --no-install-recommends -t "$suite" \
		"linux-image-$kver=$version" "linux-headers-$kver=$version" "linux-source-$series=$version" "$compiler"
	grep -q "^VERSION_CODENAME=${suite%%-*}$" /etc/os-release || older_binutils
	;;
esac

# The RDMA stack is rebuilt from the kernel's own source, so that part of the source is kept.
mkdir "$source"
tar -xJf "/usr/src/linux-source-$series.tar.xz" -C "$source" --strip-components=1 \
	--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*' \
	'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' '*/scripts/extract-vmlinux' &
kept=$!

# depmod reads all modules for each layer above this one, so drivers of devices that no guest has
# are left out. Modules are unpacked here, because emulated guests unpack slowly.
rm -rf "$modules"/sound "$modules"/drivers/net/{usb,wireless} \
	"$modules"/drivers/{ata,comedi,gpu,hid,hwmon,iio,input,leds,md,media,mtd,platform,scsi,staging,usb,video,watchdog}
find "$modules"/{net,lib,crypto} "$modules"/drivers/{infiniband,net/ethernet/intel,virtio,char} -name '*.ko.xz' -exec xz -d {} +
depmod "$kver"
wait "$kept"
case $kver in
*-arm64*) rm "/usr/src/linux-source-$series.tar.xz" ;;
*) dpkg --purge "linux-source-$series" ;;
esac

mkdir -p /boot
[ -e "/boot/vmlinuz-$kver" ] || mv "/lib/modules/$kver/vmlinuz" "/boot/vmlinuz-$kver"
case $kver in
# Debian's kernel for arm64 is no archive that unpacks itself.
*-arm64*) mv "/boot/vmlinuz-$kver" "/boot/vmlinux-$kver" ;;
# A kernel that is booted through PVH need not unpack itself, which saves two seconds for each boot.
*) "$source/scripts/extract-vmlinux" "/boot/vmlinuz-$kver" >"/boot/vmlinux-$kver" ;;
esac
[ -s "/boot/vmlinux-$kver" ]
apt-get clean
rm -rf /var/log/*
