# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: many registrations leave no report, and no memory in use
#
# The scenario runs rounds of stress until the host has no more rounds. `tests/run soak`
# (tests/lab/reports/soaking.py) says which round is next. It notes each round that has ended well, so
# nothing is lost if a run is cut off. The seed of a round decides all its random choices, so
# `SEED=... tests/run job soak` repeats a round of the kind *rare*, and with an emulated ConnectX
# `SEED=... tests/run job soak-mlx5`; `SEED=... tests/run job soak-many` repeats one of *many*.

# The number of bytes in use may be larger than the minimum by GROWTH, because the kernel keeps
# names of files that were looked up, and ended processes for a while. A round without the checkers
# is five times as long, and has more of the kernel's own threads after it, with up to 30 KiB each.
# Free memory may shrink by FEWER bytes, because the checkers' own memory grows for some rounds.
GROWTH=$((128 << 10))
[ "$MACHINE" = debug ] || GROWTH=$((256 << 10))
FEWER=$((32 << 20))

# This file lists the memory in use. The file with the suffix .lowest lists the smallest memory in
# use so far.
IN_USE=/tmp/in_use

# Before the first round, this number of registrations of each kind is made, because the kernel
# never frees some memory that the first registrations allocate.
WARM=1000

# in_use: prints the memory that the kernel uses in slabs, from vmalloc and for each processor, in
# lines BYTES NAME. First shrinks each cache, so that the cache gives back unused memory and the
# memory that KASAN quarantines.
in_use() {
	local cache objects size
	for cache in /sys/kernel/slab/*; do
		# A link is a second name of a cache. If links were not skipped, the cache would
		# count twice.
		[ ! -L "$cache" ] || continue
		echo 1 >"$cache/shrink" || return
		read -r objects _ <"$cache/objects" || return
		read -r size <"$cache/object_size" || return
		echo "$((objects * size)) ${cache##*/}"
	done
	awk '/^(VmallocUsed|Percpu):/ { print $2 * 1024, $1 }' /proc/meminfo
}

sum() { awk '{ sum += $1 } END { printf "%d\n", sum }' "$@"; }

# grown_since FILE: prints the caches that have grown most since in_use wrote FILE.
grown_since() {
	awk 'NR == FNR { before[$2] = $1; next } $1 > before[$2] { print $1 - before[$2], $2 }' "$1" "$IN_USE" |
		sort -rn | head -n 8 | paste -sd';'
}

free_pages() { awk '$1 == "MemFree:" { printf "%d\n", $2 * 1024 }' /proc/meminfo; }

# measure: sets the variables used and free. Before that, the simulated driver frees its quarantined
# tables, because their size is random. It also checks these tables for late writes.
measure() { with quarantine_max 0 take_stock; }
take_stock() {
	# The kernel is told twice to drop its caches. Objects that are freed the first time may
	# have kept other objects from being freed.
	echo 3 >/proc/sys/vm/drop_caches
	echo 3 >/proc/sys/vm/drop_caches
	in_use >"$IN_USE" || fail "what is in use cannot be counted"
	used=$(sum "$IN_USE")
	free=$(free_pages)
}

is_lowest() {
	lowest=$used
	cp "$IN_USE" "$IN_USE.lowest"
}

warm_up() {
	one_round 0 0 "$SEED" "$WARM"
	one_round 1 0 "$SEED" "$WARM"
	measure
	used_at_first=$used free_at_first=$free
	is_lowest
}

# around SEED REGISTRATIONS: runs a round, and checks the machine after it.
around() {
	report "# seed: $1"
	one_round $(($1 % 2)) $(($1 / 2 % 2)) "$1" "$2"
	[ "$MACHINE" != debug ] || check "no memory is lost" kmemleak_silent
	measure
	equal "nothing was written into what the driver had freed" '' "$(violations "$NVIDIA" "$CORE")"
	check "memory in use: $used, never before less than $lowest" test $((used - lowest)) -lt "$GROWTH"
	check "free pages: $free, at first $free_at_first" test $((free_at_first - free)) -lt "$FEWER"
	echo "more than ever: $(grown_since "$IN_USE.lowest")"
	[ "$used" -ge "$lowest" ] || is_lowest
	check_machine
	# The log is checked again, because measuring made KASAN check its quarantined memory.
	equal "no report in the log" '' "$(kernel_reports | head -n 3)"
	# If each round searched the whole log, rounds would take longer and longer.
	know_reports
}

# note_round SEED: reports the round to the host.
note_round() {
	local figures
	figures=$(grep -xE '[a-z_]+=[0-9]+' /tmp/stress | grep -v '^seed=' | paste -sd' ')
	figures+=" kernel=$(uname -r) in_use=$used free=$free"
	figures+=" in_use_at_first=$used_at_first free_at_first=$free_at_first"
	equal "the host has noted the round" noted "$(ask round_ended "$1" "$figures")"
}

# rounds: runs rounds until the host says `enough` or a check fails.
rounds() {
	local next
	while next=$(ask next_round) && [ "$next" != enough ]; do
		# shellcheck disable=SC2086 # two words
		around $next
		[ ! -e "$FAILURES" ] || break
		note_round "${next% *}"
	done
}

. /lab/server.sh
. /lab/stress.sh
load_neighbours
use_seed
warm_up
if [ "$(word rounds one)" = asked ]; then
	rounds
else
	# KINDS of soak_report.py has the same numbers.
	if [ "$MACHINE" = debug ]; then around "$SEED" 10000; else around "$SEED" 50000; fi
fi
