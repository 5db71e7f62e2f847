# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The parts that need no kernel, tested by cargo: tests/host and the verbs client.

. "$lab/check.sh"

HOST_CRATES=(tests/host tests/guest/gpuverbs)

# run_host CRATE: cargo's tests of one crate; HOST_SEED replays a random failure.
run_host() {
	local name=tests-${1##*/}
	reported "$name" in_copy "$name" "cd $1; ${HOST_SEED:+HOST_SEED=$HOST_SEED} cargo test --offline"
}

host_main() {
	guest_layers
	each run_host "${HOST_CRATES[@]}"
}
