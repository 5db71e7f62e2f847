# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios of whole systems ask, beside tests/guest/lib.sh.

conf=/etc/infiniband/nv_peer_mem.conf

loaded() { [ -d /sys/module/nv_peer_mem ]; }

# run COMMAND...: shown on the console with what it says, which is kept in
# /tmp/said, and its exit code in $code.
run() {
	code=0
	"$@" >/tmp/said 2>&1 || code=$?
	printf '$ %s\n' "$*"
	sed 's/^/  /' /tmp/said
	printf '  (exit code %s)\n' "$code"
}

# all_agree TEXT STATE STATUS: what systemd and the service script say: STATE of
# the unit, and exit code STATUS of `status` by either way to call it.
all_agree() {
	equal "$1: the unit" "$2" "$(systemctl is-active nv_peer_mem || true)"
	run service nv_peer_mem status
	equal "$1: service nv_peer_mem status" "$3" "$code"
	run /etc/init.d/nv_peer_mem status
	equal "$1: /etc/init.d/nv_peer_mem status" "$3" "$code"
}

# hold_memory: a program that has GPU memory registered, until ended_well.
hold_memory() { hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold; }

# serves: that GPU memory can be registered, and reached by a device.
serves() { check "GPU memory registers, and a device reaches it" transfer_seen 0 8M 300001 5; }

# nothing_left: that no file of the packages or of dkms is there any more.
nothing_left() {
	equal "nothing is left of it" '' "$(find /etc /usr/lib /usr/src /var/lib/dkms \
		\( -name '*nv_peer_mem*' -o -name '*nvidia[-_]peer[-_]memory*' \) \
		-not -path '/usr/lib/nv_peer_mem*' | paste -sd' ')"
	check "nor are openibd's hooks" eval '! compgen -G "/etc/infiniband/*-hook.sh"'
	check "no module is left for any kernel" eval '! find /lib/modules -name "nv_peer_mem*" | grep .'
}
