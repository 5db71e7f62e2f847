#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a kernel for which dkms cannot build the module is passed over, with the reason, and without a failure that would stop the kernel's installation
# Test: yes
. /checkout/tests/packages/lib.sh

dpkg --unpack /packages/nvidia-peer-memory-dkms_*_all.deb
dkms add "nvidia-peer-memory/$version"

headers=/usr/src/linux-headers-$kver
driver=/lib/modules/$kver/updates/dkms/nvidia.ko

# passed_over TEXT: as when a kernel is installed.
passed_over() {
	check "dkms passes the kernel over" saying /etc/kernel/postinst.d/dkms "$kver"
	check "$1" says "nv_peer_mem is not built for kernel $kver: $1"
	check "nothing was built" fails grep -E 'built|installed' <(dkms status nvidia-peer-memory)
}

# without PATH: it is away until `back`.
without() { mv "$1" /tmp/away; away=$1; }
back() { rm -rf "$away"; mv /tmp/away "$away"; }

# with CONFIG_EDIT: the kernel's configuration, edited by sed.
with() {
	cp "$headers/.config" /tmp/away
	away=$headers/.config
	sed -i "$1" "$headers/.config"
}

with 's/^CONFIG_RUST=y/# CONFIG_RUST is not set/'
passed_over "kernel $kver was built without CONFIG_RUST"
back

with 's/^CONFIG_RUSTC_VERSION_TEXT=.*/CONFIG_RUSTC_VERSION_TEXT="rustc 1.0.0"/'
passed_over "kernel $kver was built with 'rustc 1.0.0', but rustc here is"
back

without "/usr/src/linux-rust-$kver"
passed_over "the headers of kernel $kver lack the Rust metadata, and it cannot be made: the kernel source is missing; install it: apt-get install linux-source-"
series=$(cut -d. -f1,2 <<<"$kver")
mkdir -p /tmp/source/DEBIAN /tmp/source/usr/src
printf 'Package: linux-source-%s\nVersion: 1.0\nArchitecture: all\nMaintainer: lab <lab@localhost>\nDescription: lab\n' \
	"$series" >/tmp/source/DEBIAN/control
: >"/tmp/source/usr/src/linux-source-$series.tar.xz"
dpkg-deb -b /tmp/source /tmp/source.deb
dpkg -i /tmp/source.deb
passed_over "the headers of kernel $kver lack the Rust metadata, and it cannot be made: linux-source-$series is 1.0 but linux-headers-$kver is"
dpkg -P "linux-source-$series"
back

without /usr/src/ofa_kernel
passed_over "no RDMA core with peer memory for kernel $kver: install"
mkdir -p "/usr/src/ofa_kernel/$(uname -m)"
cp -a /tmp/away/default "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other"
ln -s "$(uname -m)/1.2.3-other" /usr/src/ofa_kernel/default
passed_over "no RDMA core with peer memory for kernel $kver; /usr/src/ofa_kernel/default is that of kernel 1.2.3-other: install"
# The same tree, as this kernel's.
mv "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other" "/usr/src/ofa_kernel/$(uname -m)/$kver"
KVER=$kver saying "/usr/src/nvidia-peer-memory-$version/src/locate"
check "this kernel's own tree is taken, whatever the link says" says "OFA_KERNEL /usr/src/ofa_kernel/$(uname -m)/$kver"
back

without "$driver"
depmod "$kver"
passed_over "no NVIDIA driver for kernel $kver: install the open one"
objcopy --dump-section .modinfo=/tmp/modinfo /tmp/away
# As long as before, so that nothing moves.
sed 's|license=Dual MIT/GPL|license=NVIDIA\x00x=123|' /tmp/modinfo >/tmp/closed
[ "$(stat -c %s /tmp/modinfo)" = "$(stat -c %s /tmp/closed)" ]
objcopy --update-section .modinfo=/tmp/closed /tmp/away "$driver"
depmod "$kver"
passed_over "nvidia.ko for kernel $kver is the proprietary flavour"
back
depmod "$kver"

without "/lib/modules/$kver/build"
check "without headers dkms passes the kernel over" saying /etc/kernel/postinst.d/dkms "$kver"
check "and says so" says 'kernel headers for this kernel do not seem to be installed'
back
