# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What stands for NVIDIA's proprietary driver, where only scenarios look.
set -euo pipefail
kver=$1
! grep -q '^CONFIG_CC_IS_CLANG=y' "/usr/src/linux-rust-$kver/.config" || export LLVM=1
cp -a /in/proprietary /tmp/build
make -C "/usr/src/linux-rust-$kver" M=/tmp/build modules
install -D -m 644 -t /lib/nv_peer_mem/proprietary /tmp/build/nvidia.ko
