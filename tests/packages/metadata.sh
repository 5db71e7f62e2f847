#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: rust-metadata makes the Rust metadata or says why it cannot, the build of the module uses
# the metadata, and the metadata is removed with its kernel
. /checkout/tests/packages/lib.sh

tool=/usr/lib/nvidia-peer-memory/rust-metadata
tree=/usr/src/linux-rust-$kver
series=$(cut -d. -f1,2 <<<"$kver")
dpkg -i /packages/nvidia-peer-memory_*.deb
dpkg --unpack /packages/nvidia-peer-memory-dkms_*_all.deb

# cannot TEXT: checks that rust-metadata fails, and prints TEXT as the reason.
cannot() { refused "it cannot be made" "rust-metadata: $1" "$tool" "$kver"; }

# The metadata exists already, because the lab has made it with the same script.
check "what was made is there" [ -e "$tree/rust/libkernel.rmeta" ]
told "and is not made twice" "rust-metadata: $tree is there already" "$tool" "$kver"
refused "nor of a kernel without headers" "rust-metadata: no headers of kernel 1.2.3; install them" "$tool" 1.2.3

cp -a "$tree" /tmp/tree
echo another >"$tree/made-for"
cannot "the kernel source is missing; install it: apt-get install linux-source-$series="
mkdir -p /tmp/source/DEBIAN /tmp/source/usr/src
printf 'Package: linux-source-%s\nVersion: 1.0\nArchitecture: all\nMaintainer: lab <lab@localhost>\nDescription: lab\n' \
	"$series" >/tmp/source/DEBIAN/control
: >"/tmp/source/usr/src/linux-source-$series.tar.xz"
dpkg-deb -b /tmp/source /tmp/source.deb
dpkg -i /tmp/source.deb
cannot "linux-source-$series is 1.0 but linux-headers-$kver is"
dpkg -P "linux-source-$series"
with_config 's/^CONFIG_RUST=y/# CONFIG_RUST is not set/'
cannot "kernel $kver was built without CONFIG_RUST: it has no Rust crates."
back
with_config 's/^CONFIG_RUSTC_VERSION_TEXT=.*/CONFIG_RUSTC_VERSION_TEXT="rustc 1.0.0"/'
cannot "kernel $kver was built with 'rustc 1.0.0', but rustc here is"
back
without "${rust[@]}"
cannot "rustc is missing; install what building needs"
back
rm -rf "$tree"
cp -a /tmp/tree "$tree"

check "the module is built with it" saying dpkg --configure nvidia-peer-memory-dkms
check "for this kernel" installed_for "$kver"
check "on its crates" [ "$(modinfo -k "$kver" -F rust nv_peer_mem)" = in-kernel ]

run-parts --exit-on-error --arg="$kver" /etc/kernel/postrm.d
check "it goes with the kernel" [ ! -e "$tree" ]
cp -a /tmp/tree "$tree"
check "or when told to" saying "$tool" --remove "$kver"
check "all of it" [ ! -e "$tree" ]
cp -a /tmp/tree "$tree"
dpkg -P nvidia-peer-memory-dkms
check "but not with the package, which did not have it made" [ -e "$tree/rust/libkernel.rmeta" ]
