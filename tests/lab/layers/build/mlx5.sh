# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds mlx5_ib with peer memory, above the lab's RDMA core, and installs it where it takes
# precedence over the kernel's own mlx5_ib, which stays in its place. mlx5_core stays the kernel's.
set -euo pipefail
kver=$1 series=$2
tree=/lib/modules/$kver/build
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1

driver=/tmp/mlx5
cp -r "/usr/src/mlx5-$series/drivers/infiniband/hw/mlx5" $driver
/in/core/adapt_mlx5 $driver
cp /in/core/mlx5/* /in/core/server/peer_driver.h $driver/
make -C "$tree" -j "$(nproc)" M=$driver KBUILD_EXTRA_SYMBOLS=/usr/src/ofa_kernel/default/Module.symvers modules

# ofed.sh has checked that the RDMA core has the versions of the kernel's own symbols, and mlx5_ib
# exports none. So the driver loads if it imports the same symbols as the kernel's own mlx5_ib, and
# besides only the functions of peer_driver.h, and what its parameter needs.
own=/lib/modules/$kver/kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko
imports() { nm -u "$1" | awk '{ print $2 }' | LC_ALL=C sort; }
LC_ALL=C comm -3 <(imports "$own") <(imports $driver/mlx5_ib.ko) | tr -d '\t' >/tmp/other
LC_ALL=C diff /tmp/other - <<-SYMBOLS || {
	ib_umem_activate_invalidation_notifier
	ib_umem_get_peer
	ib_umem_is_peer
	ib_umem_peer_driver_step
	ib_umem_stop_invalidation_notifier
	param_ops_bool
SYMBOLS
	echo "mlx5_ib does not import what the kernel's own mlx5_ib imports: see the lines above"
	exit 1
}

# Debug information would make the module ten times as large, and the guest slower.
strip --strip-debug -o "/lib/modules/$kver/updates/mlx5_ib.ko" $driver/mlx5_ib.ko

# Emulated guests unpack slowly. If a module that a guest loads is missing, modprobe fails here.
for module in mlx5_ib ib_uverbs ib_umad rdma_ucm ib_ipoib; do modprobe -S "$kver" --show-depends "$module"; done >/tmp/loaded
awk '$1 == "insmod" && $2 ~ /\.xz$/ { print $2 }' /tmp/loaded | sort -u | xargs -r xz -d
