# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: installed with dpkg and dkms; booted with and without; unloaded; purged
# Machines: 6.12 debian12
# All: dkms and systemd, emulated: minutes
# Prepared: deb

there_after_boot() {
	check "the boot has loaded the module" loaded
	equal "it is the one that dkms has built" "/lib/modules/$(uname -r)/updates/dkms" "$(dirname "$(modinfo -n nv_peer_mem)")"
	equal "it stands on what the release brought" ready "$(cat /sys/module/nv_peer_mem/statistics/ground)"
	all_agree "booted" active 0
	check "the unit came after openibd" test \
		"$(systemctl show -P ExecMainStartTimestampMonotonic nv_peer_mem)" -gt \
		"$(systemctl show -P ExecMainExitTimestampMonotonic openibd)"
	registered=$(peer nv_mem num_alloc_mrs)
	check "ib_write_bw" perftest ib_write_bw -n 50 -s 65536
	equal "on GPU memory at both ends" $((registered + 2)) "$(peer nv_mem num_alloc_mrs)"
}

not_while_in_use() {
	hold_memory
	run systemctl stop nv_peer_mem
	check "stop is refused while a program has memory registered" loaded
	wait_for "the unit" systemctl is-active nv_peer_mem
	run /etc/init.d/nv_peer_mem stop
	check "and says so" test "$code" = 1 -a -n "$(grep 'in use' /tmp/said)"
	check "the program goes on, and ends well" ended_well
}

# The order in which a driver is replaced.
driver_reloaded() {
	run systemctl stop nv_peer_mem
	all_agree "stopped" inactive 3
	check "then the NVIDIA driver can go" unload_gpu
	modprobe nvidia
	run systemctl start nv_peer_mem
	all_agree "started again" active 0
	serves
}

boot_1() {
	there_after_boot
	not_while_in_use
	driver_reloaded
	run systemctl restart openibd
	equal "openibd restarts" 0 "$code"
	# Its restart takes the unit along, and does not wait for it.
	wait_for "the unit" systemctl is-active nv_peer_mem
	all_agree "after that" active 0
	run /etc/init.d/nv_peer_mem stop
	all_agree "stopped by its script" inactive 3
	run systemctl start nv_peer_mem
	all_agree "started by systemctl" active 0
	sed -i 's/^ONBOOT=.*/ONBOOT=no/' "$conf"
}

boot_2() {
	check "ONBOOT=no: the boot has not loaded it" eval '! loaded'
	all_agree "not loaded" inactive 3
	# Not `service`, which to start and stop has systemd read each unit first: minutes.
	run systemctl start nv_peer_mem
	all_agree "started by hand" active 0
	serves
	purge
}

purge() {
	hold_memory
	run dpkg --purge nvidia-peer-memory nvidia-peer-memory-dkms
	check "purging is refused while a program has memory registered" test "$code" != 0
	check "and says so" grep -q 'in use' /tmp/said
	check "the module stays" loaded
	check "the program goes on, and ends well" ended_well
	run dpkg --purge nvidia-peer-memory nvidia-peer-memory-dkms
	equal "then purging works" 0 "$code"
	check "the module is unloaded" eval '! loaded'
	nothing_left
}
