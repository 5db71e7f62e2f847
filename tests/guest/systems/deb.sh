# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: installed with dpkg and dkms; booted with and without; unloaded; purged
# Prepared: deb

boot_1() {
	booted
	equal "it stands on what the release brought" prebuilt "$(statistic rust)"
	all_agree "booted" active 0
	check "the unit came after openibd" test \
		"$(systemctl show -P ExecMainStartTimestampMonotonic nv_peer_mem)" -gt \
		"$(systemctl show -P ExecMainExitTimestampMonotonic openibd)"

	# An administrator replaces the driver in this order.
	runs systemctl stop nv_peer_mem
	all_agree "stopped" inactive 3
	check "then the NVIDIA driver can go" unload_gpu
	modprobe nvidia
	runs systemctl start nv_peer_mem
	all_agree "started again" active 0
	serves

	runs /etc/init.d/nv_peer_mem stop
	all_agree "stopped by its script" inactive 3
	sed -i 's/^ONBOOT=.*/ONBOOT=no/' "$conf"
}

boot_2() {
	check "ONBOOT=no: the boot has not loaded it" eval '! loaded'
	all_agree "not loaded" inactive 3
	# If `service` were used here, systemd would first read each unit, which takes minutes.
	runs systemctl start nv_peer_mem
	all_agree "started by hand" active 0
	serves

	hold_memory
	run dpkg --purge nvidia-peer-memory nvidia-peer-memory-dkms
	check "purging is refused while a program has memory registered" test "$code" != 0
	check "and says so" grep -q 'in use' /tmp/said
	check "the module stays" loaded
	program_ends
	runs dpkg --purge nvidia-peer-memory nvidia-peer-memory-dkms
	check "the module is unloaded" eval '! loaded'
	check "the callback module stays until the next boot" test -d /sys/module/nv_peer_mem_callback
	equal "nothing is left of it" '' "$(find /etc /usr/lib /usr/src /var/lib/dkms \
		\( -name '*nv_peer_mem*' -o -name '*nvidia[-_]peer[-_]memory*' \) \
		-not -path '/usr/lib/nv_peer_mem*' | paste -sd' ')"
	check "nor are openibd's hooks" eval '! compgen -G "/etc/infiniband/*-hook.sh"'
	check "no module is left for any kernel" eval '! find /lib/modules -name "nv_peer_mem*" | grep .'
}
