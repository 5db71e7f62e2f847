# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# NVIDIA's own header and nvidia-peermem source, from Debian's package, where
# NVIDIA's installer puts them.
set -euo pipefail

apt-get update
cd /tmp
apt-get download nvidia-open-kernel-source
dpkg-deb -x nvidia-open-kernel-source_*.deb package
version=$(dpkg-deb -f nvidia-open-kernel-source_*.deb Version)
version=${version%-*}
mkdir -p "/usr/src/nvidia-$version"
tar -xJf package/usr/src/nvidia-open-kernel.tar.xz -C "/usr/src/nvidia-$version" \
	--wildcards --strip-components=2 '*/nvidia/nv-p2p.h' '*/nvidia-peermem/nvidia-peermem.c'
rm -rf /var/lib/apt/lists/*
