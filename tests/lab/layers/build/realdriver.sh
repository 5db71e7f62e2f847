# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds NVIDIA's proprietary driver itself, by dkms from Debian's package: only nvidia.ko, which
# pins memory. The packages that it depends on need a GPU; guests have idlegpu.
set -euo pipefail
kver=$1 package=$2
version=${package%-*}

apt-get update
cd /tmp
apt-get download "nvidia-kernel-dkms=$package" "linux-image-$kver"
dpkg-deb -x nvidia-kernel-dkms_*.deb /
# Only this guest needs DRM. The layer of the guests' kernel does not contain drm.ko, so the kernel's
# package gives it.
dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C / --keep-directory-symlink --wildcards '*/drivers/gpu/drm/drm.ko*'
sed -i '/^BUILT_MODULE_NAME\[1\]/,$d' "/usr/src/nvidia-current-$version/dkms.conf"
NV_EXCLUDE_KERNEL_MODULES='nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem' \
	dkms install "nvidia-current/$version" -k "$kver"

# The lab's modules find the symbols, with the versions of that build, in /lib/nv_peer_mem.
mkdir -p /lib/nv_peer_mem
grep -P '\tnvidia_p2p_' "/var/lib/dkms/nvidia-current/$version/$kver/$(uname -m)/module/Module.symvers" | sort -k 2 |
	sed 's,\t/[^\t]*nvidia\t,\tnvidia\t,' >/lib/nv_peer_mem/nvidia.symvers
[ -s /lib/nv_peer_mem/nvidia.symvers ]

cp -a /in/idlegpu .
make -C "/lib/modules/$kver/build" M=/tmp/idlegpu modules
install -D -m 644 -t "/lib/modules/$kver/updates/dkms" idlegpu/idlegpu.ko
depmod "$kver"
apt-get clean
rm -rf /var/cache/swcatalog
