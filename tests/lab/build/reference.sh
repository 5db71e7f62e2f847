# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What nv_peer_mem replaces, to be measured against: NVIDIA's own
# nvidia-peermem, compiled from Debian's source against the lab's RDMA core and
# driver; and the client that does verbs step by step to either module.
set -euo pipefail
kver=$1
! grep -q '^CONFIG_CC_IS_CLANG=y' "/usr/src/linux-rust-$kver/.config" || export LLVM=1
tree=/usr/src/linux-rust-$kver
ofed=/usr/src/ofa_kernel/default
source=$(echo /usr/src/nvidia-*)

mkdir /tmp/build
cd /tmp/build
cp "$source/nvidia-peermem/nvidia-peermem.c" .
# The driver's own build finds out here what the kernel can do; this file asks
# for nothing of that but the RDMA core, which is given below.
: >conftest.h
cat >Kbuild <<KBUILD
obj-m := nvidia-peermem.o
ccflags-y := -I$source/nvidia -I$ofed/include/rdma -I\$(src)
ccflags-y += -DNV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT -DNV_VERSION_STRING=\\"${source##*-}\\"
KBUILD
nm "/lib/modules/$kver/updates/dkms/nvidia.ko" |
	sed -n 's/.* __ksymtab_\(nvidia_p2p_.*\)$/0x00000000\t\1\tnvidia\tEXPORT_SYMBOL_GPL\t/p' >nvidia.symvers
make -C "$tree" M="$PWD" KBUILD_EXTRA_SYMBOLS="$ofed/Module.symvers $PWD/nvidia.symvers" modules
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" nvidia-peermem.ko
depmod "$kver"

gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -I/in \
	-o /usr/local/bin/verbs-steps /in/defects/steps.c -libverbs
