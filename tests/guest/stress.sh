# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Stress: `gpuverbs stress` again and again, each time with another seed that
# follows from $SEED, one half with persistent pins and one half without.

# Of a thousand points at which the driver may take memory away, at so many it
# does. One half of all rounds go without: then a refusal has no excuse.
INJECTIONS=20

# Registrations of one round; between two of them everything must be clean.
ROUND=2500

# stress REGISTRATIONS
stress() {
	local left=$1 number=0
	load_gpu
	load_rdma
	say "seed $SEED, $left registrations"
	while [ "$left" -gt 0 ] && [ ! -e "$FAILURES" ]; do
		one_round $((number % 2)) $((number / 2 % 2 * INJECTIONS)) $((SEED + number)) \
			$((left < ROUND ? left : ROUND))
		left=$((left - ROUND)) number=$((number + 1))
	done
}

# one_round PERSISTENT INJECTIONS SEED REGISTRATIONS
one_round() {
	local options=(--seed "$3" --registrations "$4") started=$SECONDS before
	local text="seed $3, persistent_api_support=$1, $2 frees injected in 1000"
	if [ "$1" = 0 ]; then options+=(--expect revoked); else options+=(--expect pinned); fi
	[ "$2" = 0 ] || options+=(--injected-frees)
	before=$(nvidia_count injections)
	load_module persistent_api_support="$1"
	echo "$3" >"$NVIDIA/seed"
	[ "$2" = 0 ] || echo "random $2" >"$NVIDIA/inject"
	check "stress ($text)" gpuverbs stress "${options[@]}" >/tmp/stress
	echo none >"$NVIDIA/inject"
	cat /tmp/stress
	[ "$2" = 0 ] || check "frees were injected ($text)" test "$(nvidia_count injections)" -gt "$before"
	wait_for "the driver's deferred work" driver_at_rest
	equal "nothing is left ($text)" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
	check "the module goes ($text)" unload_module
	equal "no violation ($text)" '' "$(cat "$NVIDIA/violations" "$CORE/violations")"
	equal "no report in the log ($text)" '' "$(kernel_reports | head -n 3)"
	say "$(sed -n 's/^registered=//p' /tmp/stress) of $4 registered in $((SECONDS - started)) s ($text)"
}
