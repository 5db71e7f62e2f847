# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: openibd stops, starts and restarts with the module; unit and module agree; a driver that comes after the boot
# All: dkms and systemd, emulated: minutes
# Prepared: deb openibd

unit() { systemctl is-active nv_peer_mem; }
unit_is() { [ "$(unit)" = "$1" ]; }
core() { [ -d /sys/module/ib_core ]; }

# back TEXT: the module is there again, and systemd knows.
back() {
	wait_for "$1: the unit" unit_is active
	check "$1: the module is loaded" loaded
	serves
}

by_systemd() {
	run systemctl stop openibd
	equal "systemctl stop openibd" 0 "$code"
	equal "takes the unit along" inactive "$(unit)"
	check "the module" eval '! loaded'
	check "and the core" eval '! core'
	run systemctl start openibd
	equal "systemctl start openibd" 0 "$code"
	back "systemctl start openibd"
	run systemctl reload openibd
	equal "systemctl reload openibd" 0 "$code"
	back "systemctl reload openibd"
}

by_script() {
	run /etc/init.d/openibd restart
	equal "/etc/init.d/openibd restart" 0 "$code"
	back "/etc/init.d/openibd restart"
	/usr/lib/nvidia-peer-memory/openibd-hook remove
	run /etc/init.d/openibd restart
	check "without the hooks it fails" test "$code" != 0
	/usr/lib/nvidia-peer-memory/openibd-hook install
	run /etc/init.d/openibd restart
	equal "with them it does not" 0 "$code"
	back "with the hooks"
}

in_use() {
	hold_memory
	run /etc/init.d/openibd restart
	check "in use: openibd refuses" test "$code" != 0
	check "in use: the module stays" loaded
	run systemctl restart nv_peer_mem
	check "in use: a restart of the unit is an error" test "$code" != 0
	wait_for "the unit" unit_is active
	check "in use: who has it is named" grep -q "process $held " <(journalctl -u nv_peer_mem -o cat)
	check "in use: the program goes on, and ends well" ended_well
}

agree() {
	rmmod nv_peer_mem
	wait_for "systemd to notice" unit_is inactive
	run systemctl start nv_peer_mem
	back "after rmmod"
	for _ in 1 2 3 4 5 6 7; do
		systemctl restart nv_peer_mem || fail "one of seven restarts"
	done
	back "seven restarts"
	check "systemctl status says where there is more" grep -q 'Loaded, version.*nvpm status' <(systemctl status nv_peer_mem)
}

boot_1() {
	check "the boot has loaded the module" loaded
	by_systemd
	by_script
	in_use
	agree
	# A machine whose driver is not there yet; without it nothing here counts as a GPU.
	modinfo -n nvidia >/root/driver.path
	mv "$(cat /root/driver.path)" /root/driver
	depmod
}

boot_2() {
	check "no GPU: the boot has not loaded the module" eval '! loaded'
	equal "no GPU: the unit is not failed" inactive "$(unit)"
	check "no GPU: systemd says why" grep -q 'no NVIDIA GPU' <(systemctl status nv_peer_mem)
	run systemctl start nv_peer_mem
	equal "no GPU: it is skipped" 'inactive 0' "$(unit) $code"
	mv /root/driver "$(cat /root/driver.path)"
	depmod
	modprobe nvidia
	wait_for "the GPU" test -c /dev/nvidia-lab
	back "the driver has come"
}
