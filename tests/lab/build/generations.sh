# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Where only scenarios look: the simulated driver of the oldest and the newest
# generation, and the module for them, and for the header of each earlier RDMA core.
set -euo pipefail
kver=$1
tree=/usr/src/linux-rust-$kver
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/src /tmp/build/

# module NAME SETTING: nv_peer_mem.ko built with SETTING.
module() {
	make -C /tmp/build KVER="$kver" "$2"
	install -D -m 644 /tmp/build/nv_peer_mem.ko "/lib/nv_peer_mem/$1/nv_peer_mem.ko"
}

for generation in 515 590; do
	headers=/in/nvidia/generations/$generation
	cp -a /in/nvidia "/tmp/$generation"
	make -C "$tree" M="/tmp/$generation" NV_SRC="$headers" NV_VERSION="$generation" modules
	install -D -m 644 "/tmp/$generation/nvidia.ko" "/lib/nv_peer_mem/driver-$generation/nvidia.ko"
	mkdir -p "/tmp/headers/$generation"
	cp "$headers/nv-p2p.h" "/tmp/$generation/Module.symvers" "/tmp/headers/$generation/"
	cp /in/nvidia/generations/nv-p2p.h /tmp/headers/
	module "driver-$generation" NV_SRC="/tmp/headers/$generation"
done

for ofed in /usr/src/ofa_kernel/g*; do
	module "$(basename "$ofed")" OFA_KERNEL="$ofed"
done
