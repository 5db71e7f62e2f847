# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: packages laid out as those of 1.3, with a module in C, updated to ours: what is booted then, and what was kept
# All: dkms and systemd, emulated: minutes
# Machines: 6.12 debian12
# Prepared: one_three update

boot_1() {
	check "the boot has loaded the module" loaded
	equal "it is ours" "$(dpkg-query -f '${Version}' -W nvidia-peer-memory-dkms)" "$(cat /sys/module/nv_peer_mem/version)-1"
	equal "it is the one that dkms has built" "/lib/modules/$(uname -r)/updates/dkms" "$(dirname "$(modinfo -n nv_peer_mem)")"
	equal "it stands on what the release brought" ready "$(cat /sys/module/nv_peer_mem/statistics/ground)"
	check "the administrator's file is as it was" grep -qx '# Ours: do not touch' "$conf"
	check "the file for upstart is gone" test ! -e /etc/init/nv_peer_mem.conf
	equal "dkms has nothing of 1.3 left" '' "$(dkms status nvidia-peer-memory/1.3)"
	check "nor is its source there" test ! -e /usr/src/nvidia-peer-memory-1.3
	all_agree "booted" active 0
	serves
}
