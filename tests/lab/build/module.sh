# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The module, built as an administrator would: plain make finds everything. Only the
# ground is told, since here all three could be had.
set -euo pipefail
kver=$1 ground=$2
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/src /tmp/build/
cp -a /in/ready /tmp/build/src/
cd /tmp/build
make KVER="$kver" NVPM_GROUND="$ground"
[ "$(modinfo -F ground nv_peer_mem.ko)" = "$ground" ]
grep -x "PACKAGE_VERSION=\"$(modinfo -F version nv_peer_mem.ko)\"" dkms.conf
make KVER="$kver" NVPM_GROUND="$ground" install
# Guests load it again and again, and unpacking is slow there.
find "/lib/modules/$kver" -name 'nv_peer_mem.ko.xz' -exec xz -d {} +
depmod "$kver"
