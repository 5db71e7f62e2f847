# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The demonstration: the scenario `demo`, shown as it goes, and its table.

demo_main() {
	local started=$SECONDS rc=0 scenario_label=demo
	guest_layers
	say demo "booting a guest with kernel $kver (QEMU, $LAB_ACCEL)"
	run_guest demo || rc=$?
	keep_console demo
	printf '\n'
	sed -n 's/^row //p' "$run/said" |
		awk -F ' *[|] *' '{ printf "  %-42s %s\n", $1, $2 }'
	printf '\n'
	if [ "$rc" -ne 0 ]; then
		grep '^fail ' "$run/said" >&2 || true
		show_log "$LAB_CACHE/log/demo.console"
		rm -rf "$run"
		die "the demonstration failed."
	fi
	rm -rf "$run"
	say demo "all of it held, in $((SECONDS - started)) s"
}
