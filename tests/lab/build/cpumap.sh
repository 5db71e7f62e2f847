# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The second client of the NVIDIA driver, installed where DKMS would put it.
set -euo pipefail
kver=$1
! grep -q '^CONFIG_CC_IS_CLANG=y' "/usr/src/linux-rust-$kver/.config" || export LLVM=1
source=$(echo /usr/src/nvidia-*)

cp -a /in/cpumap /tmp/build
nm "/lib/modules/$kver/updates/dkms/nvidia.ko" |
	sed -n 's/.* __ksymtab_\(nvidia_p2p_.*\)$/0x00000000\t\1\tnvidia\tEXPORT_SYMBOL_GPL\t/p' >/tmp/nvidia.symvers
make -C "/usr/src/linux-rust-$kver" M=/tmp/build NV_SRC="$source/nvidia" KBUILD_EXTRA_SYMBOLS=/tmp/nvidia.symvers modules
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" /tmp/build/cpumap.ko
depmod "$kver"
