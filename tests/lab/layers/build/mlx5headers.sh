# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Takes the headers that describe a ConnectX from the headers of Debian's newest kernel.
set -euo pipefail
release=$1 version=$2

apt-get update
cd /tmp
apt-get download "linux-headers-${release%-amd64}-common=$version"
dpkg-deb -x linux-headers-*.deb package
mkdir -p /usr/src/mlx5headers
cp package/usr/src/linux-headers-*-common/include/linux/mlx5/*.h /usr/src/mlx5headers/
