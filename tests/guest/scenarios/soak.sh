# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a million registrations leave no report, and no memory in use
#
# Rounds of stress for as long as the host has more: `tests/run soak` (tests/lab/soak.py) says which is
# next and notes each that has ended well, so that nothing is lost when a run is cut off. What a round
# does follows from its seed: `SEED=... tests/run scenario soak@debug` repeats one.

# Bytes by which the memory in use may differ from that after the first round: names of files
# that were looked up, processes that have ended but are not yet forgotten.
DIFFERENCE=262144

# in_use: bytes that the kernel has given away in slabs, from vmalloc and for each processor. What it
# could have back at any time is taken back first, and so is what KASAN keeps to see it used.
in_use() {
	local cache objects size bytes=0
	echo 3 >/proc/sys/vm/drop_caches
	for cache in /sys/kernel/slab/*; do
		# Another name of one that is counted under its own.
		[ ! -L "$cache" ] || continue
		echo 1 >"$cache/shrink"
		read -r objects _ <"$cache/objects"
		read -r size <"$cache/object_size"
		bytes=$((bytes + objects * size))
	done
	awk -v bytes="$bytes" '/^(VmallocUsed|Percpu):/ { bytes += $2 * 1024 } END { printf "%d\n", bytes }' /proc/meminfo
}

# next_round: SEED REGISTRATIONS, or `enough`. Without a host that knows of rounds it is one.
next_round() {
	local answer
	answer=$(ask next_round)
	case $answer in
	no:*) if [ "$rounds" = 0 ]; then echo "$SEED 2500"; else echo enough; fi ;;
	*) echo "$answer" ;;
	esac
}

# around SEED REGISTRATIONS: a round, and what must hold behind it.
around() {
	report "# seed: $1"
	one_round $(($1 % 2)) $(($1 / 2 % 2)) "$1" "$2"
	check "no memory is lost (seed $1)" kmemleak_silent
	check_machine
	now=$(in_use)
	: "${first:=$now}"
	check "memory in use: $first bytes after the first round, $now after this" test $((now - first)) -lt "$DIFFERENCE"
}

# note_round SEED: the host has what came of it.
note_round() {
	local figures
	figures=$(grep -xE '[a-z_]+=[0-9]+' /tmp/stress | grep -v '^seed=' | paste -sd' ')
	ask round_ended "$1" "in_use=$now free=$(awk '$1 == "MemFree:" { print $2 * 1024 }' /proc/meminfo) $figures" >/dev/null
}

. /lab/server.sh
. /lab/stress.sh
load_neighbours
rounds=0 now=0 first=''
while next=$(next_round) && [ "$next" != enough ]; do
	# shellcheck disable=SC2086 # two words
	around $next
	[ ! -e "$FAILURES" ] || break
	note_round "${next% *}"
	rounds=$((rounds + 1))
	# The log has been looked at; searched whole each time, it would take longer and longer.
	know_reports
done
