# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios of whole systems, in addition to tests/guest/lib.sh.

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

# runs COMMAND...: the same, and it must succeed.
runs() {
	run "$@"
	equal "$*" 0 "$code"
}

# unit: prints the state of the service. unit_is STATE: compares it.
unit() { systemctl is-active nv_peer_mem || true; }
unit_is() { [ "$(unit)" = "$1" ]; }

# all_agree TEXT STATE STATUS: what systemd and the service script say: STATE of
# the unit, and exit code STATUS of `status` by either way to call it.
all_agree() {
	equal "$1: the unit" "$2" "$(unit)"
	run service nv_peer_mem status
	equal "$1: service nv_peer_mem status" "$3" "$code"
	run /etc/init.d/nv_peer_mem status
	equal "$1: /etc/init.d/nv_peer_mem status" "$3" "$code"
}

# hold_memory: a program that has GPU memory registered, until it has ended_well.
hold_memory() { hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold; }
program_ends() { check "the program went on, and ends well" ended_well; }

# serves: that GPU memory can be registered, and reached by a device.
serves() { check "GPU memory registers, and a device reaches it" transfer_seen 0 8M 300001 5; }

# booted: with the module that dkms has built for this kernel.
booted() {
	check "the boot has loaded the module" loaded
	equal "it is the one that dkms has built for $(uname -r)" "/lib/modules/$(uname -r)/updates/dkms" \
		"$(dirname "$(modinfo -n nv_peer_mem)")"
	serves
}
