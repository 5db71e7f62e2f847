# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Everything automated, two jobs at a time; the last line counts.

. "$lab/host.sh"

LAB_JOBS=${LAB_JOBS:-2}

# start_job NAME COMMAND...: in the background, its output kept for when it
# ends, so that those of two jobs do not mix.
start_job() {
	local out=$results/$1
	("${@:2}") >"$out" 2>&1 &
	names[$!]=$1
	begun[$!]=$SECONDS
}

# end_job: waits for any job to end and shows what it said. How long it took is
# kept, for the order of the next time.
end_job() {
	local pid='' rc=0
	wait -n -p pid || rc=$?
	cat "$results/${names[$pid]}"
	if [ "$rc" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	printf '%s\n' "$((SECONDS - begun[$pid]))" >"$LAB_CACHE/log/${names[$pid]}.seconds"
	unset "names[$pid]"
}

# run_jobs FUNCTION WORD...: FUNCTION with each word, two at a time, the longest
# first: or one long job at the end would leave half of the machine idle.
run_jobs() {
	local function=$1 word
	shift
	for word in $(longest_first "$@"); do
		[ "${#names[@]}" -lt "$LAB_JOBS" ] || end_job
		start_job "${word//\//-}" "$function" "$word"
	done
}

# longest_first WORD...: by what they took the last time; unknown ones first.
longest_first() {
	local word
	for word; do
		printf '%s %s\n' "$(cat "$LAB_CACHE/log/${word//\//-}.seconds" 2>/dev/null || echo 9999)" "$word"
	done | sort -srn -k 1,1 | cut -d' ' -f2
}

# test_runs: every scenario on every machine that it names, but for those that
# have a command of their own ("# Apart: COMMAND").
test_runs() {
	local file name
	for file in "$top"/tests/guest/scenarios/*.sh; do
		name=$(basename "$file" .sh)
		grep -q '^# Apart: ' "$file" || runs_of "$name"
	done
}

test_main() {
	local passed=0 failed=0 results started=$SECONDS machine
	local -A names=() begun=()
	for machine in $LAB_MACHINES; do
		guest_layers "$machine"
	done
	(packages_layer)
	guest_layers stock
	(hosts_layers)
	hosttools_layer
	new_dir tmp results
	results=$reply
	# shellcheck disable=SC2046 # lists of words
	run_jobs run_system $(system_names)
	# shellcheck disable=SC2046
	run_jobs run_package $(package_names | sed 's/^/package-/')
	# shellcheck disable=SC2046
	run_jobs run_scenario $(test_runs)
	run_jobs run_host "${HOST_CRATES[@]}"
	run_jobs run_check "${CHECKS[@]}"
	while [ "${#names[@]}" -gt 0 ]; do end_job; done
	rm -rf "$results"
	say test "took $((SECONDS - started)) s"
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
