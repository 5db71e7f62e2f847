# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the module for a kernel without neighbours to link against. /compiled lists the results.
set -euo pipefail
kver=$1
nv_src=$(echo /usr/src/nvidia-[0-9]*)
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
KBUILD_MODPOST_WARN=1 make -C /tmp/build KVER="$kver" KDIR=/usr/src/matrix NV_SRC="$nv_src"
modinfo /tmp/build/nv_peer_mem.ko
if nm -u /tmp/build/nv_peer_mem.ko | grep _GLOBAL_OFFSET_TABLE_; then exit 1; fi
printf 'nv_peer_mem.ko for %s compiled, not linked\n' "$kver" >/compiled
