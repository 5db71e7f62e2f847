# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The simulated NVIDIA driver, installed where DKMS puts the real one. Like the
# real one it leaves no Module.symvers behind.
set -euo pipefail
kver=$1
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "/usr/src/linux-rust-$kver/.config" || export LLVM=1

# build DIR HEADERS VERSION
build() {
	cp -a /in/nvidia "$1"
	make -C "/usr/src/linux-rust-$kver" M="$1" NV_SRC="$2" NV_VERSION="$3" modules
}

src=$(echo /usr/src/nvidia-*)
build /tmp/build "$src/nvidia" "${src##*-}"
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" /tmp/build/nvidia.ko
depmod "$kver"

# The oldest and the newest generation, where only scenarios look; and what a
# client is built against for them.
mkdir /usr/src/lab-nvidia
cp /in/nvidia/generations/nv-p2p.h /usr/src/lab-nvidia/
for generation in 515 590; do
	headers=/in/nvidia/generations/$generation
	build "/tmp/$generation" "$headers" "$generation"
	install -D -m 644 "/tmp/$generation/nvidia.ko" "/lib/nv_peer_mem/driver-$generation/nvidia.ko"
	install -D -m 644 -t "/usr/src/lab-nvidia/$generation" "$headers/nv-p2p.h" "/tmp/$generation/Module.symvers"
done

# Threads that free, for any program (injector.c).
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -pthread \
	-o /usr/local/lib/lab-injector.so /in/nvidia/injector.c
