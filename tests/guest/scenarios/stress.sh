# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
#
# The scenario runs `gpuverbs stress` four times, with and without persistent pins, and with and
# without frees by the driver. $SEED decides the seeds. soak.sh runs more rounds.

# The number of registrations in a round. Nothing may be left after a round.
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

# Each of these events must have happened in some round. If one did not, the stress has tested less
# than it claims.
for name in transfers workers_killed children_killed forks freed_under freed_while_registering \
	freed_while_deregistering deregistered_by_child; do
	check "$name: $(figure "$name" /tmp/rounds)" test "$(figure "$name" /tmp/rounds)" -gt 0
done
