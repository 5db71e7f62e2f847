# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Takes the source of mlx5_ib, the RDMA driver of NVIDIA's network cards, from the source of Debian's
# kernel. The kernel's layer does not have this source, because every layer is made above that layer.
set -euo pipefail
version=$1 series=$2

apt-get update
cd /tmp
apt-get download "linux-source-$series=$version"
dpkg-deb -x "linux-source-$series"_*.deb package
mkdir -p "/usr/src/mlx5-$series"
tar -xJf "package/usr/src/linux-source-$series.tar.xz" -C "/usr/src/mlx5-$series" --strip-components=1 \
	--wildcards '*/drivers/infiniband/hw/mlx5/*'
