# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the client with which the benchmark compares the module: ideal.sh KVER
set -euo pipefail
kver=$1
ofed=/usr/src/ofa_kernel/default
source=$(echo /usr/src/nvidia-*)
cp -a /in/ideal /tmp/
make -C "/lib/modules/$kver/build" M=/tmp/ideal NV_SRC="$source/nvidia" CORE="$ofed/include" \
	KBUILD_EXTRA_SYMBOLS="$ofed/Module.symvers /lib/nv_peer_mem/nvidia.symvers" modules
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" /tmp/ideal/ideal.ko
depmod "$kver"
