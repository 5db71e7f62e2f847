# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
#
# `gpuverbs stress` again and again, each time with another seed that follows from $SEED, one half
# with persistent pins and one half without, one half with frees by the driver and one half without.
# For a million registrations: soak.sh.

# The registrations of a round. Four rounds differ, and between rounds the machine must be clean.
ROUND=625

. /lab/server.sh
. /lab/stress.sh
load_neighbours
use_seed
: >/tmp/rounds
for number in 0 1 2 3; do
	one_round $((number % 2)) $((number / 2)) $((SEED + number)) "$ROUND"
	cat /tmp/stress >>/tmp/rounds
	[ ! -e "$FAILURES" ] || break
done

# Over all rounds, or it was not the stress that it is taken for.
for name in transfers workers_killed children_killed forks freed_under freed_while_registering \
	freed_while_deregistering deregistered_by_child; do
	check "$name: $(figure "$name" /tmp/rounds)" test "$(figure "$name" /tmp/rounds)" -gt 0
done
