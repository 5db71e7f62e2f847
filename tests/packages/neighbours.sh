#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: if the module cannot be built for a kernel, the kernel is skipped with a reason, and its
# installation does not fail; dkms builds the RDMA core and the driver before the module; and a
# driver that is not built for this kernel is reported as missing
. /checkout/tests/packages/lib.sh

# neighbour NAME FILE LINE...: adds a dkms package NAME, which installs the module FILE when dkms
# builds it. The dkms.conf of the package gets the LINEs.
neighbour() {
	local dir=/usr/src/$1-1.0
	mkdir "$dir"
	mv "$2" "$dir/"
	printf '%s\n' "PACKAGE_NAME=$1" PACKAGE_VERSION=1.0 "BUILT_MODULE_NAME[0]=$(basename "$2" .ko)" \
		'DEST_MODULE_LOCATION[0]=/updates/dkms' AUTOINSTALL=yes "${@:3}" >"$dir/dkms.conf"
	dkms add "$1/1.0"
}

# dkms has a driver that does not compile. Our packages can be installed nevertheless. No message
# may advise --force.
without_driver
: >/tmp/nvidia.ko
neighbour nvidia-current-open /tmp/nvidia.ko 'DEST_MODULE_NAME[0]=nvidia-current-open' 'MAKE[0]=false'
check "a driver cannot be built" fails saying dkms install nvidia-current-open/1.0 -k "$kver"
mapfile -t debs < <(debs /packages)
told "the packages are installed all the same" "nv_peer_mem is not built for kernel $kver: no NVIDIA driver for kernel $kver: dkms knows nvidia-current-open/1.0, but has not built it for this kernel (dkms install nvidia-current-open/1.0 -k $kver says why)." \
	by_dpkg "${debs[@]}"
check "not to use force" fails says --force
check "dkms knows the module, and has not built it" grep -qx "nvidia-peer-memory/$version: added" <(dkms status nvidia-peer-memory)
dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms
dkms remove nvidia-current-open/1.0 --all
rm -r /usr/src/nvidia-current-open-1.0
back

unpacked

# passed_over TEXT: checks that the installation of the kernel skips the module, and prints TEXT as
# the reason.
passed_over() {
	told "the kernel is passed over" "nv_peer_mem is not built for kernel $kver: $1" kernel_installed
	check "nothing was built" fails grep -E 'built|installed' <(dkms status nvidia-peer-memory)
}

# The assembly is missing, as in a package that was made from a checkout without Rust.
with_config 's/^CONFIG_RUST=y/# CONFIG_RUST is not set/'
without "/usr/src/nvidia-peer-memory-$version/build/prebuilt" "${rust[@]}"
passed_over "the module's Rust can be compiled in neither way. in-kernel: kernel $kver was built without CONFIG_RUST."
check "what else would do is said" says "build/prebuilt/$(uname -m).S, which a release contains, is missing; and to make it, rustc 1.78 or later with the source of its library is missing"
back

# Only one missing part is tested here, because the check build_messages tests the messages about
# all parts.
without_driver
passed_over "no NVIDIA driver for kernel $kver: install it (package nvidia-open-kernel-dkms or nvidia-kernel-dkms)"
back

without "/lib/modules/$kver/build"
told "without headers the kernel is passed over" 'kernel headers for this kernel do not seem to be installed' kernel_installed
back

# DOCA-OFED's rpm has a dkms package with the first name, and Debian has a driver with the second
# name.
core_name=mlnx-ofa_kernel driver_name=nvidia-tesla-535
neighbour $core_name "/lib/modules/$kver/updates/ib_core.ko" 'MAKE[0]=true' POST_INSTALL=tree
# As with MLNX_OFED, each kernel has its own tree of headers. Installing the core makes the tree of
# this kernel.
mkdir -p "/usr/src/ofa_kernel/$(uname -m)/1.2.3-other"
mv /usr/src/ofa_kernel/default /usr/src/$core_name-1.0/kernel
ln -s "$(uname -m)/1.2.3-other" /usr/src/ofa_kernel/default
cat >/usr/src/$core_name-1.0/tree <<TREE
#!/bin/sh
cp -a kernel /usr/src/ofa_kernel/$(uname -m)/$kver
TREE
chmod +x /usr/src/$core_name-1.0/tree
neighbour $driver_name "$driver" "DEST_MODULE_NAME[0]=$driver_name" 'MAKE[0]=true' 'BUILD_EXCLUSIVE_CONFIG="!CONFIG_PREEMPT_RT"'
depmod "$kver"

# dkms does not build the driver for real-time kernels. The following lines make this kernel look
# like a real-time kernel.
config=/usr/src/linux-headers-$kver/include/config/auto.conf
cp "$config" /tmp/config
echo CONFIG_PREEMPT_RT=y >>"$config"
told "the kernel of no driver is installed" "nv_peer_mem is not built for kernel $kver: no NVIDIA driver for kernel $kver" kernel_installed
cp /tmp/config "$config"

# all_built: checks that dkms has installed core, driver and module.
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
