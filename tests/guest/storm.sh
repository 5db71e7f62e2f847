# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Storms: `gpuverbs storm` again and again, each time with another seed that
# follows from $SEED, one half with persistent pins and one half without.

# Of a thousand moments at which the driver may take memory away, at so many it
# does. One half of all storms go without: then a refusal has no excuse.
STRIKES=20

# Registrations of one storm; between two of them everything must be clean.
STORM_SIZE=2500

# storms REGISTRATIONS
storms() {
	local left=$1 number=0
	load_gpu
	load_rdma
	say "seed $SEED, $left registrations"
	while [ "$left" -gt 0 ] && [ ! -e "$FAILURES" ]; do
		one_storm $((number % 2)) $((number / 2 % 2 * STRIKES)) $((SEED + number)) \
			$((left < STORM_SIZE ? left : STORM_SIZE))
		left=$((left - STORM_SIZE)) number=$((number + 1))
	done
}

# one_storm PERSISTENT STRIKES SEED REGISTRATIONS
one_storm() {
	local options=(--seed "$3" --registrations "$4") started=$SECONDS before
	local text="seed $3, persistent_api_support=$1, $2 strikes in 1000"
	if [ "$1" = 0 ]; then options+=(--expect revoked); else options+=(--expect pinned); fi
	[ "$2" = 0 ] || options+=(--strikes)
	before=$(nvidia_count strikes)
	load_module persistent_api_support="$1"
	echo "$3" >"$NVIDIA/seed"
	[ "$2" = 0 ] || echo "random $2" >"$NVIDIA/strike"
	check "storm ($text)" gpuverbs storm "${options[@]}" >/tmp/storm
	echo none >"$NVIDIA/strike"
	cat /tmp/storm
	[ "$2" = 0 ] || check "the driver struck ($text)" test "$(nvidia_count strikes)" -gt "$before"
	wait_for "the driver's deferred work" driver_at_rest
	equal "nothing is left ($text)" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
	check "the module goes ($text)" unload_module
	equal "no violation ($text)" '' "$(cat "$NVIDIA/violations" "$CORE/violations")"
	equal "no report in the log ($text)" '' "$(kernel_reports | head -n 3)"
	say "$(sed -n 's/^registered=//p' /tmp/storm) of $4 registered in $((SECONDS - started)) s ($text)"
}
