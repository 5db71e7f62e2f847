# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios of whole systems, in addition to tests/guest/lib.sh.

conf=/etc/infiniband/nv_peer_mem.conf

loaded() { [ -d /sys/module/nv_peer_mem ]; }

# run COMMAND...: runs COMMAND, stores its output in /tmp/said and its exit code in $code, and shows
# the command, its output and its exit code on the console.
run() {
	code=0
	"$@" >/tmp/said 2>&1 || code=$?
	printf '$ %s\n' "$*"
	sed 's/^/  /' /tmp/said
	printf '  (exit code %s)\n' "$code"
}

# runs COMMAND...: like run, and checks that COMMAND succeeds.
runs() {
	run "$@"
	equal "$*" 0 "$code"
}

# unit: prints the state of the service. unit_is STATE: succeeds if this state is STATE.
unit() { systemctl is-active nv_peer_mem || true; }
unit_is() { [ "$(unit)" = "$1" ]; }

# all_agree TEXT STATE STATUS: checks that systemd reports STATE for the unit. Checks that both ways
# to call the service script's `status` end with the exit code STATUS.
all_agree() {
	equal "$1: the unit" "$2" "$(unit)"
	run service nv_peer_mem status
	equal "$1: service nv_peer_mem status" "$3" "$code"
	run /etc/init.d/nv_peer_mem status
	equal "$1: /etc/init.d/nv_peer_mem status" "$3" "$code"
}

# hold_memory: starts a program that keeps GPU memory registered until program_ends.
hold_memory() { hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold; }
program_ends() { check "the program went on, and ends well" ended_well; }

# serves: checks that GPU memory can be registered, and that a device reaches it.
serves() { check "GPU memory registers, and a device reaches it" transfer_seen 0 8M 300001 5; }

# booted: checks that the boot has loaded the module, and that dkms has built this module for this
# kernel.
booted() {
	check "the boot has loaded the module" loaded
	equal "it is the one that dkms has built for $(uname -r)" "/lib/modules/$(uname -r)/updates/dkms" \
		"$(dirname "$(modinfo -n nv_peer_mem)")"
	serves
}
