# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a million registrations leave no report, and no memory in use
#
# Rounds of stress for as long as the host has more: `tests/run soak` (tests/lab/soaking.py) says which
# is next and notes each that has ended well, so that nothing is lost when a run is cut off. All that
# is left to chance in a round follows from its seed: `SEED=... tests/run scenario soak@debug` repeats one.

# Bytes by which more may be in use than ever before: names of files that were looked up, processes
# that have ended but are not yet forgotten. Bytes of free pages that may be gone: the checkers'
# own memory still grows for some rounds.
GROWTH=$((128 << 10))
FEWER=$((32 << 20))

# The memory in use, and its minimum so far.
IN_USE=/tmp/in_use

# Registrations before the first round, of each kind: they leave what is kept for good.
WARM=1000

# in_use: what the kernel has given away in slabs, from vmalloc and for each processor: BYTES NAME. What it
# could have back at any time is taken back first, and so is what KASAN keeps to see it used.
in_use() {
	local cache objects size
	for cache in /sys/kernel/slab/*; do
		# A link is another name of a cache that is counted already.
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

# measure: how much is in use and free now, in the variables used and free. What the simulated driver
# keeps of its last tables is looked at for writes that came too late, and goes: it was of any size.
measure() { with quarantine_max 0 take_stock; }
take_stock() {
	# Twice: what the first has freed may have held other things.
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
	check "no memory is lost" kmemleak_silent
	measure
	equal "nothing was written into what the driver had freed" '' "$(violations "$NVIDIA" "$CORE")"
	check "memory in use: $used, never before less than $lowest" test $((used - lowest)) -lt "$GROWTH"
	check "free pages: $free, at first $free_at_first" test $((free_at_first - free)) -lt "$FEWER"
	echo "more than ever: $(grown_since "$IN_USE.lowest")"
	[ "$used" -ge "$lowest" ] || is_lowest
	check_machine
	# Once more: measuring has made KASAN give up what it kept.
	equal "no report in the log" '' "$(kernel_reports | head -n 3)"
	# Searched whole each time, the log would take longer and longer.
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

# rounds: all that the host wants.
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
	# The same number as ROUND of soaking.py.
	around "$SEED" 10000
fi
