#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: for a new kernel dkms builds the RDMA core and the driver first, and a driver that is not for this kernel keeps nobody waiting
# All: dkms builds three packages, for a minute
. /checkout/tests/packages/lib.sh

core=/lib/modules/$kver/updates/ib_core.ko
driver=/lib/modules/$kver/updates/dkms/nvidia.ko

# neighbour NAME FILE [LINE...]: a module that dkms knows, and has yet to install.
neighbour() {
	local dir=/usr/src/$1-1.0
	mkdir "$dir"
	mv "$2" "$dir/"
	cat >"$dir/dkms.conf" <<-CONF
		PACKAGE_NAME="$1"
		PACKAGE_VERSION="1.0"
		BUILT_MODULE_NAME[0]="$(basename "$2" .ko)"
		DEST_MODULE_LOCATION[0]="/updates/dkms"
		AUTOINSTALL="yes"
		MAKE[0]="true"
	CONF
	printf '%s\n' "${@:3}" >>"$dir/dkms.conf"
	dkms add "$1/1.0"
}

# By the names that they have in DOCA-OFED's rpm and among Debian's drivers.
core_name=mlnx-ofa_kernel driver_name=nvidia-tesla-535
neighbour $core_name "$core" 'POST_INSTALL="tree"'
# As MLNX_OFED does: a tree for each kernel.
mkdir -p "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other"
mv /usr/src/ofa_kernel/default /usr/src/$core_name-1.0/kernel
ln -s "$(uname -m)/1.2.3-other" /usr/src/ofa_kernel/default
cat >/usr/src/$core_name-1.0/tree <<TREE
#!/bin/sh
cp -a kernel /usr/src/ofa_kernel/$(uname -m)/$kver
TREE
chmod +x /usr/src/$core_name-1.0/tree
neighbour $driver_name "$driver" "DEST_MODULE_NAME[0]=$driver_name" 'BUILD_EXCLUSIVE_CONFIG="!CONFIG_PREEMPT_RT"'
depmod "$kver"
unpacked

# A driver that is not built for real-time kernels, and such a kernel.
config=/usr/src/linux-headers-$kver/include/config/auto.conf
cp "$config" /tmp/config
echo CONFIG_PREEMPT_RT=y >>"$config"
check "the kernel of no driver is installed" saying kernel_installed
check "and it is said that it has none" says "nv_peer_mem is not built for kernel $kver: no NVIDIA driver for kernel $kver"
cp /tmp/config "$config"

# all_built: the three of them.
all_built() {
	for name in $core_name $driver_name nvidia-peer-memory; do
		check "with $name" grep -q "^$name/.*, $kver, .*: installed" <(dkms status "$name")
	done
	check "modprobe finds all that it needs" loads nv_peer_mem
}

check "the kernel is installed" saying kernel_installed
all_built
check "the module's turn was after dkms" fails grep 'succeeded for module(s) .*nvidia-peer-memory' "$said"
for name in nvidia-peer-memory $driver_name $core_name; do
	dkms unbuild "$name/$(dkms status "$name" | sed 's,^[^/]*/\([^,:]*\).*,\1,')" -k "$kver"
done
check "by hand dkms installs all" saying dkms autoinstall -k "$kver"
all_built
check "the module's is the last" grep -q 'succeeded for module(s) .*nvidia-peer-memory\.' "$said"
