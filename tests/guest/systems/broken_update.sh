# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an update that does not compile leaves the module that was there
# All: a failure of dkms, which package-deb shows outside of a guest
# Prepared: deb broken_update

boot_1() {
	cat /root/update.log
	check "dpkg has told of the failure" grep -qx 'dpkg ended with 1' /root/update.log
	check "with what to do when its cause is fixed" grep -qF 'dpkg --configure -a' /root/update.log
	check "the boot has loaded the module" loaded
	equal "of the version before" "$(dpkg-deb -f /root/installed.deb Version)" "$(cat /sys/module/nv_peer_mem/version)-1"
	all_agree "booted" active 0
	serves
}
