# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Scenarios of whole systems: tests/guest/systems/NAME.sh, each in a guest with
# systemd as init and a disk, which is restarted between the scenario's boots.
#
# Their first lines say, beside "# Shows:",
#   # Prepared: WORD...   what systems/prepare/WORD.sh did before the first boot;
#                         natively, ten times faster than in an emulated guest
#   # Kernels: older newer  that the first boot is of an older kernel than the
#                         others

system_file() { printf '%s\n' "$top/tests/guest/systems/$1.sh"; }

# system_header NAME WORD: what stands in its line "# WORD: ...".
system_header() { sed -n "s/^# $2: //p" "$(system_file "$1")"; }

system_names() {
	local file
	for file in "$top"/tests/guest/systems/*.sh; do
		basename "$file" .sh
	done
}

# system_layers: as guest_layers, for a system on which nothing is installed yet.
system_layers() {
	local kernel_stack
	machine=stock
	base_layer
	list_archive "$base"
	choose_kernel
	kernel_layer
	kernel_stack=$stack
	nvsource_layer
	nvidia_layer
	ofed_layer
	layer_network=yes
	layer_args=()
	layer system "$kernel_stack" "systemd, dkms and rpm" "$top/tests/guest/systems/machine/units"
	stack=$reply:$stack
	gpuverbs_layer
}

# prepare WORD: runs systems/prepare/WORD.sh on top of the stack.
prepare() {
	layer_network=
	layer_args=("$1" "$kver")
	layer prepared "$stack" "a system: $1" "$top/tests/guest/systems/prepare"
	stack=$reply:$stack
}

# run_system NAME: one line when it passes; when it does not, everything seen.
run_system() {
	local scenario_label=$1 started boot=1 rc=0 word
	local seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
	system_layers
	for word in $(system_header "$1" Prepared); do
		prepare "$word"
	done
	started=$SECONDS
	new_run "$1"
	truncate -s 2G "$run/disk"
	mkfs.ext4 -q -E lazy_itable_init,lazy_journal_init "$run/disk"
	while boot_guest "lab.scenario=$1 lab.disk=vda lab.boot=$boot systemd.show_status=error lab.seed=$seed" || rc=$?; [ "$rc" = 2 ]; do
		rc=0
		boot=$((boot + 1))
	done
	show_end "$1" "$rc" "system $1"
}

system_main() {
	local name
	if [ $# -eq 0 ]; then
		printf 'Whole systems (tests/run system NAME...):\n'
		for name in $(system_names); do
			printf '  %-16s %s\n' "$name" "$(system_header "$name" Shows)"
		done
		return
	fi
	for name; do
		[ -e "$(system_file "$name")" ] || die "there is no system '$name': tests/run system lists them."
	done
	each run_system "$@"
}
