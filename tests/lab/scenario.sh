# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Guest scenarios: tests/guest/scenarios/NAME.sh, each in a guest of its own.

list_scenarios() {
	local file
	for file in "$top"/tests/guest/scenarios/*.sh; do
		printf '  %-22s %s\n' "$(basename "$file" .sh)" "$(sed -n 's/^# Shows: //p' "$file")"
	done
}

# run_scenario NAME: one line when it passes, everything seen when it does not.
run_scenario() {
	local name=$1 started=$SECONDS scenario_label=$1
	if run_guest "$name"; then
		say "$name" "passed, $(grep -c '^ok ' "$run/said") checks, $((SECONDS - started)) s"
		keep_console "$name"
		rm -rf "$run"
		return 0
	fi
	{
		printf -- '--- console of %s ---\n' "$name"
		tail -n 120 "$run/console"
		cat "$run/qemu.log"
		printf -- '--- failed checks of %s ---\n' "$name"
		grep '^fail ' "$run/said" || true
	} >&2
	keep_console "$name"
	say "$name" "FAILED after $((SECONDS - started)) s; console: $LAB_CACHE/log/$name.console"
	rm -rf "$run"
	return 1
}

keep_console() {
	cp "$run/console" "$LAB_CACHE/log/$1.console"
}

scenario_main() {
	local name
	if [ $# -eq 0 ]; then
		printf 'Scenarios (tests/run scenario NAME...):\n'
		list_scenarios
		return
	fi
	for name; do
		[ -e "$top/tests/guest/scenarios/$name.sh" ] || {
			list_scenarios >&2
			die "there is no scenario '$name'."
		}
	done
	guest_layers
	each run_scenario "$@"
}

# guest_shell: a guest at this terminal.
guest_shell() {
	new_dir run shell
	run=$reply
	mkfifo "$run/lab.in" "$run/lab.out"
	exec {to}<>"$run/lab.in" {from}<>"$run/lab.out"
	qemu_command "$run" "lab.scenario=shell"
	say shell "the guest's console follows"
	setpriv --pdeathsig KILL "${qemu[@]}" -chardev stdio,id=tty,signal=off -serial chardev:tty
	rm -rf "$run"
}
