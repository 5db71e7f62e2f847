# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The simulated NVIDIA driver, installed where DKMS puts the real one. Like the
# real one it leaves no Module.symvers behind.
set -euo pipefail
kver=$1
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "/usr/src/linux-rust-$kver/.config" || export LLVM=1

src=$(echo /usr/src/nvidia-*)
cp -a /in/nvidia /tmp/build
make -C "/usr/src/linux-rust-$kver" M=/tmp/build NV_SRC="$src/nvidia" NV_VERSION="${src##*-}" modules
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" /tmp/build/nvidia.ko
depmod "$kver"

# Threads that free, for any program (injector.c).
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -pthread \
	-o /usr/local/lib/lab-injector.so /in/nvidia/injector.c
