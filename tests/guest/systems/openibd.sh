# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: openibd stops, starts and restarts with the module; unit and module agree; what the unit may do; a driver that comes after the boot
# Prepared: deb

openibd() { bash /lab/systems/machine/openibd "$@"; }

# back COMMAND...: runs COMMAND. Checks that the module is loaded again after that, and that systemd
# knows this.
back() {
	runs "$@"
	wait_for "the unit" unit_is active
	check "$*: the module is loaded" loaded
	serves
}

by_systemd() {
	runs systemctl stop openibd
	equal "takes the unit along" inactive "$(unit)"
	check "the module" eval '! loaded'
	check "and the core" test ! -d /sys/module/ib_core
	back systemctl start openibd
	back systemctl reload openibd
}

by_script() {
	back openibd restart
	/usr/lib/nvidia-peer-memory/openibd-hook remove
	run openibd restart
	check "without the hooks it fails" test "$code" != 0
	# That of OFED 26.07 unloads the module as any other that uses the core, and does not load it. The
	# service loads it when the core is there.
	OPENIBD=26.07 back openibd restart
	/usr/lib/nvidia-peer-memory/openibd-hook install
	back openibd restart
	OPENIBD=26.07 back openibd restart
}

in_use() {
	hold_memory
	for OPENIBD in 25.10 26.07; do
		export OPENIBD
		run openibd restart
		check "in use: openibd $OPENIBD refuses" test "$code" != 0
		check "in use: the module stays" loaded
	done
	run systemctl restart nv_peer_mem
	check "in use: a restart of the unit is an error" test "$code" != 0
	wait_for "the unit" unit_is active
	check "in use: who has it is named" grep -q "process $held " <(journalctl -u nv_peer_mem -o cat)
	program_ends
}

agree() {
	rmmod nv_peer_mem
	wait_for "systemd to notice" unit_is inactive
	back systemctl start nv_peer_mem
	for _ in 1 2 3 4 5 6 7; do
		systemctl restart nv_peer_mem || fail "one of seven restarts"
	done
	back true
	check "systemctl status says where there is more" grep -q 'Loaded, version.*nvpm status' <(systemctl status nv_peer_mem)
}

# confined: checks the limits of commands that modprobe.d names and the unit runs. A command must be
# able to make a device's node and use netlink, but must not be able to write to /usr.
confined() {
	runs systemctl stop nv_peer_mem
	unload_gpu
	cat >/etc/modprobe.d/lab-install.conf <<-'CONF'
		install nvidia { mknod /dev/lab-made c 1 3; ip link show lo; touch /usr/lab-made; } >/run/lab-said 2>&1; modprobe --ignore-install nvidia
	CONF
	back systemctl start nv_peer_mem
	check "a line of modprobe.d can make a device's node" test -c /dev/lab-made
	check "and use netlink" grep LOOPBACK /run/lab-said
	check "and not write to /usr" test ! -e /usr/lab-made
	rm -f /etc/modprobe.d/lab-install.conf /dev/lab-made
}

boot_1() {
	check "the boot has loaded the module" loaded
	by_systemd
	by_script
	in_use
	agree
	confined
	# The next boot must find no driver. Without the driver, no device of the guest counts as a
	# GPU.
	modinfo -n nvidia >/root/driver.path
	mv "$(cat /root/driver.path)" /root/driver
	depmod
}

boot_2() {
	check "no GPU: the boot has not loaded the module" eval '! loaded'
	check "no GPU: systemd says why" grep -q 'no NVIDIA GPU' <(systemctl status nv_peer_mem)
	runs systemctl start nv_peer_mem
	equal "no GPU: it is skipped, and not failed" inactive "$(unit)"
	mv /root/driver "$(cat /root/driver.path)"
	depmod
	back modprobe nvidia
}
