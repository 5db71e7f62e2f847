# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The parts that need no kernel, tested by cargo: tests/host and the verbs client.

. "$lab/check.sh"

HOST_CRATES=(tests/host tests/guest/gpuverbs)

# run_host CRATE: cargo's tests of one crate.
run_host() {
	local name=${1##*/} log=$LAB_CACHE/log/host-${1##*/}.log
	if in_copy "$name" "cd $1; ${HOST_SEED:+HOST_SEED=$HOST_SEED} cargo test --offline" >"$log" 2>&1; then
		say "$name" "passed, $(awk '/^test result:/ { n += $4 } END { print n }' "$log") tests"
	else
		tail -n 60 "$log" >&2
		say "$name" "FAILED; whole output: $log"
		return 1
	fi
}

host_main() {
	local crate failed=0
	guest_layers
	for crate in "${HOST_CRATES[@]}"; do
		run_host "$crate" || failed=$((failed + 1))
	done
	[ "$failed" -eq 0 ]
}
