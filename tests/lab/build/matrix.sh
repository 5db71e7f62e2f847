# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the module, and before it the lab's modules if the kernel has them,
# for one kernel tree. What was built, and when, is listed in /matrix.
set -euo pipefail
series=$1 release=$2 tree=$3
nv_src=$(echo /in/nvidia-[0-9]*)
built() { printf 'result %s|%s|%s|%s\n' "$series" "$1" "$2" "$(date -u '+%F %H:%M')" | tee -a /matrix; }

mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/src /tmp/build/
# The lab's modules follow the kernels that the lab boots: 7.x.
case $series in
[7-9].*)
	cp -a /in/nvidia /in/ofed /tmp/
	make -C "$tree" M=/tmp/nvidia NV_SRC="$nv_src/nvidia" NV_VERSION="${nv_src##*-}" modules
	built 'simulated nvidia.ko' built
	KVER=$release KDIR=$tree KSRC=/usr/src/linux-lab-$series DESTDIR=/tmp/ofed-install /tmp/ofed/build install
	built 'RDMA core (ib_core, rdma_rxe)' built
	cp -a "$nv_src" /tmp/nv-src
	cp /tmp/nvidia/Module.symvers /tmp/nv-src/
	make -C /tmp/build KVER="$release" KDIR="$tree" NV_SRC=/tmp/nv-src \
		OFA_KERNEL=/tmp/ofed-install/usr/src/ofa_kernel/default
	built nv_peer_mem.ko built
	;;
*)
	# No neighbours to link against: compiling must do.
	KBUILD_MODPOST_WARN=1 make -C /tmp/build KVER="$release" KDIR="$tree" NV_SRC="$nv_src"
	built nv_peer_mem.ko 'compiled, not linked'
	;;
esac
modinfo /tmp/build/nv_peer_mem.ko
