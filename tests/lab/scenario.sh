# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Guest scenarios: tests/guest/scenarios/NAME.sh, each in a guest of its own.
#
# A scenario's line "# Machines: stock iommu debug" (without it: stock) says
# on which it is to be run; NAME@MACHINE is one such run. A line "# Hosts: 2" says
# that it wants two guests at once (hosts.sh).

scenario_file() { printf '%s\n' "$top/tests/guest/scenarios/$1.sh"; }

scenario_machines() {
	local machines
	machines=$(sed -n 's/^# Machines: //p' "$(scenario_file "$1")")
	printf '%s\n' "${machines:-stock}"
}

# runs_of NAME: NAME@MACHINE for each of its machines.
runs_of() {
	# shellcheck disable=SC2046 # a list of words
	printf "$1@%s\n" $(scenario_machines "$1")
}

list_scenarios() {
	local file name
	for file in "$top"/tests/guest/scenarios/*.sh; do
		name=$(basename "$file" .sh)
		printf '  %-16s %-20s %s\n' "$name" "$(scenario_machines "$name")" "$(sed -n 's/^# Shows: //p' "$file")"
	done
}

# choose_seed: what a run's chance begins with; SEED replays another one's.
choose_seed() { printf '%s\n' "${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"; }

# run_scenario NAME@MACHINE [WORDS]: one line when it passes; when it does not,
# everything seen, and the command that does the same again.
run_scenario() {
	if grep -q '^# Hosts: 2$' "$(scenario_file "${1%@*}")"; then
		run_hosts "$@"
	else
		run_alone "$@"
	fi
}

run_alone() {
	local scenario_label=$1 name=${1%@*} started rc=0 seed
	seed=$(choose_seed)
	guest_layers "${1#*@}"
	started=$SECONDS
	run_guest "$name" "lab.seed=$seed ${2-}" || rc=$?
	show_end "$1" "$rc" "${again:-scenario $1}"
}

# show_end LABEL STATUS AGAIN: what the run in $run came to.
show_end() {
	keep_console "$1"
	if [ "$2" = 0 ]; then
		say "$1" "passed, $(grep -c '^ok ' "$run/said") checks, $((SECONDS - started)) s, seed $seed"
		rm -rf "$run"
		return 0
	fi
	{
		printf -- '--- console of %s ---\n' "$1"
		tail -n 120 "$run/console"
		cat "$run/qemu.log"
		printf -- '--- failed checks of %s ---\n' "$1"
		grep '^fail ' "$run/said" || true
	} >&2
	say "$1" "FAILED after $((SECONDS - started)) s; console: $LAB_CACHE/log/$1.console"
	say "$1" "again: SEED=$seed tests/run $3"
	rm -rf "$run"
	return 1
}

keep_console() {
	cp "$run/console" "$LAB_CACHE/log/$1.console"
}

scenario_main() {
	local word name runs=()
	if [ $# -eq 0 ]; then
		printf 'Scenarios (tests/run scenario NAME... or NAME@MACHINE...):\n'
		list_scenarios
		return
	fi
	for word; do
		name=${word%@*}
		[ -e "$(scenario_file "$name")" ] || {
			list_scenarios >&2
			die "there is no scenario '$name'."
		}
		case $word in
		*@*) runs+=("$word") ;;
		*) mapfile -t -O "${#runs[@]}" runs < <(runs_of "$word") ;;
		esac
	done
	each run_scenario "${runs[@]}"
}

# soak_main [REGISTRATIONS]: the stress for hours, for every checker to see, with
# the machine for itself.
soak_main() {
	local registrations=${1:-100000} again
	[[ $registrations =~ ^[1-9][0-9]*$ ]] || die "'$registrations' is not a number of registrations."
	again="soak $registrations"
	# It reports as it goes, but may be long about it.
	LAB_TIMEOUT=$((LAB_TIMEOUT * 2))
	LAB_THREADS=${LAB_THREADS:-multi}
	run_scenario soak@debug "lab.registrations=$registrations"
}

# guest_shell: a guest at this terminal.
guest_shell() {
	new_dir run shell
	run=$reply
	mkfifo "$run/lab.in" "$run/lab.out"
	exec {to}<>"$run/lab.in" {from}<>"$run/lab.out"
	qemu_command "$run" "lab.scenario=shell"
	say shell "the console of a guest (machine: $machine) follows"
	setpriv --pdeathsig KILL "${qemu[@]}" -chardev stdio,id=tty,signal=off -serial chardev:tty
	rm -rf "$run"
}
