# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes what the operators' containers of a cluster bring: two versions of the driver, each with its
# root directory as the GPU Operator's container has it, and two builds of the RDMA core, each with
# the directory that the Network Operator's container shows. All of this is in /operators, where
# only scenarios look.
set -euo pipefail
kver=$1
tree=/lib/modules/$kver/build
source=$(echo /usr/src/nvidia-*)

# driver VERSION: builds the open driver and the modules above it.
driver() {
	local root=/operators/driver-$1 work=/tmp/$1
	local to=$root/lib/modules/$kver/kernel/drivers/video
	mkdir -p "$work/above" "$root/usr/src/nvidia-$1"
	cp -a /in/driver /in/compat.h "$work/"
	make -C "$tree" M="$work/driver" NV_SRC="$source/nvidia" NV_VERSION="$1" modules
	cp /in/neighbours/Kbuild "$work/above/"
	for name in nvidia-uvm nvidia-modeset; do cp /in/neighbours/above.c "$work/above/$name.c"; done
	make -C "$tree" M="$work/above" NV_SRC="$source/nvidia" KBUILD_EXTRA_SYMBOLS="$work/driver/Module.symvers" modules
	for module in "$work"/driver/nvidia.ko "$work"/above/*.ko; do
		install -D -m 644 -t "$to" "$module"
		strip --strip-debug "$to/${module##*/}"
	done
	# The container's own sources are below kernel-open.
	mkdir -p "$root/usr/src/nvidia-$1/kernel-open/nvidia"
	cp "$source/nvidia/nv-p2p.h" "$root/usr/src/nvidia-$1/kernel-open/nvidia/"
	touch "$root/lib/modules/$kver/modules.order" "$root/lib/modules/$kver/modules.builtin"
	depmod -b "$root" "$kver"
}
driver 550.163.01
driver 570.195.03

# core NAME: copies the RDMA core, and the directory of OFED for this kernel.
core() {
	local root=/operators/ofed-$1
	mkdir -p "$root/modules" "$root/usr/src/ofa_kernel/x86_64"
	# OFED brings all modules of the core; the kernel's own ones do for those that the lab does not
	# build.
	find "/lib/modules/$kver/kernel/drivers/infiniband/core" -name 'ib_uverbs*.ko*' -exec cp -t "$root/modules" {} +
	find "$root/modules" -name '*.ko.xz' -exec xz -d {} +
	cp "/lib/modules/$kver"/updates/*.ko "$root/modules/"
	# This removes the kernel's signature, which would not be that of the other build.
	strip --strip-debug "$root"/modules/*.ko
	cp -a /usr/src/ofa_kernel/default "$root/usr/src/ofa_kernel/x86_64/$kver"
	# In the container this link is absolute, and leads nowhere on the node.
	ln -s "/usr/src/ofa_kernel/x86_64/$kver" "$root/usr/src/ofa_kernel/default"
}
core first
core second
# The second core is another build: it has another build ID and, if the kernel checks versions, its
# function for clients has another version, so a module for the first core is refused.
/in/neighbours/another_build "/operators/ofed-second/usr/src/ofa_kernel/x86_64/$kver/Module.symvers" \
	ib_register_peer_memory_client /operators/ofed-second/modules/ib_*.ko
