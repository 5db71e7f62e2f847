# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Storms: `gpuverbs storm` again and again, each time with another seed that
# follows from $SEED, one half with persistent pins and one half without.

# Registrations of one storm; between two of them everything must be clean.
STORM_SIZE=1250

# storms REGISTRATIONS
storms() {
	local left=$1 number=0
	load_gpu
	load_rdma
	echo "$SEED" >"$NVIDIA/seed"
	say "seed $SEED, $left registrations"
	while [ "$left" -gt 0 ]; do
		one_storm $((number % 2)) $((SEED + number)) $((left < STORM_SIZE ? left : STORM_SIZE)) || return 0
		left=$((left - STORM_SIZE)) number=$((number + 1))
	done
}

driver_at_rest() { [ -z "$(live_gauges "$NVIDIA")" ]; }

# one_storm PERSISTENT SEED REGISTRATIONS
one_storm() {
	local expect=revoked started=$SECONDS text="seed $2, persistent_api_support=$1"
	[ "$1" = 0 ] || expect=pinned
	load_module persistent_api_support="$1"
	check "storm ($text)" gpuverbs storm --seed "$2" --registrations "$3" --expect "$expect" >/tmp/storm || return
	cat /tmp/storm
	wait_for "the driver's deferred work" driver_at_rest
	equal "nothing is left ($text)" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
	check "the module goes ($text)" unload_module
	equal "no violation ($text)" '' "$(cat "$NVIDIA/violations" "$CORE/violations")"
	equal "no report in the log ($text)" '' "$(kernel_reports | head -n 3)"
	say "$(sed -n 's/^registered=//p' /tmp/storm) of $3 registered in $((SECONDS - started)) s ($text)"
}
