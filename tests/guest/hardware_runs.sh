# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios that run the tests for hardware with the module of the guest.
state=/var/lib/nv_peer_mem-hardware
built=/run/built
mkdir -m 700 "$built"
cp /opt/hardware/hardware-client "$built"
for module in nv_peer_mem nv_peer_mem_callback; do cp "$(modinfo -n $module)" "$built"; done

# The driver's nvidia-smi, as far as it says how much of BAR1 is in use. The driver itself keeps 36 MiB.
# It takes the place of programs in the directory /run/double, which hardware looks into first.
mkdir /run/double
cat >/run/double/nvidia-smi <<-'SMI'
	#!/bin/bash
	[ "$*" = "-q -d MEMORY" ] || exit 1
	nvidia=/sys/kernel/debug/nvidia_lab
	used=$(awk '$1 == "live_bar1_bytes" { print int(36 + ($2 + 1048575) / 1048576) }' "$nvidia/counters")
	printf 'GPU 0000%s\n    BAR1 Memory Usage\n' "$(basename "$(echo /sys/bus/pci/drivers/nvidia/*:*)")"
	printf '        Total : %s MiB\n        Used : %s MiB\n' $(($(cat "$nvidia/bar1_bytes") >> 20)) "$used"
SMI
chmod 755 /run/double/nvidia-smi

# others: prints the loaded modules without the one that stays.
others() { lsmod | awk '$1 != "nv_peer_mem_callback" { print $1 }' | sort; }

# hardware WORD...: runs the tests for hardware. as_before TEXT: checks that the modules are those of
# before, and that nothing is left.
# shellcheck disable=SC2120 # also called by eval
hardware() { PATH=/run/double:$PATH sh /opt/hardware/tests/hardware/run --built "$built" "$@"; }
as_before() {
	equal "$1: the modules are as before" "$modules" "$(others)"
	nothing_left "$1"
}

# page PATTERN: succeeds if a line of the page matches PATTERN.
page() { grep -qE "$1" "$state"/*/page.txt; }
