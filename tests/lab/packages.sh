# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# The packages: made, checked, and installed in the lab's root file system.

# What a release is made of. Tests are in it, but make no difference here.
package_sources=("$top/Kbuild" "$top/Makefile" "$top/dkms.conf" "$top/nv_peer_mem.conf" "$top/build_release.sh"
	"$top/README.md" "$top/LICENSE" "$top/LICENSES" "$top/.gitignore"
	"$top/src" "$top/init.d" "$top/docs" "$top/debian" "$top/rpm")

# packages_layer: the guest's stack without the module, with what packages are
# made with and the packages themselves, in $stack. $packages is the layer that
# has them, in /packages and, of an older version, in /packages/old.
packages_layer() {
	local kernel
	guest_layers
	kernel=$(tr : '\n' <<<"$stack" | grep -e '^kernel-' -e '^base-' | paste -sd:)
	stack=$(tr : '\n' <<<"$stack" | grep -v '^module-' | paste -sd:)
	layer_network=yes
	layer_args=()
	# On top of the kernel's packages: dpkg has one list of what is installed.
	layer packaging "$kernel" "Debian's tools for packages (a minute)"
	stack=$reply:$stack
	layer_network=
	layer_args=("$kver")
	layer packages "$stack" "packages, deb and rpm" "${package_sources[@]}"
	packages=$reply
	stack=$packages:$stack
}
