# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios that run the tests for hardware with the module of the guest.
state=/var/lib/nv_peer_mem-hardware
built=/run/built
mkdir -m 700 "$built"
cp /opt/hardware/hardware-client "$built"
for module in nv_peer_mem nv_peer_mem_callback; do cp "$(modinfo -n $module)" "$built"; done

# others: prints the loaded modules without the one that stays.
others() { lsmod | awk '$1 != "nv_peer_mem_callback" { print $1 }' | sort; }

# hardware WORD...: runs the tests for hardware. as_before TEXT: checks that the modules are those of
# before, and that nothing is left.
# shellcheck disable=SC2120 # also called by eval
hardware() { sh /opt/hardware/tests/hardware/run --built "$built" "$@"; }
as_before() {
	equal "$1: the modules are as before" "$modules" "$(others)"
	nothing_left "$1"
}

# page PATTERN: succeeds if a line of the page matches PATTERN.
page() { grep -qE "$1" "$state"/*/page.txt; }
