# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The stock kernel, its headers, and the Rust metadata that Debian leaves out.
set -euo pipefail
kver=$1 version=$2 series=$3

apt-get update
INITRD=No apt-get install -y --no-install-recommends -t trixie-backports \
	"linux-image-$kver=$version" "linux-headers-$kver=$version" "linux-source-$series=$version"
# In memory: a kernel's source is many small files.
TMPDIR=/tmp /in/rust-metadata "$kver"

# The RDMA stack is rebuilt from the kernel's own source: keep that part of it.
mkdir -p "/usr/src/linux-lab-$series"
tar -xJf "/usr/src/linux-source-$series.tar.xz" -C "/usr/src/linux-lab-$series" --strip-components=1 \
	--wildcards '*/drivers/infiniband/core/*' '*/drivers/infiniband/sw/rxe/*' '*/include/trace/*' \
	'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
	'*/scripts/extract-vmlinux'
apt-get purge -y "linux-source-$series"

# Booted through PVH the kernel need not unpack itself: two seconds less a boot.
"/usr/src/linux-lab-$series/scripts/extract-vmlinux" "/boot/vmlinuz-$kver" >"/boot/vmlinux-$kver"
[ -s "/boot/vmlinux-$kver" ]
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*
