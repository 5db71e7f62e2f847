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

# Again for the header of each earlier RDMA core, where only scenarios look.
for tree in /usr/src/ofa_kernel/g*; do
	make KVER="$kver" OFA_KERNEL="$tree"
	install -D -m 644 nv_peer_mem.ko "/lib/nv_peer_mem/$(basename "$tree")/nv_peer_mem.ko"
done

# And for the NVIDIA driver of other generations than the installed one.
for headers in /usr/src/lab-nvidia/[0-9]*; do
	make KVER="$kver" NV_SRC="$headers"
	install -D -m 644 nv_peer_mem.ko "/lib/nv_peer_mem/driver-$(basename "$headers")/nv_peer_mem.ko"
done
