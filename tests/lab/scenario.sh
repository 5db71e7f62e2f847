# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Guest scenarios: tests/guest/scenarios/NAME.sh. What their first lines say:
#
#   # Shows: TEXT           what it shows
#   # Needs: plain iommu    it is run on each machine that is one of these (kernels;
#                           without the line: plain); NAME@MACHINE is one such run
#   # Layers: cuda          layers that not every guest has (layers.sh)
#   # Hosts: 2              it wants two guests at once (hosts.sh)
#   # Own guest: REASON     others may not run before or after it in the same guest
#   # Sleeps: REASON         it waits most of its time, and keeps no processor busy
#   # Apart: COMMAND        it belongs to that command, neither to `test` nor to `all`
#   # Test:, # All:         jobs.sh

scenario_file() { printf '%s\n' "$top/tests/guest/scenarios/$1.sh"; }

# scenario_layers NAME: the extra ones, a line each.
scenario_layers() {
	header "$(scenario_file "$1")" Layers | tr ' ' '\n'
	! has_header "$1" Hosts || echo hosts
}

has_header() { grep -q "^# $2: " "$(scenario_file "$1")"; }

# may_share NAME: whether it may run in a guest in which others run, too.
may_share() { ! has_header "$1" 'Own guest' && ! has_header "$1" Hosts; }

# runs_of NAME: NAME@MACHINE for each machine that is what it needs.
runs_of() {
	local need machine
	need=$(header "$(scenario_file "$1")" Needs)
	for need in ${need:-plain}; do
		for machine in $(machines "$need"); do
			! machine_runs "$machine" "$1" || printf '%s@%s\n' "$1" "$machine"
		done
	done
}

# layers_of NAME@MACHINE: those of its guest, in $stack.
layers_of() {
	# shellcheck disable=SC2046 # words
	guest_layers "${1#*@}" $(scenario_layers "${1%@*}")
}

list_scenarios() {
	local file name
	for file in "$top"/tests/guest/scenarios/*.sh; do
		name=$(basename "$file" .sh)
		printf '  %-16s %-20s %s\n' "$name" "$(runs_of "$name" | sed 's/.*@//' | paste -sd' ')" "$(header "$file" Shows)"
	done
}

# choose_seed: what a run's chance begins with; SEED replays another one's.
choose_seed() { printf '%s\n' "${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"; }

# guest_files: what every guest reads from the checkout, in the array `parts`; each
# scenario, system and bench has files of its own beside them.
guest_files() {
	mapfile -t parts < <(find "$top/tests/guest" -mindepth 1 -maxdepth 1 \
		-not -name scenarios -not -name systems -not -name bench | sort)
}

# key_scenario NAME@MACHINE: of all that its result depends on: what the guest boots,
# what it reads from the checkout, how the emulator runs it, and who listens. (Those that
# measure have no key.)
key_scenario() {
	local file parts=()
	layers_of "$1"
	file=$(scenario_file "${1%@*}")
	guest_files
	# Some run others' files, too.
	if grep -q /lab/scenarios/ "$file"; then file=$(dirname "$file"); fi
	key_of "$1" "$stack" "$(hash_of "$file" "${parts[@]}")" "$(emulator)"
}

# emulator: how guests are run and listened to, for keys.
emulator() {
	printf '%s\n' "$initramfs" "$LAB_ACCEL $LAB_THREADS $LAB_CLOCK $LAB_CPUS $LAB_GPU_MB $LAB_GUEST_MB" \
		"$(qemu-system-x86_64 --version | head -n 1)"
	declare -f guest_devices qemu_x86 converse restarted killed finished answer compare_bar plug_in host_tell host_hear host_kill
	! is_arm64 || arm64_emulator
}

# run_scenario NAME@MACHINE [WORDS]: one line when it passes; when it does not,
# everything seen, and the command that does the same again.
run_scenario() {
	if has_header "${1%@*}" Hosts; then
		run_hosts "$@"
	else
		run_alone "$@"
	fi
}

run_alone() {
	local scenario_label=$1 name=${1%@*} started rc=0 seed
	seed=$(choose_seed)
	layers_of "$1"
	started=$SECONDS
	run_guest "$name" "lab.seed=$seed ${2-}" || rc=$?
	show_end "$1" "$rc" "${again:-scenario $1}"
}

# run_shared NAME@MACHINE...: one after another in the same guest, each with modules
# loaded anew. Where one fails the guest ends; that one is run once more, alone, so
# that its failure is seen by itself; those behind it get another guest.
run_shared() {
	local run started seed name rc=0 left=() names
	local -A keys=()
	for name; do
		job_key=$(say_to=2 key_scenario "$name")
		unchanged "$name" || { left+=("$name") keys[$name]=$job_key; }
	done
	while [ "${#left[@]}" -gt 0 ]; do
		seed=$(choose_seed)
		layers_of "${left[0]}"
		names=${left[*]%@*}
		started=$SECONDS
		run_guest shared "lab.seed=$seed" "${names// /,}" || true
		# Those that passed have left the list.
		[ "${#left[@]}" -gt 0 ] || break
		rc=1
		show_end "${left[0]}" 1 "scenario ${left[0]}" || true
		record "${left[0]}" failed $((SECONDS - started)) 0
		say "${left[0]}" "the same alone, to see whether it fails by itself:"
		again_alone "${left[0]}" || true
		left=("${left[@]:1}")
	done
	return "$rc"
}

# again_alone NAME@MACHINE: in a guest of its own.
again_alone() {
	local left=()
	run_alone "$1"
}

# shared_passed: the first in the list has passed, in the guest that goes on.
shared_passed() {
	local checks
	checks=$(grep -c '^ok ' "$run/said")
	say "${left[0]}" "passed, $checks checks, $((SECONDS - started)) s, seed $seed"
	job_key=${keys[${left[0]}]} record "${left[0]}" passed $((SECONDS - started)) "$checks"
	left=("${left[@]:1}")
	started=$SECONDS
	: >"$run/said"
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
