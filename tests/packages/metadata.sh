#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: Rust metadata that dkms had made (the layer `metadata`): what is built with it, and when it is removed
# All: it makes the Rust metadata again, for minutes
. /checkout/tests/packages/lib.sh

tree=/usr/src/linux-rust-$kver
# The layer is kept: that may have been long before this run.
note "making the metadata took $(cat /metadata/seconds) s on $(cat /metadata/made)"
check "dkms had it made" [ -e "$tree/made-by-dkms" ]
check "once: the second time it was there" grep -q "^rust-metadata: $tree is there already" /metadata/second

SECONDS=0
check "the module is built with it" saying dpkg -i /packages/nvidia-peer-memory-dkms_*_all.deb
note "dkms build $SECONDS s"
check "for this kernel" grep -q "$kver, .*: installed" <(dkms status nvidia-peer-memory)
check "nothing had to be made for that" grep -q "^rust-metadata: $tree is there already" \
	"/var/lib/dkms/nvidia-peer-memory/$version/$kver/$(uname -m)/log/make.log"

cp -a "$tree" /tmp/tree
run-parts --exit-on-error --arg="$kver" /etc/kernel/postrm.d
check "it goes with the kernel" [ ! -e "$tree" ]

cp -a /tmp/tree "$tree"
mv "/usr/src/linux-headers-$kver" /tmp/headers
dpkg-trigger --no-await /usr/src
dpkg --configure --pending
check "it goes with the kernel's headers" [ ! -e "$tree" ]
mv /tmp/headers "/usr/src/linux-headers-$kver"

cp -a /tmp/tree "$tree"
echo another >"$tree/made-for"
check "metadata of another build of the kernel is not taken for its own" fails \
	saying /usr/lib/nvidia-peer-memory/rust-metadata --check "$kver"
check "but would be made again" says "the kernel source is missing; install it"

dpkg -r nvidia-peer-memory-dkms
check "it goes with the package" [ ! -e "$tree" ]
cp -a /tmp/tree "$tree"
rm "$tree/made-by-dkms"
dpkg --unpack /packages/nvidia-peer-memory-dkms_*_all.deb
dpkg -P nvidia-peer-memory-dkms
check "but not what an administrator had made" [ -e "$tree/rust/libkernel.rmeta" ]
