# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for rounds of stress. A round loads the module, runs `gpuverbs stress`, waits until
# everything is at rest, and unloads the module.

# In rounds with frees by the driver, the driver takes memory away at this many of a thousand
# injection points.
INJECTIONS=20

# figure NAME FILE: prints the sum of the figure NAME over the rounds in FILE.
figure() { awk -F= -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$2"; }

# one_round PERSISTENT FREES SEED REGISTRATIONS: runs a round. With PERSISTENT=1, the module makes
# persistent pins. With FREES=1, the driver takes memory away. The figures of the round go to
# /tmp/stress.
one_round() {
	local options=(--seed "$3" --registrations "$4") started=$SECONDS registered least
	local text="seed $3, persistent_api_support=$1, $(($2 * INJECTIONS)) frees injected in 1000"
	if [ "$1" = 0 ]; then options+=(--expect revoked); else options+=(--expect pinned); fi
	[ "$2" = 0 ] || options+=(--injections)
	remember
	load_module persistent_api_support="$1"
	echo "$3" >"$NVIDIA/seed"
	[ "$2" = 0 ] || echo "random $INJECTIONS" >"$NVIDIA/inject"
	check "stress ($text)" gpuverbs stress "${options[@]}" >/tmp/stress
	echo none >"$NVIDIA/inject"
	cat /tmp/stress
	registered=$(figure registered /tmp/stress)
	# With injected frees, the driver may take the memory of most registrations away, so fewer
	# must succeed.
	if [ "$2" = 0 ]; then least=$(($4 / 2)); else least=$(($4 / 4)); fi
	check "more than $least were registered: $registered of $4 ($text)" test "$registered" -gt "$least"
	[ "$2" = 0 ] || check "frees were injected ($text)" test "$(grown injections)" -gt 0
	wait_for "the driver's deferred work" at_rest
	nothing_left "$text"
	equal "the module's own counters ($text)" "0 regions, 0 bytes, 0 orphans" \
		"$(statistic reachable_regions) regions, $(statistic bytes) bytes, $(statistic orphans) orphans"
	check "the module goes ($text)" unload_module
	equal "no violation ($text)" '' "$(violations "$NVIDIA" "$CORE")"
	equal "no report in the log ($text)" '' "$(kernel_reports | head -n 3)"
	say "$registered of $4 registered in $((SECONDS - started)) s ($text)"
}
