# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the module as an administrator does: plain make finds everything. Only the way to compile
# Rust is given, because here both ways are possible.
set -euo pipefail
kver=$1 rust=$2
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
[ ! -e /in/ready ] || cp -a /in/ready /tmp/build/build/prebuilt
cd /tmp/build
make KVER="$kver" NVPM_RUST="$rust"
[ "$(modinfo -F rust nv_peer_mem.ko)" = "$rust" ]
[ "$(modinfo -F version nv_peer_mem.ko)" = "$(sh build/identity)" ]
grep -x "PACKAGE_VERSION=\"$(sh build/identity | cut -d+ -f1)\"" dkms.conf
make KVER="$kver" NVPM_RUST="$rust" install
# Guests load the module again and again, and unpack slowly.
find "/lib/modules/$kver" -name 'nv_peer_mem*.ko.xz' -exec xz -d {} +
depmod "$kver"
