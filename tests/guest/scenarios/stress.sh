# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
#
# `gpuverbs stress` again and again, each time with another seed that follows from $SEED, one half
# with persistent pins and one half without. The host may ask for more registrations: `tests/run soak`.
registrations=$(word registrations 2500)

# Of a thousand points at which the driver may take memory away, at so many it
# does. One half of all rounds go without: then a refusal has no excuse.
INJECTIONS=20

# Registrations of one round, of four that are different; between two of them everything must
# be clean.
ROUND=625

# figure NAME FILE: the sum of what the rounds in FILE say of it.
figure() { awk -F= -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$2"; }

# one_round PERSISTENT INJECTIONS SEED REGISTRATIONS
one_round() {
	local options=(--seed "$3" --registrations "$4") started=$SECONDS registered
	local text="seed $3, persistent_api_support=$1, $2 frees injected in 1000"
	if [ "$1" = 0 ]; then options+=(--expect revoked); else options+=(--expect pinned); fi
	[ "$2" = 0 ] || options+=(--injections)
	remember
	load_module persistent_api_support="$1"
	echo "$3" >"$NVIDIA/seed"
	[ "$2" = 0 ] || echo "random $2" >"$NVIDIA/inject"
	check "stress ($text)" gpuverbs stress "${options[@]}" >/tmp/stress
	echo none >"$NVIDIA/inject"
	tee -a /tmp/rounds </tmp/stress
	registered=$(figure registered /tmp/stress)
	check "more than half were registered: $registered of $4 ($text)" test $((2 * registered)) -gt "$4"
	[ "$2" = 0 ] || check "frees were injected ($text)" test "$(grown injections)" -gt 0
	wait_for "the driver's deferred work" at_rest
	nothing_left "$text"
	check "the module goes ($text)" unload_module
	equal "no violation ($text)" '' "$(violations "$NVIDIA" "$CORE")"
	equal "no report in the log ($text)" '' "$(kernel_reports | head -n 3)"
	say "$registered of $4 registered in $((SECONDS - started)) s ($text)"
}

. /lab/server.sh
load_neighbours
use_seed
: >/tmp/rounds
left=$registrations number=0
while [ "$left" -gt 0 ] && [ ! -e "$FAILURES" ]; do
	# What is too little for a round of its own belongs to the last one.
	round=$((left < 2 * ROUND ? left : ROUND))
	one_round $((number % 2)) $((number / 2 % 2 * INJECTIONS)) $((SEED + number)) "$round"
	left=$((left - round)) number=$((number + 1))
done

# Over all rounds, or it was not the stress that it is taken for. In less than four not everything comes up.
if [ "$registrations" -lt $((4 * ROUND)) ]; then
	say "what happened is not asked of a run of less than $((4 * ROUND)) registrations"
else
	for name in transfers workers_killed children_killed forks freed_under freed_while_registering \
		freed_while_deregistering deregistered_by_child; do
		check "$name: $(figure "$name" /tmp/rounds)" test "$(figure "$name" /tmp/rounds)" -gt 0
	done
fi
