# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the modules and programs beside nv_peer_mem: NVIDIA's own nvidia-peermem, from Debian's
# source, against the lab's RDMA core and driver; a second client of the driver; mistakes for the
# kernel's checkers; and the client that does verbs step by step, with either module.
set -euo pipefail
kver=$1
tree=/lib/modules/$kver/build
modules=/lib/modules/$kver/updates/dkms
ofed=/usr/src/ofa_kernel/default
source=$(echo /usr/src/nvidia-*)
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1

# build NAME DIR TO ARGUMENT...: builds the module NAME in DIR, and installs it into TO.
build() {
	make -C "$tree" M="$2" KBUILD_EXTRA_SYMBOLS="$ofed/Module.symvers /lib/nv_peer_mem/nvidia.symvers" "${@:4}" modules
	install -D -m 644 -t "$3" "$2/$1.ko"
}

# The driver's own build writes the kernel's features to conftest.h. nvidia-peermem.c needs only one
# of them, the RDMA core, which is given here.
mkdir /tmp/peermem
cp "$source/nvidia-peermem/nvidia-peermem.c" /tmp/peermem/
: >/tmp/peermem/conftest.h
cat >/tmp/peermem/Kbuild <<KBUILD
obj-m := nvidia-peermem.o
ccflags-y := -I$source/nvidia -I$ofed/include/rdma -I\$(src)
ccflags-y += -DNV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT -DNV_VERSION_STRING=\\"${source##*-}\\"
KBUILD
build nvidia-peermem /tmp/peermem "$modules"

cp -a /in/cpumap /in/mistakes /in/compat.h /tmp/
build cpumap /tmp/cpumap "$modules" NV_SRC="$source/nvidia"
build mistakes /tmp/mistakes "$modules"
depmod "$kver"

# The base of Debian 12 and the libraries for arm64 have no verbs to compile this program with.
[ ! -e /usr/include/infiniband/verbs.h ] || [ "$(uname -m)" != x86_64 ] ||
	gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -I/in -o /usr/local/bin/verbs-steps /in/steps.c -libverbs
