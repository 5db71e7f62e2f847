# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The module, built as an administrator would: plain make finds everything.
set -euo pipefail
kver=$1
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/src /tmp/build/
cd /tmp/build
make KVER="$kver"
make KVER="$kver" install
# Guests load it again and again, and unpacking is slow there.
find "/lib/modules/$kver" -name 'nv_peer_mem.ko.xz' -exec xz -d {} +
depmod "$kver"
