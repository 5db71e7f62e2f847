# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a newer kernel, whose own hooks have had dkms build the module for it; the service's package installed again and updated while it is active
# Kernels: older newer
# Prepared: deb newer_kernel

begun() { systemctl show -P ExecMainStartTimestampMonotonic nv_peer_mem; }

# kept DEB: installs the package while a program has memory registered. Checks that the module stays
# loaded, and that the unit is not started again.
kept() {
	local before
	before=$(begun)
	hold_memory
	runs dpkg -i "$1"
	check "the module is loaded" loaded
	program_ends
	equal "the unit was not started anew" "$before" "$(begun)"
	all_agree "$1" active 0
	serves
}

boot_1() {
	uname -r >/root/older
	booted
}

boot_2() {
	check "another kernel runs" test "$(cat /root/older)" != "$(uname -r)"
	check "dkms ran when it was installed" grep -q "Installing .*/lib/modules/$(uname -r)/updates/dkms" /root/kernel.log
	booted
	kept /root/service.deb
	kept /root/newer_service.deb
	equal "it is the newer one" 99.0.0-1 "$(dpkg-query -f '${Version}' -W nvidia-peer-memory)"
}
