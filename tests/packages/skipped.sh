#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a kernel for which dkms cannot build the module is passed over, with the reason, and without a failure that would stop the kernel's installation
# Test: stock
. /checkout/tests/packages/lib.sh

# A driver that dkms knows, and that does not compile: nobody's package is left half
# installed for that, and nobody is told to use force.
driver=/lib/modules/$kver/updates/dkms/nvidia.ko
without "$driver"
depmod "$kver"
mkdir /usr/src/nvidia-current-open-1.0
cat >/usr/src/nvidia-current-open-1.0/dkms.conf <<-CONF
	PACKAGE_NAME="nvidia-current-open"
	PACKAGE_VERSION="1.0"
	BUILT_MODULE_NAME[0]="nvidia"
	DEST_MODULE_NAME[0]="nvidia-current-open"
	DEST_MODULE_LOCATION[0]="/updates/dkms"
	AUTOINSTALL="yes"
	MAKE[0]="false"
CONF
: >/usr/src/nvidia-current-open-1.0/nvidia.c
check "dkms knows a driver" saying dkms add nvidia-current-open/1.0
check "which cannot be built" fails saying dkms install nvidia-current-open/1.0 -k "$kver"
check "the packages are installed all the same" saying dpkg -i \
	/packages/nvidia-peer-memory_*_all.deb /packages/nvidia-peer-memory-dkms_*_all.deb
check "and it is said what they lack" says "nv_peer_mem is not built for kernel $kver: no NVIDIA driver for kernel $kver: dkms knows nvidia-current-open/1.0, but has not built it for this kernel (dkms install nvidia-current-open/1.0 -k $kver says why)."
check "not to use force" fails says --force
check "dkms knows the module, and has not built it" grep -qx "nvidia-peer-memory/$version: added" <(dkms status nvidia-peer-memory)
dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms
dkms remove nvidia-current-open/1.0 --all
rm -r /usr/src/nvidia-current-open-1.0
back
depmod "$kver"

unpacked

ready=/usr/src/nvidia-peer-memory-$version/src/ready
no_rust='s/^CONFIG_RUST=y/# CONFIG_RUST is not set/'

# passed_over TEXT: as when a kernel is installed.
passed_over() {
	check "the kernel is passed over" saying kernel_installed
	check "$1" says "nv_peer_mem is not built for kernel $kver: $1"
	check "nothing was built" fails grep -E 'built|installed' <(dkms status nvidia-peer-memory)
}

# What a package lacks that was built from a checkout, where there was no Rust either.
with_config "$no_rust"
without "$ready" "${rust[@]}"
passed_over "nothing to compile the Rust half with, and one of these would do. Compiled before: src/ready/$(uname -m).S is missing, which releases have"
check "what else would do is said" says "With any Rust: no rustc of 1.78 or later"
back

with_config "$no_rust; \$aCONFIG_CFI=y"
passed_over "kernel $kver checks indirect calls by their type (CONFIG_CFI), so only its own Rust crates will do, and kernel $kver was built without CONFIG_RUST"
back
with_proprietary_driver
with_config "\$aCONFIG_CFI=y"
passed_over "kernel $kver checks indirect calls by their type (CONFIG_CFI), so only its own Rust crates will do, and the NVIDIA driver is the proprietary one"
back

without /usr/src/ofa_kernel
passed_over "no RDMA core with peer memory for kernel $kver: install"
mkdir -p "/usr/src/ofa_kernel/$(uname -m)"
cp -a /usr/src/ofa_kernel.away/default "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other"
ln -s "$(uname -m)/1.2.3-other" /usr/src/ofa_kernel/default
passed_over "no RDMA core with peer memory for kernel $kver; /usr/src/ofa_kernel/default is that of kernel 1.2.3-other: install"
# The same tree, as this kernel's.
mv "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other" "/usr/src/ofa_kernel/$(uname -m)/$kver"
KVER=$kver saying "/usr/src/nvidia-peer-memory-$version/src/locate"
check "this kernel's own tree is taken, whatever the link says" says "OFA_KERNEL /usr/src/ofa_kernel/$(uname -m)/$kver"
back

without "$driver"
depmod "$kver"
passed_over "no NVIDIA driver for kernel $kver: install it (package nvidia-open-kernel-dkms or nvidia-kernel-dkms)"
back
depmod "$kver"

without "/lib/modules/$kver/build"
check "without headers the kernel is passed over" saying kernel_installed
check "and says so" says 'kernel headers for this kernel do not seem to be installed'
back
