# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Takes the files that the lab compiles from NVIDIA's source in Debian's package: nvidia-peermem,
# and the peer-to-peer calls of nvidia.ko with their headers. The files are where NVIDIA's installer
# puts them.
set -euo pipefail

apt-get update
cd /tmp
apt-get download nvidia-open-kernel-source
dpkg-deb -x nvidia-open-kernel-source_*.deb package
version=$(dpkg-deb -f nvidia-open-kernel-source_*.deb Version)
version=${version%-*}
mkdir -p "/usr/src/nvidia-$version"
tar -xJf package/usr/src/nvidia-open-kernel.tar.xz -C "/usr/src/nvidia-$version" \
	--wildcards --strip-components=2 '*/nvidia-peermem/nvidia-peermem.c' '*/nvidia/nv-p2p.[ch]' \
	'*/nvidia/nv-ibmnpu.h' '*/nvidia/nv-rsync.h' '*/nvidia/rmp2pdefines.h' \
	'*/common/inc/nv-linux.h' '*/common/inc/os-interface.h' '*/common/inc/nvstatus*.h' \
	'*/common/inc/nvtypes.h' '*/common/inc/cpuopsys.h'
