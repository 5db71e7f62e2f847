# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Everything automated, two jobs at a time; the last line counts.

. "$lab/host.sh"

LAB_JOBS=${LAB_JOBS:-2}

# start_job COMMAND...: in the background, its output kept for when it ends, so
# that those of two jobs do not mix.
start_job() {
	local out=$results/$((started += 1))
	("$@") >"$out" 2>&1 &
	outputs[$!]=$out
}

# end_job: waits for any job to end and shows what it said.
end_job() {
	local pid='' rc=0
	wait -n -p pid || rc=$?
	cat "${outputs[$pid]}"
	if [ "$rc" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	unset "outputs[$pid]"
}

run_job() {
	[ "${#outputs[@]}" -lt "$LAB_JOBS" ] || end_job
	start_job "$@"
}

test_main() {
	local passed=0 failed=0 started=0 results file crate name
	local -A outputs=()
	guest_layers
	hosttools_layer
	new_dir tmp results
	results=$reply
	for file in "$top"/tests/guest/scenarios/*.sh; do
		run_job run_scenario "$(basename "$file" .sh)"
	done
	for crate in "${HOST_CRATES[@]}"; do
		run_job run_host "$crate"
	done
	for name in "${CHECKS[@]}"; do
		run_job run_check "$name"
	done
	while [ "${#outputs[@]}" -gt 0 ]; do end_job; done
	rm -rf "$results"
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
