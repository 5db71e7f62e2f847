#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: with any dkms, a newer kernel is installed even if the module cannot be built or does not
# compile for the kernel; the older kernel's module stays
. /checkout/tests/packages/lib.sh

source=/usr/src/nvidia-peer-memory-$version
newer=$kver-newer
note "dkms $(dpkg-query -f '${Version}' -W dkms)"

# goes_on REASON [HOOKS]: checks that the newer kernel is installed without the module, and that the
# message contains REASON.
goes_on() {
	told "the kernel's installation goes on" "nv_peer_mem is not built for kernel $newer: " kernel_installed "$newer" "${@:2}"
	check "and why: $1" says "$1"
	check "it is said what to do" says "When the cause is removed, run: $source/build/dkms/kernel $newer"
	check "there is no module for it" fails installed_for "$newer"
	check "the older kernel has its module" installed_for "$kver"
	check "which can be loaded" loads nv_peer_mem
}

mapfile -t ours < <(debs /packages)
check "the packages are installed" saying by_dpkg "${ours[@]}"
check "the older kernel has the module" installed_for "$kver"

another_kernel "$newer"
goes_on "no NVIDIA driver for kernel $newer: install it"
give_driver "$newer"

# The source is changed so that it does not compile. The same happens with a kernel that lacks a
# function which the source calls.
edited "$source/src/c/module.c" sed '1ithis does not compile'
goes_on "src/c/module.c:1:1: error: "
goes_on "src/c/module.c:1:1: error: " header_postinst.d
check "and where the whole log is" says "(the whole log: /var/lib/dkms/nvidia-peer-memory/$version/build/make.log)"
check "dkms by hand tells of the failure" fails saying dkms install "nvidia-peer-memory/$version" -k "$newer"
back

# The hook for the kernel and the hook for its headers both build the module, because either package
# may be installed first.
check "when it compiles it is built" saying kernel_installed "$newer"
check "for the newer kernel" installed_for "$newer"
check "and not again" saying run-parts --exit-on-error --arg="$newer" \
	--regex '^nvidia-peer-memory$' /etc/kernel/header_postinst.d
check "of which nothing is said" [ ! -s "$said" ]
dkms unbuild "nvidia-peer-memory/$version" -k "$newer"
check "dkms autoinstall builds it by hand" saying dkms autoinstall -k "$newer"
check "for that kernel" installed_for "$newer"
dkms unbuild "nvidia-peer-memory/$version" -k "$newer"
ln -s "$source/build/dkms/kernel" /tmp/41-nvidia-peer-memory.install
check "so does kernel-install, where there is rpm" saying /tmp/41-nvidia-peer-memory.install add "$newer" /boot
check "for that kernel, too" installed_for "$newer"
check "and does nothing when a kernel goes" saying /tmp/41-nvidia-peer-memory.install remove "$newer"

# renumbered VERSION: makes the dkms package with another version. The change would make the build
# refuse the assembly, so the checksum in the assembly is replaced by that of the changed sources.
renumbered() {
	local dir=/tmp/renumbered
	rm -rf "$dir"
	dpkg-deb -R /packages/nvidia-peer-memory-dkms_*_all.deb "$dir"
	mv "$dir/usr/src/nvidia-peer-memory-$version" "$dir/usr/src/nvidia-peer-memory-$1"
	sed -i "s/${version//./\\.}/$1/g" "$dir"/DEBIAN/{control,prerm,postinst,md5sums} "$dir"/usr/src/*/dkms.conf
	(cd "$dir/usr/src"/*/ && sed -i "s/sources [0-9a-f]*/$(build/rust-assembly module --sources)/" build/prebuilt/*.S)
	dpkg-deb -b "$dir" "/tmp/$1.deb"
}

# on_both TEXT VERSION COMMAND...: checks that after COMMAND both kernels have the module in
# VERSION.
on_both() {
	check "$1" saying "${@:3}"
	check "$1: the kernel that runs has the module" installed_for "$kver" "$2"
	check "$1: so has the newer kernel" installed_for "$newer" "$2"
}
on_both "the same version is installed again" "$version" dpkg -i "${ours[1]}"
# This file forbids dkms to build for new kernels. Both kernels must get their module all the same.
mkdir -p /etc/dkms
touch /etc/dkms/no-autoinstall
on_both "the same version is installed again, without dkms' automatic builds" "$version" dpkg -i "${ours[1]}"
rm /etc/dkms/no-autoinstall
renumbered 9.9.9
on_both "a later version is installed" 9.9.9 dpkg -i /tmp/9.9.9.deb
on_both "the earlier one is installed again" "$version" dpkg -i --force-downgrade "${ours[1]}"

check "the packages are removed" saying dpkg -r nvidia-peer-memory nvidia-peer-memory-dkms
check "what is left of them disturbs no kernel" saying kernel_installed "$newer"
check "and says nothing" fails says nv_peer_mem
