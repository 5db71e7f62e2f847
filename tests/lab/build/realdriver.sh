# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# NVIDIA's proprietary driver itself, as Debian's package has dkms build it: of its modules
# nvidia.ko, which pins memory. Packages that it depends on are for those who have a GPU.
set -euo pipefail
kver=$1 package=$2
version=${package%-*}

apt-get update
cd /tmp
apt-get download "nvidia-kernel-dkms=$package"
dpkg-deb -x nvidia-kernel-dkms_*.deb /
sed -i '/^BUILT_MODULE_NAME\[1\]/,$d' "/usr/src/nvidia-current-$version/dkms.conf"
NV_EXCLUDE_KERNEL_MODULES='nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem' \
	dkms install "nvidia-current/$version" -k "$kver"

# The symbols with their versions, as that build has them.
mkdir -p /lib/nv_peer_mem
grep -P '\tnvidia_p2p_' "/var/lib/dkms/nvidia-current/$version/$kver/$(uname -m)/module/Module.symvers" | sort -k 2 |
	sed 's,\t/[^\t]*nvidia\t,\tnvidia\t,' >/lib/nv_peer_mem/nvidia.symvers
[ -s /lib/nv_peer_mem/nvidia.symvers ]
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/swcatalog
