# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a newer kernel, whose own hooks have had dkms build the module for it
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

boot_1() {
	uname -r >/root/older
	there
}

boot_2() {
	check "another kernel runs" test "$(cat /root/older)" != "$(uname -r)"
	check "dkms ran when it was installed" grep -q "Installing .*/lib/modules/$(uname -r)/updates/dkms" /root/kernel.log
	there
}
