# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a newer kernel, whose own hooks have had dkms build the module for it; the service's package installed again and updated while it is active
# All: two kernels
# Kernels: older newer
# Machines: stock 6.12 debian12
# Prepared: deb newer_kernel

there() {
	check "the boot has loaded the module" loaded
	equal "it is the one that dkms has built for $(uname -r)" "/lib/modules/$(uname -r)/updates/dkms" \
		"$(dirname "$(modinfo -n nv_peer_mem)")"
	serves
}

begun() { systemctl show -P ExecMainStartTimestampMonotonic nv_peer_mem; }

# kept TEXT DEB: the package is installed while a program has memory registered.
kept() {
	local before
	before=$(begun)
	hold_memory
	run dpkg -i "$2"
	equal "$1" 0 "$code"
	check "$1: the module is loaded" loaded
	check "$1: the program goes on, and ends well" ended_well
	equal "$1: the unit was not started anew" "$before" "$(begun)"
	all_agree "$1" active 0
	serves
}

boot_1() {
	uname -r >/root/older
	there
}

boot_2() {
	check "another kernel runs" test "$(cat /root/older)" != "$(uname -r)"
	check "dkms ran when it was installed" grep -q "Installing .*/lib/modules/$(uname -r)/updates/dkms" /root/kernel.log
	there
	kept "installed again" /root/service.deb
	kept "updated" /root/newer_service.deb
	equal "it is the newer one" 99.0.0-1 "$(dpkg-query -f '${Version}' -W nvidia-peer-memory)"
}
