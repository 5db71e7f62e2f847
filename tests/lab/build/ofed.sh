# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The RDMA core with peer memory, installed the way MLNX_OFED does it.
set -euo pipefail
kver=$1 series=$2
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "/lib/modules/$kver/build/.config" || export LLVM=1
cp -a /in/ofed /in/compat.h /tmp/
cd /tmp/ofed
KVER=$kver KDIR=/lib/modules/$kver/build KSRC=/usr/src/linux-lab-$series ./build install
