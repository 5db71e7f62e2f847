# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the simulated driver of the newest generation, the module for that driver, and the module
# for the header of each earlier RDMA core. They are in directories where only scenarios look.
set -euo pipefail
kver=$1 rust=$2 kind=$3
tree=/lib/modules/$kver/build
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1
closed=()
[ "$kind" = open ] || closed=(NV_CLOSED=1)
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
cp -a /in/ready /tmp/build/build/prebuilt

# module NAME SETTING: builds nv_peer_mem.ko with SETTING, and keeps it under NAME.
module() {
	make -C /tmp/build KVER="$kver" NVPM_RUST="$rust" "$2"
	install -D -m 644 /tmp/build/nv_peer_mem.ko "/lib/nv_peer_mem/$1/nv_peer_mem.ko"
}

headers=/tmp/headers/590 double=/tmp/590/driver
/in/driver/header 590 "$headers"
mkdir /tmp/590
cp -a /in/driver /in/compat.h /tmp/590/
make -C "$tree" M="$double" NV_SRC="$headers" NV_CODE="$(echo /usr/src/nvidia-*/nvidia)" NV_VERSION=590 \
	"${closed[@]}" modules
install -D -m 644 -t /lib/nv_peer_mem/driver-590 "$double"/*.ko
cp "$double/Module.symvers" "$headers/"
module driver-590 NV_SRC="$headers"

# Earlier RDMA cores exist only as directories with a header. So no core is installed here that
# could tell another generation, and each directory lists the exports of its core.
core=/lib/modules/$kver/updates/ib_core.ko
mv "$core" /tmp/ib_core.ko
cp -a /usr/src/ofa_kernel /tmp/ofed
sed -i '/	ib_umem_stop_invalidation_notifier	/d' /tmp/ofed/g*/Module.symvers
sed -i '/	ib_umem_get_peer	/d' /tmp/ofed/g2/Module.symvers
for ofed in /tmp/ofed/g*; do
	module "$(basename "$ofed")" OFA_KERNEL="$ofed"
done
mv /tmp/ib_core.ko "$core"
